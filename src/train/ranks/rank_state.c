/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_state.c: the state of a run that goes on, which rank 0 read from the run's folder, for all
 * ranks: the folder may lie on a disk of rank 0 alone, and ranks may be more or fewer than before.
 */
#include "train/trainer.h"
#include "data/dataset.h"
#include "data/row_reading.h"
#include "nn/batch/peer_sum.h"
#include "ranks/rank_share.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of a tensor that move at a time: 8 MiB of moments. */
enum { WINDOW = 1 << 20 };

/* One moment of a tensor: rank 0 has all of it in `whole`, every rank its part. */
struct moved {
	int64_t offset, count; /* of the tensor's numbers, counted over all tensors */
	double *whole, *own;
	int64_t own_first;
};

/*
 * Moves numbers [from, to) of a moment from the ranks to rank 0, or back; `bytes` has room for the
 * counts of an exchange.
 */
static int move_window(const struct neap__trainer *trainer, const struct moved *m, int64_t from,
	int64_t to, int back, size_t *bytes)
{
	const struct neap_peers *p = trainer->ranks.peers;
	size_t elements = trainer->net->elements, *root = bytes, *rest = bytes + p->count, own = 0;
	double *at = NULL;

	for (int r = 0; r < p->count; r++) {
		int64_t first = (int64_t)neap__rank_number(r, p->count, elements) - m->offset;
		int64_t end = (int64_t)neap__rank_number(r + 1, p->count, elements) - m->offset;
		first = first > from ? first : from;
		end = end < to ? end : to;
		root[r] = first < end ? (size_t)(end - first) * sizeof(double) : 0;
		rest[r] = 0;
		if (r == p->rank && first < end) {
			own = root[r];
			at = m->own + (first - m->own_first);
		}
		if (p->rank > 0)
			root[r] = 0;
	}
	rest[0] = own;
	double *whole = p->rank == 0 ? m->whole + from : NULL;
	return back ? p->exchange(p->user, whole, root, at, rest)
		    : p->exchange(p->user, at, rest, whole, root);
}

/* Moves all moments between the ranks and trainer->whole of rank 0. */
static int move_moments(struct neap__trainer *trainer, int back)
{
	const struct neap__optimizer *own = &trainer->optimizer;
	const struct neap_net *net = trainer->net;
	size_t *bytes = calloc(2 * (size_t)trainer->ranks.peers->count, sizeof *bytes);
	int rc = neap__ranks_agree(
		&trainer->ranks, bytes ? 0 : neap__fail_errno(ENOMEM, "counts of ranks"));

	for (int i = 0; i < own->tensors && rc == 0; i++)
		for (int m = 0; m < NEAP__MOMENTS_MAX && rc == 0; m++) {
			if (!own->moment[i][m])
				continue;
			const struct moved moved = {.offset = (int64_t)net->tensors[i].offset,
				.count = net->tensors[i].count,
				.whole = trainer->whole.moment ? trainer->whole.moment[i][m] : NULL,
				.own = own->moment[i][m],
				.own_first = neap__optimizer_part(own, net, i).first};
			for (int64_t at = 0; at < moved.count && rc == 0; at += WINDOW) {
				int64_t to = at + WINDOW < moved.count ? at + WINDOW : moved.count;
				rc = move_window(trainer, &moved, at, to, back, bytes);
			}
		}
	free(bytes);
	return rc;
}

/* Makes room for the moments of all ranks, on rank 0. */
static int make_whole(struct neap__trainer *trainer)
{
	const struct neap__optimizer *own = &trainer->optimizer;

	neap__optimizer_fini(&trainer->whole);
	if (!trainer->ranks.peers || !neap__ranks_root(&trainer->ranks))
		return 0;
	return neap__optimizer_init_all(&trainer->whole, own->rule, &own->settings, trainer->net);
}

int neap__rank_moments_room(struct neap__trainer *trainer)
{
	return neap__ranks_agree(&trainer->ranks, make_whole(trainer));
}

int neap__rank_moments_gather(struct neap__trainer *trainer)
{
	NEAP_TRY(neap__rank_moments_room(trainer));
	return trainer->ranks.peers ? move_moments(trainer, 0) : 0;
}

struct neap__optimizer *neap__rank_moments(struct neap__trainer *trainer)
{
	return trainer->whole.moment ? &trainer->whole : &trainer->optimizer;
}

int neap__rank_weights(struct neap__trainer *trainer)
{
	const struct neap_peers *p = trainer->ranks.peers;
	const struct neap_net *net = trainer->net;

	for (int i = 0; p && i < net->ntensors; i++) {
		const struct neap__param *t = &net->tensors[i];
		size_t end = t->offset + (size_t)t->count;
		for (int r = 0; r < p->count; r++) {
			size_t first = neap__rank_number(r, p->count, net->elements);
			size_t last = neap__rank_number(r + 1, p->count, net->elements);
			first = first > t->offset ? first : t->offset;
			last = last < end ? last : end;
			net->peer_room->to[r] = first < last ? (last - first) * net->ops->real : 0;
		}
		if (!t->is_frozen)
			NEAP_TRY(p->gather(p->user, t->data, net->peer_room->to));
	}
	return 0;
}

/* Means and deviations of features, which weights that the run began with may have brought. */
static int send_scale(struct neap__trainer *trainer)
{
	struct neap__data *d = &trainer->data;
	size_t inputs = (size_t)neap__features(d->set), bytes = inputs * sizeof(double);
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
	NEAP_TRY(move_moments(trainer, 1));
	neap__optimizer_fini(&trainer->whole);
	return send_scale(trainer);
}
