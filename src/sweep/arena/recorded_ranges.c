/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_ranges.c: RECORD and the end of a GET add a range, BACKWARD and PUT take one away. The
 * ranges are disjoint, do not touch and stand in no order; there are never more than are recorded
 * apart.
 */
#include "sweep/arena/recorded_ranges.h"
#include "base/fail.h"

static struct neap__range *holding(const struct neap_sweep *s, int64_t t0, int64_t t1)
{
	for (int64_t i = s->nranges - 1; i >= 0; i--)
		if (s->ranges[i].t0 <= t0 && t1 <= s->ranges[i].t1)
			return &s->ranges[i];
	return NULL;
}

const struct neap__range *neap__ranges_find(const struct neap_sweep *s, int64_t t0, int64_t t1)
{
	return holding(s, t0, t1);
}

static int append(struct neap_sweep *s, int64_t t0, int64_t t1)
{
	if (s->nranges >= s->sizes.ranges)
		return neap__fail(NEAP_EILLEGAL,
			"record [%lld, %lld): more ranges than the schedule announced",
			(long long)t0, (long long)t1);
	s->ranges[s->nranges++] = (struct neap__range){t0, t1};
	return 0;
}

int neap__ranges_add(struct neap_sweep *s, int64_t t0, int64_t t1)
{
	for (int64_t i = s->nranges - 1; i >= 0; i--) {
		const struct neap__range *r = &s->ranges[i];
		if (r->t0 < t1 && t0 < r->t1)
			return neap__fail(NEAP_EILLEGAL, "[%lld, %lld) is recorded already",
				(long long)t0, (long long)t1);
		if (r->t1 != t0 && r->t0 != t1)
			continue;
		t0 = r->t1 == t0 ? r->t0 : t0;
		t1 = r->t0 == t1 ? r->t1 : t1;
		s->ranges[i] = s->ranges[--s->nranges];
	}
	return append(s, t0, t1);
}

int neap__ranges_cut(struct neap_sweep *s, int64_t t0, int64_t t1)
{
	struct neap__range *r = holding(s, t0, t1);
	if (!r)
		return neap__fail(NEAP_EILLEGAL, "the steps [%lld, %lld) were not recorded",
			(long long)t0, (long long)t1);
	struct neap__range lower = {r->t0, t0}, upper = {t1, r->t1};
	*r = s->ranges[--s->nranges];
	if (lower.t0 < lower.t1)
		NEAP_TRY(append(s, lower.t0, lower.t1));
	return upper.t0 < upper.t1 ? append(s, upper.t0, upper.t1) : 0;
}
