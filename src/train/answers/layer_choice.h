/* SPDX-License-Identifier: Apache-2.0 */
/* layer_choice.h: which layers of a net arrays of its steps are of (neap_eval_options.layer). */
#ifndef NEAP_TRAIN_ANSWERS_LAYER_CHOICE_H
#define NEAP_TRAIN_ANSWERS_LAYER_CHOICE_H

struct neap_net;

/* Sets the layer that `name` says: "layer0", "0" or "readout"; -1, all, where it is NULL. 0, or
 * NEAP_EUSAGE with a line about which there are. */
int neap__layer_choice(int *layer, const struct neap_net *net, const char *name);
/* 0 where the layer spikes, or of -1 one does; else NEAP_EUSAGE with a line about what they are. */
int neap__layer_choice_spikes(const struct neap_net *net, int layer);

#endif
