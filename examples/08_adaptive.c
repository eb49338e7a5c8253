/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of an adaptive ODE solver: a ring of van der Pol oscillators, integrated with the
 * Dormand-Prince pair of order 5(4). Time and step size are part of the state. The step size
 * depends on the previous errors, so the number of steps is not known in advance. The loss is half
 * the squared distance of the final values from given ones. Its gradient with respect to the
 * initial values and the damping includes the choice of the step sizes: it is the gradient of the
 * computed numbers (discretise, then differentiate). It is compared with finite differences.
 *
 *     ./08_adaptive [--until TIME] [--tolerance X] [--memory BYTES] [--disk FOLDER] [--print]
 *
 * --disk allows states and tapes to be offloaded to a file in FOLDER. --print prints only the
 * gradient: first with respect to the damping, then with respect to every initial value.
 *
 * Dormand, Prince: A family of embedded Runge-Kutta formulae, J. Comp. Appl. Math. 6 (1980).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <neap/sweep.h>
#include <neap/tier.h>

#define RING 64
#define N (2 * RING) /* values: positions, then velocities */
#define STAGES 7
#define TRIES 30 /* attempts per step; each reduces the step size to at most 9/10 */

struct state {
	double y[N], t, h; /* h: the next step size to try */
};

struct ring {
	double damping, coupling, until, tolerance;
	double damping_slope; /* gradient with respect to damping, summed by the backward steps */
	int64_t steps, refused;
};

static const double A[STAGES][STAGES - 1] = {{0}, {1.0 / 5}, {3.0 / 40, 9.0 / 40},
	{44.0 / 45, -56.0 / 15, 32.0 / 9},
	{19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
	{9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
	{35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
static const double B[STAGES] = {
	35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84, 0};
/* B minus the weights of the fourth-order formula. */
static const double E[STAGES] = {
	71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40};

/* u' = v, v' = damping (1 - u^2) v - u + coupling (left - 2 u + right) */
static void field(const struct ring *c, const double *y, double *f)
{
	const double *u = y, *v = y + RING;
	for (int i = 0; i < RING; i++) {
		double left = u[(i + RING - 1) % RING], right = u[(i + 1) % RING];
		f[i] = v[i];
		f[RING + i] = c->damping * (1 - u[i] * u[i]) * v[i] - u[i] +
			      c->coupling * (left - 2 * u[i] + right);
	}
}

/* g = J^T l, with J the Jacobian of field at y. */
static void field_back(struct ring *c, const double *y, const double *l, double *g)
{
	const double *u = y, *v = y + RING, *lv = l + RING;
	for (int i = 0; i < RING; i++) {
		double left = lv[(i + RING - 1) % RING], right = lv[(i + 1) % RING];
		g[i] = lv[i] * (-2 * c->damping * u[i] * v[i] - 1) +
		       c->coupling * (left - 2 * lv[i] + right);
		g[RING + i] = l[i] + lv[i] * c->damping * (1 - u[i] * u[i]);
		c->damping_slope += lv[i] * (1 - u[i] * u[i]) * v[i];
	}
}

/* One attempt: its stages, and its estimated error divided by the tolerance. */
struct attempt {
	double h, y[STAGES][N], k[STAGES][N], q[N], error;
};

static double weight(const struct ring *c, double y)
{
	return c->tolerance * (1 + fabs(y));
}

static void attempt(const struct ring *c, const double *y, double h, struct attempt *a)
{
	double sum = 0;
	a->h = h;
	for (int s = 0; s < STAGES; s++) {
		for (int i = 0; i < N; i++) {
			double to = 0;
			for (int j = 0; j < s; j++)
				to += A[s][j] * a->k[j][i];
			a->y[s][i] = y[i] + h * to;
		}
		field(c, a->y[s], a->k[s]);
	}
	for (int i = 0; i < N; i++) {
		double e = 0;
		for (int s = 0; s < STAGES; s++)
			e += E[s] * a->k[s][i];
		a->q[i] = h * e / weight(c, y[i]);
		sum += a->q[i] * a->q[i];
	}
	a->error = sqrt(sum / N);
}

/*
 * Adds the gradient of an attempt with respect to y to d and returns the one with respect to h.
 * d1 is the gradient with respect to its final values, or NULL; d_error with respect to its error.
 */
static double attempt_back(struct ring *c, const double *y, const struct attempt *a,
	const double *d1, double d_error, double *d)
{
	double dk[STAGES][N], dh = 0, g[N];
	for (int i = 0; i < N; i++) {
		double w = weight(c, y[i]);
		double dq = a->error > 0 ? d_error * a->q[i] / (N * a->error) : 0;
		double sign = y[i] > 0 ? 1 : -1;
		d[i] -= dq * a->q[i] / w * c->tolerance * sign;
		d[i] += d1 ? d1[i] : 0;
		for (int s = 0; s < STAGES; s++) {
			double by_k = B[s] * (d1 ? d1[i] : 0) + E[s] * dq / w;
			dk[s][i] = a->h * by_k;
			dh += a->k[s][i] * by_k;
		}
	}
	for (int s = STAGES - 1; s >= 0; s--) {
		field_back(c, a->y[s], dk[s], g);
		for (int i = 0; i < N; i++) {
			d[i] += g[i];
			for (int j = 0; j < s; j++) {
				dk[j][i] += a->h * A[s][j] * g[i];
				dh += A[s][j] * a->k[j][i] * g[i];
			}
		}
	}
	return dh;
}

/* The factor from this step size to the next; *slope is its derivative by the error. */
static double factor(double error, double *slope)
{
	double f = error > 0 ? 0.9 * pow(error, -0.2) : 5;
	*slope = f > 0.2 && f < 5 ? -0.2 * f / error : 0;
	return fmin(fmax(f, 0.2), 5);
}

/* One accepted step after one or more attempts, the last one in *a. Stores the attempted step sizes
 * in `tried` and returns their number. */
static int step(const struct ring *c, struct state *s, struct attempt *a, double *tried)
{
	int n = 0;
	double slope, left = c->until - s->t, h = fmin(s->h, left);
	for (;; h *= factor(a->error, &slope)) {
		tried[n++] = h;
		attempt(c, s->y, h, a);
		if (a->error <= 1 || n == TRIES)
			break;
	}
	for (int i = 0; i < N; i++) {
		double to = 0;
		for (int j = 0; j < STAGES; j++)
			to += B[j] * a->k[j][i];
		s->y[i] += h * to;
	}
	s->t = h == left ? c->until : s->t + h;
	s->h = h * factor(a->error, &slope);
	return n;
}

static void step_back(struct ring *c, const struct state *s, struct state *d)
{
	struct attempt a;
	struct state end = *s;
	double tried[TRIES], slope, d1[N], left = c->until - s->t;
	int n = step(c, &end, &a, tried), at_end = tried[n - 1] == left;
	double f = factor(a.error, &slope), dh = d->h * f + (at_end ? 0 : d->t);
	memcpy(d1, d->y, sizeof d1);
	memset(d->y, 0, sizeof d->y);
	if (at_end)
		d->t = 0;
	dh += attempt_back(c, s->y, &a, d1, d->h * a.h * slope, d->y);
	for (int i = n - 2; i >= 0; i--) {
		attempt(c, s->y, tried[i], &a);
		f = factor(a.error, &slope);
		double d_error = dh * a.h * slope;
		dh = dh * f + attempt_back(c, s->y, &a, NULL, d_error, d->y);
	}
	d->h = s->h < left ? dh : 0;
	d->t -= s->h < left ? 0 : dh;
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct ring *c = user;
	struct attempt a;
	double tried[TRIES];
	for (int64_t t = t0; t < t1; t++) {
		int n = step(c, state, &a, tried);
		c->refused += first ? n - 1 : 0;
	}
	return 0;
}

/* The tape of a step is the state before it; backward repeats the attempts. */
static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	(void)room;
	for (int64_t t = t0; t < t1; t++) {
		memcpy((struct state *)tape + (t - t0), state, sizeof(struct state));
		advance(user, state, t, t + 1, first);
	}
	*used = (size_t)(t1 - t0) * sizeof(struct state);
	*t_done = t1;
	return 0;
}

static int ended(void *user, const void *state, int64_t t)
{
	struct ring *c = user;
	c->steps = t;
	return ((const struct state *)state)->t >= c->until ? NEAP_ENDED : NEAP_GO_ON;
}

/* The target positions are a sine wave. */
static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	const struct state *s = state;
	struct state *d = adjoint;
	(void)user;
	*loss = 0;
	memset(d, 0, sizeof *d);
	for (int i = 0; i < RING; i++) {
		d->y[i] = s->y[i] - sin(0.3 * i);
		*loss += 0.5 * d->y[i] * d->y[i];
	}
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	for (int64_t t = t1 - 1; t >= t0; t--)
		step_back(user, (const struct state *)tape + (t - t0), adjoint);
	return 0;
}

static struct state start(void)
{
	struct state s = {.h = 1e-2};
	for (int i = 0; i < RING; i++) {
		s.y[i] = 1.5 * cos(0.2 * i * i);
		s.y[RING + i] = 0.5 * sin(1.7 * i);
	}
	return s;
}

/* The loss at eps times the direction; sets *other if the number of steps or attempts differs. */
static double loss_along(const struct ring *c, const double *direction, double eps, int *other)
{
	struct ring moved = *c;
	struct state s = start(), d;
	double loss;
	moved.damping += eps * direction[N];
	for (int i = 0; i < N; i++)
		s.y[i] += eps * direction[i];
	moved.refused = 0;
	int64_t steps = 0;
	for (; s.t < c->until; steps++)
		advance(&moved, &s, steps, steps + 1, 1);
	*other |= steps != c->steps || moved.refused != c->refused;
	turn(&moved, &s, &d, &loss);
	return loss;
}

/* Fourth-order difference quotient, with eps small enough that the number of steps stays the same.
 */
static double slope_along(const struct ring *c, const double *direction)
{
	for (double eps = 1e-4; eps > 1e-9; eps /= 2) {
		int other = 0;
		double near = loss_along(c, direction, eps, &other) -
			      loss_along(c, direction, -eps, &other);
		double far = loss_along(c, direction, 2 * eps, &other) -
			     loss_along(c, direction, -2 * eps, &other);
		if (!other)
			return (8 * near - far) / (12 * eps);
	}
	return NAN;
}

static int check(const struct ring *c, const struct state *d)
{
	int good = 1;
	for (int n = 0; n < 3; n++) {
		double direction[N + 1], along = 0, length = 0;
		for (int i = 0; i <= N; i++) {
			double by = i < N ? d->y[i] : c->damping_slope;
			direction[i] = sin(1 + 12.9898 * (i + 1) * (n + 1));
			along += direction[i] * by;
			length += by * by;
		}
		double by_differences = slope_along(c, direction);
		double error = fabs(along - by_differences) / sqrt(length);
		printf("direction %d: gradient %+.9f, difference %+.9f, error / norm %.1e\n", n,
			along, by_differences, error);
		good &= error < 1e-6;
	}
	return good;
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Measures the cost of the first 50 steps, for the planner. */
static void time_steps(const struct ring *c, struct neap_sweep_options *o)
{
	struct ring copy = *c;
	struct state s = start(), d = {0}, before[50];
	double begin = seconds();
	for (int i = 0; i < 50; i++) {
		before[i] = s;
		advance(&copy, &s, i, i + 1, 0);
	}
	double middle = seconds();
	for (int i = 49; i >= 0; i--)
		step_back(&copy, &before[i], &d);
	o->advance = o->record = (middle - begin) / 50;
	o->backward = (seconds() - middle) / 50;
}

int main(int argc, char **argv)
{
	struct ring c = {.damping = 2, .coupling = 0.5, .until = 40, .tolerance = 1e-8};
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.ended = ended,
		.state_bytes = sizeof(struct state),
		.adjoint_bytes = sizeof(struct state),
		.tape_bytes = sizeof(struct state)};
	struct neap_sweep_options options = {.size = sizeof options, .memory = 64 << 10};
	const char *disk = NULL;
	struct neap_tier *tier = NULL;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct state x0 = start(), d;
	double loss;
	int print = 0;

	for (int i = 1; i < argc; i++) {
		int more = i + 1 < argc;
		if (strcmp(argv[i], "--print") == 0) {
			print = 1;
		} else if (more && strcmp(argv[i], "--until") == 0) {
			c.until = strtod(argv[++i], NULL);
		} else if (more && strcmp(argv[i], "--tolerance") == 0) {
			c.tolerance = strtod(argv[++i], NULL);
		} else if (more && strcmp(argv[i], "--memory") == 0) {
			options.memory = strtoull(argv[++i], NULL, 10);
		} else if (more && strcmp(argv[i], "--disk") == 0) {
			disk = argv[++i];
		} else {
			fprintf(stderr, "usage: 08_adaptive [--until TIME] [--tolerance X] "
					"[--memory BYTES] [--disk FOLDER] [--print]\n");
			return 2;
		}
	}
	if (!(c.until > 0) || !(c.tolerance > 0)) {
		fprintf(stderr, "08_adaptive: --until and --tolerance must be above 0\n");
		return 2;
	}
	time_steps(&c, &options);
	if (disk && neap_tier_open_file(&tier, disk, NULL) < 0) {
		fprintf(stderr, "%s\n", neap_detail());
		return 1;
	}
	options.tiers = &tier;
	options.ntiers = tier != NULL;
	if (neap_sweep_create(&sweep, &ops, &c, &options) < 0 ||
		neap_sweep_run(sweep, &x0, &d, &loss, &stats) < 0) {
		fprintf(stderr, "%s\n", neap_detail());
		return 1;
	}
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	if (print) {
		printf("%.17g\n", c.damping_slope);
		for (int i = 0; i < N; i++)
			printf("%.17g\n", d.y[i]);
		return 0;
	}
	printf("%lld steps, %lld rejected attempts; %llu bytes of memory, %llu written to disk; "
	       "%.2f forward steps per step; all states need %llu bytes\n",
		(long long)c.steps, (long long)c.refused, (unsigned long long)stats.peak_measured,
		(unsigned long long)stats.written[0],
		(double)(stats.advance_steps + stats.record_steps) / (double)c.steps,
		(unsigned long long)c.steps * sizeof(struct state));
	return check(&c, &d) ? 0 : 1;
}
