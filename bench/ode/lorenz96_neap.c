/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lorenz96_neap.c: the gradient of 1,000 Runge-Kutta steps with neap. The tape of a step is its
 * state.
 *
 *     lorenz96_neap [BUDGET [FOLDER]]     budget in bytes (0: no limit); folder for offloaded
 * states
 */
#include <stdlib.h>
#include <neap/sweep.h>
#include <neap/tier.h>
#include "lorenz96.h"

#define STEPS 1000
#define BYTES (VARIABLES * sizeof(double))

static double k[4][VARIABLES], y[VARIABLES];
static const double at[4] = {0, 0.5, 0.5, 1}, part[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};

/* Returns the point at which stage s of a step from x evaluates the field. */
static const double *stage(const double *x, int s)
{
	if (s == 0)
		return x;
	for (int i = 0; i < VARIABLES; i++)
		y[i] = x[i] + STEP * at[s] * k[s - 1][i];
	return y;
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	double *x = state;
	(void)user, (void)first;
	for (int64_t t = t0; t < t1; t++) {
		for (int s = 0; s < 4; s++)
			lorenz_field(stage(x, s), k[s]);
		for (int i = 0; i < VARIABLES; i++)
			x[i] += STEP * (part[0] * k[0][i] + part[1] * k[1][i] + part[2] * k[2][i] +
					       part[3] * k[3][i]);
	}
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	(void)room;
	for (int64_t t = t0; t < t1; t++) {
		memcpy((char *)tape + (size_t)(t - t0) * BYTES, state, BYTES);
		advance(user, state, t, t + 1, first);
	}
	*used = (size_t)(t1 - t0) * BYTES;
	*t_done = t1;
	return 0;
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	const double *x = state;
	double sum = 0;
	(void)user;
	for (int i = 0; i < VARIABLES; i++)
		sum += 0.5 * x[i] * x[i];
	memcpy(adjoint, state, BYTES);
	*loss = sum;
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	static double l[VARIABLES], g[VARIABLES], sum[VARIABLES];
	double *d = adjoint;
	(void)user;
	for (int64_t t = t1 - 1; t >= t0; t--) {
		const double *x = (const double *)tape + (size_t)(t - t0) * VARIABLES;
		for (int s = 0; s < 3; s++)
			lorenz_field(stage(x, s), k[s]);
		memcpy(sum, d, sizeof sum);
		for (int s = 3; s >= 0; s--) {
			double next = s < 3 ? STEP * at[s + 1] : 0;
			for (int i = 0; i < VARIABLES; i++)
				l[i] = STEP * part[s] * d[i] + (s < 3 ? next * g[i] : 0);
			lorenz_back(stage(x, s), l, g);
			for (int i = 0; i < VARIABLES; i++)
				sum[i] += g[i];
		}
		memcpy(d, sum, sizeof sum);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static double x0[VARIABLES], gradient[VARIABLES];
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.state_bytes = BYTES,
		.adjoint_bytes = BYTES,
		.tape_bytes = BYTES};
	struct neap_sweep_options options = {.size = sizeof options, .steps = STEPS};
	struct neap_tier *tier = NULL;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	char what[200];
	double loss;
	if (argc > 1)
		options.memory = strtoull(argv[1], NULL, 10);
	if (argc > 2 && neap_tier_open_file(&tier, argv[2], NULL) < 0)
		goto failed;
	options.tiers = &tier;
	options.ntiers = tier != NULL;
	lorenz_start(x0);
	if (tier && neap_sweep_calibrate(&options, &ops, NULL, x0, 0) < 0)
		goto failed;
	if (neap_sweep_create(&sweep, &ops, NULL, &options) < 0)
		goto failed;
	double start = lorenz_seconds();
	if (neap_sweep_run(sweep, x0, gradient, &loss, &stats) < 0)
		goto failed;
	double seconds = lorenz_seconds() - start;
	snprintf(what, sizeof what, "neap %s in %.0f MB%s", neap_sweep_plan(sweep)->chosen,
		(double)stats.arena_bytes / 1e6, tier ? " and a disk" : "");
	lorenz_report(what, seconds, gradient);
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	return 0;
failed:
	fprintf(stderr, "%s\n", neap_detail());
	return 1;
}
