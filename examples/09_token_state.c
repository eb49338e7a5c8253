/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state that is stored outside neap, for example by a library or on a device: the solver of a
 * burning rod keeps heat and fuel in its own arrays, and their adjoint in two more. The sweep sees
 * an eight-byte token instead; the callbacks save and load copy the arrays. With a budget of ten
 * states, the program computes the gradient of the final heat with respect to the initial state
 * and compares it with finite differences.
 *
 *     ./09_token_state [BYTES [FOLDER]]
 *
 * With FOLDER, states are also offloaded to a file there.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <neap/sweep.h>
#include <neap/tier.h>

#define CELLS 512
#define STEPS 2000
#define BYTES (2 * CELLS * sizeof(double)) /* size of a state and of a tape: both arrays */

struct rod {
	double heat[CELLS], fuel[CELLS];     /* the state */
	double d_heat[CELLS], d_fuel[CELLS]; /* the adjoint */
	int64_t step;			     /* of the current state */
	int wrong;			     /* 1 if the token ever differed from `step` */
};

static double rate(double heat)
{
	return 0.02 / (1 + exp(-8 * (heat - 0.6)));
}

static double rate_slope(double heat)
{
	double s = 1 / (1 + exp(-8 * (heat - 0.6)));
	return 0.02 * 8 * s * (1 - s);
}

static void step(double *heat, double *fuel)
{
	double before[CELLS];
	memcpy(before, heat, sizeof before);
	for (int i = 0; i < CELLS; i++) {
		double left = before[i ? i - 1 : i], right = before[i < CELLS - 1 ? i + 1 : i];
		double burnt = rate(before[i]) * fuel[i];
		heat[i] += 0.2 * (left - 2 * before[i] + right) + burnt - 0.001 * before[i];
		fuel[i] -= burnt;
	}
}

static int advance(void *user, void *token, int64_t t0, int64_t t1, int first)
{
	struct rod *rod = user;
	(void)first;
	rod->wrong |= *(int64_t *)token != t0 || rod->step != t0;
	for (int64_t t = t0; t < t1; t++)
		step(rod->heat, rod->fuel);
	*(int64_t *)token = rod->step = t1;
	return 0;
}

static int record(void *user, void *token, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct rod *rod = user;
	(void)room;
	for (int64_t t = t0; t < t1; t++) {
		double *row = (double *)tape + (t - t0) * 2 * CELLS;
		memcpy(row, rod->heat, sizeof rod->heat);
		memcpy(row + CELLS, rod->fuel, sizeof rod->fuel);
		advance(user, token, t, t + 1, first);
	}
	*used = (size_t)(t1 - t0) * BYTES;
	*t_done = t1;
	return 0;
}

static double loss_of(const double *heat)
{
	double loss = 0;
	for (int i = 0; i < CELLS; i++)
		loss += 0.5 * heat[i] * heat[i] / CELLS;
	return loss;
}

static int turn(void *user, const void *token, void *adjoint, double *loss)
{
	struct rod *rod = user;
	(void)adjoint; /* has 0 bytes; the solver stores the adjoint */
	rod->wrong |= *(const int64_t *)token != rod->step;
	*loss = loss_of(rod->heat);
	for (int i = 0; i < CELLS; i++)
		rod->d_heat[i] = rod->heat[i] / CELLS;
	memset(rod->d_fuel, 0, sizeof rod->d_fuel);
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct rod *rod = user;
	(void)adjoint;
	for (int64_t t = t1 - 1; t >= t0; t--) {
		const double *heat = (const double *)tape + (t - t0) * 2 * CELLS;
		const double *fuel = heat + CELLS;
		double d[CELLS];
		memcpy(d, rod->d_heat, sizeof d);
		for (int i = 0; i < CELLS; i++) {
			double left = d[i ? i - 1 : i], right = d[i < CELLS - 1 ? i + 1 : i];
			double burnt = d[i] - rod->d_fuel[i];
			rod->d_heat[i] += 0.2 * (left - 2 * d[i] + right) - 0.001 * d[i] +
					  burnt * rate_slope(heat[i]) * fuel[i];
			rod->d_fuel[i] += burnt * rate(heat[i]);
		}
	}
	return 0;
}

/* A saved state. It does not need to start with the token: here the step is at the end. */
struct kept {
	double heat[CELLS], fuel[CELLS];
	int64_t step;
};

static int save(void *user, void *to, const void *token)
{
	const struct rod *rod = user;
	struct kept *kept = to;
	(void)token;
	memcpy(kept->heat, rod->heat, sizeof kept->heat);
	memcpy(kept->fuel, rod->fuel, sizeof kept->fuel);
	kept->step = rod->step;
	return 0;
}

static int load(void *user, void *token, const void *from)
{
	struct rod *rod = user;
	const struct kept *kept = from;
	memcpy(rod->heat, kept->heat, sizeof kept->heat);
	memcpy(rod->fuel, kept->fuel, sizeof kept->fuel);
	*(int64_t *)token = rod->step = kept->step;
	return 0;
}

static void light(struct kept *x)
{
	for (int i = 0; i < CELLS; i++) {
		x->heat[i] = i < CELLS / 8 ? 1 : 0.1;
		x->fuel[i] = 1 + 0.3 * sin(0.1 * i);
	}
	x->step = 0;
}

/* Directional derivative of the loss, by finite differences. */
static double slope(const double *direction, double eps)
{
	double loss[2];
	for (int side = 0; side < 2; side++) {
		struct kept x;
		light(&x);
		for (int i = 0; i < CELLS; i++) {
			x.heat[i] += (side ? -eps : eps) * direction[i];
			x.fuel[i] += (side ? -eps : eps) * direction[CELLS + i];
		}
		for (int t = 0; t < STEPS; t++)
			step(x.heat, x.fuel);
		loss[side] = loss_of(x.heat);
	}
	return (loss[0] - loss[1]) / (2 * eps);
}

int main(int argc, char **argv)
{
	static struct rod rod;
	static struct kept x0;
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.save = save,
		.load = load,
		.state_bytes = sizeof(struct kept),
		.live_bytes = sizeof(int64_t),
		.tape_bytes = BYTES};
	struct neap_sweep_options options = {
		.size = sizeof options, .steps = STEPS, .memory = 10 * sizeof(struct kept)};
	struct neap_tier *tier = NULL;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	double loss, direction[2 * CELLS], along = 0, length = 0;

	if (argc > 1)
		options.memory = strtoull(argv[1], NULL, 10);
	if (argc > 2 && neap_tier_open_file(&tier, argv[2], NULL) < 0) {
		fprintf(stderr, "%s\n", neap_detail());
		return 1;
	}
	options.tiers = &tier;
	options.ntiers = tier != NULL;
	light(&x0);
	if (neap_sweep_create(&sweep, &ops, &rod, &options) < 0 ||
		neap_sweep_run(sweep, &x0, NULL, &loss, &stats) < 0) {
		fprintf(stderr, "%s\n", neap_detail());
		return 1;
	}
	printf("%s: %d steps in %llu bytes, %.2f forward steps per step; all tapes need %llu "
	       "bytes; "
	       "%llu bytes written to disk\n",
		neap_sweep_plan(sweep)->chosen, STEPS, (unsigned long long)stats.peak_measured,
		(double)(stats.advance_steps + stats.record_steps) / STEPS,
		(unsigned long long)STEPS * BYTES, (unsigned long long)stats.written[0]);
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	for (int i = 0; i < CELLS; i++) {
		direction[i] = cos(3.7 * i);
		direction[CELLS + i] = sin(2.3 * i);
		along += direction[i] * rod.d_heat[i] + direction[CELLS + i] * rod.d_fuel[i];
		length += rod.d_heat[i] * rod.d_heat[i] + rod.d_fuel[i] * rod.d_fuel[i];
	}
	double by_differences = slope(direction, 1e-5);
	double error = fabs(along - by_differences) / sqrt(length);
	printf("gradient %+.10f, difference %+.10f, error / norm %.1e\n", along, by_differences,
		error);
	return error < 1e-6 && !rod.wrong ? 0 : 1;
}
