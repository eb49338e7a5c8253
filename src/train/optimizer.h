/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer.h: rules that change parameters by their gradients; each is one file and one row in
 * NEAP__RULE_TABLE. Arithmetic is in double for every precision and in the order of tensors and
 * their elements, so the result is a function of parameters, gradients and update number alone.
 */
#ifndef NEAP_TRAIN_OPTIMIZER_H
#define NEAP_TRAIN_OPTIMIZER_H

#include <neap/net.h>
#include "nn/core/step_backend.h"

#include <math.h>

struct neap__rule_settings {
	double momentum, beta1, beta2, epsilon, weight_decay;
};

#define NEAP__MOMENTS_MAX 2

/* The update of one tensor: n elements of data (float or double) and its moments. */
struct neap__rule_step {
	int64_t count;
	void *data;
	enum neap_precision precision;
	const double *grad;
	double *moment[NEAP__MOMENTS_MAX];
	double rate; /* learning rate of this update */
	/* What moves is data / unit, by gradients that are grad * unit. */
	double unit;
	int64_t update; /* 1 for the first */
	const struct neap__rule_settings *settings;
};

struct neap__rule {
	const char *name;
	const char *moments[NEAP__MOMENTS_MAX]; /* names in snapshots; NULL: unused */
	void (*step)(const struct neap__rule_step *step);
	enum neap__update_rule on_device; /* the same rule there */
};

/* What the moments of adam and adamw are multiplied by, since they begin at zero. */
static inline double neap__bias_correction(double beta, int64_t update)
{
	return 1 / (1 - pow(beta, (double)update));
}

/* X(rule), in the order of neap_optimizer_name. The rule neap__NAME stands in NAME.c. */
#define NEAP__RULE_TABLE(X) X(neap__adam) X(neap__adamw) X(neap__sgd)

#define NEAP__X(rule) extern const struct neap__rule rule;
NEAP__RULE_TABLE(NEAP__X)
#undef NEAP__X

/* Finds a rule by name; NULL with a detail line where there is none. */
const struct neap__rule *neap__rule_find(const char *name);

/*
 * Moments of the tensors of a net that learn, zero to begin with: of numbers [from, to), counted
 * over all tensors.
 */
struct neap__optimizer {
	const struct neap__rule *rule;
	struct neap__rule_settings settings;
	int tensors;
	size_t from, to;
	/* [tensors][moments], each of the tensor's numbers; those of a device are not the newest */
	double *(*moment)[NEAP__MOMENTS_MAX];
	uint64_t bytes;
};
/* Of the slice of the net that this process updates; init_all: of all numbers. */
int neap__optimizer_init(struct neap__optimizer *optimizer, const struct neap__rule *rule,
	const struct neap__rule_settings *settings, const struct neap_net *net);
int neap__optimizer_init_all(struct neap__optimizer *optimizer, const struct neap__rule *rule,
	const struct neap__rule_settings *settings, const struct neap_net *net);

void neap__optimizer_fini(struct neap__optimizer *optimizer);

/*
 * Updates are made on the net's device from now on, if it has one. Moments are copied from there
 * before they are saved, and there after they were read.
 */
int neap__optimizer_keep(const struct neap__optimizer *optimizer, struct neap_net *net);
int neap__optimizer_fetch(const struct neap__optimizer *optimizer, struct neap_net *net);
int neap__optimizer_send(const struct neap__optimizer *optimizer, struct neap_net *net);

/* Bytes of the moments of all numbers. */
uint64_t neap__optimizer_all_bytes(
	const struct neap__optimizer *optimizer, const struct neap_net *net);

/* The numbers of a tensor that an optimizer has moments of. */
struct neap__tensor_part {
	int64_t first, count;
};
struct neap__tensor_part neap__optimizer_part(
	const struct neap__optimizer *optimizer, const struct neap_net *net, int tensor);

/*
 * Updates the parameters that it has moments of; `update` counts from 1. Returns 1, 0 where one
 * is no longer finite, or the code of a device.
 */
int neap__optimizer_step(
	struct neap__optimizer *optimizer, struct neap_net *net, double rate, int64_t update);

/*
 * Gives the Euclidean norm of all gradients, each by its tensor's unit, and, where that is above
 * `limit` > 0, scales them down to the limit (Pascanu, Mikolov, Bengio 2013). A norm of NaN or
 * infinity scales nothing. With peers, which each have a slice, collective; NULL: alone. 0, or the
 * code of a peer.
 */
int neap__clip(double *norm, struct neap_net *net, double limit, const struct neap_peers *peers);

/* An element of a tensor, whatever its precision. */
static inline double neap__element(const void *data, enum neap_precision precision, int64_t i)
{
	return precision == NEAP_DOUBLE ? ((const double *)data)[i] : ((const float *)data)[i];
}

static inline void neap__element_set(
	void *data, enum neap_precision precision, int64_t i, double value)
{
	if (precision == NEAP_DOUBLE)
		((double *)data)[i] = value;
	else
		((float *)data)[i] = (float)value;
}

#endif
