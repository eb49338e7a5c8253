/* SPDX-License-Identifier: Apache-2.0 */
/* failure.c: the line and the exit code of a command that fails. */
#include "cli.h"
#include "rank_process.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static char held[NEAP__PLAIN_TEXT]; /* the first line that was held back */
static int holds;

void cli_hold_failures(void)
{
	holds = 1;
}

const char *cli_held_failure(void)
{
	return held;
}

int cli_usage(const char *command, const char *format, ...)
{
	char line[NEAP__PLAIN_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	cli_repeat_add(line, sizeof line);
	if (holds && !*held)
		memcpy(held, line, sizeof held);
	if (!holds)
		fprintf(stderr, "neap %s: %s\n", command, neap__plain(line));
	return CLI_USAGE;
}

int cli_is_bad_input(int code)
{
	/* Codes of failures that other arguments or files would avoid. */
	static const int input[] = {NEAP_EUSAGE, NEAP_EFORMAT, NEAP_EINFEASIBLE, NEAP_EOVERFLOW,
		-ENOENT, -EACCES, -EISDIR, -ENOTDIR, -EEXIST, -EROFS, -EPERM, -ENAMETOOLONG, -ELOOP,
		-EINVAL, -ENOTEMPTY, -ENXIO, -ENODEV};

	for (size_t i = 0; i < sizeof input / sizeof input[0]; i++)
		if (input[i] == code)
			return 1;
	return 0;
}

int cli_fail(const char *command, int code)
{
	cli_usage(command, "%s", neap_detail()[0] ? neap_detail() : neap_strerror(code));
	return cli_is_bad_input(code) ? CLI_USAGE : CLI_FAILED;
}

int cli_finish(const char *command)
{
	if (fflush(stdout) != 0 || ferror(stdout)) {
		if (errno == EPIPE)
			return CLI_READER_LEFT;
		cli_usage(command, "cannot write to standard output: %s", strerror(errno));
		return CLI_FAILED;
	}
	return CLI_DONE;
}
