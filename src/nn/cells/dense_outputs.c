/* SPDX-License-Identifier: Apache-2.0 */
/* dense_outputs.c: lists and views of all units. */
#include "nn/cells/dense_outputs.h"

real *neap__output_all(struct neap__at *at)
{
	at->now->count = at->layer->n;
	at->now->id = at->net->identity;
	at->now->value = at->now->value_room;
	return at->now->value_room;
}

void neap__view_all(const struct neap__at *at, struct neap__view *view, const real *y)
{
	const uint16_t *all = at->net->identity;

	view->spikes = (struct neap__list){.count = at->layer->n, .id = all, .value = y};
	view->active = at->layer->n;
	view->active_id = all;
}
