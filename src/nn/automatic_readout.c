/* SPDX-License-Identifier: Apache-2.0 */
/* automatic_readout.c: the readout of NEAP_READ_AUTO, by the cell of the last hidden layer
 * (spec.h). */
#include "nn/cellfile/cell_program.h"
#include "nn/cells/cells.h"
#include "nn/spec.h"

#include <string.h>

enum neap_readout neap__automatic_readout(const struct neap_net_options *o, int of_numbers)
{
	const char *readout = o->spec ? strrchr(o->spec, ',') : NULL, *name = readout;

	while (name && name > o->spec && name[-1] != ',')
		name--;
	int length = name ? (int)strcspn(name, ":,") : 0;
	const struct neap__cell *cell = length ? neap__cell_find(name, (size_t)length) : NULL;
	int spikes = cell ? !(cell->traits & NEAP__IS_RECURRENT)
			  : length && neap__cell_program_named(name, length);

	if (!cell && !spikes)
		return NEAP_READ_MEAN;
	if (spikes)
		return of_numbers ? NEAP_READ_MEAN : NEAP_READ_SUM;
	return o->values && !(cell->traits & NEAP__HAS_THRESHOLD) ? NEAP_READ_LAST : NEAP_READ_MEAN;
}
