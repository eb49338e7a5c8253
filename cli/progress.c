/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: where long work stands, and being asked to stop. */
#include "cli.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define BAR 28

void cli_progress_start(struct cli_progress *progress, const char *label, const char *unit)
{
	*progress = (struct cli_progress){.label = label,
		.unit = unit,
		.started = neap_clock(),
		.terminal = isatty(STDERR_FILENO)};
	progress->shown = progress->started;
}

void cli_progress_clear(struct cli_progress *progress)
{
	if (progress->drawn)
		fputs("\r\033[K", stderr);
	progress->drawn = 0;
}

void cli_progress_show(struct cli_progress *progress, double done, double total, const char *note)
{
	double now = neap_clock(), spent = now - progress->started;
	int whole = done >= total;
	char left[24], rate[32] = "";

	/* Ten times a second for a person; for a log, every ten seconds. */
	if (!whole && now - progress->shown < (progress->terminal ? 0.1 : 10))
		return;
	if (whole && progress->terminal && progress->drawn == 0 && spent < 0.1)
		return;
	progress->shown = now;
	double share = total > 0 ? done / total : 1;
	if (spent > 0)
		snprintf(rate, sizeof rate, "%.3g %s/s", done / spent, progress->unit);
	cli_show_time(left, share > 0 ? spent / share - spent : 1.0 / 0.0);
	if (progress->terminal) {
		char bar[BAR + 1];
		int full = (int)(share * BAR);
		memset(bar, '.', BAR);
		memset(bar, '#', full > BAR ? BAR : (size_t)full);
		bar[BAR] = '\0';
		fprintf(stderr, "\r\033[K%s [%s] %3.0f%%  %s  %s left%s%s", progress->label, bar,
			100 * share, rate, left, note ? "  " : "", note ? note : "");
		progress->drawn = 1;
	} else {
		fprintf(stderr, "%s %.0f/%.0f %s  %s  %s left%s%s\n", progress->label, done, total,
			progress->unit, rate, left, note ? "  " : "", note ? note : "");
	}
	fflush(stderr);
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

void cli_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int cli_interrupted(void)
{
	return interrupted;
}
