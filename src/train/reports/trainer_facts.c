/* SPDX-License-Identifier: Apache-2.0 */
/* trainer_facts.c: what all parts of a training run ask of it, and the line that they report. */
#include "train/trainer.h"
#include "nn/core/cell.h"
#include "base/fail.h"
#include "base/print.h"

#include <inttypes.h>
#include <stdarg.h>

void neap__trainer_say(const struct neap__trainer *trainer, const char *format, ...)
{
	char line[NEAP__DETAIL_BYTES];
	va_list args;

	if (!trainer->options.say || !neap__ranks_root(&trainer->ranks))
		return;
	va_start(args, format);
	neap__vprint(line, sizeof line, format, args);
	va_end(args);
	trainer->options.say(trainer->options.user, line);
}

int neap__trainer_trace(struct neap__trainer *trainer)
{
	const char *path = trainer->options.sweep.trace;

	NEAP_TRY(neap_trace_write(path, &trainer->trace, 1));
	trainer->traced = trainer->planning.sweeps;
	neap__trainer_say(trainer,
		"trace of batch %" PRId64 " in '%s': %" PRId64 " events, %" PRId64
		" older ones dropped",
		trainer->traced, path, neap_trace_events(trainer->trace),
		neap_trace_dropped(trainer->trace));
	return 0;
}

int neap__chooses_best(const struct neap__trainer *trainer)
{
	return trainer->data.validation &&
	       trainer->data.nsecond >= trainer->options.validation_least;
}

int64_t neap__training_sample(const struct neap__data *d, int64_t i, int64_t some)
{
	int64_t k = (int64_t)((double)i * (double)d->nfirst / (double)some);
	return d->first ? d->first[k] : k;
}
