/* SPDX-License-Identifier: Apache-2.0 */
/* predict_traces.h: options of `neap predict` about what units do in every step. */
#ifndef NEAP_CLI_PREDICT_TRACES_H
#define NEAP_CLI_PREDICT_TRACES_H

#include "cli.h"
#include <neap/train.h>

struct cli_sample_figure;

struct cli_traces {
	int64_t sample;
	int sample_given;
	const char *plot;		  /* NULL: none */
	struct cli_sample_figure *figure; /* made by cli_traces_take */
};

/* clang-format off */
#define CLI_TRACE_OPTIONS(o, traces) \
	CLI_GROUP("Spikes and membranes"), \
	{.name = "spikes", .kind = CLI_TEXT, .into = &(o).spikes, .argument = "F.npz", \
		.help = "NumPy archive to write with the spikes of every layer, step and unit (default: none)"}, \
	{.name = "membranes", .kind = CLI_TEXT, .into = &(o).membranes, .argument = "F.npz", \
		.help = "NumPy archive to write with the states of all layers and the readout in every step " \
			"(default: none)"}, \
	{.name = "layer", .kind = CLI_TEXT, .into = &(o).layer, .argument = "N", \
		.help = "layer to write, counted from 0, or readout (default: all)"}, \
	{.name = "plot", .kind = CLI_TEXT, .into = &(traces).plot, .argument = "F.svg|F.png", \
		.help = "drawing to write of one sample: inputs, spikes of all layers, and the readout over " \
			"time (default: none)"}, \
	{.name = "sample", .kind = CLI_INT, .into = &(traces).sample, .argument = "N", \
		.help = "index of the only sample to answer, counted from 0 (default: all; --plot draws the " \
			"first)", \
		.high = 1e15, .given = &(traces).sample_given, \
		.wrong = "Pass one index, or leave out --sample for the answers of all samples"}
/* clang-format on */

/* Checks the options and takes them over. CLI_DONE or one line. */
int cli_traces_take(struct neap_eval_options *o, struct cli_traces *traces);
/* Draws the figure, where one is asked for, and frees it; `code` is what was before. CLI_DONE, or
 * one line. */
int cli_traces_end(struct cli_traces *traces, int code);

#endif
