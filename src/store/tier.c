/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier.c: the functions of neap/tier.h that hold for every kind of tier: they check places and
 * sizes, and call the slots of struct neap_tier_ops, or do what the header says for a slot that
 * is NULL.
 */
#include "store/tier_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/struct_size.h"
#include "store/forks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int neap__tier_ours(const struct neap_tier *tier)
{
	if (tier->gone)
		return neap__fail(NEAP_EUSAGE,
			"%s was closed. Open a tier again, and free sweeps before tiers",
			tier->about);
	if (tier->forks == neap__forks())
		return 0;
	return neap__fail(NEAP_EFORKED,
		"%s belongs to the process that forked this one: open a tier here, or "
		"neap_tier_abandon this one",
		tier->about);
}

int neap_tier_wrap(struct neap_tier **out, const struct neap_tier_ops *ops,
	const struct neap_tier_spec *spec, void *self)
{
	NEAP_NEED(out, ops, spec);
	struct neap_tier_ops full;
	NEAP_TRY(neap__struct_take(&full, sizeof full, ops, "neap_tier_ops"));
	if (!full.format || !full.put || !full.get || !full.wait || !spec)
		return neap__fail(NEAP_EUSAGE,
			"neap_tier_ops: format, put, get, wait and a spec are required");
	if (!full.format_tapes != !full.put_tapes || !full.put_tapes != !full.get_tapes)
		return neap__fail(NEAP_EUSAGE,
			"neap_tier_ops: format_tapes, put_tapes and get_tapes go together");
	if (!full.sync != !full.adopt)
		return neap__fail(NEAP_EUSAGE, "neap_tier_ops: sync and adopt go together");
	if (!full.staging_most != !full.lend)
		return neap__fail(NEAP_EUSAGE, "neap_tier_ops: staging_most and lend go together");
	if (!full.unit != !full.format_units)
		return neap__fail(NEAP_EUSAGE, "neap_tier_ops: unit and format_units go together");
	if (!full.put_spans != !full.get_spans)
		return neap__fail(
			NEAP_EUSAGE, "neap_tier_ops: put_spans and get_spans go together");
	if (!full.done != !full.wait_for)
		return neap__fail(NEAP_EUSAGE, "neap_tier_ops: done and wait_for go together");
	struct neap_tier *tier = calloc(1, sizeof *tier);
	if (!tier)
		return neap__fail_errno(ENOMEM, "slow tier");
	tier->ops = full;
	tier->self = self;
	tier->forks = neap__forks();
	atomic_init(&tier->holders, 1);
	pthread_mutex_init(&tier->spec_lock, NULL);
	tier->spec = *spec;
	tier->spec.name[sizeof tier->spec.name - 1] = '\0';
	neap__print(tier->about, sizeof tier->about, "%s", tier->spec.name);
	*out = tier;
	return 0;
}

int neap__tier_format(
	struct neap_tier *tier, uint64_t bytes, int64_t places, const struct neap__staging *staging)
{
	NEAP_TRY(neap__tier_ours(tier));
	if (bytes == 0 || places < 0)
		return neap__fail(NEAP_EUSAGE, "%s: %lld places of %llu bytes", tier->about,
			(long long)places, (unsigned long long)bytes);
	tier->bytes = 0;
	tier->tape_places = 0;
	tier->in_units = 0;
	tier->own = 0;
	if (staging->at)
		neap__tier_lend(tier, staging->bytes);
	NEAP_TRY(tier->ops.format(tier->self, bytes, places, staging->at));
	tier->bytes = bytes;
	tier->own = !tier->running;
	tier->places = places;
	tier->staging = *staging;
	return 0;
}

void neap__tier_lend(struct neap_tier *tier, uint64_t bytes)
{
	if (tier->ops.lend)
		tier->ops.lend(tier->self, bytes);
}

static uint64_t least_staging(const struct neap_tier *tier, uint64_t bytes)
{
	return tier->ops.staging ? tier->ops.staging(tier->self, bytes) : 0;
}

uint64_t neap__tier_staging(const struct neap_tier *tier, uint64_t bytes, uint64_t budget)
{
	uint64_t least = least_staging(tier, bytes), share = budget / NEAP__STAGING_SHARE;
	uint64_t most = tier->ops.staging_most ? tier->ops.staging_most(tier->self, bytes) : least;
	uint64_t wanted = most < share ? most : share;
	return least && wanted > least ? wanted - wanted % least
				       : least; /* a multiple of the least, which is a piece */
}

int neap_tier_takes_tapes(const struct neap_tier *tier)
{
	NEAP_NEED(tier);
	return tier->ops.format_tapes != NULL;
}

int neap__tier_format_tapes(
	struct neap_tier *tier, uint64_t bytes, int64_t places, uint64_t staging)
{
	NEAP_TRY(neap__tier_ours(tier));
	if (!tier->ops.format_tapes)
		return neap__fail(NEAP_EUSAGE, "%s takes no tapes", tier->about);
	if (bytes == 0 || places < 0 || tier->bytes == 0)
		return neap__fail(NEAP_EUSAGE, "%s: %lld places of %llu bytes for tapes",
			tier->about, (long long)places, (unsigned long long)bytes);
	uint64_t least = least_staging(tier, tier->bytes);
	int rc = tier->ops.format_tapes(
		tier->self, bytes, places, staging > least ? staging : least);
	tier->tape_bytes = bytes;
	tier->tape_places = rc < 0 ? 0 : places;
	tier->in_units = 0;
	return rc;
}

int64_t neap__tier_units(const struct neap_tier *tier, uint64_t bytes)
{
	if (!tier->ops.unit || bytes == 0)
		return bytes > 0;
	uint64_t unit = tier->ops.unit(tier->self), whole = neap__tier_footprint(tier, bytes);
	return (int64_t)(whole / unit + (whole % unit > 0));
}

uint64_t neap__tier_units_need(const struct neap_tier *tier, uint64_t bytes, int64_t units)
{
	uint64_t unit =
		tier->ops.unit ? tier->ops.unit(tier->self) : neap__tier_footprint(tier, bytes);
	return neap__sat_mul(unit, (uint64_t)units);
}

int neap__tier_format_units(struct neap_tier *tier, uint64_t bytes, int64_t units, uint64_t staging)
{
	if (!tier->ops.unit)
		return neap__tier_format_tapes(tier, bytes, units, staging);
	uint64_t least = least_staging(tier, tier->bytes);
	int rc =
		tier->ops.format_units(tier->self, bytes, units, staging > least ? staging : least);
	tier->tape_bytes = bytes;
	tier->tape_places = rc < 0 ? 0 : units;
	tier->in_units = 1;
	return rc;
}

int neap__tier_fits(const struct neap_tier *tier, struct neap__records states,
	struct neap__records tapes, const struct neap__staging *staging)
{
	const struct neap__staging *has = &tier->staging;
	return tier->bytes == states.bytes && tier->places >= states.places &&
	       has->at == staging->at && has->bytes == staging->bytes &&
	       has->mapping == staging->mapping &&
	       (tapes.places == 0 || (!tier->in_units && tier->tape_bytes == tapes.bytes &&
					     tier->tape_places >= tapes.places));
}

uint64_t neap__tier_footprint(const struct neap_tier *tier, uint64_t bytes)
{
	uint64_t taken = tier->ops.footprint ? tier->ops.footprint(tier->self, bytes) : bytes;
	return taken ? taken : 1;
}

static uint64_t area(const struct neap_tier *tier, struct neap__records records)
{
	return neap__sat_mul(neap__tier_footprint(tier, records.bytes), (uint64_t)records.places);
}

uint64_t neap__tier_needs(
	const struct neap_tier *tier, struct neap__records states, struct neap__records tapes)
{
	return neap__sat_add(area(tier, states), area(tier, tapes));
}

static int check(const struct neap_tier *tier, int64_t place, uint64_t bytes)
{
	if (place < 0 || place >= tier->places || bytes == 0 || bytes > tier->bytes)
		return neap__fail(NEAP_EUSAGE,
			"%s: no place %lld for %llu bytes (%lld places of %llu bytes)", tier->about,
			(long long)place, (unsigned long long)bytes, (long long)tier->places,
			(unsigned long long)tier->bytes);
	return 0;
}

int neap__tier_put(struct neap_tier *tier, int64_t place, uint64_t tag, const void *from,
	uint64_t bytes, int64_t *ticket)
{
	NEAP_TRY(neap__tier_ours(tier));
	NEAP_TRY(check(tier, place, bytes));
	return tier->ops.put(tier->self, place, tag, from, bytes, ticket);
}

int neap__tier_get(struct neap_tier *tier, int64_t place, uint64_t tag, void *into, uint64_t bytes,
	int64_t *ticket)
{
	NEAP_TRY(neap__tier_ours(tier));
	NEAP_TRY(check(tier, place, bytes));
	return tier->ops.get(tier->self, place, tag, into, bytes, ticket);
}

static uint64_t bytes_of(const struct neap_span *spans, int count)
{
	uint64_t bytes = 0;
	for (int i = 0; i < count; i++)
		bytes = neap__sat_add(bytes, spans[i].bytes);
	return bytes;
}

static int check_spans(
	const struct neap_tier *tier, int64_t place, const struct neap_span *spans, int count)
{
	if (!tier->ops.put_spans)
		return neap__fail(
			NEAP_EUSAGE, "%s takes states in one piece, no spans", tier->about);
	return check(tier, place, bytes_of(spans, count));
}

int neap__tier_put_spans(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	NEAP_TRY(neap__tier_ours(tier));
	NEAP_TRY(check_spans(tier, place, spans, count));
	return tier->ops.put_spans(tier->self, place, tag, spans, count, ticket);
}

int neap__tier_get_spans(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	NEAP_TRY(neap__tier_ours(tier));
	NEAP_TRY(check_spans(tier, place, spans, count));
	return tier->ops.get_spans(tier->self, place, tag, spans, count, ticket);
}

static int check_tapes(
	const struct neap_tier *tier, int64_t place, const struct neap_span *spans, int count)
{
	uint64_t bytes = bytes_of(spans, count);
	if (place < 0 || place >= tier->tape_places || bytes == 0 || bytes > tier->tape_bytes)
		return neap__fail(NEAP_EUSAGE,
			"%s: no place %lld for %llu bytes of tapes (%lld places of %llu bytes)",
			tier->about, (long long)place, (unsigned long long)bytes,
			(long long)tier->tape_places, (unsigned long long)tier->tape_bytes);
	return 0;
}

int neap__tier_put_tapes(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	NEAP_TRY(neap__tier_ours(tier));
	NEAP_TRY(check_tapes(tier, place, spans, count));
	return tier->ops.put_tapes(tier->self, place, tag, spans, count, ticket);
}

int neap__tier_get_tapes(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	NEAP_TRY(neap__tier_ours(tier));
	NEAP_TRY(check_tapes(tier, place, spans, count));
	return tier->ops.get_tapes(tier->self, place, tag, spans, count, ticket);
}

int neap__tier_wait(struct neap_tier *tier, int64_t ticket)
{
	NEAP_TRY(neap__tier_ours(tier));
	return tier->ops.wait(tier->self, ticket);
}

int neap__tier_wait_for(struct neap_tier *tier, int64_t ticket, double seconds)
{
	NEAP_TRY(neap__tier_ours(tier));
	if (isnan(seconds))
		return neap__fail(NEAP_EUSAGE, "neap_tier_wait_for: seconds is not a number");
	if (tier->ops.wait_for)
		return tier->ops.wait_for(tier->self, ticket, seconds);
	int answer = tier->ops.wait(tier->self, ticket);
	return answer < 0 ? answer : 1;
}

int neap__tier_done(struct neap_tier *tier, int64_t ticket)
{
	NEAP_TRY(neap__tier_ours(tier));
	return tier->ops.done ? tier->ops.done(tier->self, ticket) : 1;
}

void neap__tier_set_patience(struct neap_tier *tier, double seconds)
{
	if (neap__tier_ours(tier) < 0)
		return;
	if (tier->ops.set_patience)
		tier->ops.set_patience(tier->self, seconds);
}

int neap__tier_holds_staging(struct neap_tier *tier)
{
	if (tier->gone)
		return tier->held;
	NEAP_TRY(neap__tier_ours(tier));
	return tier->ops.holds_staging ? tier->ops.holds_staging(tier->self) : 0;
}

int neap__tier_forget(struct neap_tier *tier, int64_t place)
{
	NEAP_TRY(neap__tier_ours(tier));
	if (place < 0 || place >= tier->places)
		return neap__fail(NEAP_EUSAGE, "%s: no place %lld to forget (%lld places)",
			tier->about, (long long)place, (long long)tier->places);
	return tier->ops.forget ? tier->ops.forget(tier->self, place) : 0;
}

void neap_tier_describe(struct neap_tier *tier, uint64_t bytes, struct neap_tier_spec *spec)
{
	if (!tier || !spec)
		return;
	pthread_mutex_lock(&tier->spec_lock);
	*spec = tier->spec;
	pthread_mutex_unlock(&tier->spec_lock);
	spec->staging = least_staging(tier, bytes);
	if (!tier->ops.footprint || bytes == 0 || spec->capacity == NEAP_INFINITE)
		return;
	spec->capacity = neap__sat_mul(spec->capacity / neap__tier_footprint(tier, bytes), bytes);
}

void neap_tier_set_rates(
	struct neap_tier *tier, double write_rate, double read_rate, double latency)
{
	if (!tier)
		return;
	pthread_mutex_lock(&tier->spec_lock);
	tier->spec.write_rate = write_rate;
	tier->spec.read_rate = read_rate;
	tier->spec.write_fixed = tier->spec.read_fixed = latency;
	pthread_mutex_unlock(&tier->spec_lock);
}

int neap__tier_cancel(struct neap_tier *tier, int64_t ticket)
{
	return tier->ops.cancel ? tier->ops.cancel(tier->self, ticket) : 0;
}

int neap__tier_cached(struct neap_tier *tier, uint64_t *bytes)
{
	*bytes = 0;
	return tier->ops.cached ? tier->ops.cached(tier->self, bytes) : 0;
}

int neap__tier_sync(struct neap_tier *tier)
{
	NEAP_TRY(neap__tier_ours(tier));
	return tier->ops.sync ? tier->ops.sync(tier->self) : 0;
}

int neap__tier_adopt(struct neap_tier *tier, uint64_t epoch)
{
	NEAP_TRY(neap__tier_ours(tier));
	if (!tier->ops.adopt)
		return 0;
	tier->journalled = epoch != 0;
	return tier->ops.adopt(tier->self, epoch);
}

void neap_tier_set_cpu(struct neap_tier *tier, double seconds_a_byte, double seconds_a_transfer)
{
	if (!tier)
		return;
	pthread_mutex_lock(&tier->spec_lock);
	tier->spec.cpu = seconds_a_byte;
	tier->spec.cpu_fixed = seconds_a_transfer;
	pthread_mutex_unlock(&tier->spec_lock);
}

int neap__tier_poke(
	struct neap_tier *tier, int tapes, int64_t place, uint64_t offset, unsigned mask)
{
	if (!tier->poke)
		return neap__fail(NEAP_EUSAGE, "%s cannot be damaged", tier->about);
	return tier->poke(tier->self, tapes, place, offset, mask);
}

const char *neap_tier_about(const struct neap_tier *tier)
{
	if (!tier)
		return NULL;
	return tier->about;
}
