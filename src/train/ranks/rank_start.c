/* SPDX-License-Identifier: Apache-2.0 */
/* rank_start.c: comparisons of ranks that share a net (rank_start.h). */
#include "train/ranks/rank_start.h"
#include "train/model.h"
#include "train/settings.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* What has to be the same, as numbers. */
struct common {
	uint64_t fingerprint, weights;
	int64_t test, settings; /* bytes of the settings as text */
};

static int compare_data(struct neap__ranks *ranks, const struct neap__rank_facts *facts,
	const struct common *own, const struct common *root)
{
	const char *host = ranks->host[0];

	if (own->fingerprint != root->fingerprint)
		return neap__fail(NEAP_EUSAGE,
			"'%s' has other samples than on rank 0 (%s). Use the same file on all "
			"hosts",
			facts->data, host);
	if (own->test != root->test)
		return neap__fail(NEAP_EUSAGE,
			"the test set has %lld samples, but on rank 0 (%s) it has %lld. Use the "
			"same file on all hosts",
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
			"rank 0 (%s) was started with %s. Start all ranks with the same options",
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

	if (!ranks->peers)
		return 0;
	NEAP_TRY(neap__ranks_same_build(ranks));
	if (facts->options)
		neap__settings_write(&settings, NULL, facts->options, 1);
	int rc = settings.text.error ? neap__fail_errno(ENOMEM, "settings") : 0;
	const struct common own = {
		facts->fingerprint, facts->weights, facts->test, (int64_t)settings.text.length};
	struct common root = own;
	rc = neap__ranks_agree(ranks, rc);
	if (rc == 0)
		rc = neap__ranks_send(ranks, &root, sizeof root);
	if (rc == 0)
		rc = neap__ranks_agree(ranks, compare_data(ranks, facts, &own, &root));
	if (rc == 0 && root.settings > 0)
		rc = neap__ranks_agree(ranks, compare_settings(ranks, &settings, root.settings));
	if (rc == 0 && own.weights != root.weights)
		rc = neap__fail(NEAP_EUSAGE,
			"the initial weights differ from those of rank 0 (%s). Use the same model "
			"on all hosts",
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
	int rc = p->all(p->user, &own, sizeof own, all), other = 1;
	while (rc == 0 && other < p->count && all[other] == all[0])
		other++;
	free(all);
	if (rc < 0 || other == p->count)
		return rc;
	ranks->together = 1;
	return neap__fail(NEAP_ECORRUPT,
		"the weights of rank %d (%s) differ from those of rank 0 (%s), possibly by a "
		"hardware fault. Nothing was written; continue from the previous snapshot with "
		"--resume",
		other, ranks->host[other], ranks->host[0]);
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
