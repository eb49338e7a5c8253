/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_lines.c: stands where cli/refuse.c stands in the tool: lines are not
 * printed but looked at; each refusal has exactly one, and it is clean.
 */
#include "cli.h"
#include "fuzz.h"

#include <stdarg.h>
#include <string.h>

static int lines;

int cli_usage(const char *command, const char *format, ...)
{
	char line[1024];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	FUZZ_CHECK(command[0] && n > 0, "an empty line");
	lines++;
	return CLI_USAGE;
}

int cli_fail(const char *command, int code)
{
	FUZZ_CHECK(code < 0 && neap_detail()[0], "code %d without a line", code);
	return cli_usage(command, "%s", neap_detail());
}

int cli_finish(const char *command)
{
	(void)command;
	return CLI_DONE;
}

void fuzz_refused(int code)
{
	FUZZ_CHECK(lines == (code != CLI_DONE), "%d lines, code %d", lines, code);
	lines = 0;
}
