/* SPDX-License-Identifier: Apache-2.0 */
/* slow_tiers.c: opens the tiers, measures their rates and their transfer overhead. */
#include "measure/slow_tiers.h"
#include "nn/core/on_device.h"
#include "nn/core/net_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/show.h"
#include "store/tier_state.h"
#include "sys/clock.h"
#include "sys/memory.h"
#include "measure/net_steps.h"
#include "store/tier_cost.h"

#include <errno.h>
#include <math.h>
#include <string.h>

const struct neap__tier_calls neap__tier_public_calls = {
	neap_tier_format, neap_tier_put, neap_tier_get, neap_tier_wait, neap_tier_measure};

enum { BESIDE_STEPS = 256, BESIDE_REPEATS = 9, RATE_REPEATS = 3 };
#define PATIENCE 30.0	     /* seconds without progress: systems give a disk 30 s for a command */
#define PASSES 4	     /* forward passes; recomputing a lost record costs one at most */
#define BESIDE_SECONDS 0.025 /* of steps beside which transfers run, at most */

int neap__tiers_open(struct neap__tiers *tiers, const struct neap_sweep_settings *settings,
	const struct neap_net *net)
{
	struct neap_file_options options = {.size = sizeof options,
		.page_cache = settings->page_cache != 0,
		.in_memory = settings->slow_in_memory != 0,
		.keep = settings->journal != NULL};

	*tiers = (struct neap__tiers){0};
	if (!settings->slow)
		return 0;
	NEAP_TRY(neap__on_device_tiers(net, tiers->tier, &tiers->count, settings->slow, &options));
	uint64_t memory;
	NEAP_TRY(neap__memory_budget(&memory, settings, net));
	neap__tiers_lend(tiers, memory);
	for (int i = 0; i < tiers->count; i++)
		neap_tier_set_patience(tiers->tier[i], neap__patience(settings, 0, 0));
	return 0;
}

/* Tiers are measured with the staging that sweeps will have. */
void neap__tiers_lend(struct neap__tiers *tiers, uint64_t memory)
{
	tiers->memory = memory;
	for (int i = 0; i < tiers->count; i++)
		neap_tier_lend(tiers->tier[i], memory / NEAP__STAGING_SHARE);
}

/* Did the medium fail, rather than what was asked of it? */
static int medium_failed(int rc)
{
	return (rc < 0 && rc > -4096 && rc != -ENOMEM) || rc == NEAP_ELOST || rc == NEAP_ESHORT ||
	       rc == NEAP_ECORRUPT;
}

static void give_up(struct neap__tiers *tiers, int i)
{
	neap__print(tiers->lost[tiers->lost_count++], NEAP__TIER_LOST,
		"slow tier %.200s failed twice while it was measured (%.200s); going on without it",
		neap_tier_about(tiers->tier[i]), neap_detail());
	neap_tier_close(tiers->tier[i]);
	for (tiers->count--; i < tiers->count; i++)
		tiers->tier[i] = tiers->tier[i + 1];
}

int neap__tiers_measure(struct neap__tiers *tiers, const struct neap_sweep_settings *settings,
	uint64_t bytes, double seconds)
{
	const struct neap_problem *known = settings->costs;

	if (known && known->ntiers > 0 && known->ntiers != tiers->count)
		return neap__fail(NEAP_EUSAGE,
			"--chain has the costs of %d slow tiers, but --slow lists %d. Run 'neap "
			"calibrate' with the same --slow",
			known->ntiers, tiers->count);
	for (int i = 0; known && known->ntiers > 0 && i < tiers->count; i++) {
		const struct neap_tier_spec *spec = &known->tiers[i];
		neap_tier_set_rates(
			tiers->tier[i], spec->write_rate, spec->read_rate, spec->write_fixed);
	}
	if (known && known->ntiers > 0)
		return 0;
	for (int i = 0, again = 0; i < tiers->count;) {
		int rc = neap__tier_cost_rates(&neap__tier_public_calls, NULL, tiers->tier[i],
			bytes, tiers->memory, RATE_REPEATS, seconds / (2 * RATE_REPEATS));
		if (rc < 0 && (!medium_failed(rc) || (again && settings->journal)))
			return rc;
		if (rc < 0 && !again) {
			again = 1;
			continue;
		}
		if (rc < 0)
			give_up(tiers, i);
		else
			i++;
		again = 0;
	}
	return 0;
}

struct steps {
	struct neap_net *net;
	const struct neap_batch *batch;
	const struct neap_objective *objective;
	int64_t count;
	uint64_t memory;
};

static int run_steps(void *user)
{
	const struct steps *s = user;
	struct neap__costs costs;
	return neap__net_steps_measure(&costs, s->net, s->batch, s->objective, s->count, s->memory);
}

int neap__tiers_beside(struct neap__tiers *tiers, const struct neap_sweep_settings *settings,
	struct neap_net *net, const struct neap_batch *batch,
	const struct neap_objective *objective)
{
	const struct neap_problem *known = settings->costs;
	struct steps steps = {
		net, batch, objective, BESIDE_STEPS, neap__tier_cost_left(tiers->memory)};
	struct neap__work work = {run_steps, &steps, 0};
	struct neap__beside beside;

	for (int i = 0; known && known->ntiers > 0 && i < tiers->count; i++)
		neap_tier_set_cpu(tiers->tier[i], known->tiers[i].cpu, known->tiers[i].cpu_fixed);
	if (tiers->count == 0 || batch->steps == 0 || (known && known->ntiers > 0))
		return 0;
	for (int i = 0; i < 2; i++) { /* the first run warms up, the second is timed */
		double start = neap__seconds();
		int rc = run_steps(&steps);
		if (rc < 0) /* where a step does not fit, no overhead is known */
			return rc == NEAP_EINFEASIBLE ? 0 : rc;
		work.seconds = neap__seconds() - start;
		if (work.seconds > BESIDE_SECONDS) {
			steps.count =
				(int64_t)fmax(4, BESIDE_STEPS * BESIDE_SECONDS / work.seconds);
			work.seconds = BESIDE_SECONDS;
		}
	}
	for (int i = 0; i < tiers->count; i++) {
		int rc = neap__tier_cost_beside(&neap__tier_public_calls, &beside, tiers->tier[i],
			&work, tiers->memory, BESIDE_REPEATS);
		tiers->cpu_most[i] =
			rc == 0 && isfinite(beside.busy) ? NEAP__LOST_MOST * beside.busy : 0;
		/* A sweep finds out by itself that a tier is full or broken. */
		if (rc <= NEAP_EUSAGE && (rc > NEAP_ELOST || rc < NEAP_ECORRUPT))
			return rc;
	}
	return 0;
}

double neap__patience(const struct neap_sweep_settings *settings, int64_t steps, double advance)
{
	if (settings->patience >= 0)
		return settings->patience;
	return fmax(PATIENCE, PASSES * (double)steps * fmax(advance, 0));
}

double neap__undisturbed(const struct neap_sweep_stats *stats)
{
	return stats->compute > 0 ? fmax(1 - stats->lost / stats->compute, 0.5) : 1;
}

void neap__tiers_close(struct neap__tiers *tiers)
{
	for (int i = 0; i < tiers->count; i++)
		neap_tier_close(tiers->tier[i]);
	*tiers = (struct neap__tiers){0};
}

int neap__memory_half(uint64_t *half, const struct neap_net *net)
{
	struct neap_device_use use;

	*half = neap__memory_free() / 2;
	if (!net || !net->device)
		return 0;
	NEAP_TRY(neap__on_device_use(net, &use, NULL));
	*half = use.free / 2;
	return 0;
}

int neap__memory_budget(
	uint64_t *memory, const struct neap_sweep_settings *settings, const struct neap_net *net)
{
	*memory = settings->memory;
	return *memory ? 0 : neap__memory_half(memory, net);
}

/* The least budget of a batch that is begun, with tapes as large as they may be; 0: unknown. */
static uint64_t least_budget(const struct neap_sweep_settings *settings, const struct neap_net *net)
{
	struct neap_problem problem = NEAP_PROBLEM_INIT;
	struct neap_plan plan = {.size = sizeof plan};
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	const char *strategy = settings->strategy ? settings->strategy : "auto";

	neap_net_get_sizes(net, &sizes);
	problem.memory = 1;
	problem.chain = (struct neap_chain){.steps = net->batch->steps,
		.state = neap__round_up(sizes.state, 64),
		.adjoint = neap__round_up(sizes.adjoint, 64),
		.tape = neap__round_up(sizes.tape_max, 64),
		.advance = 1,
		.record = 1,
		.backward = 2};
	if (neap_plan_make(&plan, &problem, strategy, &settings->params) < 0)
		return 0;
	return plan.least_bytes;
}

static int refuse_budget(const struct neap_sweep_settings *settings, const struct neap_net *net,
	uint64_t memory, const struct neap_device_use *use)
{
	uint64_t least = least_budget(settings, net);
	char asked[24], left[24], enough[24], name[16];

	neap__print(name, sizeof name, "%.*s", (int)strcspn(use->about, " "), use->about);
	neap__show_size(asked, memory);
	neap__show_size(left, use->free);
	if (least > use->free)
		return neap__fail(NEAP_EINFEASIBLE,
			"a budget of %s is more than the %s of memory that are free on %s, and "
			"this network needs at least %llu bytes (%s). Use a smaller --batch, or "
			"free memory of the device",
			asked, left, name, (unsigned long long)least,
			neap__show_least(enough, least));
	return neap__fail(NEAP_EINFEASIBLE,
		"a budget of %s is more than the %s of memory that are free on %s. Use --memory "
		"with at most %llu bytes; this network needs at least %llu bytes (%s)",
		asked, left, name, (unsigned long long)use->free, (unsigned long long)least,
		neap__show_least(enough, least));
}

int neap__device_total_refuse(
	const struct neap_sweep_settings *settings, const struct neap_net *net)
{
	if (!settings->memory_total || !net->device)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"--memory-total limits the memory of the process, but --device puts states and "
		"tapes in the memory of the device. Use --memory instead");
}

int neap__device_budget_check(
	const struct neap_sweep_settings *settings, const struct neap_net *net, uint64_t memory)
{
	struct neap_device_use use;

	if (!net->device)
		return 0;
	NEAP_TRY(neap__on_device_use(net, &use, NULL));
	return memory <= use.free ? 0 : refuse_budget(settings, net, memory, &use);
}

int neap__device_budget_failed(int rc, const struct neap_sweep_settings *settings,
	const struct neap_net *net, uint64_t memory)
{
	struct neap_device_use use;

	if (rc != -ENOMEM || !net->device || !net->batch ||
		neap__on_device_use(net, &use, NULL) < 0 || use.free >= memory)
		return rc;
	return refuse_budget(settings, net, memory, &use);
}
