/* SPDX-License-Identifier: Apache-2.0 */
/* text_like.c: whether a file is a text, by its name and its first bytes. */
#include "base/text_like.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "base/text.h"

/* 1: by its name, the file is data, or a document that only programs read. */
static int is_data(const char *path)
{
	static const char *const data[] = {".csv", ".tsv", "_events.txt", ".json", ".jsonl", ".xml",
		".svg", ".pdf", ".ps", ".eps", ".rtf", ".wav", ".flac", ".npz", ".npy", ".h5"};
	size_t n = strlen(path);

	for (size_t i = 0; i < sizeof data / sizeof data[0]; i++)
		if (n >= strlen(data[i]) && strcasecmp(path + n - strlen(data[i]), data[i]) == 0)
			return 1;
	return 0;
}

int neap__text_like(const char *path)
{
	enum { HEAD = 4096 /* bytes that are looked at */ };
	char head[HEAD + 1];
	FILE *file = is_data(path) ? NULL : fopen(path, "rb");
	size_t n = file ? fread(head, 1, HEAD, file) : 0, i = 0;

	if (file)
		fclose(file);
	head[n] = '\0';
	while (i < n) {
		int bytes = neap__utf8_bytes(head + i);
		if (bytes == 0 && n == HEAD && i + 4 > n) /* a character that is cut off */
			break;
		if (bytes == 0 || !head[i] ||
			(neap__is_control(head + i) && !strchr("\t\n\r\f", head[i])))
			return 0;
		i += (size_t)bytes;
	}
	return n > 0;
}
