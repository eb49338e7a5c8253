/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradient_check.c: analytic gradients against central differences. The net is smooth, so that its
 * loss is a differentiable function of its weights. A detached reset makes the analytic gradient
 * that of another function, in which the reset sees the spikes of the unperturbed net; the
 * differences keep those spikes frozen.
 */
#include "nn/core/net_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/philox.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct check {
	struct neap_net *net;
	const struct neap_batch *batch;
	const struct neap_objective *objective;
	unsigned char *state, *adjoint, *tape;
};

static int check_make(struct check *check)
{
	struct neap_net *net = check->net;
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	uint64_t tape, steps = (uint64_t)check->batch->steps;

	NEAP_TRY(neap_net_begin(net, check->batch, check->objective));
	neap_net_get_sizes(net, &sizes);
	tape = neap__round_up(neap__sat_mul(steps + 1, sizes.tape_max), 64);
	if (tape > PTRDIFF_MAX)
		return neap__fail(
			NEAP_EOVERFLOW, "gradient check of %llu steps", (unsigned long long)steps);
	check->state = aligned_alloc(64, neap__round_up(sizes.state, 64));
	check->adjoint = aligned_alloc(64, neap__round_up(sizes.adjoint, 64));
	check->tape = aligned_alloc(64, tape);
	net->frozen_spikes =
		neap__net_get_zeroed(net, (uint64_t)net->nlayers, sizeof *net->frozen_spikes);
	if (!check->state || !check->adjoint || !check->tape || !net->frozen_spikes)
		return neap__fail_errno(
			ENOMEM, "gradient check of %llu steps", (unsigned long long)steps);
	for (int l = 0; l < net->nlayers - 1; l++) {
		uint64_t n = neap__sat_mul(steps * (uint64_t)check->batch->size, net->layers[l].n);
		net->frozen_spikes[l] = neap__net_get_zeroed(net, n, sizeof(double));
		if (!net->frozen_spikes[l])
			return neap__fail_errno(
				ENOMEM, "gradient check of %llu steps", (unsigned long long)steps);
	}
	return 0;
}

static void check_free(struct check *check)
{
	free(check->state);
	free(check->adjoint);
	free(check->tape);
	neap_net_free(check->net);
}

/* Gives the loss; `frozen` says what detached resets see. */
static int evaluate(struct check *check, enum neap__frozen frozen, double *loss)
{
	struct neap_net *net = check->net;

	net->frozen = frozen;
	NEAP_TRY(neap_net_begin(net, check->batch, check->objective));
	memset(check->state, 0, net->state_bytes);
	NEAP_TRY(neap_net_advance(net, check->state, 0, check->batch->steps, 1));
	return neap_net_turn(net, check->state, check->adjoint, loss);
}

/* Makes the analytic gradient, in the tensors. */
static int analyse(struct check *check)
{
	struct neap_net *net = check->net;
	int64_t steps = check->batch->steps, done;
	size_t room = ((size_t)steps + 1) * net->tape_max, used;
	double loss;

	net->frozen = NEAP__FREEZE;
	NEAP_TRY(neap_net_begin(net, check->batch, check->objective));
	memset(check->state, 0, net->state_bytes);
	NEAP_TRY(neap_net_record(net, check->state, 0, steps, 1, check->tape, room, &used, &done));
	NEAP_TRY(neap_net_turn(net, check->state, check->adjoint, &loss));
	NEAP_TRY(neap_net_backward(net, check->adjoint, steps, 0, check->tape));
	return neap_net_end(net);
}

/*
 * Gives the error at one weight, the best over three lengths of difference: rounding spoils short
 * differences, kinks of surrogates long ones, and a wrong gradient agrees with none.
 */
static int probe(struct check *check, double *weight, double gradient, double floor, double *error)
{
	static const double lengths[] = {1e-5, 1e-4, 1e-6};
	double w = *weight;
	int rc = 0;

	*error = INFINITY;
	for (int i = 0; i < 3 && *error > 1e-7 && rc == 0; i++) {
		double up = 0, down = 0, h = lengths[i];
		*weight = w + h;
		rc = evaluate(check, NEAP__FROZEN, &up);
		*weight = w - h;
		if (rc == 0)
			rc = evaluate(check, NEAP__FROZEN, &down);
		*weight = w;
		double numeric = (up - down) / (2 * h);
		double size = fmax(fmax(fabs(gradient), fabs(numeric)), floor);
		double e = size > 0 ? fabs(gradient - numeric) / size : 0;
		*error = e < *error ? e : *error;
	}
	return rc;
}

static int probe_all(struct check *check, int probes, const double *gradient, double *worst)
{
	struct neap_net *net = check->net;
	double largest = 0, error;
	int64_t weights = 0;

	for (size_t i = 0; i < net->elements; i++)
		largest = fmax(largest, fabs(gradient[i]));
	for (int i = 0; i < net->ntensors; i++)
		weights += net->tensors[i].count;
	*worst = 0;
	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__param *t = &net->tensors[i];
		int64_t count = t->is_frozen ? 0 : t->count;
		if (count > 0 && probes > 0)
			count = 1 + (int64_t)((double)probes * (double)t->count / (double)weights);
		count = count < t->count ? count : t->count;
		for (int64_t k = 0; k < count; k++) {
			int64_t e = count == t->count
					    ? k
					    : (int64_t)neap__random_below(net->options.seed,
						      NEAP__STREAM_TEST, (uint32_t)i, (uint64_t)k,
						      (uint64_t)t->count);
			NEAP_TRY(probe(check, (double *)t->data + e,
				gradient[t->offset + (size_t)e], 1e-6 * largest, &error));
			*worst = error > *worst ? error : *worst;
		}
	}
	return 0;
}

int neap_gradcheck(double *worst, const struct neap_net_options *options,
	const struct neap_batch *batch, const struct neap_objective *objective, int probes)
{
	NEAP_NEED(worst, options, batch);
	struct neap_net_options o = *options;
	struct neap_objective told; /* in the units that its gradient has */
	struct check check = {.batch = batch, .objective = objective};
	double *gradient = NULL;
	int rc;

	*worst = INFINITY;
	if (objective && objective->size == sizeof told) {
		told = *objective;
		told.deviation = NULL;
		check.objective = &told;
	}
	o.precision = NEAP_DOUBLE;
	o.products = NEAP_CHAINS;
	o.smooth = 1;
	o.freeze = NULL;
	rc = neap_net_create(&check.net, &o);
	if (rc == 0)
		rc = check_make(&check);
	if (rc == 0)
		rc = analyse(&check);
	if (rc == 0) {
		size_t bytes = check.net->elements * sizeof *gradient;
		gradient = malloc(bytes);
		if (gradient)
			memcpy(gradient, check.net->tensors[0].grad, bytes);
		else
			rc = neap__fail_errno(ENOMEM, "gradient check");
	}
	if (rc == 0)
		rc = probe_all(&check, probes, gradient, worst);
	free(gradient);
	check_free(&check);
	return rc;
}
