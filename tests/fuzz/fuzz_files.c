/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_files.c: files in memory and their edits. */
#include "fuzz_files.h"
#include "base/text.h"

#include <string.h>
#include <unistd.h>

static char folder[64];

static void remove_folder(void)
{
	char command[96];
	snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command) != 0)
		fprintf(stderr, "%s stays\n", folder);
}

const char *fuzz_folder(void)
{
	if (folder[0])
		return folder;
	snprintf(folder, sizeof folder, "/dev/shm/neap-fuzz-XXXXXX");
	if (!mkdtemp(folder)) {
		snprintf(folder, sizeof folder, "/tmp/neap-fuzz-XXXXXX");
		FUZZ_CHECK(mkdtemp(folder), "no folder");
	}
	atexit(remove_folder);
	return folder;
}

const char *fuzz_path(const char *name)
{
	static char rooms[4][128];
	static int next;
	char *room = rooms[next++ % 4];
	snprintf(room, sizeof rooms[0], "%s/%s", fuzz_folder(), name);
	return room;
}

void fuzz_write(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "we");
	FUZZ_CHECK(file && fwrite(data, 1, size, file) == size, "%s", path);
	fclose(file);
}

uint8_t *fuzz_read(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	FUZZ_CHECK(file && fseek(file, 0, SEEK_END) == 0, "%s", path);
	*size = (size_t)ftell(file);
	rewind(file);
	uint8_t *data = malloc(*size + 1);
	FUZZ_CHECK(data && fread(data, 1, *size, file) == *size, "%s", path);
	fclose(file);
	return data;
}

static uint8_t *find(uint8_t *file, const struct fuzz_region *regions, int count, size_t place)
{
	for (int i = 0; i < count; i++) {
		if (place < regions[i].size)
			return file + regions[i].at + place;
		place -= regions[i].size;
	}
	return NULL;
}

void fuzz_edit(uint8_t *file, const struct fuzz_region *regions, int count, const uint8_t *data,
	size_t size)
{
	size_t all = 0;

	for (int i = 0; i < count; i++)
		all += regions[i].size;
	while (size >= 4 && all) {
		size_t place = (data[0] | (size_t)data[1] << 8) % all;
		size_t width = (size_t)1 << data[2] % 4;
		data += 3;
		size -= 3;
		width = width < size ? width : size;
		for (size_t i = 0; i < width && place + i < all; i++)
			*find(file, regions, count, place + i) = data[i];
		data += width;
		size -= width;
	}
}

void fuzz_line(int rc)
{
	const char *line = neap_detail();

	if (rc >= 0)
		return;
	FUZZ_CHECK(line[0], "%d without a line", rc);
	for (; *line; line++)
		FUZZ_CHECK(*line != '\n', "two lines");
}

int fuzz_heaps(const uint8_t *file, size_t bytes, struct fuzz_region *regions, int most)
{
	int n = 0;

	for (size_t at = 0; at + 16 < bytes; at++) {
		uint64_t size;
		if (memcmp(file + at, "GCOL", 4) != 0)
			continue;
		memcpy(&size, file + at + 8, 8);
		size = size < 1024 ? size : 1024;
		if (n < most && at + size <= bytes)
			regions[n++] = (struct fuzz_region){at, (size_t)size};
		for (size_t row = 4; row + 12 <= bytes && n < most; row++)
			if (memcmp(file + row, (uint64_t[]){at}, 8) == 0)
				regions[n++] = (struct fuzz_region){row - 4, 16};
	}
	return n;
}

unsigned fuzz_next(struct fuzz_bytes *b)
{
	if (b->left == 0)
		return 0;
	b->left--;
	return *b->at++;
}
