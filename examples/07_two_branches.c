/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradient checkpointing for two branches with one loss: an encoder of 12 dense layers and one of
 * 7, with layers of different widths, and the loss |a . b - target|^2 of their outputs a and b for
 * two inputs. Layer i of a branch computes x_{i+1} = tanh(x_i W_i).
 *
 * neap_join_sweep plans which branch is reversed first, and which activations are stored,
 * recomputed or offloaded to slow memory. The gradient is bit-identical for all budgets and is
 * compared with finite differences.
 *
 *     cc -O2 07_two_branches.c $(pkg-config --cflags --libs neap) -lm
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <neap/sweep.h>

#define BRANCHES 2
#define LONGEST 12
#define BATCH 32
#define WIDEST 160
#define TOLERANCE 1e-6 /* relative error of the gradient against differences */

static const int layers[BRANCHES] = {12, 7};
/* Units of x_0 .. x_L; both branches have outputs of the same size. */
static const int width[BRANCHES][LONGEST + 1] = {
	{24, 96, 160, 64, 128, 40, 96, 144, 32, 80, 112, 48, 16},
	{40, 160, 24, 120, 72, 152, 56, 16},
};

/* Weights of layer i of branch b: [width[i]][width[i + 1]]; an activation: [BATCH][width[i]]. */
struct net {
	double w[BRANCHES][LONGEST][WIDEST * WIDEST], dw[BRANCHES][LONGEST][WIDEST * WIDEST];
	double target[BATCH];
};

static void forward(const struct net *net, int b, int64_t i, const double *x, double *y)
{
	const double *w = net->w[b][i];
	int from = width[b][i], to = width[b][i + 1];
	for (int s = 0; s < BATCH; s++, x += from, y += to) {
		memset(y, 0, (size_t)to * sizeof *y);
		for (int j = 0; j < from; j++)
			for (int k = 0; k < to; k++)
				y[k] += x[j] * w[j * to + k];
		for (int k = 0; k < to; k++)
			y[k] = tanh(y[k]);
	}
}

static int advance(void *user, int branch, int64_t i, const void *x, void *y, void *tmp, int first)
{
	(void)tmp, (void)first;
	forward(user, branch, i, x, y);
	return 0;
}

/* The tape of a layer is its output: y is stored in the tape. */
static int record(
	void *user, int branch, int64_t i, const void *x, void *y, void *tape, void *tmp, int first)
{
	(void)tape;
	return advance(user, branch, i, x, y, tmp, first);
}

/* J = sum (a . b - target)^2 / (2 BATCH) */
static int turn(void *user, const void *const *x, void *const *dx, void *tmp, double *loss)
{
	const struct net *net = user;
	const double *a = x[0], *b = x[1];
	double *da = dx[0], *db = dx[1], sum = 0;
	int units = width[0][layers[0]];
	(void)tmp;
	for (int s = 0; s < BATCH; s++, a += units, b += units, da += units, db += units) {
		double off = -net->target[s];
		for (int k = 0; k < units; k++)
			off += a[k] * b[k];
		sum += off * off;
		for (int k = 0; k < units; k++) {
			da[k] = off * b[k] / BATCH;
			db[k] = off * a[k] / BATCH;
		}
	}
	*loss = sum / (2 * BATCH);
	return 0;
}

static int backward(void *user, int branch, int64_t i, const void *input, const void *tape,
	void *dy, void *dx, void *tmp)
{
	struct net *net = user;
	const double *x = input, *y = tape, *w = net->w[branch][i];
	double *dw = net->dw[branch][i], *dz = dy, *d = dx; /* dy becomes dz in place */
	int from = width[branch][i], to = width[branch][i + 1];
	(void)tmp;
	for (int s = 0; s < BATCH; s++, x += from, d += from, y += to, dz += to) {
		for (int k = 0; k < to; k++)
			dz[k] *= 1 - y[k] * y[k];
		for (int j = 0; j < from; j++) {
			double sum = 0;
			for (int k = 0; k < to; k++) {
				dw[j * to + k] += x[j] * dz[k];
				sum += w[j * to + k] * dz[k];
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

/* The planner's input: bytes, and seconds at an assumed 2 Gflop/s. */
struct costs {
	double advance[LONGEST], backward[LONGEST + 1];
	uint64_t state[LONGEST + 1], tape[LONGEST];
};

static struct neap_branch describe(struct costs *c, struct neap_stages *stages, int b)
{
	for (int i = 0; i <= layers[b]; i++)
		c->state[i] = sizeof(double) * BATCH * (uint64_t)width[b][i];
	for (int i = 0; i < layers[b]; i++) {
		c->tape[i] = c->state[i + 1];
		c->advance[i] = 2.0 * BATCH * width[b][i] * width[b][i + 1] / 2e9;
		c->backward[i] = 2 * c->advance[i];
	}
	c->backward[layers[b]] = 1e-6; /* the loss */
	*stages = (struct neap_stages){.advance = c->advance,
		.backward = c->backward,
		.state = c->state,
		.tape = c->tape,
		.flags = NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT};
	return (struct neap_branch){layers[b], stages};
}

/* FNV-1a hash, to compare gradients bit by bit. */
static uint64_t hash(const void *bytes, size_t n)
{
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
	return h;
}

struct answer {
	double loss, dx[BRANCHES][BATCH * WIDEST];
	uint64_t gradient;
};

/* One sweep with a budget of `memory` bytes (0: no limit), with slow memory or without (NULL). */
static int sweep_within(struct net *net, const double *const *x0, uint64_t memory,
	struct neap_tier *tier, struct answer *a, uint64_t *peak)
{
	const struct neap_join_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward};
	const struct neap_sweep_options options = {
		.size = sizeof options, .memory = memory, .tiers = &tier, .ntiers = tier != NULL};
	struct costs costs[BRANCHES];
	struct neap_stages stages[BRANCHES];
	struct neap_branch branches[BRANCHES];
	struct neap_join_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	for (int b = 0; b < BRANCHES; b++)
		branches[b] = describe(&costs[b], &stages[b], b);
	if (neap_join_sweep_create(&sweep, &ops, net, branches, BRANCHES, &options) < 0)
		return -1;
	memset(net->dw, 0, sizeof net->dw);
	void *dx0[BRANCHES] = {a->dx[0], a->dx[1]};
	int rc = neap_join_sweep_run(sweep, (const void *const *)x0, dx0, &a->loss, &stats);
	char strategy[32];
	snprintf(strategy, sizeof strategy, "%s", neap_join_sweep_plan(sweep)->strategy);
	neap_join_sweep_free(sweep);
	if (rc < 0)
		return rc;
	a->gradient = hash(net->dw, sizeof net->dw) ^ hash(a->dx, sizeof a->dx);
	*peak = stats.peak_measured;
	printf("%9llu %9llu %9llu %-8s %8lld %9llu  %016llx\n", (unsigned long long)memory,
		(unsigned long long)stats.peak_planned, (unsigned long long)stats.peak_measured,
		strategy, (long long)(stats.advance_steps + stats.record_steps),
		(unsigned long long)stats.written[0], (unsigned long long)a->gradient);
	if (memory && stats.arena_bytes > memory) {
		printf("exceeds the budget\n");
		return 1;
	}
	return 0;
}

/* The loss, from a forward run without neap. */
static double loss_of(const struct net *net, const double *const *x0)
{
	static double x[BRANCHES][2][BATCH * WIDEST], dx[BRANCHES][BATCH * WIDEST];
	const void *ends[BRANCHES];
	void *gradients[BRANCHES] = {dx[0], dx[1]};
	double loss;
	for (int b = 0; b < BRANCHES; b++) {
		memcpy(x[b][0], x0[b], sizeof(double) * BATCH * (size_t)width[b][0]);
		for (int i = 0; i < layers[b]; i++)
			forward(net, b, i, x[b][i % 2], x[b][(i + 1) % 2]);
		ends[b] = x[b][layers[b] % 2];
	}
	turn((void *)net, ends, gradients, NULL, &loss);
	return loss;
}

static int agrees(const char *name, int b, const struct net *net, const double *const *x0,
	double *value, double gradient)
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
	printf("branch %d %s gradient %+.9e, difference %+.9e, relative error %.1e\n", b, name,
		gradient, difference, error);
	return error < TOLERANCE;
}

static int run(struct net *net, struct neap_tier *tier)
{
	static double x[BRANCHES][BATCH * WIDEST];
	static struct answer all, a;
	const double *x0[BRANCHES] = {x[0], x[1]};
	uint64_t most, peak;
	int good = 1;
	for (int b = 0; b < BRANCHES; b++) {
		for (int k = 0; k < BATCH * width[b][0]; k++)
			x[b][k] = chance();
		for (int i = 0; i < layers[b]; i++)
			for (int k = 0; k < width[b][i] * width[b][i + 1]; k++)
				net->w[b][i][k] = 2 * chance() / sqrt(width[b][i]);
	}
	for (int s = 0; s < BATCH; s++)
		net->target[s] = chance();
	printf("%9s %9s %9s %-8s %8s %9s  %s\n", "budget", "planned", "measured", "strategy",
		"forward", "written", "gradient");
	if (sweep_within(net, x0, 0, NULL, &all, &most) < 0)
		return -1;
	for (int k = 0; k < 6; k++) { /* three budgets, without and with slow memory */
		uint64_t memory = most / 20 * (uint64_t)(16 - 3 * (k / 2));
		int rc = sweep_within(net, x0, memory, k % 2 ? tier : NULL, &a, &peak);
		if (rc)
			return rc;
		if (a.gradient != all.gradient || a.loss != all.loss) {
			printf("the gradient differs from the one without a budget\n");
			return 1;
		}
	}
	printf("\nloss %.12f\n", all.loss);
	for (int b = 0; b < BRANCHES; b++) {
		good &= agrees("x_0", b, net, x0, &x[b][17], all.dx[b][17]);
		good &= agrees("W_0", b, net, x0, &net->w[b][0][3], net->dw[b][0][3]);
		good &= agrees("W_5", b, net, x0, &net->w[b][5][7], net->dw[b][5][7]);
	}
	if (!good)
		printf("a relative error exceeds %.0e\n", TOLERANCE);
	return !good;
}

int main(void)
{
	struct net *net = calloc(1, sizeof *net);
	struct neap_tier *tier = NULL;
	int rc = net ? neap_tier_open_memory(&tier, NEAP_INFINITE) : -1;
	if (rc == 0)
		neap_tier_set_rates(tier, 2e9, 2e9, 0);
	if (rc == 0)
		rc = run(net, tier);
	if (rc < 0)
		fprintf(stderr, "%s\n", net ? neap_detail() : "out of memory");
	neap_tier_close(tier);
	free(net);
	return rc != 0;
}
