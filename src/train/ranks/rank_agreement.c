/* SPDX-License-Identifier: Apache-2.0 */
/* rank_agreement.c: agreements of the ranks of a run (rank_agreement.h). */
#include "train/ranks/rank_agreement.h"
#include "train/model.h"
#include "train/settings.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/pool.h"

#include <neap/machine.h>
#include <neap/version.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* Where a rank runs: its host, and the processors it may use. */
struct rank_place {
	char host[NEAP__HOST];
	uint64_t processors;
};

/* A call of a peer that failed: the ranks cannot agree on anything any more. */
static int lost(int rc)
{
	return rc < 0 ? neap__fail_in(rc, "the ranks cannot reach each other: ") : 0;
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
	ranks->crowd = 0;
	for (int r = 0; r < p->count && rc == 0; r++) {
		all[r].host[NEAP__HOST - 1] = '\0';
		memcpy(ranks->host[r], all[r].host, NEAP__HOST);
		ranks->crowd +=
			strcmp(all[r].host, own.host) == 0 && all[r].processors == own.processors;
	}
	free(all);
	return rc;
}

int neap__ranks_begin(struct neap__ranks *ranks, const struct neap_peers *peers)
{
	*ranks = (struct neap__ranks){.crowd = 1};
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

int neap__ranks_send_weights(struct neap__ranks *ranks, const struct neap_net *net)
{
	struct neap_param param;

	for (int i = 0; i < neap_net_params(net); i++) {
		NEAP_TRY(neap_net_param(net, i, &param));
		size_t width = param.precision == NEAP_DOUBLE ? sizeof(double) : sizeof(float);
		NEAP_TRY(neap__ranks_send(ranks, param.data, (size_t)param.count * width));
	}
	return 0;
}

/* What decides the bits that a rank computes, beside options and data. */
struct build {
	char version[32], isa[24], libc[40];
	uint64_t abi, functions, fingerprint, weights;
	int64_t test, settings; /* bytes of the settings as text */
};

enum { PROBES = 4096 };

/* Hashes what the C library answers to fixed arguments. */
static uint64_t hash_functions(void)
{
	double answer[8];
	uint64_t hash = 0;

	for (int i = 0; i < PROBES; i++) {
		double x = (i + 0.37) / PROBES;
		answer[0] = exp(16 * x - 8);
		answer[1] = log(x);
		answer[2] = tanh(8 * x - 4);
		answer[3] = cos(7 * x);
		answer[4] = atan(9 * x);
		answer[5] = (double)expf((float)(16 * x - 8));
		answer[6] = (double)tanhf((float)(8 * x - 4));
		answer[7] = pow(x, 1.7);
		hash = XXH3_64bits_withSeed(answer, sizeof answer, hash);
	}
	return hash;
}

static void fill_build(
	struct build *own, const struct neap__rank_facts *facts, const struct neap__json *settings)
{
	struct neap_machine machine = {.size = sizeof machine};

	memset(own, 0, sizeof *own);
	neap_machine_describe(&machine);
	neap__print(own->version, sizeof own->version, "%s", NEAP_VERSION);
	neap__print(own->isa, sizeof own->isa, "%s", machine.isa);
	if (confstr(_CS_GNU_LIBC_VERSION, own->libc, sizeof own->libc) == 0)
		neap__print(own->libc, sizeof own->libc, "unknown");
	own->abi = neap_abi_hash();
	own->functions = hash_functions();
	own->fingerprint = facts->fingerprint;
	own->weights = facts->weights;
	own->test = facts->test;
	own->settings = (int64_t)settings->text.length;
}

/* The narrower of two instruction sets, which both machines have. */
static const char *narrower(const char *a, const char *b)
{
	return strlen(a) != strlen(b) ? strcmp(a, "avx512") == 0   ? b
					: strcmp(b, "avx512") == 0 ? a
								   : "plain"
				      : a;
}

static int compare_build(struct neap__ranks *ranks, const struct neap__rank_facts *facts,
	const struct build *own, const struct build *root)
{
	const char *host = ranks->host[0];

	if (strcmp(own->version, root->version) != 0 || own->abi != root->abi)
		return neap__fail(NEAP_EUSAGE,
			"neap %s, on rank 0 (%s) another build, %s: install the same on all hosts",
			own->version, host, root->version);
	if (strcmp(own->isa, root->isa) != 0)
		return neap__fail(NEAP_EUSAGE,
			"computes with %s, rank 0 (%s) with %s, which gives other bits: set "
			"NEAP_ISA=%s on all",
			own->isa, host, root->isa, narrower(own->isa, root->isa));
	if (strcmp(own->libc, root->libc) != 0 || own->functions != root->functions)
		return neap__fail(NEAP_EUSAGE,
			"the C library '%s' computes other bits of exp, log or tanh than '%s' of "
			"rank 0 (%s): use hosts with the same system",
			own->libc, root->libc, host);
	if (own->fingerprint != root->fingerprint)
		return neap__fail(NEAP_EUSAGE,
			"'%s' has other samples than on rank 0 (%s): give all hosts the same file",
			facts->data, host);
	if (own->test != root->test)
		return neap__fail(NEAP_EUSAGE,
			"%lld samples to test on, on rank 0 (%s) %lld: give all hosts the same "
			"file",
			(long long)own->test, host, (long long)root->test);
	return 0;
}

/* Compares the settings with those of rank 0, which come as text. */
static int compare_settings(struct neap__ranks *ranks, const struct neap__json *own, int64_t bytes)
{
	struct neap__text wrong = {0};
	char why[NEAP__JSON_WHY];
	char *text = calloc(1, (size_t)bytes + 1);
	int rc = text ? 0 : neap__fail_errno(ENOMEM, "settings");

	rc = neap__ranks_agree(ranks, rc);
	if (rc == 0 && neap__ranks_root(ranks))
		memcpy(text, own->text.data, (size_t)bytes);
	if (rc == 0)
		rc = neap__ranks_send(ranks, text, (size_t)bytes);
	json_t *root = rc == 0 ? neap__json_read(text, (size_t)bytes, why) : NULL;
	json_t *here = rc == 0 ? neap__json_read(own->text.data, own->text.length, why) : NULL;
	if (rc == 0 && (!root || !here))
		rc = neap__fail(NEAP_EFORMAT, "settings of rank 0: %s", why);
	if (rc == 0)
		neap__settings_differ(&wrong, root, here);
	if (rc == 0 && wrong.length)
		rc = neap__fail(NEAP_EUSAGE,
			"rank 0 (%s) was started with %s: start all ranks with the same options",
			ranks->host[0], wrong.data);
	json_decref(root);
	json_decref(here);
	neap__text_free(&wrong);
	free(text);
	return rc;
}

int neap__ranks_same(struct neap__ranks *ranks, const struct neap__rank_facts *facts)
{
	struct neap__json settings = {0};
	struct build own, root;

	if (!ranks->peers)
		return 0;
	if (facts->options)
		neap__settings_write(&settings, NULL, facts->options, 1);
	int rc = settings.text.error ? neap__fail_errno(ENOMEM, "settings") : 0;
	fill_build(&own, facts, &settings);
	root = own;
	rc = neap__ranks_agree(ranks, rc);
	if (rc == 0)
		rc = neap__ranks_send(ranks, &root, sizeof root);
	if (rc == 0)
		rc = neap__ranks_agree(ranks, compare_build(ranks, facts, &own, &root));
	if (rc == 0 && root.settings > 0)
		rc = neap__ranks_agree(ranks, compare_settings(ranks, &settings, root.settings));
	if (rc == 0 && own.weights != root.weights)
		rc = neap__fail(NEAP_EUSAGE,
			"begins with other weights than rank 0 (%s): give all hosts the same model",
			ranks->host[0]);
	neap__json_free(&settings);
	return neap__ranks_agree(ranks, rc);
}

int neap__ranks_same_weights(struct neap__ranks *ranks, const struct neap_net *net)
{
	const struct neap_peers *p = ranks->peers;

	if (!p)
		return 0;
	uint64_t own = neap__weights_hash(net), *all = calloc((size_t)p->count, sizeof *all);
	if (!all)
		return neap__fail_errno(ENOMEM, "%d ranks", p->count);
	int rc = lost(p->all(p->user, &own, sizeof own, all)), other = 1;
	while (rc == 0 && other < p->count && all[other] == all[0])
		other++;
	free(all);
	if (rc < 0 || other == p->count)
		return rc;
	ranks->together = 1;
	return neap__fail(NEAP_ECORRUPT,
		"rank %d (%s) holds other weights than rank 0 (%s): a fault of memory or "
		"processor? Nothing was written; --resume goes on from the snapshot before",
		other, ranks->host[other], ranks->host[0]);
}

int neap__ranks_threads(const struct neap__ranks *ranks, int threads)
{
	int own = neap__processors() / ranks->crowd;

	if (threads || !ranks->peers)
		return threads;
	return own > 1 ? own : 1;
}

void neap__ranks_loader(const struct neap__ranks *ranks, const struct neap_net *net,
	struct neap_loader_options *loading, int64_t count)
{
	int64_t last = count % loading->batch;

	if (!ranks->peers)
		return;
	loading->rank = ranks->peers->rank;
	loading->ranks = ranks->peers->count;
	loading->group = neap_net_group(net, loading->batch);
	loading->last_group = last > 0 ? neap_net_group(net, (int)last) : 0;
}
