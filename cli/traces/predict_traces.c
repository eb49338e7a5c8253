/* SPDX-License-Identifier: Apache-2.0 */
/* predict_traces.c: checks of what `neap predict` writes of units (predict_traces.h). */
#include "predict_traces.h"

#include <string.h>

static int is_archive(const char *path)
{
	size_t n = strlen(path);
	return n > 4 && strcmp(path + n - 4, ".npz") == 0;
}

int cli_traces_take(struct neap_eval_options *o, const struct cli_traces *traces)
{
	char room[NEAP__PLAIN_TEXT];
	const char *path[] = {o->spikes, o->membranes}, *name[] = {"spikes", "membranes"};

	for (int i = 0; i < 2; i++)
		if (path[i] && !is_archive(path[i]))
			return cli_usage("predict", "--%s: '%s' does not end in .npz", name[i],
				neap__plain_text(room, path[i]));
	if (o->layer && !o->spikes && !o->membranes)
		return cli_usage(
			"predict", "--layer goes with --spikes or --membranes; neither is there");
	if (traces->sample_given)
		o->sample = &traces->sample;
	return CLI_DONE;
}
