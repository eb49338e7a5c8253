/* SPDX-License-Identifier: Apache-2.0 */
/* text_file.c: reads text files whole, and writes texts through sys/atomic_file.h. */
#include "cli.h"
#include "base/fail.h"
#include "sys/atomic_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MOST ((size_t)256 << 20) /* bytes; more is no chain file or plan */

int cli_read_text(char **text, size_t *size, const char *path, const char *command)
{
	FILE *file = fopen(path, "re");
	size_t length = 0, room = 0;
	char *data = NULL;
	*text = NULL;
	if (!file)
		return cli_usage(command, "cannot read '%s': %s", path, strerror(errno));
	for (;;) {
		if (length + 1 >= room) {
			room = room ? 2 * room : 4096;
			char *more = room <= 2 * FILE_MOST ? realloc(data, room) : NULL;
			if (!more) {
				free(data);
				fclose(file);
				return cli_usage(command,
					"'%s' is larger than %zu bytes, the limit for this file",
					path, FILE_MOST);
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
		return cli_usage(command, "cannot read '%s': %s", path, strerror(failed));
	if (strlen(data) != length)
		return cli_usage(
			command, "'%s' is not a text file. Pass one with a line per name", path);
	return CLI_DONE;
}

int cli_is_output(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

int cli_same_file(const char *a, const char *b)
{
	struct stat one, other;

	return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

int cli_check_output(const char *option, const char *path, const char *read, const char *command)
{
	struct stat st;

	if (!path || stat(path, &st) < 0 || !S_ISREG(st.st_mode) || !cli_same_file(path, read))
		return CLI_DONE;
	return cli_usage(command,
		"--%s: '%s' would replace the data that is read. Choose another file", option,
		path);
}

struct output {
	struct neap__atomic_file *file;
	int failed; /* 1: the file could not be written; other failures are of the text */
};

static int put_text(void *into, const char *text, size_t length)
{
	struct output *output = into;
	int rc = neap__atomic_file_write(output->file, text, length);
	output->failed |= rc < 0;
	return rc;
}

int cli_write_file(
	const char *option, const char *path, const char *command, cli_make *make, const void *user)
{
	struct output output = {.failed = 1};
	int rc = neap__atomic_file_open(&output.file, path);

	if (rc >= 0) {
		output.failed = 0;
		rc = make(user, put_text, &output);
		if (rc < 0) {
			neap__atomic_file_abort(output.file);
		} else {
			output.failed = 1;
			rc = neap__atomic_file_commit(output.file);
		}
	}
	if (rc >= 0)
		return CLI_DONE;
	if (output.failed && rc == -EPIPE && cli_is_output(path))
		return CLI_READER_LEFT;
	if (output.failed && rc == -ENOENT) /* the file itself is made */
		return cli_usage(command,
			"--%s: cannot write '%s': its folder does not exist. Create the folder, or "
			"choose another file",
			option, path);
	if (output.failed)
		neap__fail_in(rc, "--%s: ", option);
	return cli_fail(command, rc);
}
