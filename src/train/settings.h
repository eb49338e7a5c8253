/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h: the options that decide what a run learns, as one table: for
 * run.json, for the metadata of a model, and to tell on --resume whether the run
 * is still the same. Memory, strategy, tiers, threads and the times of snapshots
 * are not among them: by promise 1 they change no bit.
 */
#ifndef NEAP_TRAIN_SETTINGS_H
#define NEAP_TRAIN_SETTINGS_H

#include <cjson/cJSON.h>
#include <neap/train.h>

/*
 * Every setting of the table. exact: as texts that read back to the same value
 * (for snapshots); else as JSON numbers and names (for people). NULL: no memory.
 */
cJSON *neap__settings_json(const struct neap_train_options *options, int exact);

/* Of two exact objects: 0, or NEAP_EUSAGE naming the first setting that differs. */
int neap__settings_same(const cJSON *was, const cJSON *now, const char *run);

/* The settings of the net alone, exact, and back; texts are borrowed from `json`. */
cJSON *neap__net_json(const struct neap_net_options *net);
int neap__net_from_json(struct neap_net_options *net, const cJSON *json);

/* NEAP_EUSAGE with a line about the first number out of its range. */
int neap__settings_check(const struct neap_train_options *options);

#endif
