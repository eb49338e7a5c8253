/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: the share of long work that is done: a bar within the terminal's width, or lines. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR 28	    /* columns */
#define BAR_LEAST 6 /* a shorter bar moves too seldom to tell anything */

/* Columns of the terminal; 80 where nothing is known. */
static int columns(void)
{
	struct winsize size;
	const char *text = getenv("COLUMNS");
	int said = text ? atoi(text) : 0;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return said > 0 ? said : 80;
}

/* 1: standard error is a terminal that can move its cursor. */
static int terminal(void)
{
	const char *name = getenv("TERM");
	return isatty(STDERR_FILENO) && name && strcmp(name, "dumb") != 0;
}

void cli_progress_start(struct cli_progress *progress, const char *label, const char *unit)
{
	*progress = (struct cli_progress){
		.label = label, .unit = unit, .started = neap_clock(), .terminal = terminal()};
	progress->shown = progress->started;
}

void cli_progress_clear(struct cli_progress *progress)
{
	if (progress->drawn)
		fputs("\r\033[K", stderr);
	progress->drawn = 0;
}

/* Draws within one line: the rest of a longer one would stay when the next bar is drawn. */
static void draw_bar(const char *label, double share, const char *after)
{
	char bar[BAR + 1], line[400];
	int width = columns() - 1;
	int room = width - (int)(strlen(label) + strlen(after) + sizeof " [] 100%  " - 1);
	int all = room > BAR ? BAR : room, full = (int)(share * all);
	width = width < (int)sizeof line - 1 ? width : (int)sizeof line - 1;
	if (all >= BAR_LEAST) {
		memset(bar, '.', sizeof bar);
		memset(bar, '#', full > all ? (size_t)all : (size_t)full);
		bar[all] = '\0';
		snprintf(line, sizeof line, "%s [%s] %3.0f%%  %s", label, bar, 100 * share, after);
	} else {
		snprintf(line, sizeof line, "%s %3.0f%%  %s", label, 100 * share, after);
	}
	fprintf(stderr, "\r\033[K%.*s", width > 0 ? width : 0, line);
}

void cli_progress_show(struct cli_progress *progress, double done, double total, const char *note)
{
	double now = neap_clock(), spent = now - progress->started;
	int whole = done >= total;
	char left[24], number[24], rate[64] = "", after[300];

	/* On a terminal 10 times a second, in a log every 10 seconds. */
	if (cli_quiet)
		return;
	if (!whole && now - progress->shown < (progress->terminal ? 0.1 : 10))
		return;
	if (whole && progress->terminal && progress->drawn == 0 && spent < 0.1)
		return;
	progress->shown = now;
	double share = total > 0 ? done / total : 1;
	if (spent > 0)
		snprintf(rate, sizeof rate, "%s %s/s", neap__show_number(number, done / spent),
			progress->unit);
	neap__show_time(left, share > 0 ? spent / share - spent : 1.0 / 0.0);
	snprintf(after, sizeof after, "%s  %s left%s%s", rate, left, note ? "  " : "",
		note ? note : "");
	neap__plain(after);
	if (progress->terminal) {
		draw_bar(progress->label, share, after);
		progress->drawn = 1;
	} else {
		fprintf(stderr, "%s %.0f/%.0f %s  %s\n", progress->label, floor(done), total,
			progress->unit, after);
	}
	fflush(stderr);
}

int cli_hides(const char *line)
{
	static const char warning[] = "warning: ";

	return cli_silent || (cli_quiet && strncmp(line, warning, strlen(warning)) != 0);
}
