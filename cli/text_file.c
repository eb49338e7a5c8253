/* SPDX-License-Identifier: Apache-2.0 */
/* text_file.c: reads text files whole, and writes them whole or not at all. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MOST ((size_t)256 << 20) /* bytes; more is no chain file or plan */

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

static int put_text(void *file, const char *text, size_t length)
{
	return fwrite(text, 1, length, file) == length ? 0 : errno ? -errno : -EIO;
}

int cli_write_file(
	const char *option, const char *path, const char *command, cli_make *make, const void *user)
{
	char beside[4096];
	int n = snprintf(beside, sizeof beside, "%s.part", path);
	errno = ENAMETOOLONG;
	FILE *file = n > 0 && (size_t)n < sizeof beside ? fopen(beside, "we") : NULL;
	if (!file)
		return cli_usage(
			command, "--%s: cannot write '%s': %s", option, path, strerror(errno));
	int rc = make(user, put_text, file);
	if (rc >= 0 && (fflush(file) != 0 || fsync(fileno(file)) != 0))
		rc = errno ? -errno : -EIO;
	int closed = fclose(file);
	if (rc >= 0 && closed == 0 && rename(beside, path) == 0)
		return CLI_DONE;
	int err = rc < 0 && rc > -4096 ? -rc : errno;
	remove(beside);
	if (rc == NEAP_EUSAGE || rc == NEAP_EINFEASIBLE)
		return cli_fail(command, rc);
	return cli_usage(command, "--%s: cannot write '%s': %s", option, path, strerror(err));
}
