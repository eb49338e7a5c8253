/* SPDX-License-Identifier: Apache-2.0 */
/*
 * randman.c: smooth random manifolds of spike times (Zenke and Vogels, "The remarkable
 * robustness of surrogate gradient learning", Neural Computation 33, 2021, 2.1):
 * class c and unit u have f(x) = prod_d sum_k k^-alpha a sin(2 pi (k b x_d + p)) with
 * a, b, p uniform in [0, 1); x uniform in the cube [0, 1]^dim is a sample; f, brought
 * to [0, 1] over the manifold, is the time of the unit's spike. alpha sets the smoothness. With
 * `active` below 1, the spikes of a window are in its first part: a burst. Every sample is a
 * function of (seed, point), so any sample can be made at any time.
 */
#include "data/bins.h"
#include "data/dataset.h"
#include "data/formats/randman_curve.h"
#include "base/fail.h"
#include "base/philox.h"
#include "base/print.h"
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TWO_PI NEAP__TWO_PI
#define STEP 1e-3 /* seconds */
/* Terms below this share of the first are left out; the paper's cut-off is 1000 terms. */
#define SMALLEST_TERM 1e-3
#define FARTHEST 9.0		 /* deviations that a normal number of 53 bits can be away */
#define TEST_POINTS (1ull << 41) /* where the points of part=test begin */

/* Approximate values of a function differ from exact ones by less than this share of their bound:
 * derived, the error of neap__roughly_sin is below 1e-11 of the bound per dimension, and there are
 * at most 16. */
#define CLOSE 1e-9

enum { GRID = 1024, MOST_TERMS = 1000 };

struct values {
	double classes, units, dim, alpha, steps, samples, seed, spikes, noise, first, active;
};

static const struct randman_key {
	const char *name;
	size_t offset;
	double least, most;
	int whole;
} keys[] = {
	{"classes", offsetof(struct values, classes), 1, 1000, 1},
	{"units", offsetof(struct values, units), 1, 65536, 1},
	{"dim", offsetof(struct values, dim), 1, 16, 1},
	{"alpha", offsetof(struct values, alpha), 0.5, 10, 0},
	{"steps", offsetof(struct values, steps), 2, 1e8, 1},
	{"samples", offsetof(struct values, samples), 1, 1e8, 1},
	{"seed", offsetof(struct values, seed), 0, 9007199254740992.0, 1},
	{"spikes", offsetof(struct values, spikes), 1, 1e7, 1},
	{"noise", offsetof(struct values, noise), 0, 1e6, 0},
	{"first", offsetof(struct values, first), 0, 1e12, 1},
	{"active", offsetof(struct values, active), 1e-3, 1, 0},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

struct randman {
	struct neap_dataset set;
	int classes, units, dim, terms;
	uint64_t seed, first;
	int64_t spikes;
	double window, noise; /* seconds */
	double active;	      /* share of a window in which all its spikes are */
	double *term;	      /* of each class, laid out as in randman_curve.h */
	double *low, *scale;  /* [classes * units]: to [0, 1] */
	double *error;	      /* [classes * units]: of an approximate spike time, seconds */
	double *curve;	      /* [units] of the sample being read */
};

/* The first term of a function in a dimension. */
static double *term_of(const struct randman *r, int function, int d)
{
	size_t units = (size_t)r->units, class = (size_t)function / units;
	return r->term + 3 * units * (size_t)r->terms * (class * (size_t)r->dim + (size_t)d) +
	       (size_t)function % units;
}

static double value_at(const struct randman *r, int function, const double *x)
{
	double product = 1;
	size_t units = (size_t)r->units;
	for (int d = 0; d < r->dim; d++) {
		const double *t = term_of(r, function, d);
		double sum = 0;
		for (int k = 0; k < r->terms; k++, t += 3 * units)
			sum += t[0] * sin(TWO_PI * (t[units] * x[d] + t[2 * units]));
		product *= sum;
	}
	return product;
}

static void draw_terms(struct randman *r, double alpha)
{
	uint64_t i = 0;
	size_t units = (size_t)r->units;
	for (int f = 0; f < r->classes * r->units; f++)
		for (int d = 0; d < r->dim; d++) {
			double *t = term_of(r, f, d);
			for (int k = 0; k < r->terms; k++, i++, t += 3 * units) {
				for (uint32_t j = 0; j < 3; j++)
					t[j * units] = neap__random_uniform(
						r->seed, NEAP__STREAM_RANDMAN, j, i);
				t[0] *= pow((double)k + 1, -alpha);
				t[units] *= (double)k + 1;
			}
		}
}

/* The points of the manifold at which normalise compares values: GRID values of each of `dim`
 * coordinates. */
static void draw_grid(const struct randman *r, double *x)
{
	for (int d = 0; d < r->dim; d++)
		for (uint64_t i = 0; i < GRID; i++)
			x[d * GRID + i] =
				r->dim == 1 ? (double)i / (GRID - 1)
					    : neap__random_uniform(r->seed, NEAP__STREAM_RANDMAN,
						      0x100u + (uint32_t)d, i);
}

/* Approximate values of a function on the grid; returns an upper bound of their magnitudes. */
static double rough_values(const struct randman *r, int function, const double *x, double *value)
{
	double bound = 1;
	size_t units = (size_t)r->units;
	for (int i = 0; i < GRID; i++)
		value[i] = 1;
	for (int d = 0; d < r->dim; d++) {
		const double *t = term_of(r, function, d);
		double sum[GRID] = {0}, most = 0;
		for (int k = 0; k < r->terms; k++, t += 3 * units) {
			for (int i = 0; i < GRID; i++)
				sum[i] += t[0] * neap__roughly_sin(
							 t[units] * x[d * GRID + i] + t[2 * units]);
			most += t[0];
		}
		for (int i = 0; i < GRID; i++)
			value[i] *= sum[i];
		bound *= most;
	}
	return bound;
}

/*
 * Lowest and highest value of each function over the GRID points of the manifold. Only the points
 * whose approximate value is close to the lowest or the highest one are evaluated exactly: sin at
 * all points took most of the time of opening a data set.
 */
static int normalise(struct randman *r)
{
	double *grid = malloc((size_t)r->dim * GRID * sizeof *grid), value[GRID], x[16];
	if (!grid)
		return neap__fail_errno(ENOMEM, "randman");
	draw_grid(r, grid);
	for (int f = 0; f < r->classes * r->units; f++) {
		double low = INFINITY, high = -INFINITY, least = INFINITY, most = -INFINITY;
		double margin = CLOSE * rough_values(r, f, grid, value);
		r->error[f] = margin;
		for (int i = 0; i < GRID; i++) {
			least = fmin(least, value[i]);
			most = fmax(most, value[i]);
		}
		for (int i = 0; i < GRID; i++) {
			if (value[i] > least + margin && value[i] < most - margin)
				continue;
			for (int d = 0; d < r->dim; d++)
				x[d] = grid[d * GRID + i];
			double v = value_at(r, f, x);
			low = fmin(low, v);
			high = fmax(high, v);
		}
		r->low[f] = low;
		r->scale[f] = high > low ? 1 / (high - low) : 0;
		/* And the rounding of the time itself. */
		r->error[f] = r->error[f] * r->scale[f] * r->window + 1e-12 * r->set.info.duration;
	}
	free(grid);
	return 0;
}

/* What is kept of the spikes: [from, to) seconds. */
struct span {
	double from, to;
	int64_t most; /* events */
	double dt;    /* as in struct neap__event_buffer */
};

/* The point of a window of time. */
struct randman_point {
	double x[16], start;
	uint64_t key; /* of its random numbers */
	int64_t window;
};

static void draw_point(
	struct randman_point *p, const struct randman *r, uint64_t sample, int64_t window)
{
	/* A generator a point: point and window together may need more than 64 bits. */
	p->key = neap__random_u64(r->seed, NEAP__STREAM_RANDMAN, 0x300u, sample);
	p->window = window;
	p->start = (double)window * r->window;
	for (int d = 0; d < r->dim; d++)
		p->x[d] = neap__random_uniform(
			p->key, NEAP__STREAM_RANDMAN, 0x200u + (uint32_t)d, (uint64_t)window);
}

/* Spike time of a unit whose function has the value v. */
static double time_of(const struct randman *r, const struct randman_point *p, int f, double v)
{
	v = (v - r->low[f]) * r->scale[f];
	double time = p->start + fmin(fmax(v, 0), 1) * r->window * r->active;
	if (r->noise > 0)
		time += r->noise * neap__random_normal(p->key, NEAP__STREAM_RANDMAN,
					   0x10000u + (uint32_t)(f % r->units),
					   (uint64_t)p->window);
	/* Inside the last step at the latest. */
	return fmin(fmax(time, 0), r->set.info.duration - 0.5 * STEP);
}

/* Approximate values of all units, if steps of dt can be told with them; else 0. */
static int approximate(const struct randman *r, int label, const struct randman_point *p, double dt)
{
	const struct neap__randman_terms terms = {
		term_of(r, label * r->units, 0), r->units, r->dim, r->terms};
	if (!(dt > 0))
		return 0;
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2")) {
		neap__randman_curve_avx2(r->curve, &terms, p->x);
		return 1;
	}
#endif
	neap__randman_curve(r->curve, &terms, p->x);
	return 1;
}

/* 1 if a time in error of at most `error` is in the step of the exact one. */
static int is_settled(double time, double error, double dt)
{
	/* Spikes around the steps of a window are told apart to a hundredth of a step (windows.c).
	 */
	return error < 1e-3 * dt &&
	       neap__bins_step(time - error, dt) == neap__bins_step(time + error, dt);
}

/*
 * Spikes of one window of time: one a unit, at the point (sample, window). 1 where there
 * are more than are to be kept.
 */
static int add_window(const struct randman *r, int label, uint64_t sample, int64_t window,
	const struct span *span, struct neap_events *events)
{
	struct randman_point p;
	draw_point(&p, r, sample, window);
	int rough = approximate(r, label, &p, span->dt);
	for (int u = 0; u < r->units; u++) {
		int f = label * r->units + u;
		double time = 0;
		if (rough)
			time = time_of(r, &p, f, r->curve[u]);
		if (!rough || !is_settled(time, r->error[f], span->dt))
			time = time_of(r, &p, f, value_at(r, f, p.x));
		if (time < span->from || time >= span->to)
			continue;
		if (events->count == span->most)
			return 1;
		events->time[events->count] = time;
		events->unit[events->count++] = (uint16_t)u;
	}
	return 0;
}

/* The last event to the end. */
static void move_last(struct neap_events *events)
{
	int64_t last = 0, n = events->count;
	for (int64_t i = 1; i < n; i++)
		last = events->time[i] > events->time[last] ? i : last;
	if (n == 0)
		return;
	double time = events->time[last];
	uint16_t unit = events->unit[last];
	events->time[last] = events->time[n - 1];
	events->unit[last] = events->unit[n - 1];
	events->time[n - 1] = time;
	events->unit[n - 1] = unit;
}

static int randman_read(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer)
{
	struct randman *r = (struct randman *)set;
	const struct span all = {-INFINITY, INFINITY, r->spikes * r->units, buffer->dt};
	NEAP_TRY(neap__event_buffer_reserve(buffer, (size_t)all.most));
	buffer->events.count = 0;
	buffer->events.duration = set->info.duration;
	for (int64_t w = 0; w < r->spikes; w++)
		(void)add_window(
			r, set->label[index], r->first + (uint64_t)index, w, &all, &buffer->events);
	if (buffer->dt > 0)
		move_last(&buffer->events);
	return buffer->dt > 0 ? 0 : neap__events_sort(&buffer->events);
}

static int randman_extent(
	struct neap_dataset *set, int64_t index, struct neap__sample_extent *extent)
{
	const struct randman *r = (struct randman *)set;
	(void)index;
	*extent = (struct neap__sample_extent){r->spikes * r->units, set->info.duration, 0};
	return 0;
}

/* Spikes stay in their window but for noise (FARTHEST deviations at most, see philox.h). */
static int randman_part(struct neap_dataset *set, int64_t index, double from, double to,
	size_t most, struct neap__event_buffer *buffer)
{
	struct randman *r = (struct randman *)set;
	const struct span span = {from, to, (int64_t)most, buffer->dt};
	double reach = FARTHEST * r->noise, last = (double)(r->spikes - 1);
	/* What noise carried beyond the end comes back to the last step. */
	double first = floor((from - reach) / r->window - 1e-6) - (r->noise > 0);
	int64_t w = (int64_t)fmin(fmax(first, 0), last);
	int64_t end = (int64_t)fmin(fmax(floor((to + reach) / r->window + 1e-6), 0), last);
	NEAP_TRY(neap__event_buffer_reserve(buffer, most));
	buffer->events.count = 0;
	for (; w <= end; w++)
		if (add_window(r, set->label[index], r->first + (uint64_t)index, w, &span,
			    &buffer->events))
			return 1;
	return 0;
}

static void randman_close(struct neap_dataset *set)
{
	struct randman *r = (struct randman *)set;
	free(r->term);
	free(r->low);
	free(r->scale);
	free(r->error);
	free(r->curve);
}

static const struct neap__dataset_ops randman_ops = {.read = randman_read,
	.close = randman_close,
	.extent = randman_extent,
	.part = randman_part};

static int set_key(struct values *values, unsigned *given, const char *name, const char *text)
{
	char known[256] = "part";
	for (size_t i = 0; i < KEYS; i++) {
		const struct randman_key *key = &keys[i];
		if (strcmp(key->name, name) != 0) {
			size_t n = strlen(known);
			neap__print(known + n, sizeof known - n, ", %s", key->name);
			continue;
		}
		double value = 0;
		if (neap__units_within(&value, text, key->whole, key->least, key->most) < 0)
			return neap__fail(NEAP_EUSAGE,
				"randman: %s=%s is not valid; it must be %s between %.15g and "
				"%.15g",
				name, text, key->whole ? "a whole number" : "a number", key->least,
				key->most);
		if (*given & 1u << i)
			return neap__fail(NEAP_EUSAGE, "randman: %s is given twice", name);
		*given |= 1u << i;
		*(double *)((char *)values + key->offset) = value;
		return 0;
	}
	return neap__fail(NEAP_EUSAGE, "randman: unknown key '%s'; the keys are %s", name, known);
}

/* "KEY=VALUE,..." into values; *test: part=test. */
static int parse(struct values *values, int *test, const char *list)
{
	char *copy = strdup(list), *rest = copy, *pair;
	unsigned given = 0;
	int rc = copy ? 0 : neap__fail_errno(ENOMEM, "randman");
	while (rc == 0 && (pair = strsep(&rest, ",")) != NULL) {
		char *value = strchr(pair, '=');
		if (!value) {
			rc = neap__fail(NEAP_EUSAGE,
				"randman: '%s' in '%s' is not valid; expected KEY=VALUE,...", pair,
				list);
			break;
		}
		*value++ = '\0';
		if (strcmp(pair, "part") != 0)
			rc = set_key(values, &given, pair, value);
		else if (given & 1u << KEYS)
			rc = neap__fail(NEAP_EUSAGE, "randman: part is given twice");
		else if (strcmp(value, "train") != 0 && strcmp(value, "test") != 0)
			rc = neap__fail(NEAP_EUSAGE,
				"randman: part=%s is not valid; it must be train or test", value);
		else {
			*test = value[1] == 'e';
			given |= 1u << KEYS;
		}
	}
	free(copy);
	return rc;
}

static int check(const struct values *v, int terms)
{
	if (v->spikes > v->steps)
		return neap__fail(NEAP_EUSAGE,
			"randman: spikes=%.0f is more than steps=%.0f; at most one spike per step "
			"and unit is possible",
			v->spikes, v->steps);
	if (v->classes * v->units * v->dim * terms > 5e7)
		return neap__fail(NEAP_EUSAGE,
			"randman: classes * units * dim * %d terms is %.3g, more than 5e7. Lower "
			"one of them, or raise alpha, which needs fewer terms",
			terms, v->classes * v->units * v->dim * terms);
	if (v->spikes * v->units > 1e9)
		return neap__fail(NEAP_EUSAGE,
			"randman: spikes * units is %.3g, more than 1e9. Lower one of them",
			v->spikes * v->units);
	return 0;
}

static int allocate(struct randman *r)
{
	size_t functions = (size_t)(r->classes * r->units);
	r->term = malloc(functions * (size_t)r->dim * (size_t)r->terms * 3 * sizeof(double));
	r->low = malloc(functions * sizeof(double));
	r->scale = malloc(functions * sizeof(double));
	r->error = malloc(functions * sizeof(double));
	r->curve = malloc((size_t)r->units * sizeof(double));
	r->set.label = malloc((size_t)r->set.info.samples * sizeof(int32_t));
	return r->term && r->low && r->scale && r->error && r->curve && r->set.label
		       ? 0
		       : neap__fail_errno(ENOMEM, "randman");
}

static int randman_open(struct neap_dataset **out, const char *name)
{
	struct values v = {10, 70, 1, 2, 100, 4000, 0, 1, 0, 0, 1};
	int test = 0;
	if (name[strlen("randman")] == ':')
		NEAP_TRY(parse(&v, &test, name + strlen("randman:")));
	int terms = (int)fmin(MOST_TERMS, floor(pow(SMALLEST_TERM, -1 / v.alpha) + 1e-9));
	terms = terms < 1 ? 1 : terms;
	NEAP_TRY(check(&v, terms));
	struct randman *r = calloc(1, sizeof *r);
	if (!r)
		return neap__fail_errno(ENOMEM, "randman");
	r->classes = (int)v.classes;
	r->units = (int)v.units;
	r->dim = (int)v.dim;
	r->terms = terms;
	r->seed = (uint64_t)v.seed;
	r->first = (uint64_t)v.first + (test ? TEST_POINTS : 0);
	r->spikes = (int64_t)v.spikes;
	r->noise = v.noise * STEP;
	r->active = v.active;
	r->set.ops = &randman_ops;
	r->set.info.samples = (int64_t)v.samples;
	r->set.info.inputs = r->units;
	r->set.info.classes = r->classes;
	r->set.info.duration = v.steps * STEP;
	r->set.info.events = (int64_t)(v.spikes * v.units * v.samples);
	r->window = r->set.info.duration / v.spikes;
	int rc = allocate(r);
	if (rc == 0) {
		draw_terms(r, v.alpha);
		rc = normalise(r);
	}
	if (rc < 0) {
		randman_close(&r->set);
		free(r->set.label);
		free(r);
		return rc;
	}
	for (int64_t i = 0; i < r->set.info.samples; i++)
		r->set.label[i] = (int32_t)((r->first + (uint64_t)i) % (uint64_t)r->classes);
	*out = &r->set;
	return 0;
}

static int takes_randman(const char *name)
{
	size_t n = strlen("randman");
	return strncmp(name, "randman", n) == 0 && (name[n] == '\0' || name[n] == ':');
}

const struct neap__dataset_format neap__format_randman = {"randman", takes_randman, randman_open};
