/* SPDX-License-Identifier: Apache-2.0 */
/* figure_file.c: names of figures, and PNG by rsvg-convert (figure_file.h). */
#include "figure_file.h"
#include "base/fail.h"
#include "sys/atomic_file.h"
#include "sys/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n > m && strcmp(text + n - m, end) == 0;
}

int cli_figure_named(const char *path)
{
	return cli_ends_in(path, ".svg") || cli_ends_in(path, ".png");
}

static int no_converter(const char *option, const char *command)
{
	return cli_usage(command,
		"--%s: writing a PNG requires rsvg-convert, which is not installed (Debian: "
		"librsvg2-bin). Install it, or use .svg",
		option);
}

int cli_figure_check(const char *option, const char *path, const char *command)
{
	const char *const argv[] = {"rsvg-convert", "--version", NULL};
	char room[NEAP__PLAIN_TEXT], unused[16];

	if (!cli_figure_named(path))
		return cli_usage(command, "--%s: '%s' has an unknown ending; use .svg or .png",
			option, neap__plain_text(room, path));
	int rc = neap__atomic_file_check(path);
	if (rc < 0) {
		neap__fail_in(rc, "--%s: ", option);
		return cli_fail(command, rc);
	}
	if (cli_ends_in(path, ".png") && neap__command(argv, 1, unused, sizeof unused) != 0)
		return no_converter(option, command);
	return CLI_DONE;
}

/* `errors`: what the program printed, whose first line ends in the reason, or "". */
static int failed_png(const char *option, const char *out, const char *command, char *errors)
{
	char room[NEAP__PLAIN_TEXT];

	errors[strcspn(errors, "\n")] = '\0';
	const char *why = neap__plain(errors);
	for (const char *at = why; (at = strstr(at, ": ")) != NULL; why = at)
		at += strlen(": ");
	cli_usage(command, "--%s: rsvg-convert could not draw '%s'%s%s", option,
		neap__plain_text(room, out), *why ? ": " : "", why);
	return CLI_FAILED;
}

/* Draws the SVG beside `out` and turns it into a PNG of twice as many pixels. */
static int write_png(
	const char *option, const char *out, const char *command, cli_make *make, const void *user)
{
	char *svg = NULL, *part = NULL, errors[1000] = "";

	if (asprintf(&svg, "%s.%d.svg.part", out, (int)getpid()) < 0 ||
		asprintf(&part, "%s.%d.part", out, (int)getpid()) < 0)
		return cli_usage(command, "not enough memory to draw");
	int rc = cli_write_file(option, svg, command, make, user);
	if (rc == CLI_DONE) {
		const char *const argv[] = {"rsvg-convert", "-z", "2", "-o", part, svg, NULL};
		int ended = neap__command(argv, 1, errors, sizeof errors);
		if (cli_interrupted())
			rc = cli_fail(command, neap__fail(NEAP_EINTERRUPTED, "interrupted"));
		else if (ended == -ENOENT || ended == 127)
			rc = no_converter(option, command);
		else if (ended == 0 && rename(part, out) < 0)
			rc = cli_fail(command, neap__fail_errno(errno, "--%s: '%s'", option, out));
		else if (ended != 0)
			rc = failed_png(option, out, command, errors);
	}
	unlink(svg);
	unlink(part);
	free(svg);
	free(part);
	return rc;
}

int cli_figure_write(
	const char *option, const char *path, const char *command, cli_make *make, const void *user)
{
	return cli_ends_in(path, ".png") ? write_png(option, path, command, make, user)
					 : cli_write_file(option, path, command, make, user);
}
