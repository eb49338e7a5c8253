/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest use of libneap: your own model, x_{t+1} = x_t + h sin(x_t) + h u, a million
 * steps. The loss is x^2 / 2 at the end. Its gradient with respect to x_0 is computed in
 * 64 KiB; storing the tapes of all steps (their saved values) takes 64 MB, because a tape is
 * padded to 64 bytes.
 *
 *     cc 01_foreign_model.c $(pkg-config --cflags --libs neap) -lm
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <neap/sweep.h>

static const double h = 1e-6, u = 0.3;

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	double *x = state;
	(void)user, (void)first;
	for (int64_t t = t0; t < t1; t++)
		x[0] += h * sin(x[0]) + h * u;
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	(void)room;
	for (int64_t t = t0; t < t1; t++) {
		((double *)tape)[t - t0] = ((double *)state)[0];
		advance(user, state, t, t + 1, first);
	}
	*used = (size_t)(t1 - t0) * sizeof(double);
	*t_done = t1;
	return 0;
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	double x = *(const double *)state;
	(void)user;
	*loss = 0.5 * x * x;
	*(double *)adjoint = x;
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	(void)user;
	for (int64_t t = t1 - 1; t >= t0; t--)
		*(double *)adjoint *= 1 + h * cos(((const double *)tape)[t - t0]);
	return 0;
}

int main(void)
{
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.state_bytes = sizeof(double),
		.adjoint_bytes = sizeof(double),
		.tape_bytes = sizeof(double)};
	const struct neap_sweep_options options = {
		.size = sizeof options, .steps = 1000000, .memory = 64 << 10};
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	double x0 = 1, dx0, loss;

	if (neap_sweep_create(&sweep, &ops, NULL, &options) < 0 ||
		neap_sweep_run(sweep, &x0, &dx0, &loss, &stats) < 0) {
		fprintf(stderr, "%s\n", neap_detail());
		return 1;
	}
	printf("loss %.12f, gradient %.12f\n", loss, dx0);
	printf("%s: %lld steps advanced, %lld recorded, peak %llu bytes\n",
		neap_sweep_plan(sweep)->chosen, (long long)stats.advance_steps,
		(long long)stats.record_steps, (unsigned long long)stats.peak_measured);
	neap_sweep_free(sweep);

	/* Compare with the difference quotient of two runs without neap. */
	double a = x0 + 1e-6, b = x0 - 1e-6;
	advance(NULL, &a, 0, options.steps, 1);
	advance(NULL, &b, 0, options.steps, 1);
	double difference = 0.5 * (a * a - b * b) / 2e-6;
	printf("difference quotient %.12f\n", difference);
	return fabs(difference - dx0) < 1e-6 * fabs(dx0) ? 0 : 1;
}
