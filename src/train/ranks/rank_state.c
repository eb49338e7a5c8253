/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_state.c: the state of a run that goes on, which rank 0 read from the run's folder, for all
 * ranks: the folder may lie on a disk of rank 0 alone, and ranks may be more or fewer than before.
 */
#include "train/trainer.h"
#include "data/dataset.h"
#include "data/row_reading.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int send_moments(struct neap__trainer *trainer)
{
	const struct neap__optimizer *optimizer = &trainer->optimizer;
	struct neap_param param;

	for (int i = 0; i < optimizer->tensors; i++)
		for (int m = 0; m < NEAP__MOMENTS_MAX; m++) {
			NEAP_TRY(neap_net_param(trainer->net, i, &param));
			if (optimizer->moment[i][m])
				NEAP_TRY(neap__ranks_send(&trainer->ranks, optimizer->moment[i][m],
					(size_t)param.count * sizeof(double)));
		}
	return 0;
}

/* Means and deviations of features, which weights that the run began with may have brought. */
static int send_scale(struct neap__trainer *trainer)
{
	struct neap__data *d = &trainer->data;
	size_t inputs = (size_t)d->info.inputs, bytes = inputs * sizeof(double);
	int has = d->set->shift != NULL;

	NEAP_TRY(neap__ranks_send(&trainer->ranks, &has, sizeof has));
	if (!has)
		return 0;
	double *both = calloc(2 * inputs, sizeof *both);
	int rc = neap__ranks_agree(
		&trainer->ranks, both ? 0 : neap__fail_errno(ENOMEM, "%s", d->info.name));
	if (rc == 0 && neap__ranks_root(&trainer->ranks)) {
		memcpy(both, d->set->shift, bytes);
		memcpy(both + inputs, d->set->scale, bytes);
	}
	if (rc == 0)
		rc = neap__ranks_send(&trainer->ranks, both, 2 * bytes);
	if (rc == 0 && !neap__ranks_root(&trainer->ranks)) {
		double *shift = malloc(bytes), *scale = malloc(bytes);
		if (shift && scale) {
			memcpy(shift, both, bytes);
			memcpy(scale, both + inputs, bytes);
		}
		rc = neap__rows_scale(d->set, shift, scale);
		if (rc == 0 && d->test)
			rc = neap__rows_copy(d->test, d->set);
	}
	free(both);
	return rc;
}

int neap__rank_state_send(struct neap__trainer *trainer)
{
	struct neap__ranks *ranks = &trainer->ranks;

	if (!ranks->peers)
		return 0;
	NEAP_TRY(neap__ranks_send(ranks, &trainer->counters, sizeof trainer->counters));
	NEAP_TRY(neap__ranks_send(ranks, &trainer->session, sizeof trainer->session));
	NEAP_TRY(neap__ranks_send_weights(ranks, trainer->net));
	NEAP_TRY(send_moments(trainer));
	return send_scale(trainer);
}
