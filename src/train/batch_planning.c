/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_planning.c: a plan for each batch, from running averages of what the sweeps
 * before it measured. Plans change the time a sweep takes, never its result.
 */
#include "data/events/late_events.h"
#include "train/trainer.h"
#include "measure/call_cost.h"
#include "measure/process_memory.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "base/checked.h"
#include "data/dataset.h"
#include "data/loader_ahead.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/show.h"
#include "sys/clock.h"
#include "sys/memory.h"
#include "sys/atomic_file.h"

#include <math.h>
#include <string.h>

#define MARGIN 1.1  /* tapes are planned this much above the largest recent mean */
#define WINDOW 16   /* batches; the largest mean of one to two windows counts */
#define MEMORY 0.25 /* weight of the last sweep in the average costs */
#define DRIFT 0.2   /* costs that moved further than this are planned for anew */
#define TRACE_EVENTS ((int64_t)1 << 18)
#define TIMED 256 /* steps that are timed before the first plan */

/* What a batch asks of a sweep: short samples leave the last steps to the long ones. */
struct load {
	int64_t steps;
	int size;
	double active; /* samples, mean over the steps */
};

static struct load load_of(const struct neap_batch *batch, int64_t limit)
{
	struct load load = {.steps = batch->steps < limit ? batch->steps : limit,
		.size = batch->size,
		.active = batch->size};
	double all = 0;
	for (int i = 0; i < batch->size; i++)
		all += (double)(batch->sequences[i].length < limit ? batch->sequences[i].length
								   : limit);
	if (load.steps > 0)
		load.active = fmax(all / (double)load.steps, 1);
	return load;
}

static void fill_options(const struct neap__trainer *trainer, struct neap_sweep_options *options,
	const struct load *load)
{
	const struct neap_sweep_settings *s = &trainer->options.sweep;
	const struct neap__costs *costs = &trainer->planning.costs;

	*options = (struct neap_sweep_options){.size = sizeof *options,
		.ntiers = trainer->tiers.count,
		.steps = load->steps,
		.memory = trainer->planning.memory,
		.strategy = s->strategy,
		.params = s->params,
		.tiers = trainer->tiers.tier,
		.advance = costs->advance * load->active,
		.record = costs->record * load->active,
		.backward = costs->backward * load->active,
		.replay = costs->replay * load->active,
		.call = costs->call,
		.trace = trainer->trace,
		.patience = neap__patience(s, load->steps, costs->advance * load->active),
		.no_replan = s->no_replan || s->costs};
}

static size_t whole_tape(double bytes, size_t largest)
{
	uint64_t rounded = neap__round_up((uint64_t)fmax(bytes, 1), 64);
	return rounded < largest ? (size_t)rounded : largest;
}

/*
 * Bytes a step to plan with. Where all tapes of the sweep fit, their mean over
 * its steps counts; else the mean while every sample is still there, since plans
 * then hold the tapes of few steps at a time. Tapes of one size are known without a mean, which
 * batches of other sizes made.
 */
static size_t plan_tape(
	const struct neap__planning *p, const struct load *load, const struct neap_step_ops *ops)
{
	if (ops->tape_bytes == ops->tape_max_bytes)
		return ops->tape_max_bytes;
	double sample = fmax(p->tape[0], p->tape[1]) * p->margin;
	size_t mean = whole_tape(sample * load->active, ops->tape_max_bytes);
	uint64_t all = neap__sat_mul(mean, (uint64_t)load->steps);

	all = neap__sat_add(all, neap__sat_mul(3, neap__round_up(ops->state_bytes, 64)));
	all = neap__sat_add(all, neap__sat_add(ops->adjoint_bytes, ops->tape_max_bytes));
	return all <= p->memory ? mean : whole_tape(sample * load->size, ops->tape_max_bytes);
}

/* The card, and what training needs of it in addition to the arena. */
static void say_device(const struct neap__trainer *trainer)
{
	const struct neap_device_use *use = &trainer->result->device;
	char left[24], all[24], other[24];

	if (use->total)
		neap__trainer_say(trainer,
			"device: %s; %s of %s are free; weights, gradients and inputs need %s in "
			"addition to the memory budget",
			use->about, neap__show_size(left, use->free),
			neap__show_size(all, use->total),
			neap__show_size(other, trainer->planning.beside));
}

static void say_tiers(const struct neap__trainer *trainer, const struct neap_problem *problem)
{
	for (int i = 0; i < trainer->tiers.count; i++)
		neap__trainer_say(trainer, "slow memory %d: %s, write %.0f MB/s, read %.0f MB/s",
			i + 1, neap_tier_about(trainer->tiers.tier[i]),
			problem->tiers[i].write_rate / 1e6, problem->tiers[i].read_rate / 1e6);
}

#define OVERHEAD 40 /* characters, the end included */
#define PARAMS 96   /* the same, of the parameters of a plan */

static const char *show_overhead(char room[OVERHEAD], const struct neap_plan *plan)
{
	if (plan->overhead < -0.0005) /* less than keeping every tape was measured to take */
		neap__print(room, OVERHEAD, "0.0%% over storing everything");
	else
		neap__print(room, OVERHEAD, "%.1f%% over storing everything",
			100 * fabs(plan->overhead));
	return room;
}

/* Budgets that a machine cannot have, and such that make plans slow. */
static void say_budget(const struct neap__trainer *trainer, const struct neap_plan *plan)
{
	enum { DOUBLINGS = 20 };
	/* Chosen: times as long as with all tapes stored, which is worth a line, and which is not.
	 */
	static const double slow = 10, enough = 2;
	struct neap_problem problem = *neap_sweep_problem(trainer->sweep);
	struct neap_plan other = {.size = sizeof other};
	uint64_t total = trainer->net->device ? 0 : neap__memory_total();
	char budget[24], there[24];

	if (total && problem.memory > total)
		neap__trainer_say(trainer,
			"warning: the memory budget of %s is more than the memory of this machine, "
			"%s. A plan for longer samples may then be refused; lower --memory",
			neap__show_size(budget, problem.memory), neap__show_size(there, total));
	if (plan->overhead + 1 < slow)
		return;
	for (int i = 0; i < DOUBLINGS && (!other.feasible || other.overhead + 1 > enough); i++) {
		problem.memory = neap__sat_mul(problem.memory, 2);
		if (neap_plan_make(&other, &problem, plan->strategy, NULL) < 0)
			return;
	}
	if (other.feasible && other.overhead + 1 < slow)
		neap__trainer_say(trainer,
			"warning: with this budget, a pass takes %.0f times as long as with all "
			"tapes stored. With --memory %lluK it takes %.1f times as long",
			plan->overhead + 1, (unsigned long long)(problem.memory >> 10) + 1,
			other.overhead + 1);
}

/* A run of hours, before it begins: its epochs, as if all batches were as long as the longest. */
static void say_total(const struct neap__trainer *trainer, const struct neap_plan *plan)
{
	static const double hour = 3600; /* worth a line; chosen */
	const struct neap_train_options *o = &trainer->options;
	const struct neap__data *d = &trainer->data;
	int64_t epochs = o->epochs - trainer->counters.epoch;
	double total = (double)epochs * (double)neap_loader_batches(d->loader) * plan->makespan;
	char all[24], dt[24];

	if (!(total > hour))
		return;
	/* Of samples that begin late, --max-steps would leave the empty steps. */
	int late = neap__begin_late(d->set);
	neap__trainer_say(trainer,
		"warning: %lld epoch%s take up to about %s; the run can be interrupted and "
		"continued with --resume. To shorten it, %slower --epochs%s%s%s%s",
		(long long)epochs, epochs == 1 ? "" : "s", neap__show_time(all, total),
		!late			? ""
		: d->set->has_time_unit ? "encode the recordings with --from-first-event, "
					: "have the times of the samples begin at 0, ",
		late ? "" : ", cut samples with --max-steps",
		d->set->ops->values || d->set->ops->adopt ? "" : ", use a larger --dt than ",
		d->set->ops->values || d->set->ops->adopt ? "" : neap__show_time(dt, o->net.dt),
		o->net.threads == 1 ? ", use more --threads than 1" : "");
}

/* ", name value" of each parameter of the plan that is not 0. */
static const char *show_params(char params[PARAMS], const struct neap_plan *plan)
{
	size_t n = 0;
	const struct {
		const char *name;
		int64_t value;
	} rows[] = {
#define NEAP__X(param, option, meaning) {option, plan->params.param},
		NEAP_PARAM_OPTION_TABLE(NEAP__X)
#undef NEAP__X
	};

	params[0] = '\0';
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].value)
			n += (size_t)neap__print(params + n, PARAMS - n, ", %s %lld", rows[i].name,
				(long long)rows[i].value);
	return params;
}

/* The budget, if the user did not choose it in this session. */
static void say_memory(const struct neap__trainer *trainer, const struct neap_problem *problem)
{
	char budget[24];

	if (trainer->keeps_memory && trainer->options.sweep.memory)
		neap__trainer_say(trainer, "memory budget: %s (as before; --memory changes it)",
			neap__show_size(budget, problem->memory));
	if (trainer->options.sweep.memory == 0 && trainer->options.sweep.memory_total == 0)
		neap__trainer_say(trainer, "memory budget: %s (default: %shalf of the free %s)",
			neap__show_size(budget, problem->memory),
			trainer->ranks.crowd > 1 ? "the ranks on this machine share " : "",
			trainer->net->device ? "memory of the device" : "memory");
}

/* The strategies that fit as well; `is_own`: the plan is none of theirs. */
static void say_others(const struct neap__trainer *trainer, const struct neap_plan *plan,
	const struct neap_problem *problem, int is_own)
{
	struct neap_plan other = {.size = sizeof other}, second = {.size = sizeof second};
	char over[OVERHEAD];
	const char *name;
	int fit = 0;

	for (int i = 0; (name = neap_strategy_name(i)); i++) {
		if (neap_strategy_traits(name) & NEAP_STRATEGY_CHOOSES ||
			neap_plan_make(&other, problem, name, NULL) < 0 || !other.feasible)
			continue;
		fit++;
		if (strcmp(name, plan->chosen) != 0 &&
			(!second.feasible || other.makespan < second.makespan))
			second = other;
	}
	if (second.feasible)
		neap__trainer_say(trainer, "%d strategies fit the budget; %s: %s (%s)", fit,
			is_own ? "the fastest of them" : "second fastest", second.strategy,
			show_overhead(over, &second));
	else if (!is_own)
		neap__trainer_say(
			trainer, "%s is the only strategy that fits the budget", plan->chosen);
}

void neap__planning_say(const struct neap__trainer *trainer)
{
	const struct neap_plan *plan = neap_sweep_plan(trainer->sweep);
	const struct neap_problem *problem = neap_sweep_problem(trainer->sweep);
	/* auto improves the best plan of a strategy to one that is no strategy's. */
	int is_own = (neap_strategy_traits(plan->chosen) & NEAP_STRATEGY_CHOOSES) != 0;
	int named = !is_own && strcmp(plan->strategy, plan->chosen) == 0;
	char peak[24], budget[24], makespan[24], bound[24], over[OVERHEAD], params[PARAMS];

	say_device(trainer);
	say_memory(trainer, problem);
	say_tiers(trainer, problem);
	neap__trainer_say(trainer,
		"plan (longest batch, %lld steps): %s%s%s; peak %s of %s; %s per forward and "
		"backward pass, %s (lower bound %s)",
		(long long)problem->chain.steps,
		is_own ? "blocks whose tapes are stored, moved or recomputed" : plan->chosen,
		named ? "" : ", chosen by auto", show_params(params, plan),
		neap__show_size(peak, plan->peak_bytes), neap__show_size(budget, problem->memory),
		neap__show_time(makespan, plan->makespan), show_overhead(over, plan),
		neap__show_time(bound, plan->bound));
	say_budget(trainer, plan);
	say_total(trainer, plan);
	if (!named)
		say_others(trainer, plan, problem, is_own);
}

/* Ops and options of a batch, and the sweep for `steps` steps of it. */
static int first_plan(
	struct neap__trainer *trainer, const struct neap_batch *batch, const struct load *load)
{
	struct neap__planning *p = &trainer->planning;
	struct neap_sweep_options options;
	struct neap_net_sizes sizes = {.size = sizeof sizes};

	NEAP_TRY(neap_net_begin(trainer->net, batch, &trainer->objective));
	neap_net_get_sizes(trainer->net, &sizes);
	trainer->result->weights_bytes = sizes.weights;
	trainer->result->grads_bytes = sizes.grads;
	neap__net_steps_fill(&p->ops, trainer->net);
	p->ops.tape_bytes = plan_tape(p, load, &p->ops);
	uint64_t record = neap__sat_mul(p->ops.tape_bytes, 64);
	NEAP_TRY(neap__tiers_measure(&trainer->tiers, &trainer->options.sweep,
		record > sizes.state ? record : sizes.state, 0.1));
	for (int i = 0; i < trainer->tiers.lost_count; i++)
		neap__trainer_say(trainer, "%s", trainer->tiers.lost[i]);
	NEAP_TRY(neap__tiers_beside(&trainer->tiers, &trainer->options.sweep, trainer->net, batch,
		&trainer->objective));
	NEAP_TRY(neap_net_begin(trainer->net, batch, &trainer->objective));
	p->steps = load->steps;
	p->planned = p->costs;
	neap__memory_total_watch(trainer);
	fill_options(trainer, &options, load);
	NEAP_TRY(neap__memory_device_beside(trainer));
	int rc = neap_sweep_create(&trainer->sweep, &p->ops, trainer->net, &options);
	/* What planning took may leave less for the arena: then once more. */
	for (int i = 0; rc == 0 && i < 4; i++) {
		int less = neap__memory_total_planned(trainer);
		if (less <= 0)
			return less;
		fill_options(trainer, &options, load);
		rc = neap_sweep_replan(trainer->sweep, &p->ops, &options);
	}
	if (rc == NEAP_EINFEASIBLE && trainer->options.sweep.memory_total)
		return neap__process_memory_least(
			&trainer->memory, &p->ops, trainer->net, &options);
	return rc;
}

/* Measures the costs of a step of the first batch, per active sample. Costs of the chain that the
 * user passes replace the measured ones. */
static int measure_costs(struct neap__trainer *trainer, const struct neap_batch *batch)
{
	const struct load load = load_of(batch, TIMED);
	struct neap__planning *p = &trainer->planning;
	const struct neap_problem *known = trainer->options.sweep.costs;
	int rc = neap__net_steps_measure(
		&p->costs, trainer->net, batch, &trainer->objective, TIMED, p->memory);

	if (rc < 0 && rc != NEAP_EINFEASIBLE) /* then no plan fits, and says what would do */
		return rc;
	NEAP_TRY(neap__call_cost_measure(
		&p->costs, trainer->net, batch, &trainer->objective, p->memory));
	/* The steps that were timed are in the first window. */
	neap__costs_add_reading(&p->costs, neap__reading_cost(trainer->net, batch));
	if (known) {
		p->costs.advance = known->chain.advance;
		p->costs.record = known->chain.record;
		p->costs.backward = known->chain.backward;
		p->costs.replay = known->chain.replay;
		p->costs.call = known->chain.call;
	}
	p->costs.advance /= load.active;
	p->costs.record /= load.active;
	p->costs.backward /= load.active;
	p->costs.replay /= load.active;
	p->tape[0] = p->costs.tape_mean / load.active;
	return 0;
}

int neap__planning_start(struct neap__trainer *trainer)
{
	struct neap__planning *p = &trainer->planning;
	const struct neap_batch *batch;
	struct neap_batch wide;

	if (trainer->options.sweep.trace) {
		NEAP_TRY(neap__atomic_file_check(trainer->options.sweep.trace));
		NEAP_TRY(neap_trace_create(&trainer->trace, "train", TRACE_EVENTS));
	}
	p->margin = MARGIN;
	NEAP_TRY(neap__tiers_open(&trainer->tiers, &trainer->options.sweep, trainer->net));
	NEAP_TRY(neap_loader_start(trainer->data.loader, 0, 0));
	NEAP_TRY(neap_loader_next(trainer->data.loader, &batch));
	neap__loader_rest(trainer->data.loader);
	wide = *batch;
	wide.inputs = trainer->options.net.inputs;
	NEAP_TRY(neap__memory_total_begin(trainer, &wide));
	NEAP_TRY(measure_costs(trainer, &wide));
	/* The longest batch to come: these samples and the longest of all. */
	struct load load = load_of(&wide, INT64_MAX);
	double all = load.active * (double)load.steps;
	if (trainer->data.longest < load.steps)
		trainer->data.longest = load.steps;
	load.steps = trainer->data.longest;
	if (load.steps > 0)
		load.active = fmin(1 + all / (double)load.steps, load.size);
	int rc = first_plan(trainer, &wide, &load);
	int ended = neap_net_end(trainer->net);
	NEAP_TRY(rc);
	NEAP_TRY(ended);
	trainer->result->plan = *neap_sweep_plan(trainer->sweep);
	return 0;
}

static int far(double now, double then)
{
	return fabs(now - then) > DRIFT * then;
}

/* Has a cost left what the plan in force was made for? */
static int drifted(const struct neap__costs *now, const struct neap__costs *then)
{
	return far(now->advance, then->advance) || far(now->record, then->record) ||
	       far(now->backward, then->backward);
}

int neap__planning_batch(struct neap__trainer *trainer, const struct neap_batch *batch)
{
	struct neap__planning *p = &trainer->planning;
	struct neap_sweep_options options;
	struct neap_step_ops ops;
	struct load load = load_of(batch, INT64_MAX);
	double start = neap__seconds();
	int less = neap__memory_total_batch(trainer);

	NEAP_TRY(less);
	neap__net_steps_fill(&ops, trainer->net);
	ops.tape_bytes = plan_tape(p, &load, &ops);
	/* A log is about as long as the last batch's: no reason for another plan. */
	if (ops.log_bytes <= p->ops.log_bytes && ops.log_bytes >= p->ops.log_bytes / 5 * 4 &&
		p->ops.log_bytes <= ops.log_max_bytes)
		ops.log_bytes = p->ops.log_bytes;
	if (batch->steps == p->steps && memcmp(&ops, &p->ops, sizeof ops) == 0 &&
		!drifted(&p->costs, &p->planned) && !less)
		return 0;
	fill_options(trainer, &options, &load);
	int rc = neap_sweep_replan(trainer->sweep, &ops, &options);
	/*
	 * A strategy asked for by name may not fit with tapes this full. Plan for
	 * emptier ones: what does not fit is recomputed inside the budget.
	 */
	while (rc == NEAP_EINFEASIBLE && ops.tape_bytes > 64) {
		ops.tape_bytes = ops.tape_bytes * 3 / 4;
		rc = neap_sweep_replan(trainer->sweep, &ops, &options);
	}
	if (rc == NEAP_EINFEASIBLE && trainer->options.sweep.memory_total)
		rc = neap__process_memory_least(&trainer->memory, &ops, trainer->net, &options);
	p->steps = batch->steps;
	p->ops = ops;
	p->planned = p->costs;
	p->seconds += neap__seconds() - start;
	return rc;
}

/* Of seconds, `called` went to calls. */
static void average(double *mean, double seconds, double called, int64_t steps, double scale)
{
	if (steps >= 8)
		*mean += MEMORY *
			 (fmax(seconds - called, seconds / 2) / (double)steps * scale - *mean);
}

static void add_sweep(struct neap_sweep_stats *sum, const struct neap_sweep_stats *stats)
{
	sum->seconds += stats->seconds;
	sum->predicted += stats->predicted;
	sum->predicted_stall += stats->predicted_stall;
	sum->predicted_lost += stats->predicted_lost;
	sum->compute += stats->compute;
	sum->copies += stats->copies;
	sum->slowdown += stats->slowdown;
	sum->stall += stats->stall;
	for (int i = 0; i < NEAP_STALLS; i++)
		sum->stalls[i] += stats->stalls[i];
	sum->late += stats->late;
}

static void keep_largest(int64_t *largest, uint64_t value)
{
	if ((int64_t)value > *largest)
		*largest = (int64_t)value;
}

void neap__planning_learn(struct neap__trainer *trainer, const struct neap_batch *batch,
	const struct neap_sweep_stats *stats)
{
	struct neap__planning *p = &trainer->planning;
	struct neap__counters *c = &trainer->counters;
	struct load load = load_of(batch, INT64_MAX);
	double share = neap__undisturbed(stats);
	double scale = 1 / load.active;

	double call = p->costs.call;
	average(&p->costs.advance, stats->advance, call * (double)stats->advance_calls,
		stats->advance_steps, share * scale);
	average(&p->costs.record, stats->record,
		stats->replay_steps ? 0 : call * (double)stats->record_calls,
		stats->record_steps - stats->replay_steps, share * scale);
	average(&p->costs.replay, stats->replay, 0, stats->replay_steps, share * scale);
	average(&p->costs.backward, stats->backward, call * (double)stats->backward_calls,
		stats->backward_steps, share * scale);
	if (p->sweeps++ % WINDOW == 0) {
		p->tape[1] = p->sweeps > 1 ? p->tape[0] : 0;
		p->tape[0] = 0;
	}
	if (stats->record_steps > 0) {
		double mean = (double)stats->tape_bytes / (double)stats->record_steps * scale;
		p->tape[0] = fmax(p->tape[0], mean);
	}
	if (stats->overflows > 0)
		p->margin = fmin(p->margin * 1.15, 4);
	else
		p->margin = fmax(p->margin * 0.998, MARGIN);
	add_sweep(&trainer->sweeps, stats);
	c->overflows += stats->overflows;
	c->recoveries += stats->recoveries;
	c->predicted += stats->predicted;
	c->measured += stats->seconds;
	keep_largest(&c->arena, stats->arena_bytes);
	keep_largest(&c->peak_planned, stats->peak_planned);
	keep_largest(&c->peak_measured, stats->peak_measured);
}
