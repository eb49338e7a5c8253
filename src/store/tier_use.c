/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier_use.c: who has a tier: one public call, or the run of one sweep, at a time; the others are
 * refused. A tier that is closed while sweeps know it is freed with the last of them.
 */
#include "store/tier_cost.h"
#include "store/tier_state.h"
#include "base/fail.h"
#include "store/forks.h"

#include <stdlib.h>

static void hold(struct neap_tier *tier)
{
	atomic_fetch_add_explicit(&tier->holders, 1, memory_order_relaxed);
}

/* The medium goes; what may still touch the staging is asked before. */
static void end(struct neap_tier *tier)
{
	int ours = tier->forks == neap__forks();
	void (*last)(void *self) = ours ? tier->ops.close : tier->ops.abandon;
	if (tier->gone)
		return;
	tier->held = ours && tier->ops.holds_staging ? tier->ops.holds_staging(tier->self) : 0;
	tier->gone = 1;
	tier->ops = (struct neap_tier_ops){.size = sizeof tier->ops};
	if (last)
		last(tier->self);
}

static void drop(struct neap_tier *tier)
{
	if (atomic_fetch_sub_explicit(&tier->holders, 1, memory_order_acq_rel) > 1)
		return;
	end(tier);
	pthread_mutex_destroy(&tier->spec_lock);
	free(tier);
}

/* Enters, or waits no longer than it takes to see that another call has the tier. */
static int claim(struct neap_tier *tier, const char *function)
{
	NEAP_TRY(neap__gate_enter(&tier->gate, function, "tier"));
	int rc = neap__tier_ours(tier);
	if (rc == 0 && atomic_load(&tier->closed))
		rc = neap__fail(
			NEAP_EUSAGE, "%s: %s was closed. Open a tier again", function, tier->about);
	if (rc < 0)
		neap__gate_leave(&tier->gate);
	return rc;
}

int neap__tier_enter(struct neap_tier *tier, const char *function)
{
	/* In a child process the gate may be as a thread of the parent left it. */
	if (tier->forks != neap__forks())
		return neap__tier_ours(tier);
	hold(tier); /* first: a close between the two would free it */
	int rc = claim(tier, function);
	if (rc < 0)
		drop(tier);
	return rc;
}

void neap__tier_leave(struct neap_tier *tier)
{
	neap__gate_leave(&tier->gate);
	drop(tier);
}

/* 1 if records are in the memory that the tier can read and write. */
static int reaches(const struct neap_tier *tier, const struct neap_memory_ops *memory)
{
	const struct neap_memory_ops *own = tier->ops.memory;
	return !own || (memory && own->map == memory->map && own->user == memory->user);
}

int neap__tiers_take(struct neap_tier **tiers, struct neap_tier *const *from, int count,
	int claimed, const struct neap_memory_ops *memory)
{
	for (int i = 0; i < count; i++) {
		if (!from[i])
			return neap__fail(NEAP_EUSAGE,
				"neap_sweep_options: tiers[%d] of %d is NULL. Pass an open tier", i,
				count);
		for (int k = 0; k < i; k++)
			if (from[k] == from[i])
				return neap__fail(NEAP_EUSAGE,
					"neap_sweep_options: tiers[%d] and tiers[%d] are the same "
					"tier. Pass each tier once",
					k, i);
		if (!claimed && atomic_load(&from[i]->closed))
			return neap__fail(NEAP_EUSAGE,
				"neap_sweep_options: tiers[%d] (%s) was closed. Pass an open tier",
				i, from[i]->about);
		if (!reaches(from[i], memory))
			return neap__fail(NEAP_EUSAGE,
				"neap_sweep_options: tiers[%d] (%s) stores records of the memory "
				"that it was opened for. Set `memory` of the model to that memory",
				i, from[i]->about);
	}
	for (int i = 0; i < count; i++)
		hold(tiers[i] = from[i]);
	return 0;
}

void neap__tiers_drop(struct neap_tier **tiers, int count)
{
	for (int i = 0; i < count; i++) {
		if (tiers[i])
			drop(tiers[i]);
		tiers[i] = NULL;
	}
}

int neap__tiers_claim(struct neap_tier *const *tiers, int count, const char *function)
{
	for (int i = 0; i < count; i++) {
		int rc = neap__tier_ours(tiers[i]);
		if (rc == 0)
			rc = claim(tiers[i], function);
		if (rc < 0) {
			neap__tiers_leave(tiers, i);
			return rc;
		}
		tiers[i]->running = 1;
	}
	return 0;
}

void neap__tiers_leave(struct neap_tier *const *tiers, int count)
{
	for (int i = 0; i < count; i++) {
		tiers[i]->running = 0;
		neap__gate_leave(&tiers[i]->gate);
	}
}

static int format_claimed(struct neap_tier *tier, uint64_t bytes, int64_t places, void *staging)
{
	return neap__tier_format(tier, bytes, places, &(struct neap__staging){.at = staging});
}

const struct neap__tier_calls neap__tier_claimed_calls = {
	format_claimed, neap__tier_put, neap__tier_get, neap__tier_wait, neap__tier_measure};

/* Whoever has the tier now, a call or a run, goes on: it goes with the last that knows it. */
void neap_tier_close(struct neap_tier *tier)
{
	if (!tier || atomic_exchange(&tier->closed, 1))
		return;
	if (tier->forks != neap__forks()) {
		end(tier);
	} else if (neap__gate_try(&tier->gate)) {
		end(tier);
		neap__gate_leave(&tier->gate);
	}
	drop(tier);
}

void neap_tier_abandon(struct neap_tier *tier)
{
	neap_tier_close(tier);
}
