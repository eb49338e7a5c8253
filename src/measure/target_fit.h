/* SPDX-License-Identifier: Apache-2.0 */
/* target_fit.h: what a net and its loss have to be for the inputs and targets of a data set. */
#ifndef NEAP_MEASURE_TARGET_FIT_H
#define NEAP_MEASURE_TARGET_FIT_H

#include <neap/data.h>
#include <neap/net.h>

enum { NEAP__FIT_LINE = 160 };

/* Chooses the specification for the inputs of a set if none is given. */
void neap__spec_fit(struct neap_net_options *net, const struct neap_dataset *set);

/*
 * Fits net and loss to a set: inputs that are values; the readout `step` instead of
 * `auto` or `mean` if targets are per step; mse instead of cross-entropy, and no smoothing by
 * default, if they are numbers. `changed` gets a line about readout and loss, or nothing. 0, or
 * NEAP_EUSAGE where another choice does not fit.
 */
int neap__target_fit(struct neap_net_options *net, const char **loss,
	const struct neap_dataset_info *info, char changed[NEAP__FIT_LINE]);

/*
 * Fills in the shape of the inputs, unless it is given, where the specification has a convolution
 * or pooling and the set has the events of a sensor. `text` keeps it.
 */
enum { NEAP__SHAPE_TEXT = 40 };
void neap__shape_fit(
	struct neap_net_options *net, const struct neap_dataset *set, char text[NEAP__SHAPE_TEXT]);

/* 1 if samples have hardly any steps because of dt (in seconds) or max_steps (0: none), with a
 * warning in `line`: a layer that does not spike is then not to blame. */
enum { NEAP__FEW_STEPS_LINE = 600 };
int neap__few_steps(char line[NEAP__FEW_STEPS_LINE], const struct neap_dataset_info *info,
	double dt, int64_t max_steps);

#endif
