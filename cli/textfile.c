/* SPDX-License-Identifier: Apache-2.0 */
/* textfile.c: text files, read whole and written whole or not at all. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MOST ((size_t)64 << 20)

int cli_read_text(char **text, size_t *size, const char *path, const char *command)
{
	FILE *file = fopen(path, "re");
	size_t length = 0, room = 0;
	char *data = NULL;
	*text = NULL;
	if (!file)
		return cli_usage(command, "%s: cannot be read: %s", path, strerror(errno));
	for (;;) {
		if (length + 1 >= room) {
			room = room ? 2 * room : 4096;
			char *more = room <= 2 * FILE_MOST ? realloc(data, room) : NULL;
			if (!more) {
				free(data);
				fclose(file);
				return cli_usage(
					command, "%s: larger than %zu bytes", path, FILE_MOST);
			}
			data = more;
		}
		size_t n = fread(data + length, 1, room - length - 1, file);
		length += n;
		if (n == 0)
			break;
	}
	int failed = ferror(file) ? errno : 0;
	fclose(file);
	data[length] = '\0';
	*text = data;
	if (size)
		*size = length;
	if (failed)
		return cli_usage(command, "%s: cannot be read: %s", path, strerror(failed));
	if (strlen(data) != length)
		return cli_usage(command, "%s: not text", path);
	return CLI_DONE;
}
