/* SPDX-License-Identifier: Apache-2.0 */
/* run_options.h: what run.json keeps of given costs, and the reading of its text (train.h:
 * neap_run). */
#ifndef NEAP_TRAIN_RUN_OPTIONS_H
#define NEAP_TRAIN_RUN_OPTIONS_H

#include <neap/train.h>
#include <stddef.h>

/* A number in struct neap_chain, or in struct neap_tier_spec; a row without a name ends a list. */
struct neap__run_cost {
	const char *name;
	size_t offset;
};
extern const struct neap__run_cost neap__run_step_costs[], neap__run_tier_costs[];

/* Reads the text of a run.json, as neap_run_open does that of a folder. */
int neap__run_parse(struct neap_run **run, const char *text, size_t length);

/* The fingerprint of the data of the run in hexadecimal; NULL: not known. */
const char *neap__run_fingerprint(const struct neap_run *run);
/* Samples of that data; 0: not known. */
int64_t neap__run_samples(const struct neap_run *run);

/* Epochs that were done when run.json was written, which is after their snapshot. */
int64_t neap__run_epochs(const struct neap_run *run);

/* Reads the text of a configuration, as neap_config_open does that of a file. */
int neap__config_parse(struct neap_run **run, const char *text, size_t length);

#endif
