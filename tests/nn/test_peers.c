/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_peers.c: a batch that ranks share gives the loss, the counts, the rates and the gradients of
 * the same batch on one alone, bit for bit: cells of every kind, ranks that are no power of two or
 * have no samples, in rounds of any length.
 */
#include "nn/nets.h"
#include "thread_peers.h"
#include "ranks/rank_share.h"
#include "nn/core/net_state.h"
#include "nn/batch/peer_sum.h"

enum { SAMPLES = 23 };

static const char *const specs[] = {"lif:24r,li", "lif:17,lif:9r:dropout=0.3,li", "alif:12r,li",
	"cubalif:11:learn=tau,li", "egru:8,li", "lstm:13,li", "rnn:16:dropout=0.2,gru:9,li",
	"lif:21r:density=0.4,li",
	"seadlif:13r:scale=40:learn=all:a=1..9,brf:9:scale=900:omega=20..90:learn=tau,li",
	"lif:17r:tau=5ms..25ms,li",
	"cell c;state u;state w;w=0.99*w+0.1*spike;u=0.9*u+in-w;reset u=u-1;spike u-1:21r,li",
	("cell c;state u=-1;state w;old=u;u=min(u+0.2*u^2+in-w;5);w=w+0.1*(old-w);spike u-0.5;"
	 "reset u=-1;w=w+0.2*spike:13r,li"),
	"lif:conv=1x5:channels=3:shape=1x1x19,lif:9:pool=1x2:pooling=max,li",
	"lif:16r:from=input+layer1,lif:9:from=input+layer0:dropout=0.3,li:from=layer0+layer1",
	"integrator:13:learn=tau,lif:6:from=input+layer0,li:from=input+layer1",
	"lif:17r,alif:9:delay=0..20:learn,li:delay=0..3",
	"lif:conv=1x5:channels=3:shape=1x1x19:norm=batch:conv_pool=1x2,cubalif:9:norm=batch,li"};

/* What a sweep leaves. */
struct found {
	struct neap_net_result result;
	double rate[4];
	uint64_t hash;
};

struct rank {
	struct neap_net_options options;
	const struct neap_batch *batch;	  /* the whole one */
	const struct thread_peers *peers; /* NULL: alone */
	size_t numbers;			  /* of the buffers of a round; 0: as they are */
	struct found found;
	pthread_t thread;
};

static struct neap_objective objective(const struct neap_peers *peers)
{
	return (struct neap_objective){.size = sizeof(struct neap_objective),
		.loss = neap_loss_at(0),
		.dropout = 3,
		.peers = peers,
		.rates = {.upper = 0.01, .upper_weight = 1, .l2 = 0.1}};
}

static void sweep_nothing(
	struct neap_net *net, const struct neap_batch *batch, const struct neap_objective *goal)
{
	char adjoint[8];
	double loss;

	assert_int_equal(neap_net_begin(net, batch, goal), 0);
	assert_int_equal(neap_net_turn(net, NULL, adjoint, &loss), 0);
	assert_int_equal(neap_net_end(net), 0);
}

static void *run_rank(void *arg)
{
	struct rank *rank = arg;
	struct neap_net *net = net_make(&rank->options);
	struct neap_batch own = *rank->batch;
	const struct neap_peers *peers = rank->peers ? &rank->peers->peers : NULL;
	const struct neap_objective goal = objective(peers);

	if (peers) {
		int group = neap_net_group(net, own.size), groups = (own.size - 1) / group + 1;
		int first = neap__rank_sample(peers->rank, peers->count, own.size, group);
		int end = neap__rank_sample(peers->rank + 1, peers->count, own.size, group);
		own.of = own.size;
		own.size = end - first;
		own.sequences += first;
		own.steps = 0;
		for (int i = 0; i < own.size; i++)
			if (own.sequences[i].length > own.steps)
				own.steps = own.sequences[i].length;
		assert_int_equal(neap__peer_room_make(net, peers, own.of, groups), 0);
		size_t least = (size_t)groups * (size_t)peers->count;
		if (rank->numbers)
			net->peer_room->numbers = rank->numbers > least ? rank->numbers : least;
	}
	if (own.size)
		sweep_plain(net, &own, &goal);
	else
		sweep_nothing(net, &own, &goal);
	rank->found.result.size = sizeof rank->found.result;
	neap_net_get_result(net, &rank->found.result);
	memcpy(rank->found.rate, rank->found.result.rate,
		(size_t)rank->found.result.layers * sizeof(double));
	rank->found.hash = neap_net_grad_hash(net);
	for (int l = 0; l < net->nlayers; l++) /* the statistics of norms */
		for (int c = 0; c < 2 * net->layers[l].norm.channels; c++) {
			uint64_t bits;
			memcpy(&bits, &net->layers[l].norm.found[0][c], sizeof bits);
			rank->found.hash = rank->found.hash * 31 + bits;
		}
	neap_net_free(net);
	return NULL;
}

static void same(const struct found *a, const struct found *b)
{
	assert_true(a->hash == b->hash);
	assert_memory_equal(&a->result.loss, &b->result.loss, sizeof(double));
	assert_memory_equal(&a->result.penalty, &b->result.penalty, sizeof(double));
	assert_memory_equal(&a->result.spikes, &b->result.spikes, sizeof(double));
	assert_memory_equal(&a->result.support, &b->result.support, sizeof(double));
	assert_memory_equal(a->rate, b->rate, sizeof a->rate);
	assert_int_equal(a->result.correct, b->result.correct);
	assert_int_equal(a->result.judged, b->result.judged);
	assert_int_equal(a->result.right, b->result.right);
}

/* Compares `count` ranks with one alone. */
static void compare(const struct neap_net_options *options, int samples, int count, size_t numbers)
{
	const int64_t lengths[SAMPLES] = {50, 0, 64, 1, 29, 50, 3, 90, 0, 50, 77, 20, 10, 64, 65, 9,
		31, 2, 48, 50, 50, 12, 5};
	struct thread_peers_shared shared;
	struct thread_peers peers[THREAD_PEERS_MOST];
	struct rank rank[THREAD_PEERS_MOST] = {0};
	struct batch_room room;
	struct rank alone = {.options = *options};

	batch_make(&room, 7, samples, options->inputs, 0, options->classes, 0.03, lengths);
	alone.batch = &room.batch;
	run_rank(&alone);
	thread_peers_make(peers, &shared, count);
	for (int r = 0; r < count; r++) {
		rank[r] = (struct rank){.options = *options,
			.batch = &room.batch,
			.peers = &peers[r],
			.numbers = numbers};
		assert_int_equal(pthread_create(&rank[r].thread, NULL, run_rank, &rank[r]), 0);
	}
	for (int r = 0; r < count; r++) {
		pthread_join(rank[r].thread, NULL);
		same(&rank[r].found, &alone.found);
		assert_int_equal(peers[r].calls, peers[0].calls);
	}
	thread_peers_free(&shared);
	batch_free(&room);
}

static void test_cells(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
		for (int precision = 0; precision < 2; precision++)
			for (int count = 1; count <= 7; count += count < 4 ? 1 : 3) {
				struct neap_net_options o = net_options(specs[i]);
				o.group = 3;
				o.precision = precision ? NEAP_DOUBLE : NEAP_FLOAT;
				compare(&o, SAMPLES, count, 0);
			}
}

static void test_shares(void **state)
{
	(void)state;
	for (int samples = 1; samples <= SAMPLES; samples += 2)
		for (int group = 0; group <= 4; group += 2)
			for (int count = 2; count <= 11; count += 3) {
				struct neap_net_options o = net_options("lif:9r,li");
				o.group = group;
				compare(&o, samples, count, 0);
			}
}

static void test_rounds(void **state)
{
	(void)state;
	for (size_t numbers = 1; numbers < 3000; numbers = numbers * 3 + 1)
		for (int count = 2; count <= 5; count++) {
			struct neap_net_options o = net_options("lif:24r,li");
			o.group = 2;
			compare(&o, SAMPLES, count, numbers);
		}
}

static void test_refused(void **state)
{
	struct thread_peers_shared shared;
	struct thread_peers peers[2];
	struct neap_net_options o = net_options("lif:9r,li");
	struct neap_net *net = net_make(&o);
	struct batch_room room;

	(void)state;
	thread_peers_make(peers, &shared, 2);
	struct neap_objective goal = objective(&peers[0].peers);
	batch_make(&room, 7, 8, o.inputs, 10, o.classes, 0.03, NULL);
	assert_int_equal(neap_net_begin(net, &room.batch, &goal), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "must specify its whole size"));
	room.batch.size = 0; /* a rank without samples of a batch of none */
	assert_int_equal(neap_net_begin(net, &room.batch, &goal), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "must specify its whole size"));
	room.batch.of = 16;
	room.batch.size = 7;
	assert_int_equal(neap_net_begin(net, &room.batch, &goal), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "rank 0 of 2 has 8 samples of a batch of 16, not 7"));
	room.batch.size = 8;
	peers[0].peers.rank = 2;
	assert_int_equal(neap_net_begin(net, &room.batch, &goal), NEAP_EUSAGE);
	thread_peers_free(&shared);
	neap_net_free(net);
	batch_free(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
