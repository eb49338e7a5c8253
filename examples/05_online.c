/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpointing with an unknown number of steps: a comet on a long orbit, with time steps
 * that shrink near the sun, so the number of steps until the given day is not known in
 * advance. After every step the sweep calls `ended` of the model, and it places checkpoints
 * such that little is recomputed whenever the backward pass starts. The gradient of the
 * distance to a target position, with respect to the initial position and velocity, is
 * compared with finite differences.
 *
 *     ./05_online [DAY [BYTES]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <neap/sweep.h>

struct state {
	double x[2], v[2], day;
};

struct comet {
	double eta; /* step: eta r^(3/2) */
	double day; /* the final time */
	double target[2];
	int64_t steps;
};

static double radius(const struct state *s)
{
	return sqrt(s->x[0] * s->x[0] + s->x[1] * s->x[1]);
}

static void step(const struct comet *c, struct state *s)
{
	double r = radius(s), h = c->eta * r * sqrt(r), pull = h / (r * r * r);
	for (int i = 0; i < 2; i++)
		s->v[i] -= pull * s->x[i];
	for (int i = 0; i < 2; i++)
		s->x[i] += h * s->v[i];
	s->day += h;
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	(void)first;
	for (int64_t t = t0; t < t1; t++)
		step(user, state);
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct state *row = tape;
	(void)first;
	(void)room;
	for (int64_t t = t0; t < t1; t++) {
		row[t - t0] = *(struct state *)state;
		step(user, state);
	}
	*used = (size_t)(t1 - t0) * sizeof *row;
	*t_done = t1;
	return 0;
}

static int ended(void *user, const void *state, int64_t t)
{
	struct comet *c = user;
	const struct state *s = state;
	c->steps = t;
	return s->day >= c->day ? NEAP_ENDED : NEAP_GO_ON;
}

/* The last step went beyond the final time: extrapolates back along the velocity. */
static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	const struct comet *c = user;
	const struct state *s = state;
	struct state *d = adjoint;
	double late = s->day - c->day;
	*loss = d->day = 0;
	for (int i = 0; i < 2; i++) {
		double off = s->x[i] - late * s->v[i] - c->target[i];
		*loss += 0.5 * off * off;
		d->x[i] = off;
		d->v[i] = -late * off;
		d->day -= s->v[i] * off;
	}
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	const struct comet *c = user;
	const struct state *row = tape;
	struct state *d = adjoint;
	for (int64_t t = t1 - 1; t >= t0; t--) {
		const struct state *s = &row[t - t0];
		double r = radius(s), h = c->eta * r * sqrt(r), pull = h / (r * r * r);
		double dh = d->day, dpull = 0;
		for (int i = 0; i < 2; i++) {
			dh += d->x[i] * (s->v[i] - pull * s->x[i]);
			d->v[i] += h * d->x[i];
			dpull -= d->v[i] * s->x[i];
		}
		double dr = 1.5 * (h * dh - pull * dpull) / r;
		for (int i = 0; i < 2; i++)
			d->x[i] += dr * s->x[i] / r - pull * d->v[i];
	}
	return 0;
}

static double plain_run(const struct comet *c, struct state s, int64_t *steps)
{
	struct comet copy = *c;
	struct state d;
	double loss;
	for (*steps = 0; s.day < c->day; ++*steps)
		step(c, &s);
	turn(&copy, &s, &d, &loss);
	return loss;
}

/* (loss(x_i + n h) - loss(x_i - n h)) / 2 h; returns 1 if the number of steps differs. */
static int difference(
	double *d, const struct comet *c, const struct state *x0, int i, double h, int n)
{
	double loss[2];
	int other = 0;
	for (int side = 0; side < 2; side++) {
		struct state s = *x0;
		int64_t steps;
		*(i < 2 ? &s.x[i] : &s.v[i - 2]) += side ? -n * h : n * h;
		loss[side] = plain_run(c, s, &steps);
		other |= steps != c->steps;
	}
	*d = (loss[0] - loss[1]) / (2 * h);
	return other;
}

/*
 * Fourth-order difference quotient. The loss has a small jump where the number of steps
 * changes; a difference across the jump is meaningless, so h is halved in that case.
 */
static double slope(const struct comet *c, const struct state *x0, int i)
{
	double d1, d2, h = 2e-6;
	while ((difference(&d1, c, x0, i, h, 1) | difference(&d2, c, x0, i, h, 2)) && h > 1e-8)
		h /= 2;
	return (8 * d1 - d2) / 6;
}

int main(int argc, char **argv)
{
	struct comet c = {.eta = 1e-3, .day = 40, .target = {-2, 1}};
	const struct state x0 = {.x = {4, 0}, .v = {0, 0.12}};
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.ended = ended,
		.state_bytes = sizeof(struct state),
		.adjoint_bytes = sizeof(struct state),
		.tape_bytes = sizeof(struct state)};
	struct neap_sweep_options options = {.size = sizeof options, .memory = 4096};
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct state dx0;
	double loss;
	int good = 1;

	if (argc > 1)
		c.day = strtod(argv[1], NULL);
	if (argc > 2)
		options.memory = strtoull(argv[2], NULL, 10);
	if (neap_sweep_create(&sweep, &ops, &c, &options) < 0 ||
		neap_sweep_run(sweep, &x0, &dx0, &loss, &stats) < 0) {
		fprintf(stderr, "%s\n", neap_detail());
		return 1;
	}
	printf("%lld steps in %llu bytes, %.2f forward steps per step; all states need %llu "
	       "bytes\n",
		(long long)c.steps, (unsigned long long)stats.peak_measured,
		(double)(stats.advance_steps + stats.record_steps) /
			(double)(c.steps ? c.steps : 1),
		(unsigned long long)c.steps * sizeof(struct state));
	neap_sweep_free(sweep);

	double length = sqrt(dx0.x[0] * dx0.x[0] + dx0.x[1] * dx0.x[1] + dx0.v[0] * dx0.v[0] +
			     dx0.v[1] * dx0.v[1]);
	for (int i = 0; i < 4; i++) {
		double gradient = i < 2 ? dx0.x[i] : dx0.v[i - 2];
		double by_differences = slope(&c, &x0, i);
		double error = fabs(gradient - by_differences) / length;
		printf("%s %d: gradient %+.8f, difference %+.8f, error / norm %.1e\n",
			i < 2 ? "position" : "velocity", i % 2, gradient, by_differences, error);
		good &= error < 1e-6;
	}
	return good ? 0 : 1;
}
