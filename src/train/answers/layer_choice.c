/* SPDX-License-Identifier: Apache-2.0 */
/* layer_choice.c: names of layers (layer_choice.h). */
#include "train/answers/layer_choice.h"
#include "train/answers/step_viewer.h"
#include "nn/core/cell.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/text.h"

#include <string.h>

/* The number that a text is, of at most 5 digits; -1: it is none. */
static int number_of(const char *text)
{
	int n = 0, digits = 0;

	for (; *text >= '0' && *text <= '9' && digits < 6; digits++)
		n = 10 * n + *text++ - '0';
	return *text || digits == 0 || digits > 5 ? -1 : n;
}

int neap__layer_choice(int *layer, const struct neap_net *net, const char *name)
{
	int hidden = net->nlayers - 1;
	char room[NEAP__PLAIN_TEXT], known[40];

	*layer = -1;
	if (!name)
		return 0;
	*layer = strcmp(name, "readout") == 0
			 ? hidden
			 : number_of(strncmp(name, "layer", 5) == 0 ? name + 5 : name);
	if (*layer == hidden && strcmp(name, "readout") != 0)
		*layer = -1;
	if (*layer >= 0 && *layer <= hidden)
		return 0;
	neap__print(known, sizeof known, hidden > 1 ? "0 to %d" : "0", hidden - 1);
	return neap__fail(NEAP_EUSAGE,
		"--layer: the network has no layer '%.60s'; it has %s, and readout",
		neap__plain_text(room, name), hidden > 0 ? known : "no others");
}

int neap__layer_choice_spikes(const struct neap_net *net, int layer)
{
	struct neap__text cells = {0};

	for (int l = 0; l < net->nlayers - 1; l++)
		if ((layer < 0 || l == layer) && neap__layer_has_spikes(&net->layers[l]))
			return 0;
	for (int l = 0; l < net->nlayers; l++)
		if (layer < 0 ? l < net->nlayers - 1 : l == layer)
			neap__text_add(&cells, "%s%s%s", cells.length ? ", " : "",
				net->layers[l].cell->name,
				net->layers[l].cell->readout ? " (readout)" : "");
	int rc = neap__fail(NEAP_EUSAGE,
		"--spikes: %.200s has no spikes; its outputs are numbers. Use --membranes",
		cells.data ? cells.data : "the readout");
	neap__text_free(&cells);
	return rc;
}
