/* SPDX-License-Identifier: Apache-2.0 */
/* step_viewer.h: what the units of a net did in the step just made, as struct neap_step_view. */
#ifndef NEAP_TRAIN_ANSWERS_STEP_VIEWER_H
#define NEAP_TRAIN_ANSWERS_STEP_VIEWER_H

#include <neap/train.h>

struct neap__layer;

enum { NEAP__LAYER_NAME = 24 }; /* bytes of "layer0" */

struct neap__step_viewer {
	struct neap_step_view view;
	const struct neap_net *net; /* borrowed */
	struct neap_layer_view *layers;
	char (*names)[NEAP__LAYER_NAME];
	const char **state_name; /* [layers][NEAP__SHOWN_MOST] */
	const double **state;	 /* the same shape: rows of `numbers` */
	double *numbers;
};

/* Makes room for views of a net; all zero and freed by the same calls. 0 or -ENOMEM. */
int neap__step_viewer_open(struct neap__step_viewer *viewer, const struct neap_net *net);
void neap__step_viewer_close(struct neap__step_viewer *viewer);
/* NEAP_EUSAGE: the net runs on a device that does not report the spikes of all layers. */
int neap__step_viewer_sees(const struct neap_net *net);
/*
 * The view of step t of the batch's only sample, from the batch's state after a call of
 * neap_net_advance that ended with that step. Valid until the net goes on.
 */
const struct neap_step_view *neap__step_viewer_look(
	struct neap__step_viewer *viewer, const void *state, int64_t t);

/* 1: the layer's units spike, or do nothing; 0: its outputs are numbers of all units. */
int neap__layer_has_spikes(const struct neap__layer *layer);

#endif
