/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h: the options that decide what a run learns, as one table. It serves run.json, the
 * metadata of models, and the check on --resume that the run is still the same. A second table has
 * the ways of running: data, memory, strategy, tiers, threads, times of snapshots. They change no
 * bit of a result; run.json keeps them, so that a resumed run goes on with them.
 */
#ifndef NEAP_TRAIN_SETTINGS_H
#define NEAP_TRAIN_SETTINGS_H

#include <neap/train.h>
#include "base/json.h"

/*
 * Writes every setting of the table as one object. exact: as texts that read back to
 * the same value, for snapshots; else as numbers and names, for people.
 */
void neap__settings_write(struct neap__json *json, const char *key,
	const struct neap_train_options *options, int exact);

/* Writes the ways of running as one object. */
void neap__settings_write_ways(
	struct neap__json *json, const char *key, const struct neap_train_options *options);

/* Compares two exact objects; adds to *wrong what keeps the run from going on. Epochs may grow. */
void neap__settings_compare(struct neap__text *wrong, const json_t *was, const json_t *now);

/*
 * Adds what differs between two exact objects as options with the values of `now`, " --lr 0.001".
 * 1, or 0 where one of them is no option with a value of its own.
 */
int neap__settings_changed(struct neap__text *to, const json_t *was, const json_t *now);

/* The same of two runs that are to be one: no setting may differ. */
void neap__settings_differ(struct neap__text *wrong, const json_t *there, const json_t *here);

/*
 * Takes the settings, or the ways of running, from an object of run.json; keys that are missing
 * leave the option as it is, unknown ones are refused. Texts are borrowed from `object`. 0 or
 * NEAP_EFORMAT.
 */
int neap__settings_take(struct neap_train_options *options, const json_t *object, int are_ways);

/*
 * Takes a configuration: an object whose keys are names of options of `neap train`, of either
 * table. Texts are borrowed. 0, or NEAP_EFORMAT for a key that is no option's.
 */
int neap__settings_take_options(struct neap_train_options *options, const json_t *object);

/* Writes the settings of the net alone, exact. */
void neap__settings_write_net(struct neap__json *json, const struct neap_net_options *net);
/* Reads them back; texts are borrowed from `json`. 0 or NEAP_EFORMAT. */
int neap__settings_take_net(struct neap_net_options *net, const json_t *json);

/* NEAP_EUSAGE with a line about the first number out of its range. */
int neap__settings_check(const struct neap_train_options *options);

#endif
