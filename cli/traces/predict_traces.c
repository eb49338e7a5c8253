/* SPDX-License-Identifier: Apache-2.0 */
/* predict_traces.c: checks of what `neap predict` writes of units (predict_traces.h). */
#include "predict_traces.h"
#include "figure_file.h"
#include "sample_figure.h"

#include <signal.h>

int cli_traces_take(struct neap_eval_options *o, struct cli_traces *traces)
{
	char room[NEAP__PLAIN_TEXT];
	const char *path[] = {o->spikes, o->membranes}, *name[] = {"spikes", "membranes"};

	for (int i = 0; i < 2; i++)
		if (path[i] && !cli_ends_in(path[i], ".npz"))
			return cli_usage("predict", "--%s: '%s' has an unknown ending; use .npz",
				name[i], neap__plain_text(room, path[i]));
	if (o->layer && !o->spikes && !o->membranes)
		return cli_usage("predict",
			"--layer selects what --spikes or --membranes write. Pass one of "
			"them, or remove --layer");
	if (o->spikes || o->membranes || traces->plot)
		signal(SIGPIPE,
			SIG_IGN); /* who reads the lines may go: no file is left half-written */
	if (traces->sample_given)
		o->sample = &traces->sample;
	if (!traces->plot)
		return CLI_DONE;
	int code = cli_figure_check("plot", traces->plot, "predict");
	if (code != CLI_DONE)
		return code;
	int rc = cli_sample_figure_make(&traces->figure, o->data);
	return rc < 0 ? cli_fail("predict", rc) : CLI_DONE;
}

int cli_traces_end(struct cli_traces *traces, int code)
{
	if (code == CLI_DONE && traces->figure)
		code = cli_figure_write(
			"plot", traces->plot, "predict", cli_sample_figure_draw, traces->figure);
	cli_sample_figure_free(traces->figure);
	traces->figure = NULL;
	return code;
}
