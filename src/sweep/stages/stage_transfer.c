/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_transfer.c: the transfers of a sweep of stages. Every record, of a state or of tapes, is
 * one of tapes for its tier, since records differ in size; its buffers are the spans. A record
 * that a tier refuses or loses is marked, and made again when it is needed.
 */
#include "sweep/stages/stage_sweep.h"
#include "base/checked.h"
#include "base/fail.h"
#include "store/tier_state.h"

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

static struct neap__request_owner own_requests(struct stage_run *r)
{
	struct neap_stage_sweep *s = r->s;
	return (struct neap__request_owner){s->tiers, &s->problem, s->options.trace, &s->stats,
		&s->agreement, &s->memory.fence};
}

void neap__stage_mark_lost(struct stage_run *r, int64_t number)
{
	const struct neap__request_owner own = own_requests(r);
	const struct neap__stage_record *record = &r->program->records[number];
	if (r->s->lost[number])
		return;
	r->s->lost[number] = 1;
	neap__request_lost(&own, record->tier, record->t0, record->t1, "stages");
}

static struct neap__tier_request request_of(const struct neap__stage_record *record, int put)
{
	return (struct neap__tier_request){.t = record->t0,
		.t1 = record->t1,
		.bytes = record->bytes,
		.tier = (uint16_t)record->tier,
		.put = (uint8_t)put,
		.payload = record->t0 == record->t1 ? NEAP_STATE : NEAP_TAPE};
}

/* As neap__request_issue. */
static int issue(struct stage_run *r, struct neap__tier_request *request, int64_t place,
	const struct neap_span *spans, int count)
{
	const struct neap__request_owner own = own_requests(r);
	uint64_t tag = neap__request_tag(r->s->generation, request->payload, request->t);
	return neap__request_issue(&own, request, place, tag, spans, count, 0);
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
	flight->request = request_of(record, f->put);
	flight->state = NEAP__TRANSFER_ANSWERED;
	if (count == 0)
		return 0; /* nothing to move */
	if (!f->put && r->s->lost[f->record])
		flight->request.answer = NEAP_ELOST;
	else if (issue(r, &flight->request, record->place, spans, count))
		flight->state = NEAP__TRANSFER_UNDER_WAY;
	return 0;
}

void neap__stage_end_flight(struct stage_run *r, int64_t number, enum neap_stall reason)
{
	const struct neap__request_owner own = own_requests(r);
	struct neap__stage_transfer *flight = &r->s->flights[number];
	if (flight->state != NEAP__TRANSFER_UNDER_WAY)
		return;
	neap__request_wait(&own, &flight->request, reason);
	flight->state = NEAP__TRANSFER_ANSWERED;
}

int neap__stage_fetch(struct stage_run *r, int64_t number, void *to)
{
	const struct neap__request_owner own = own_requests(r);
	const struct neap__stage_record *record = &r->program->records[number];
	struct neap__tier_request request = request_of(record, 0);
	if (issue(r, &request, record->place, &(struct neap_span){to, record->bytes}, 1))
		neap__request_wait(&own, &request, NEAP_STALL_REPAIR);
	if (request.answer < 0)
		neap__stage_mark_lost(r, number);
	return request.answer;
}

void neap__stage_drain(struct stage_run *r)
{
	for (int64_t i = 0; i < r->program->nflights; i++)
		neap__stage_end_flight(r, i, NEAP_STALL_PUT);
}
