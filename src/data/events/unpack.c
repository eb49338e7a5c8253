/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c: decompression in pieces (unpack.h). */
#include "data/events/unpack.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#if NEAP_WITH_LZ4
#include <lz4frame.h>
#endif
#if NEAP_WITH_ZSTD
#include <zstd.h>
#endif

enum { PIECE = 1 << 16 /* least room for output, bytes; chosen */ };

#if NEAP_WITH_LZ4 || NEAP_WITH_ZSTD
/* Makes room for the next piece. */
static int make_room(struct neap__unpacked *out, const char *path)
{
	if (out->room - out->bytes >= PIECE)
		return 0;
	if (out->bytes >= NEAP__MOST_UNPACKED)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has a packet that decompresses to more than %zu bytes. Write the "
			"recording in smaller packets",
			path, NEAP__MOST_UNPACKED);
	size_t room = out->room ? 2 * out->room : 4 * (size_t)PIECE;
	unsigned char *more = realloc(out->data, room);
	if (!more)
		return neap__fail_errno(ENOMEM, "'%s': a packet", path);
	out->data = more;
	out->room = room;
	return 0;
}

static int damaged(const char *path, const char *kind)
{
	return neap__fail(NEAP_EFORMAT,
		"'%s' is damaged: a packet cannot be decompressed with %s. Replace it with an "
		"intact copy",
		path, kind);
}
#endif

#if NEAP_WITH_LZ4
static int unpack_lz4(
	struct neap__unpacked *out, const unsigned char *in, size_t bytes, const char *path)
{
	LZ4F_dctx *context;
	if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
		return neap__fail_errno(ENOMEM, "'%s': a packet", path);
	size_t left = 1; /* bytes that the frame still needs, about; 0 at its end */
	int rc = 0;
	while (left > 0 && (rc = make_room(out, path)) == 0) {
		size_t made = out->room - out->bytes, taken = bytes;
		left = LZ4F_decompress(context, out->data + out->bytes, &made, in, &taken, NULL);
		if (LZ4F_isError(left) || (left > 0 && made == 0 && taken == 0)) {
			rc = damaged(path, "LZ4");
			break;
		}
		out->bytes += made;
		in += taken;
		bytes -= taken;
	}
	LZ4F_freeDecompressionContext(context);
	return rc;
}
#endif

#if NEAP_WITH_ZSTD
static int unpack_zstd(
	struct neap__unpacked *out, const unsigned char *in, size_t bytes, const char *path)
{
	ZSTD_DStream *stream = ZSTD_createDStream();
	ZSTD_inBuffer from = {in, bytes, 0};
	if (!stream || ZSTD_isError(ZSTD_initDStream(stream))) {
		ZSTD_freeDStream(stream);
		return neap__fail_errno(ENOMEM, "'%s': a packet", path);
	}
	size_t left = 1; /* 0 at the end of the frame */
	int rc = 0;
	while (left > 0 && (rc = make_room(out, path)) == 0) {
		ZSTD_outBuffer to = {out->data, out->room, out->bytes};
		size_t before = from.pos;
		left = ZSTD_decompressStream(stream, &to, &from);
		if (ZSTD_isError(left) ||
			(left > 0 && to.pos == out->bytes && from.pos == before)) {
			rc = damaged(path, "Zstandard");
			break;
		}
		out->bytes = to.pos;
	}
	ZSTD_freeDStream(stream);
	return rc;
}
#endif

static int copy(struct neap__unpacked *out, const unsigned char *in, size_t bytes, const char *path)
{
	if (out->room < bytes) {
		free(out->data);
		out->room = 0;
		if (!(out->data = malloc(bytes)))
			return neap__fail_errno(ENOMEM, "'%s': a packet", path);
		out->room = bytes;
	}
	if (bytes > 0)
		memcpy(out->data, in, bytes);
	out->bytes = bytes;
	return 0;
}

int neap__unpack(struct neap__unpacked *out, enum neap__packing packing, const unsigned char *in,
	size_t bytes, const char *path)
{
	out->bytes = 0;
	switch (packing) {
	case NEAP__PLAIN:
		return copy(out, in, bytes, path);
#if NEAP_WITH_LZ4
	case NEAP__LZ4:
		return unpack_lz4(out, in, bytes, path);
#endif
#if NEAP_WITH_ZSTD
	case NEAP__ZSTD:
		return unpack_zstd(out, in, bytes, path);
#endif
	default:
		return neap__fail(NEAP_EFORMAT,
			"'%s' is compressed with %s, but this build of neap has no %s. Write it "
			"without compression, or build neap with %s",
			path, packing == NEAP__LZ4 ? "LZ4" : "Zstandard",
			packing == NEAP__LZ4 ? "liblz4" : "libzstd",
			packing == NEAP__LZ4 ? "liblz4-dev" : "libzstd-dev");
	}
}
