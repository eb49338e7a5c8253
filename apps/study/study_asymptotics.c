/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_asymptotics.c: how the least fast memory of each strategy grows with the number of steps
 * T. Peaks of plans over six powers of ten are fitted to T^a. Short chains are run as well, and
 * their arenas compared with the plans.
 *
 * A state and a tape have 1 KiB each; slow memory has no limit. The live state and the adjoint,
 * which every strategy needs at every T, are subtracted from the peaks.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "study/synthetic.h"

#define SIZE 1024  /* bytes of a state and of a tape */
#define ADJOINT 64 /* bytes */
#define FITTED 1e4 /* steps from which on peaks are fitted */

enum rule { NONE, ROOT_REMOTE, ROOT_CHUNK };

static const struct grown {
	const char *label, *strategy;
	enum rule rule;
	double exponent;
	const char *what;
	int64_t run_most; /* steps of a chain that is run as well as planned; 0: the scale's */
} grown[] = {
	{"bptt", "bptt", NONE, 1, "stores every tape", 0},
	{"standard", "standard", NONE, 0.5, "chunks of sqrt(T) steps", 0},
	{"remote", "remote", ROOT_CHUNK, 0.5, "chunks of sqrt(T) steps", 0},
	{"double", "double", ROOT_REMOTE, 0.25, "remote chunks of sqrt(T) steps", 0},
	{"revolve", "revolve", NONE, 0, "one checkpoint", 1000}, /* T^2 / 2 steps */
	{"stream", "stream", NONE, 0, "one tape at a time", 0},
};

#define KINDS (sizeof grown / sizeof grown[0])

static struct neap_params params_of(const struct grown *g, int64_t steps)
{
	int64_t root = (int64_t)ceil(sqrt((double)steps) - 1e-9);
	struct neap_params params = {0};
	if (g->rule == ROOT_REMOTE)
		params.remote_chunk = root;
	if (g->rule == ROOT_CHUNK)
		params.chunk = root;
	return params;
}

static struct neap_problem problem_of(struct neap_tier *tier, int64_t steps)
{
	struct neap_problem p = {.size = sizeof p,
		.chain = {.steps = steps,
			.state = SIZE,
			.tape = SIZE,
			.adjoint = ADJOINT,
			.advance = 1e-9,
			.record = 1e-9,
			.backward = 1e-9},
		.ntiers = 1};
	neap_tier_describe(tier, SIZE, &p.tiers[0]);
	p.tiers[0].capacity = NEAP_INFINITE;
	return p;
}

static int peak(struct neap__study *study, struct neap_tier *tier, const struct grown *g,
	int64_t steps, int run)
{
	struct neap_problem p = problem_of(tier, steps);
	struct neap_params params = params_of(g, steps);
	struct neap_plan plan = {.size = sizeof plan}, same = {.size = sizeof same};
	struct neap_sweep_stats stats = {.size = sizeof stats};
	char measured[32] = "";

	NEAP_TRY(neap__plan_least(&plan, &p, g->strategy, &params));
	if (!plan.feasible)
		return neap__fail(NEAP_EINFEASIBLE, "%s: %s", g->label, plan.why);
	if (run) {
		const struct neap__synthetic model = {
			.steps = steps, .state = SIZE, .tape = SIZE, .adjoint = ADJOINT};
		NEAP_TRY(neap__synthetic_run(
			&stats, &same, &model, p.memory, g->strategy, &params, tier, 1));
		snprintf(
			measured, sizeof measured, "%llu", (unsigned long long)stats.peak_measured);
	}
	NEAP_TRY(neap__study_row(study, "%s,%lld,%llu,%s,%llu", g->label, (long long)steps,
		(unsigned long long)plan.peak_bytes, measured,
		(unsigned long long)plan.slow_bytes));
	return neap__study_done(study);
}

static int measure(struct neap__study *study)
{
	int64_t most = neap__study_scaled(study, 10000, 100000, 1000);
	struct neap_tier *tier;
	int rc = neap_tier_open_memory(&tier, (uint64_t)1 << 30);
	for (size_t i = 0; rc >= 0 && i < KINDS; i++)
		for (int e = 4; rc >= 0 && e <= 16; e++) {
			int64_t steps = (int64_t)round(pow(10, e / 2.0));
			int run = steps <= (grown[i].run_most ? grown[i].run_most : most);
			rc = neap__study_point(
				study, "%s T=%lld", grown[i].label, (long long)steps);
			if (rc > 0)
				rc = peak(study, tier, &grown[i], steps, run);
		}
	neap_tier_close(tier);
	return rc < 0 ? rc : 0;
}

static double less(double bytes)
{
	return bytes - SIZE - ADJOINT;
}

/* Exponent of a strategy's peaks; *exact of *runs arenas were as planned. */
static double fit(const struct neap__study *study, const char *label, int *exact, int *runs)
{
	double x[64], y[64];
	int n = 0;
	*exact = *runs = 0;
	for (int i = 0; i < neap__points_count(study->points) && n < 64; i++) {
		double steps = neap__row_number(study, i, "steps");
		double bytes = neap__row_number(study, i, "peak_bytes");
		double measured = neap__row_number(study, i, "peak_measured");
		if (!neap__row_is(study, i, "strategy", label))
			continue;
		if (isfinite(measured)) {
			*runs += 1;
			*exact += measured == bytes;
		}
		if (steps >= FITTED) {
			x[n] = steps;
			y[n++] = less(bytes);
		}
	}
	return neap__fit_power(x, y, n);
}

static void series(struct neap__study *study, struct neap__figure *f, const char *label,
	const char *column, const char *key, int look)
{
	neap__figure_series(f, label, 0, key, look);
	for (int i = 0; i < neap__points_count(study->points); i++)
		if (neap__row_is(study, i, "strategy", label))
			neap__figure_xy(f, neap__row_number(study, i, "steps"),
				less(neap__row_number(study, i, column)) / 1024);
}

static double exponent(const double *fitted, const char *label)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(grown[i].label, label) == 0)
			return fitted[i];
	return NAN;
}

static int draw(struct neap__study *study)
{
	struct neap__figure f;
	char key[80];
	double fitted[KINDS];
	neap__text_add(&study->report,
		"The minimum fast memory of each strategy as a function of the number of "
		"steps T, without the live state and the adjoint. A state and a tape "
		"take 1 KiB each. Lines are planned values; marks are the measured peaks "
		"of sweeps that were run. The exponents are fitted to the values for T "
		">= 10^4. `remote` offloads a checkpoint every sqrt(T) steps and stores the tapes "
		"of one such chunk at a time; `double` divides each of these chunks once more, "
		"with "
		"checkpoints in fast memory. `revolve` and `stream` use constant memory, at the "
		"cost of recomputation and of slow memory, respectively.\n\n| strategy | memory "
		"layout | fitted exponent | expected | "
		"peaks equal to the plan |\n|---|---|---|---|---|\n");
	neap__figure_begin(&f, "asymptotics");
	neap__figure_panel(&f, "Minimum fast memory", "steps T", "fast memory (KiB)",
		NEAP__LOG_X | NEAP__LOG_Y);
	for (size_t i = 0; i < KINDS; i++) {
		int exact, runs;
		double a = fit(study, grown[i].label, &exact, &runs);
		a = fabs(a) < 5e-4 ? 0 : a;
		fitted[i] = a;
		neap__text_add(&study->report, "| `%s` | %s | %.3f | %g | %d of %d |\n",
			grown[i].label, grown[i].what, a, grown[i].exponent, exact, runs);
		snprintf(key, sizeof key, "%s: T^%.2f", grown[i].label, a);
		series(study, &f, grown[i].label, "peak_bytes", "", NEAP__LINE);
		series(study, &f, grown[i].label, "peak_measured", key, NEAP__MARKS);
	}
	return neap__study_figure(study, &f,
		"The minimum fast memory grows as T^%.2f for `bptt`, T^%.2f for `standard`, T^%.2f "
		"for `double` and T^%.2f for `revolve`.",
		exponent(fitted, "bptt"), exponent(fitted, "standard"), exponent(fitted, "double"),
		exponent(fitted, "revolve"));
}

const struct neap__experiment neap__study_asymptotics = {"asymptotics",
	"minimum fast memory as a function of the number of steps",
	"strategy,steps,peak_bytes,peak_measured,slow_bytes", measure, draw};
