/* SPDX-License-Identifier: Apache-2.0 */
/* npz_spread.c: from the last sample to the first, since each moves away from the start
 * (npz_spread.h). */
#include "data/npy/npz_spread.h"
#include "base/checked.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 14 }; /* bytes moved at once, a multiple of every number's */

/* Reads or writes all of a piece. 0 or an errno. */
static int move_piece(int fd, void *data, size_t bytes, int64_t at, int writes)
{
	for (size_t done = 0; done < bytes;) {
		char *from = (char *)data + done;
		off_t place = (off_t)at + (off_t)done;
		ssize_t n = writes ? pwrite(fd, from, bytes - done, place)
				   : pread(fd, from, bytes - done, place);
		if (n < 0 && errno != EINTR)
			return errno;
		if (n == 0)
			return EIO;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int length_of(int64_t *length, const struct neap__npz_samples *s, int fd, int64_t sample)
{
	return move_piece(
		fd, length, sizeof *length, (int64_t)s->from + sample * (int64_t)sizeof *length, 0);
}

/* Checks that the lengths add up, and finds the longest. 0 or an errno. */
static int measure(struct neap__npz_samples *s, int lengths)
{
	int64_t left = s->rows, length = 0;
	uint64_t bytes;

	s->longest = 0;
	for (int64_t i = 0; i < s->samples; i++) {
		int err = length_of(&length, s, lengths, i);
		if (err)
			return err;
		if (length < 0 || length > left)
			return EINVAL;
		left -= length;
		s->longest = length > s->longest ? length : s->longest;
	}
	if (left != 0)
		return EINVAL;
	if (neap__mul_u64(&bytes, (uint64_t)s->samples, (uint64_t)s->longest) < 0 ||
		neap__mul_u64(&bytes, bytes, s->row) < 0 || bytes > INT64_MAX - s->from)
		return EOVERFLOW;
	return 0;
}

/* Moves `bytes` bytes up, the last ones first. 0 or an errno. */
static int move_up(int fd, char *room, int64_t from, int64_t to, int64_t bytes)
{
	int err = 0;

	while (bytes > 0 && from != to && !err) {
		size_t piece = bytes < PIECE ? (size_t)bytes : PIECE;
		bytes -= (int64_t)piece;
		err = move_piece(fd, room, piece, from + bytes, 0);
		if (!err)
			err = move_piece(fd, room, piece, to + bytes, 1);
	}
	return err;
}

/* Writes `bytes` bytes of the pattern in `nan`. 0 or an errno. */
static int fill(int fd, char *nan, int64_t at, int64_t bytes)
{
	int err = 0;

	for (int64_t done = 0; done < bytes && !err; done += PIECE) {
		int64_t left = bytes - done;
		err = move_piece(fd, nan, left < PIECE ? (size_t)left : PIECE, at + done, 1);
	}
	return err;
}

static void make_nan(char nan[PIECE], size_t item)
{
	const double wide = NAN;
	const float narrow = NAN;

	for (size_t at = 0; at < PIECE; at += item)
		memcpy(nan + at, item == sizeof wide ? (const void *)&wide : &narrow, item);
}

int neap__npz_spread(struct neap__npz_samples *s, int rows, int lengths)
{
	int64_t length = 0, row = (int64_t)s->row, end = s->rows;
	char room[PIECE], nan[PIECE];
	int err = measure(s, lengths);

	make_nan(nan, s->item);
	for (int64_t i = s->samples - 1; i >= 0 && !err && s->longest * s->samples != s->rows;
		i--) {
		int64_t to = (int64_t)s->from + i * s->longest * row;
		err = length_of(&length, s, lengths, i);
		end -= length;
		if (!err)
			err = move_up(rows, room, (int64_t)s->from + end * row, to, length * row);
		if (!err)
			err = fill(rows, nan, to + length * row, (s->longest - length) * row);
	}
	return err;
}
