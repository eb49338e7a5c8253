/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_transfer.c: the transfers of a sweep of stages. Every record, of a state or of tapes, is
 * one of tapes for its tier, since records differ in size; its buffers are the spans. A record
 * that a tier refuses or loses is marked, and made again when it is needed.
 */
#include "sweep/stages/stage_sweep.h"
#include "sweep/trace/trace_ring.h"
#include "base/checked.h"
#include "base/fail.h"
#include "store/tier_state.h"
#include "sys/clock.h"
#include "base/debug_log.h"

#include <errno.h>
#include <string.h>

#define SHRINK 0.95 /* chosen: the next plan leaves other gaps between its records */

static uint64_t largest_item(const struct neap_stage_sweep *s)
{
	uint64_t most = 1;
	for (int64_t i = 0; i <= s->problem.chain.steps; i++) {
		uint64_t tape = i < s->problem.chain.steps ? s->stages.tape[i] : 0;
		most = s->stages.state[i] > most ? s->stages.state[i] : most;
		most = tape > most ? tape : most;
	}
	return most;
}

/*
 * Bytes of a tier per byte of a record, with padding and trailer: the average over the items of the
 * chain; among ranks, which cannot replan with less of a tier, the ratio of the worst item.
 */
static double waste(const struct neap_stage_sweep *s, const struct neap_tier *tier)
{
	double most = 1, bytes = 0, wholes = 0;
	for (int64_t i = 0; i < s->problem.chain.steps; i++) {
		const uint64_t sizes[] = {s->stages.state[i], s->stages.tape[i]};
		for (int k = 0; k < 2; k++) {
			int64_t units = neap__tier_units(tier, sizes[k]);
			double whole = (double)neap__tier_units_need(tier, sizes[k], units);
			bytes += (double)sizes[k];
			wholes += whole;
			if (sizes[k] > 0 && whole > most * (double)sizes[k])
				most = whole / (double)sizes[k];
		}
	}
	return neap__agrees(&s->agreement) || bytes == 0 ? most : wholes / bytes;
}

int neap__stage_tiers_describe(struct neap_stage_sweep *s)
{
	struct neap_problem *p = &s->problem;
	uint64_t largest = largest_item(s);
	p->ntiers = s->options.ntiers;
	for (int i = 0; i < p->ntiers; i++) {
		struct neap_tier *tier = s->tiers[i];
		struct neap_tier_spec *spec = &p->tiers[i];
		if (!neap_tier_takes_tapes(tier))
			return neap__fail(NEAP_EUSAGE,
				"%s takes no tapes: a sweep of stages cannot use it",
				neap_tier_about(tier));
		neap_tier_describe(tier, 0, spec);
		spec->staging = neap__round_up(neap__tier_staging(tier, largest, p->memory), 4096);
		if (s->ops.memory) /* the tier has buffers of its own */
			spec->staging = 0;
		if (spec->capacity != NEAP_INFINITE)
			spec->capacity = (uint64_t)((double)spec->capacity / waste(s, tier));
	}
	return neap_problem_check(p);
}

static uint64_t units_of(void *tier, uint64_t bytes)
{
	return (uint64_t)neap__tier_units(tier, bytes);
}

int neap__stage_tiers_reserve(struct neap_stage_sweep *s)
{
	struct neap__stage_program *p = &s->program;
	s->staging_bytes = 0;
	memset(s->largest, 0, sizeof s->largest);
	for (int64_t i = 0; i < p->nrecords; i++) {
		uint64_t *largest = &s->largest[p->records[i].tier - 1];
		*largest = p->records[i].bytes > *largest ? p->records[i].bytes : *largest;
	}
	for (int i = 0; i < s->problem.ntiers; i++) {
		s->units[i] = neap__stage_place_records(p, i + 1, units_of, s->tiers[i]);
		if (s->units[i] < 0)
			return (int)s->units[i];
		s->staging[i] = s->staging_bytes;
		if (s->largest[i])
			s->staging_bytes += s->problem.tiers[i].staging;
	}
	return 0;
}

int neap__stage_tiers_shrink(struct neap_stage_sweep *s, int last)
{
	int shrunk = 0;
	for (int i = 0; i < s->problem.ntiers; i++) {
		uint64_t *capacity = &s->problem.tiers[i].capacity;
		uint64_t has = s->tiers[i]->spec.capacity;
		uint64_t needs = neap__tier_units_need(s->tiers[i], s->largest[i], s->units[i]);
		if (s->units[i] == 0 || needs <= has)
			continue;
		double share = last ? 0 : SHRINK * (double)has / (double)needs;
		*capacity = (uint64_t)((double)*capacity * share);
		shrunk = 1;
	}
	return shrunk;
}

/* A tier that cannot be formatted, as on a full disk, refuses every record. */
static int format_tier(struct neap_stage_sweep *s, int i)
{
	uint64_t staging_bytes = s->problem.tiers[i].staging;
	struct neap__staging staging = {0};
	struct neap_tier *tier = s->tiers[i];
	neap__tier_set_patience(tier, s->options.patience);
	if (s->units[i] == 0)
		return 0;
	if (staging_bytes && !neap__memory_is_foreign(&s->memory))
		staging = (struct neap__staging){
			s->mapping + s->staging[i], staging_bytes, s->mapping_number};
	int rc = neap__tier_format(tier, s->largest[i], 0, &staging);
	if (rc == 0)
		rc = neap__tier_format_units(tier, s->largest[i], s->units[i], staging_bytes);
	return rc < 0 && rc > NEAP_EUSAGE ? 0 : rc; /* -errno: it refuses every record then */
}

int neap__stage_tiers_format(struct neap_stage_sweep *s)
{
	for (int i = 0; i < s->problem.ntiers; i++)
		NEAP_TRY(format_tier(s, i));
	return 0;
}

static uint64_t tag_of(const struct stage_run *r, const struct neap__stage_record *record)
{
	uint64_t payload = record->t0 == record->t1 ? NEAP_STATE : NEAP_TAPE;
	return payload << 62 | (r->s->generation & 0x3fff) << 48 |
	       ((uint64_t)record->t0 & ((UINT64_C(1) << 48) - 1));
}

static void count_stall(struct stage_run *r, enum neap_stall reason, double start, int tier)
{
	double end = neap__seconds();
	r->s->stats.stall += end - start;
	r->s->stats.stalls[reason] += end - start;
	neap__trace_add(r->s->options.trace, &(struct neap__event){.start = start,
						     .end = end,
						     .t0 = r->adjoint,
						     .t1 = r->adjoint,
						     .kind = NEAP__EVENT_WAIT + (uint32_t)reason,
						     .tier = tier});
}

void neap__stage_mark_lost(struct stage_run *r, int64_t number)
{
	const struct neap__stage_record *record = &r->program->records[number];
	double now = neap__seconds();
	if (r->s->lost[number])
		return;
	r->s->lost[number] = 1;
	r->s->stats.recoveries++;
	neap__debug("tier %d lost a record of stages %lld to %lld, which will be recomputed",
		record->tier, (long long)record->t0, (long long)record->t1);
	neap__trace_add(r->s->options.trace, &(struct neap__event){.start = now,
						     .end = now,
						     .t0 = record->t0,
						     .t1 = record->t1,
						     .kind = NEAP__EVENT_LOST,
						     .tier = record->tier});
}

/* Hands a request to the tier; returns its answer to that. */
static int request(struct stage_run *r, const struct neap__stage_record *record, int put,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	struct neap_stage_sweep *s = r->s;
	struct neap_tier *tier = s->tiers[record->tier - 1];
	uint64_t *moved = put ? s->stats.written : s->stats.read;
	moved[record->tier - 1] += record->bytes;
	s->stats.lost += neap_tier_lost(&s->problem.tiers[record->tier - 1], record->bytes);
	return put ? neap__tier_put_tapes(
			     tier, record->place, tag_of(r, record), spans, count, ticket)
		   : neap__tier_get_tapes(
			     tier, record->place, tag_of(r, record), spans, count, ticket);
}

/* The model's calls are done, unless the tier keeps their order. */
static void before_request(struct stage_run *r, const struct neap__stage_record *record)
{
	if (!r->s->tiers[record->tier - 1]->ops.in_order)
		neap__fence_wait(&r->s->memory.fence);
}

int neap__stage_issue(struct stage_run *r, int64_t number)
{
	const struct neap__stage_program *p = r->program;
	const struct neap__stage_flight *f = &p->flights[number];
	const struct neap__stage_record *record = &p->records[f->record];
	struct neap__stage_transfer *flight = &r->s->flights[number];
	struct neap_span *spans = &r->s->spans[f->first];
	int count = 0;
	for (int64_t k = 0; k < f->count; k++) {
		const struct neap__stage_part *part = &p->parts[f->first + k];
		if (!f->put)
			NEAP_TRY(neap__stage_untouched(r, part->offset, part->bytes));
		if (part->bytes)
			spans[count++] = (struct neap_span){r->base + part->offset, part->bytes};
	}
	before_request(r, record);
	double start = flight->issued = neap__seconds();
	flight->state = NEAP__TRANSFER_ANSWERED;
	flight->answer = flight->refused = 0;
	if (count == 0)
		return 0; /* nothing to move */
	if (!f->put && r->s->lost[f->record]) {
		flight->answer = NEAP_ELOST;
		return 0;
	}
	int rc = request(r, record, f->put, spans, count, &flight->engine);
	flight->state = rc < 0 && !neap__agrees(&r->s->agreement) ? NEAP__TRANSFER_ANSWERED
								  : NEAP__TRANSFER_UNDER_WAY;
	flight->answer = flight->refused = rc;
	count_stall(r, NEAP_STALL_ISSUE, start, record->tier);
	return 0;
}

static void trace_flight(struct stage_run *r, int64_t number)
{
	const struct neap__stage_flight *f = &r->program->flights[number];
	const struct neap__stage_record *record = &r->program->records[f->record];
	const struct neap__stage_transfer *flight = &r->s->flights[number];
	const struct neap_tier *tier = r->s->tiers[record->tier - 1];
	double now = neap__seconds(), start = 0, end = 0;
	if (!r->s->options.trace)
		return;
	if (tier->ops.times)
		tier->ops.times(tier->self, &start, &end);
	if (!(start >= flight->issued && end >= start && end <= now)) {
		start = flight->issued;
		end = now;
	}
	neap__trace_add(r->s->options.trace,
		&(struct neap__event){.queued = flight->issued,
			.start = start,
			.end = end,
			.t0 = record->t0,
			.t1 = record->t1,
			.bytes = record->bytes,
			.kind = NEAP__EVENT_TRANSFER,
			.flags = (f->put ? NEAP__EVENT_PUT : 0u) |
				 (record->t1 > record->t0 ? NEAP__EVENT_TAPES : 0u) |
				 (flight->answer < 0 ? NEAP__EVENT_FAILED : 0u) |
				 (flight->answer == -ETIMEDOUT ? NEAP__EVENT_LATE : 0u),
			.tier = record->tier});
}

void neap__stage_end_flight(struct stage_run *r, int64_t number, enum neap_stall reason)
{
	struct neap__stage_transfer *flight = &r->s->flights[number];
	const struct neap__stage_flight *f = &r->program->flights[number];
	int tier = r->program->records[f->record].tier;
	if (flight->state != NEAP__TRANSFER_UNDER_WAY)
		return;
	double start = neap__seconds();
	int answer = flight->refused;
	if (answer == 0)
		answer = neap__tier_wait(r->s->tiers[tier - 1], flight->engine);
	flight->state = NEAP__TRANSFER_ANSWERED;
	r->s->stats.late += answer == -ETIMEDOUT;
	/* Lost on one rank is lost on all; an agreement that fails ends the run before a call. */
	flight->answer = neap__agree_answer(&r->s->agreement, answer);
	count_stall(r, reason, start, tier);
	trace_flight(r, number);
}

int neap__stage_fetch(struct stage_run *r, int64_t number, void *to)
{
	const struct neap__stage_record *record = &r->program->records[number];
	const struct neap_span span = {to, record->bytes};
	before_request(r, record);
	double start = neap__seconds();
	int64_t ticket;
	int rc = request(r, record, 0, &span, 1, &ticket);
	if (rc == 0)
		rc = neap__tier_wait(r->s->tiers[record->tier - 1], ticket);
	r->s->stats.late += rc == -ETIMEDOUT;
	rc = neap__agree_answer(&r->s->agreement, rc);
	count_stall(r, NEAP_STALL_REPAIR, start, record->tier);
	if (rc < 0)
		neap__stage_mark_lost(r, number);
	return rc;
}

void neap__stage_drain(struct stage_run *r)
{
	for (int64_t i = 0; i < r->program->nflights; i++)
		neap__stage_end_flight(r, i, NEAP_STALL_PUT);
}
