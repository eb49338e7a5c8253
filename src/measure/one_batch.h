/* SPDX-License-Identifier: Apache-2.0 */
/* one_batch.h: one batch of a data set and a new net for it, to measure with. */
#ifndef NEAP_MEASURE_ONE_BATCH_H
#define NEAP_MEASURE_ONE_BATCH_H

#include <neap/data.h>
#include <neap/net.h>

struct neap__one_batch_source {
	const char *data;
	const struct neap_net_options *net; /* inputs, classes 0: from the data */
	const char *loss;		    /* NULL: cross-entropy */
	struct neap_rate_penalty rates;
	int batch;
	int64_t max_steps;
	const struct neap_sweep_settings *sweep; /* borrowed: bounds on inputs; or NULL */
	int64_t first;				 /* number of the batch among the shuffled ones */
	uint64_t seed;
	const char *encode;	/* as in neap_train_options */
	int next, no_normalise; /* likewise */
};

/* The source that options of compare or calibrate describe, a pointer to either. */
#define NEAP__ONE_BATCH_SOURCE(o)                                                                  \
	{                                                                                          \
		.data = (o)->data, .net = &(o)->net, .loss = (o)->loss, .rates = (o)->rates,       \
		.batch = (o)->batch, .max_steps = (o)->max_steps, .sweep = &(o)->sweep,            \
		.first = (o)->first, .seed = (o)->seed, .encode = (o)->encode, .next = (o)->next,  \
		.no_normalise = (o)->no_normalise                                                  \
	}

struct neap__one_batch {
	struct neap_dataset *set;
	struct neap_loader *loader;
	const struct neap_batch *batch;
	struct neap_batch wide; /* the batch, of a net with more channels */
	struct neap_net *net;
	struct neap_objective objective;
};

/* The batch is begun. Close it in every case. */
int neap__one_batch_open(struct neap__one_batch *one, const struct neap__one_batch_source *source);
void neap__one_batch_close(struct neap__one_batch *one);

#endif
