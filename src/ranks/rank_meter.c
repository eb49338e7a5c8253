/* SPDX-License-Identifier: Apache-2.0 */
/* rank_meter.c: measures the calls of peers (rank_meter.h). */
#include "ranks/rank_meter.h"
#include "sys/clock.h"

#include <string.h>

/* A call that began then and sent so many bytes has ended. */
static void note(struct neap__rank_meter *m, double began, uint64_t sent)
{
	int slot = m->calls < NEAP__METER_CALLS ? m->calls : NEAP__METER_CALLS - 1;

	if (!m->is_open)
		return;
	m->last = (int64_t)(1e9 * (neap__seconds() - began));
	m->spent[slot] += m->last;
	m->calls++;
	m->last_sent = sent;
	m->sent += sent;
}

static uint64_t others(const struct neap__rank_meter *m)
{
	return (uint64_t)(m->to->count - 1);
}

/* Rounds in which ranks take the least by halves. */
static uint64_t rounds(const struct neap__rank_meter *m)
{
	uint64_t k = 0;
	while ((INT64_C(1) << k) < m->to->count)
		k++;
	return k;
}

static int least(void *user, int64_t *values, int count)
{
	struct neap__rank_meter *m = user;
	double began = neap__seconds();
	int rc = m->to->least(m->to->user, values, count);

	note(m, began, rounds(m) * (uint64_t)count * sizeof *values);
	return rc;
}

static int all(void *user, const void *own, size_t bytes, void *into)
{
	struct neap__rank_meter *m = user;
	double began = neap__seconds();
	int rc = m->to->all(m->to->user, own, bytes, into);

	note(m, began, others(m) * bytes);
	return rc;
}

static int exchange(void *user, const void *out, const size_t *to, void *in, const size_t *from)
{
	struct neap__rank_meter *m = user;
	double began = neap__seconds();
	uint64_t sent = 0;

	for (int r = 0; r < m->to->count; r++)
		sent += r != m->to->rank ? to[r] : 0;
	int rc = m->to->exchange(m->to->user, out, to, in, from);
	note(m, began, sent);
	return rc;
}

static int gather(void *user, void *at, const size_t *bytes)
{
	struct neap__rank_meter *m = user;
	double began = neap__seconds();
	uint64_t sent = others(m) * bytes[m->to->rank];
	int rc = m->to->gather(m->to->user, at, bytes);

	note(m, began, sent);
	return rc;
}

static void leave(void *user, int code)
{
	struct neap__rank_meter *m = user;
	m->to->leave(m->to->user, code);
}

const struct neap_peers *neap__rank_meter_take(
	struct neap__rank_meter *meter, const struct neap_peers *peers)
{
	*meter = (struct neap__rank_meter){.to = peers};
	if (!peers)
		return NULL;
	meter->peers = (struct neap_peers){.size = sizeof meter->peers,
		.rank = peers->rank,
		.count = peers->count,
		.user = meter,
		.least = least,
		.all = all,
		.exchange = exchange,
		.gather = gather,
		.leave = peers->leave ? leave : NULL};
	return &meter->peers;
}

void neap__rank_meter_reset(struct neap__rank_meter *meter)
{
	memset(meter->spent, 0, sizeof meter->spent);
	meter->calls = 0;
	meter->sent = 0;
}

void neap__rank_meter_open(struct neap__rank_meter *meter)
{
	meter->is_open = 1;
}

void neap__rank_meter_close(struct neap__rank_meter *meter)
{
	int64_t last = meter->last;

	meter->is_open = 0;
	neap__rank_meter_reset(meter);
	meter->spent[0] = last;
	meter->calls = 1;
	meter->sent = meter->last_sent;
}

double neap__rank_meter_spent(const int64_t spent[NEAP__METER_CALLS])
{
	int64_t sum = 0;
	for (int i = 0; i < NEAP__METER_CALLS; i++)
		sum += spent[i];
	return 1e-9 * (double)sum;
}
