/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of full waveform inversion in the memory of ten snapshots. In a column of
 * earth, 5 km deep, a source near the top fires every 5 s for 200 s, and a receiver
 * records the pressure. Given the record for the true velocity c(z), the program computes
 * the gradient of the misfit with respect to every value of an assumed c(z).
 *
 * The model is the 1-D acoustic wave equation p_tt = c^2 p_zz + s, second order in
 * space and time, with absorbing boundaries (Mur, 1981, first order), written in
 * increments w = p - (p of the previous step), so that a step works in place:
 *
 *     w_i += a_i (p_{i-1} - 2 p_i + p_{i+1}),   a_i = (c_i dt/dz)^2,   w_src += dt^2 s(t)
 *     p_i += w_i                                                       inside
 *     p_0  = p_1(old) + r (p_1 - p_0(old)),     r = (C - 1)/(C + 1),   C = c_0 dt/dz
 *
 * and the same at the bottom. The misfit is J = 1/2 sum_t dt (p_rec(t) - d(t))^2, in
 * Pa^2 s; its gradient is in Pa^2 s per m/s, for each grid point. Storing all 10^5 steps
 * takes 400 MB, ten snapshots take 80 KB: other states are recomputed or written to a file.
 *
 *     cc -O2 03_wave.c $(pkg-config --cflags --libs neap) -lm
 *     ./a.out [--steps N] [--slow DIRECTORY]
 *
 * To use your own model, replace everything above main(). You need a state that can be
 * copied as bytes, one step of the model, the values that the adjoint of a step needs
 * (the tape), and the adjoint of a step.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <neap/sweep.h>

#define POINTS 500    /* of the grid */
#define SPACING 10.0  /* dz, m: the bottom is at 5 km */
#define TIMESTEP 2e-3 /* dt, s: c dt/dz is 0.7 at 3500 m/s, stable below 1 */
#define SOURCE 10     /* 100 m deep */
#define RECEIVER 20   /* 200 m deep */
#define PEAK 6.0      /* Hz of the Ricker wavelet: 250 m long at 1500 m/s, 25 points */
#define STRENGTH 2e4  /* Pa/s^2: some tenths of a pascal at the receiver */
#define INTERVAL 5.0  /* s between shots */

#define SNAPSHOTS 10
#define TOLERANCE 1e-5 /* relative error of the gradient against differences */

/* Everything that the next step needs. A snapshot is 8,000 bytes. */
struct state {
	double p[POINTS]; /* Pa */
	double w[POINTS]; /* Pa per step; zero at the edges */
};

/* The values that the adjoint of one step needs: the factor of each coefficient. */
struct tape {
	double bend[POINTS]; /* of a_i inside, of r at the edges */
	double residual;     /* p_rec - d */
};

struct wave {
	double a[POINTS];   /* a_i inside, r at the edges */
	const double *data; /* d(t), Pa; NULL while the data are being recorded */
	double *record;
	double misfit;	     /* Pa^2 s, sum over steps executed for the first time */
	double da[POINTS];   /* gradient with respect to a */
	double flux[POINTS]; /* scratch memory for one adjoint step */
};

/* Pa/s^2 at time t: a Ricker wavelet every INTERVAL. */
static double source(double t)
{
	double q = M_PI * PEAK * (fmod(t, INTERVAL) - 1.5 / PEAK);
	return q * q < 100 ? STRENGTH * (1 - 2 * q * q) * exp(-q * q) : 0;
}

static void step(const struct wave *m, struct state *x, int64_t t)
{
	double *p = x->p, *w = x->w, top = p[1], bottom = p[POINTS - 2];
	for (int i = 1; i < POINTS - 1; i++)
		w[i] += m->a[i] * (p[i - 1] - 2 * p[i] + p[i + 1]);
	w[SOURCE] += TIMESTEP * TIMESTEP * source((double)t * TIMESTEP);
	for (int i = 1; i < POINTS - 1; i++)
		p[i] += w[i];
	p[0] = top + m->a[0] * (p[1] - p[0]);
	p[POINTS - 1] = bottom + m->a[POINTS - 1] * (p[POINTS - 2] - p[POINTS - 1]);
}

/*
 * advance and record must do bit-identical arithmetic; otherwise a recomputed state would
 * differ from the original one. Both call this function: the misfit of state t, then step t.
 */
static void pass(struct wave *m, struct state *x, int64_t t, int first)
{
	double residual = x->p[RECEIVER] - (m->data ? m->data[t] : 0);
	if (first)
		m->misfit += 0.5 * TIMESTEP * residual * residual;
	if (m->record)
		m->record[t] = x->p[RECEIVER];
	step(m, x, t);
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	for (int64_t t = t0; t < t1; t++)
		pass(user, state, t, first);
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct wave *m = user;
	struct state *x = state;
	struct tape *row = tape;
	(void)room; /* all tapes have the same size, so the sweep only requests tapes that fit */
	for (int64_t t = t0; t < t1; t++, row++) {
		double *bend = row->bend, top = x->p[0], bottom = x->p[POINTS - 1];
		for (int i = 1; i < POINTS - 1; i++)
			bend[i] = x->p[i - 1] - 2 * x->p[i] + x->p[i + 1];
		row->residual = x->p[RECEIVER] - m->data[t];
		pass(m, x, t, first);
		bend[0] = x->p[1] - top;
		bend[POINTS - 1] = x->p[POINTS - 2] - bottom;
	}
	*used = (size_t)(t1 - t0) * sizeof *row;
	*t_done = t1;
	return 0;
}

/* The loss does not depend on the last state: the misfit was summed during the steps. */
static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	const struct wave *m = user;
	(void)state;
	memset(adjoint, 0, sizeof(struct state));
	*loss = m->misfit;
	return 0;
}

/* The transpose of step(), in reverse order. dp is dJ/dp, dw is dJ/dw. */
static void unstep(struct wave *m, struct state *d, const struct tape *row)
{
	double *dp = d->p, *dw = d->w, *flux = m->flux;
	double top = dp[0], bottom = dp[POINTS - 1];

	m->da[0] += top * row->bend[0];
	m->da[POINTS - 1] += bottom * row->bend[POINTS - 1];
	dp[1] += m->a[0] * top;
	dp[POINTS - 2] += m->a[POINTS - 1] * bottom;
	for (int i = 1; i < POINTS - 1; i++) {
		dw[i] += dp[i];
		m->da[i] += dw[i] * row->bend[i];
		flux[i] = m->a[i] * dw[i];
	}
	flux[0] = flux[POINTS - 1] = 0;
	for (int i = 1; i < POINTS - 1; i++)
		dp[i] += flux[i - 1] - 2 * flux[i] + flux[i + 1];
	dp[0] = flux[1] - m->a[0] * top;
	dp[POINTS - 1] = flux[POINTS - 2] - m->a[POINTS - 1] * bottom;
	dp[1] += top;
	dp[POINTS - 2] += bottom;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	const struct tape *row = tape;
	struct state *d = adjoint;
	for (int64_t t = t1 - 1; t >= t0; t--) {
		unstep(user, d, &row[t - t0]);
		d->p[RECEIVER] += TIMESTEP * row[t - t0].residual;
	}
	return 0;
}

static void set_velocity(struct wave *m, const double *c)
{
	for (int i = 0; i < POINTS; i++) {
		double courant = c[i] * TIMESTEP / SPACING;
		int edge = i == 0 || i == POINTS - 1;
		m->a[i] = edge ? (courant - 1) / (courant + 1) : courant * courant;
	}
}

/* From dJ/da to dJ/dc. */
static void velocity_gradient(double *dc, const struct wave *m, const double *c)
{
	for (int i = 0; i < POINTS; i++) {
		double scale = TIMESTEP / SPACING, courant = c[i] * scale;
		int edge = i == 0 || i == POINTS - 1;
		double slope = edge ? 2 / ((1 + courant) * (1 + courant)) : 2 * courant;
		dc[i] = m->da[i] * slope * scale;
	}
}

/* m/s: increases with depth; the true velocity also has a slow layer and a hard bottom. */
static void velocities(double *truth, double *assumed)
{
	for (int i = 0; i < POINTS; i++) {
		double z = i * SPACING;
		assumed[i] = 1500 + 0.3 * z;
		truth[i] = assumed[i] + 30 * sin(2 * M_PI * z / 1700);
		if (z > 2000 && z < 2300)
			truth[i] -= 250;
		if (z > 3600)
			truth[i] += 400;
	}
}

/* The misfit for a velocity, from a forward run without neap. */
static double plain_run(const double *c, const double *data, double *record, int64_t steps)
{
	struct wave m = {.data = data, .record = record};
	struct state x = {{0}, {0}};
	set_velocity(&m, c);
	advance(&m, &x, 0, steps, 1);
	return m.misfit;
}

/* J(c + h v) - J(c - h v) */
static double across(
	const double *c, const double *direction, double h, const double *data, int64_t steps)
{
	double plus[POINTS], minus[POINTS];
	for (int i = 0; i < POINTS; i++) {
		plus[i] = c[i] + h * direction[i];
		minus[i] = c[i] - h * direction[i];
	}
	return plain_run(plus, data, NULL, steps) - plain_run(minus, data, NULL, steps);
}

/* Compares the directional derivative with a fourth-order central difference; h in m/s. */
static int agrees(const char *name, const double *c, const double *dc, const double *direction,
	double h, const double *data, int64_t steps)
{
	double gradient = 0, difference = (8 * across(c, direction, h, data, steps) -
						  across(c, direction, 2 * h, data, steps)) /
					  (12 * h);
	for (int i = 0; i < POINTS; i++)
		gradient += dc[i] * direction[i];
	double error = fabs(gradient - difference) / fabs(difference);
	printf("%-12s gradient %+.9e, difference %+.9e, relative error %.1e\n", name, gradient,
		difference, error);
	return error < TOLERANCE;
}

static int gradient_agrees(const double *c, const double *dc, const double *data, int64_t steps)
{
	static const int points[] = {0, SOURCE, RECEIVER, 100, 210, 360};
	double direction[POINTS];
	int good = 1;
	for (size_t k = 0; k < sizeof points / sizeof *points; k++) {
		char name[32];
		snprintf(name, sizeof name, "c(%d m)", points[k] * (int)SPACING);
		memset(direction, 0, sizeof direction);
		direction[points[k]] = 1;
		good &= agrees(name, c, dc, direction, 0.1, data, steps);
	}
	for (int i = 0; i < POINTS; i++)
		direction[i] = 1;
	good &= agrees("all alike", c, dc, direction, 0.02, data, steps);
	for (int i = 0; i < POINTS; i++)
		direction[i] = sin(0.7 * i * i);
	good &= agrees("all mixed", c, dc, direction, 0.05, data, steps);
	if (!good)
		printf("a relative error exceeds %.0e\n", TOLERANCE);
	return good;
}

/* FNV-1a hash, to compare gradients bit by bit. */
static uint64_t hash(const void *bytes, size_t n)
{
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
	return h;
}

/* Seconds per step, for the planner. */
static double seconds_a_step(const double *c, const double *data, int64_t steps)
{
	int64_t n = steps < 2000 ? steps : 2000;
	clock_t start = clock();
	plain_run(c, data, NULL, n);
	double seconds = (double)(clock() - start) / CLOCKS_PER_SEC / (double)(n + 1);
	return seconds > 1e-8 ? seconds : 1e-8;
}

/* One forward and backward pass (sweep) with a strategy: computes dc and prints a table row. */
static int sweep_once(const char *strategy, const double *c, const double *data, int64_t steps,
	uint64_t memory, struct neap_tier *disk, double seconds, double *dc)
{
	struct wave m = {.data = data};
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.state_bytes = sizeof(struct state),
		.adjoint_bytes = sizeof(struct state),
		.tape_bytes = sizeof(struct tape)};
	const struct neap_sweep_options options = {.size = sizeof options,
		.steps = steps,
		.memory = memory,
		.strategy = strategy,
		.tiers = &disk,
		.ntiers = disk != NULL,
		.advance = seconds,
		.record = 1.5 * seconds,
		.backward = 1.5 * seconds};
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	double misfit;

	set_velocity(&m, c);
	int rc = neap_sweep_create(&sweep, &ops, &m, &options);
	if (rc < 0)
		return rc;
	rc = neap_sweep_run(
		sweep, NULL, NULL, &misfit, &stats); /* NULL: the initial state is zero */
	if (rc == 0) {
		velocity_gradient(dc, &m, c);
		const struct neap_plan *plan = neap_sweep_plan(sweep);
		printf("%-10s %-10s %9llu %9llu %10llu %10lld %8.2f  %016llx\n", strategy,
			plan->chosen, (unsigned long long)stats.peak_planned,
			(unsigned long long)stats.peak_measured,
			(unsigned long long)plan->tiers[0].peak_bytes,
			(long long)(stats.advance_steps + stats.record_steps), stats.seconds,
			(unsigned long long)hash(dc, POINTS * sizeof *dc));
		if (memory && (stats.arena_bytes > memory || stats.peak_measured > memory)) {
			printf("%s: exceeds the budget\n", strategy);
			rc = -1;
		}
	}
	neap_sweep_free(sweep);
	return rc;
}

/* Opens a file that bypasses the page cache; if the file system cannot, prints why and uses the
 * cache. */
static int open_disk(struct neap_tier **disk, const char *directory)
{
	const struct neap_file_options any = {.size = sizeof any, .page_cache = 1, .in_memory = 1};
	if (neap_tier_open_file(disk, directory, NULL) == 0)
		return 0;
	fprintf(stderr, "%s\n", neap_detail());
	return neap_tier_open_file(disk, directory, &any);
}

/*
 * The budget: ten states, one adjoint and one tape. The ten states are the current state,
 * all checkpoints in memory, and the transfer buffer of the file.
 */
static uint64_t ten_snapshots(void)
{
	uint64_t tape = (sizeof(struct tape) + 63) / 64 * 64; /* the sweep aligns them */
	return SNAPSHOTS * sizeof(struct state) + sizeof(struct state) + tape;
}

static int invert(int64_t steps, struct neap_tier *disk, double *record)
{
	static const char *const strategies[] = {"revolve", "h-revolve", "async", "auto"};
	double truth[POINTS], assumed[POINTS], dc[POINTS], first[POINTS];
	velocities(truth, assumed);
	plain_run(truth, NULL, record, steps);
	double seconds = seconds_a_step(assumed, record, steps);

	printf("%lld steps, %d points: misfit %.6e Pa^2 s, of %.6e recorded\n", (long long)steps,
		POINTS, plain_run(assumed, record, NULL, steps),
		plain_run(truth, NULL, NULL, steps));
	printf("budget %llu bytes: %d snapshots of %zu, the adjoint, and a tape of %zu; "
	       "storing all tapes needs %llu\n",
		(unsigned long long)ten_snapshots(), SNAPSHOTS, sizeof(struct state),
		sizeof(struct tape), (unsigned long long)steps * sizeof(struct tape));
	printf("slow tier: %s\n\n", neap_tier_about(disk));
	printf("%-10s %-10s %9s %9s %10s %10s %8s  %s\n", "strategy", "chosen", "planned",
		"measured", "slow bytes", "forward", "seconds", "gradient");
	if (steps <= 5000 && sweep_once("bptt", assumed, record, steps, 0, NULL, seconds, dc) < 0)
		return -1;
	for (int k = 0; k < 4; k++) {
		struct neap_tier *slow = k ? disk : NULL; /* revolve uses no slow memory */
		int rc = sweep_once(strategies[k], assumed, record, steps, ten_snapshots(), slow,
			seconds, k ? dc : first);
		if (rc < 0)
			return rc;
		if (k && memcmp(first, dc, sizeof dc)) {
			printf("%s: the gradient differs from %s\n", strategies[k], strategies[0]);
			return -1;
		}
	}
	printf("\n");
	return gradient_agrees(assumed, first, record, steps) ? 0 : -1;
}

int main(int argc, char **argv)
{
	const char *directory = "/var/tmp";
	int64_t steps = 100000;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
			steps = strtoll(argv[i + 1], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--slow") == 0)
			directory = argv[i + 1];
		else
			steps = 0;
	}
	if (steps < 4000 ||
		steps > 100000000) { /* 4000 steps = 8 s, when the deepest echo arrives */
		fprintf(stderr, "usage: 03_wave [--steps 4000..100000000] [--slow DIRECTORY]\n");
		return 2;
	}
	struct neap_tier *disk;
	double *record = calloc((size_t)steps, sizeof *record);
	if (!record || open_disk(&disk, directory) < 0 ||
		neap_tier_measure(disk, sizeof(struct state), 0.2) < 0) {
		fprintf(stderr, "%s\n", record ? neap_detail() : "out of memory");
		return 1;
	}
	int rc = invert(steps, disk, record);
	if (rc < -1)
		fprintf(stderr, "%s\n", neap_detail());
	neap_tier_close(disk);
	free(record);
	return rc < 0;
}
