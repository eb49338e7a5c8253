/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradient checkpointing for a deep network with layers of different sizes: 16 dense layers
 * of 16 to 192 units with tanh, batch size 64, squared distance to targets. Layer i computes
 * x_{i+1} = tanh(x_i W_i + b_i); its backward step needs x_i and x_{i+1}.
 *
 * The strategy `chain` gets the bytes and the work of every layer and decides which
 * activations to store and which to recompute, for any budget from the minimum to the memory
 * of all activations. The gradient is bit-identical for all budgets.
 *
 *     cc -O2 04_layers.c $(pkg-config --cflags --libs neap) -lm
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <neap/sweep.h>

#define LAYERS 16
#define BATCH 64
#define WIDEST 192
#define TOLERANCE 1e-6 /* relative error of the gradient against differences */

/* Units of x_0 .. x_16. */
static const int width[LAYERS + 1] = {
	32, 112, 192, 64, 160, 40, 96, 192, 24, 80, 176, 48, 16, 128, 64, 104, 32};

/* An activation x_i is [BATCH][width[i]]. */
struct layer {
	double *w, *b;	 /* [width[i]][width[i + 1]], [width[i + 1]] */
	double *dw, *db; /* their gradients, with the same shapes */
};

struct net {
	struct layer layers[LAYERS];
	double target[BATCH][WIDEST];
	double *parameters, *gradients; /* of all layers, contiguous */
	size_t count;
};

static void forward(const struct net *net, int64_t i, const double *x, double *y)
{
	const struct layer *l = &net->layers[i];
	int from = width[i], to = width[i + 1];
	for (int s = 0; s < BATCH; s++, x += from, y += to) {
		memcpy(y, l->b, (size_t)to * sizeof *y);
		for (int j = 0; j < from; j++)
			for (int k = 0; k < to; k++)
				y[k] += x[j] * l->w[j * to + k];
		for (int k = 0; k < to; k++)
			y[k] = tanh(y[k]);
	}
}

static int advance(void *user, int64_t i, const void *x, void *y, void *tmp, int first)
{
	(void)tmp, (void)first;
	forward(user, i, x, y);
	return 0;
}

/* The tape of a layer is its output: y is stored in the tape. */
static int record(void *user, int64_t i, const void *x, void *y, void *tape, void *tmp, int first)
{
	(void)tape;
	return advance(user, i, x, y, tmp, first);
}

/* J = sum |x_16 - target|^2 / (2 BATCH) */
static int turn(void *user, const void *x, void *dx, void *tmp, double *loss)
{
	const struct net *net = user;
	const double *output = x;
	double *d = dx, sum = 0;
	int units = width[LAYERS];
	(void)tmp;
	for (int s = 0; s < BATCH; s++)
		for (int k = 0; k < units; k++) {
			double off = output[s * units + k] - net->target[s][k];
			sum += off * off;
			d[s * units + k] = off / BATCH;
		}
	*loss = sum / (2 * BATCH);
	return 0;
}

static int backward(
	void *user, int64_t i, const void *input, const void *tape, void *dy, void *dx, void *tmp)
{
	const struct net *net = user;
	const struct layer *l = &net->layers[i];
	const double *x = input, *y = tape;
	double *dz = dy, *d = dx; /* dy is no longer needed and is overwritten by dz */
	int from = width[i], to = width[i + 1];
	(void)tmp;
	for (int s = 0; s < BATCH; s++, x += from, d += from, y += to, dz += to) {
		for (int k = 0; k < to; k++) {
			dz[k] *= 1 - y[k] * y[k];
			l->db[k] += dz[k];
		}
		for (int j = 0; j < from; j++) {
			double sum = 0;
			for (int k = 0; k < to; k++) {
				l->dw[j * to + k] += x[j] * dz[k];
				sum += l->w[j * to + k] * dz[k];
			}
			d[j] = sum;
		}
	}
	return 0;
}

/* Random number in [-1, 1), the same sequence on every machine. */
static double chance(void)
{
	static uint64_t state = 88172645463325252u;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 4503599627370496.0 - 1;
}

static int make(struct net *net)
{
	net->count = 0;
	for (int i = 0; i < LAYERS; i++)
		net->count += (size_t)(width[i] + 1) * (size_t)width[i + 1];
	net->parameters = calloc(2 * net->count, sizeof *net->parameters);
	if (!net->parameters)
		return -1;
	net->gradients = net->parameters + net->count;
	double *at = net->parameters;
	for (int i = 0; i < LAYERS; i++) {
		struct layer *l = &net->layers[i];
		size_t weights = (size_t)width[i] * (size_t)width[i + 1];
		*l = (struct layer){at, at + weights, at + net->count, at + net->count + weights};
		for (size_t k = 0; k < weights; k++)
			l->w[k] = 2 * chance() / sqrt(width[i]);
		at += weights + (size_t)width[i + 1];
	}
	for (int s = 0; s < BATCH; s++)
		for (int k = 0; k < width[LAYERS]; k++)
			net->target[s][k] = 0.8 * chance();
	return 0;
}

/* The planner's input: bytes, and seconds at an assumed 2 Gflop/s. */
struct costs {
	double advance[LAYERS], backward[LAYERS + 1];
	uint64_t state[LAYERS + 1], tape[LAYERS];
};

static struct neap_stages describe(struct costs *c)
{
	for (int i = 0; i <= LAYERS; i++)
		c->state[i] = sizeof(double) * BATCH * (uint64_t)width[i];
	for (int i = 0; i < LAYERS; i++) {
		c->tape[i] = c->state[i + 1];
		c->advance[i] = 2.0 * BATCH * width[i] * width[i + 1] / 2e9;
		c->backward[i] = 2 * c->advance[i];
	}
	c->backward[LAYERS] = 4.0 * BATCH * width[LAYERS] / 2e9; /* the loss */
	return (struct neap_stages){.advance = c->advance,
		.backward = c->backward,
		.state = c->state,
		.tape = c->tape,
		.flags = NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT};
}

/* FNV-1a hash, to compare gradients bit by bit. */
static uint64_t hash(const void *bytes, size_t n)
{
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
	return h;
}

/* Result for one budget; `seconds` of the fastest of three sweeps. */
struct answer {
	uint64_t least, peak, gradient;
	double loss, seconds;
};

static int sweep_within(
	struct net *net, const double *x0, double *dx0, uint64_t memory, struct answer *a)
{
	const struct neap_stage_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward};
	const struct neap_sweep_options options = {
		.size = sizeof options, .steps = LAYERS, .memory = memory, .strategy = "chain"};
	struct costs costs;
	struct neap_stages stages = describe(&costs);
	struct neap_stage_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};

	if (neap_stage_sweep_create(&sweep, &ops, net, &stages, &options) < 0)
		return -1;
	double all = a->seconds,
	       fastest = INFINITY; /* all: time without a budget; 0: this is that run */
	int rc = 0;
	for (int k = 0; k < 3 && rc == 0; k++) {
		memset(net->gradients, 0, net->count * sizeof *net->gradients);
		rc = neap_stage_sweep_run(sweep, x0, dx0, &a->loss, &stats);
		fastest = fmin(fastest, stats.seconds);
	}
	a->seconds = fastest;
	a->least = neap_problem_least(neap_stage_sweep_problem(sweep));
	a->peak = stats.peak_measured;
	neap_stage_sweep_free(sweep);
	if (rc < 0)
		return rc;
	a->gradient = hash(net->gradients, net->count * sizeof *net->gradients) ^
		      hash(dx0, costs.state[0]);
	char budget[32] = "none";
	if (memory)
		snprintf(budget, sizeof budget, "%llu", (unsigned long long)memory);
	printf("%9s %9llu %9llu %9llu %8lld %8.4f %7.2f  %016llx\n", budget,
		(unsigned long long)stats.peak_planned, (unsigned long long)stats.peak_measured,
		(unsigned long long)stats.arena_bytes,
		(long long)(stats.advance_steps + stats.record_steps), fastest,
		all > 0 ? fastest / all : 1.0, (unsigned long long)a->gradient);
	if (memory && stats.arena_bytes > memory) {
		printf("exceeds the budget\n");
		return 1;
	}
	return 0;
}

/* The loss, from a forward run without neap. */
static double loss_of(const struct net *net, const double *x0)
{
	static double x[2][BATCH * WIDEST], dx[BATCH * WIDEST];
	double loss;
	memcpy(x[0], x0, sizeof(double) * BATCH * (size_t)width[0]);
	for (int i = 0; i < LAYERS; i++)
		forward(net, i, x[i % 2], x[(i + 1) % 2]);
	turn((void *)net, x[LAYERS % 2], dx, NULL, &loss);
	return loss;
}

static int agrees(
	const char *name, const struct net *net, const double *x0, double *value, double gradient)
{
	const double h = 1e-4, kept = *value;
	double across[2];
	for (int k = 0; k < 2; k++) { /* fourth-order central difference */
		*value = kept + (k + 1) * h;
		across[k] = loss_of(net, x0);
		*value = kept - (k + 1) * h;
		across[k] -= loss_of(net, x0);
	}
	*value = kept;
	double difference = (8 * across[0] - across[1]) / (12 * h);
	double error = fabs(gradient - difference) / fabs(difference);
	printf("%-8s gradient %+.9e, difference %+.9e, relative error %.1e\n", name, gradient,
		difference, error);
	return error < TOLERANCE;
}

static int gradient_agrees(struct net *net, double *x0, const double *dx0)
{
	int good = agrees("x_0", net, x0, &x0[17], dx0[17]);
	for (int i = 0; i < LAYERS; i += 5) {
		char name[8];
		struct layer *l = &net->layers[i];
		snprintf(name, sizeof name, "W_%d", i);
		good &= agrees(name, net, x0, &l->w[3], l->dw[3]);
		snprintf(name, sizeof name, "b_%d", i);
		good &= agrees(name, net, x0, &l->b[1], l->db[1]);
	}
	if (!good)
		printf("a relative error exceeds %.0e\n", TOLERANCE);
	return good;
}

static int run(struct net *net)
{
	static double x0[BATCH * WIDEST], dx0[BATCH * WIDEST];
	struct answer all = {0};
	for (int k = 0; k < BATCH * width[0]; k++)
		x0[k] = chance();

	printf("%d layers, batch size %d, %zu parameters\n\n", LAYERS, BATCH, net->count);
	printf("%9s %9s %9s %9s %8s %8s %7s  %s\n", "budget", "planned", "measured", "arena",
		"forward", "seconds", "ratio", "gradient");
	if (sweep_within(net, x0, dx0, 0, &all) < 0)
		return -1;
	for (int part = 4; part >= 0; part--) {
		struct answer a = {.seconds = all.seconds};
		uint64_t memory = all.least + (all.peak - all.least) * (uint64_t)part / 4;
		int rc = sweep_within(net, x0, dx0, memory, &a);
		if (rc)
			return rc;
		if (a.gradient != all.gradient || a.loss != all.loss) {
			printf("the gradient differs from the one without a budget\n");
			return 1;
		}
	}
	printf("\nloss %.12f\n", all.loss);
	return !gradient_agrees(net, x0, dx0);
}

int main(void)
{
	static struct net net;
	if (make(&net) < 0) {
		fprintf(stderr, "out of memory\n");
		return 1;
	}
	int rc = run(&net);
	if (rc < 0)
		fprintf(stderr, "%s\n", neap_detail());
	free(net.parameters);
	return rc != 0;
}
