/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_figure.h: one sample in a figure: what entered, what each layer did, what the readout made
 * of it, step by step. Memory grows neither with the steps nor with the units.
 */
#ifndef NEAP_CLI_SAMPLE_FIGURE_H
#define NEAP_CLI_SAMPLE_FIGURE_H

#include "cli.h"
#include <neap/train.h>

struct cli_sample_figure;

/* 0 or -ENOMEM. Freed by the other call; NULL is fine there. */
int cli_sample_figure_make(struct cli_sample_figure **figure, const char *data);
void cli_sample_figure_free(struct cli_sample_figure *figure);
/* Takes in a step of the sample that came first; others are passed over. 0 or a negative code. */
int cli_sample_figure_step(struct cli_sample_figure *figure, const struct neap_step_view *view);
/* The same of an answer. */
int cli_sample_figure_answer(struct cli_sample_figure *figure, const struct neap_answer *answer);
/* Draws it; `user` is the figure (cli_make). */
int cli_sample_figure_draw(
	const void *user, int (*write)(void *file, const char *text, size_t length), void *file);

#endif
