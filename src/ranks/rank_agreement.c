/* SPDX-License-Identifier: Apache-2.0 */
/* rank_agreement.c: agreements of the ranks of a run (rank_agreement.h). */
#include "ranks/rank_agreement.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where a rank runs: its host, and the processors it may use. */
struct rank_place {
	char host[NEAP__HOST];
	uint64_t processors;
};

/* A call of a peer that failed: the ranks cannot agree on anything any more. */
static int lost(int rc)
{
	return rc < 0 ? neap__fail_in(rc, "the ranks cannot communicate: ") : 0;
}

static int take_places(struct neap__ranks *ranks)
{
	const struct neap_peers *p = ranks->peers;
	struct rank_place own = {.processors = neap__processors_hash()}, *all;

	ranks->host = calloc((size_t)p->count, sizeof *ranks->host);
	all = calloc((size_t)p->count, sizeof *all);
	if (!ranks->host || !all) {
		free(all);
		return neap__fail_errno(ENOMEM, "%d ranks", p->count);
	}
	if (gethostname(own.host, sizeof own.host - 1) < 0)
		neap__print(own.host, sizeof own.host, "?");
	int rc = lost(p->all(p->user, &own, sizeof own, all));
	ranks->crowd = ranks->hosted = 0;
	for (int r = 0; r < p->count && rc == 0; r++) {
		all[r].host[NEAP__HOST - 1] = '\0';
		memcpy(ranks->host[r], all[r].host, NEAP__HOST);
		int here = strcmp(all[r].host, own.host) == 0;
		ranks->crowd += here && all[r].processors == own.processors;
		ranks->hosted += here;
		ranks->local += here && r < p->rank;
	}
	free(all);
	return rc;
}

int neap__ranks_begin(struct neap__ranks *ranks, const struct neap_peers *peers)
{
	*ranks = (struct neap__ranks){.crowd = 1, .hosted = 1};
	if (!peers || peers->count == 1)
		return 0;
	if (peers->size != sizeof *peers || peers->count < 1 || peers->rank < 0 ||
		peers->rank >= peers->count || !peers->least || !peers->all || !peers->exchange ||
		!peers->gather)
		return neap__fail(NEAP_EUSAGE, "peers are not filled in: rank %d of %d",
			peers->rank, peers->count);
	ranks->peers = peers;
	return take_places(ranks);
}

void neap__ranks_end(struct neap__ranks *ranks, int rc)
{
	const struct neap_peers *p = ranks->peers;

	free(ranks->host);
	ranks->host = NULL;
	if (rc < 0 && p && !ranks->together && p->leave)
		p->leave(p->user, rc);
}

int neap__ranks_root(const struct neap__ranks *ranks)
{
	return !ranks->peers || ranks->peers->rank == 0;
}

/* How a part of a run ended on a rank. */
struct ending {
	int64_t code;
	char detail[NEAP__DETAIL_BYTES];
};

/* Fails as the first of the ranks did that failed; 0: none did. */
static int fail_as(struct neap__ranks *ranks, const struct ending *all)
{
	int count = ranks->peers->count, first = 0, alike = 1;

	while (first < count && all[first].code >= 0)
		first++;
	if (first == count)
		return 0;
	for (int r = 0; r < count; r++)
		alike &= all[r].code == all[first].code &&
			 strcmp(all[r].detail, all[first].detail) == 0;
	int rc = neap__fail((int)all[first].code, "%s", all[first].detail);
	ranks->together = 1;
	return alike || first == 0 ? rc
				   : neap__fail_in(rc, "rank %d (%s): ", first, ranks->host[first]);
}

int neap__ranks_agree(struct neap__ranks *ranks, int rc)
{
	const struct neap_peers *p = ranks->peers;
	struct ending own = {.code = rc};

	if (!p || ranks->together)
		return rc;
	if (rc < 0)
		neap__print(own.detail, sizeof own.detail, "%s",
			*neap_detail() ? neap_detail() : neap_strerror(rc));
	struct ending *all = calloc((size_t)p->count, sizeof *all);
	if (!all)
		return neap__fail_errno(ENOMEM, "%d ranks", p->count);
	int reached = lost(p->all(p->user, &own, sizeof own, all));
	int failed = reached < 0 ? reached : fail_as(ranks, all);
	free(all);
	return failed < 0 ? failed : rc;
}

int neap__ranks_least(struct neap__ranks *ranks, int64_t *values, int count)
{
	const struct neap_peers *p = ranks->peers;
	return p ? lost(p->least(p->user, values, count)) : 0;
}

int neap__ranks_send(struct neap__ranks *ranks, void *at, size_t bytes)
{
	const struct neap_peers *p = ranks->peers;

	if (!p || bytes == 0)
		return 0;
	size_t *parts = calloc((size_t)p->count, sizeof *parts);
	if (!parts)
		return neap__fail_errno(ENOMEM, "%d ranks", p->count);
	parts[0] = bytes;
	int rc = lost(p->gather(p->user, at, parts));
	free(parts);
	return rc;
}

int neap__ranks_threads(const struct neap__ranks *ranks, int threads)
{
	int own = neap__processors() / ranks->crowd;

	if (threads || !ranks->peers)
		return threads;
	return own > 1 ? own : 1;
}
