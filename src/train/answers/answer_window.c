/* SPDX-License-Identifier: Apache-2.0 */
/* answer_window.c: a ring of parts, added up for each answer (answer_window.h). */
#include "train/answers/answer_window.h"
#include "nn/step_view.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INTERVALS_MOST = 1000000 };

int neap__answer_window_check(double window, double every)
{
	double n = round(window / every);

	if (n >= 1 && n <= INTERVALS_MOST && fabs(window - n * every) <= 1e-9 * window)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"--window is %g s; it must be a multiple of --every (%g s), at most %d of them",
		window, every, INTERVALS_MOST);
}

int neap__answer_window_init(struct neap__answer_window *w, double seconds, double every,
	enum neap_readout readout, int classes)
{
	*w = (struct neap__answer_window){.readout = readout,
		.classes = classes,
		.intervals = (int64_t)round(seconds / every)};
	w->part = calloc((size_t)w->intervals * (size_t)classes, sizeof *w->part);
	w->steps = calloc((size_t)w->intervals, sizeof *w->steps);
	return w->part && w->steps
		       ? 0
		       : neap__fail_errno(ENOMEM, "not enough memory for a window of answers");
}

void neap__answer_window_free(struct neap__answer_window *w)
{
	free(w->part);
	free(w->steps);
	memset(w, 0, sizeof *w);
}

void neap__answer_window_add(
	struct neap__answer_window *w, const struct neap_net *net, void *state, int64_t steps)
{
	int64_t at = w->count++ % w->intervals;

	/* A mean over one step is the sum over the interval. */
	neap__answer_so_far(w->part + at * w->classes, net, state, 0, 1);
	neap__answer_restart(net, state, 0);
	w->steps[at] = steps;
}

void neap__answer_window_answer(const struct neap__answer_window *w, double *answer)
{
	int64_t held = w->count < w->intervals ? w->count : w->intervals, steps = 0;
	int largest = w->readout == NEAP_READ_MAX, last = w->readout == NEAP_READ_LAST;

	for (int64_t i = w->count - (last ? 1 : held); i < w->count; i++) {
		const double *part = w->part + i % w->intervals * w->classes;
		int first = i == w->count - (last ? 1 : held);
		steps += w->steps[i % w->intervals];
		for (int c = 0; c < w->classes; c++)
			answer[c] = first     ? part[c]
				    : largest ? fmax(answer[c], part[c])
					      : answer[c] + part[c];
	}
	if (w->readout == NEAP_READ_MEAN || w->readout == NEAP_READ_STEP)
		for (int c = 0; c < w->classes; c++)
			answer[c] /= (double)steps;
}
