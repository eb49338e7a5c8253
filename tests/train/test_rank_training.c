/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rank_training.c: whole trainings as ranks, each a thread: the model of one alone, byte for
 * byte; runs that go on with other ranks, of which rank 0 alone sees the folder; and ranks that
 * fail together, alone, or hold other weights.
 */
#include "runs.h"
#include "thread_peers.h"

enum { MOST = 5 };

/* One rank of a run. */
struct trained {
	struct neap_train_options options;
	struct neap_train_result result;
	struct thread_peers *peers;
	int rc;
	char detail[512];
	char elsewhere[128]; /* the folder of a rank that sees none */
	long batches;	     /* so far */
	long stop_after;     /* batches after which this rank asks for the end; 0: never */
	pthread_t thread;
};

static int on_progress(void *user, const struct neap_train_progress *p)
{
	struct trained *rank = user;
	(void)p;
	return rank->stop_after > 0 && ++rank->batches >= rank->stop_after;
}

static void *train_rank(void *arg)
{
	struct trained *rank = arg;
	rank->result.size = sizeof rank->result;
	rank->rc = neap_train(&rank->result, &rank->options);
	snprintf(rank->detail, sizeof rank->detail, "%s", rank->rc < 0 ? neap_detail() : "");
	return NULL;
}

/* Prepares `count` ranks of a run; ranks beyond the first name another folder. */
static void make(struct trained *rank, struct thread_peers *peers,
	struct thread_peers_shared *shared, int count, const struct neap_train_options *o)
{
	thread_peers_make(peers, shared, count);
	for (int r = 0; r < count; r++) {
		rank[r] = (struct trained){.options = *o, .peers = &peers[r]};
		rank[r].options.peers = &peers[r].peers;
		rank[r].options.progress = on_progress;
		rank[r].options.user = &rank[r];
		snprintf(rank[r].elsewhere, sizeof rank[r].elsewhere, "%s/unseen%d", folder, r);
		if (r > 0)
			rank[r].options.out = rank[r].elsewhere;
	}
}

static void run(struct trained *rank, int count)
{
	for (int r = 0; r < count; r++)
		assert_int_equal(pthread_create(&rank[r].thread, NULL, train_rank, &rank[r]), 0);
	for (int r = 0; r < count; r++)
		pthread_join(rank[r].thread, NULL);
	for (int r = 0; r < count; r++) {
		neap_train_result_free(&rank[r].result);
		assert_int_not_equal(access(rank[r].elsewhere, F_OK), 0);
	}
	thread_peers_free(rank->peers->shared);
}

static struct neap_train_options options(const char *name, const char *spec)
{
	struct neap_train_options o = small_run(name);
	o.net.spec = spec;
	o.net.threads = 1;
	o.net.group = 5;
	o.batch = 32;
	o.max_steps = 40;
	return o;
}

static void ranks_train_as_one(void **state)
{
	static const char *const specs[] = {"lif:24r:dropout=0.2,li", "gru:9,li"};
	struct trained rank[MOST];
	struct thread_peers peers[MOST];
	struct thread_peers_shared shared;

	(void)state;
	for (int s = 0; s < 2; s++)
		for (int count = 1; count <= MOST; count += count == 1 ? 2 : 1) {
			char name[32], alone[64], many[64];
			snprintf(name, sizeof name, "alone%d", s);
			snprintf(alone, sizeof alone, "%s/model.safetensors", name);
			struct neap_train_options o = options(name, specs[s]);
			o.test = SMALL_TEST;
			if (count == 1) {
				train_hash(&o);
				continue;
			}
			snprintf(name, sizeof name, "ranks%d_%d", s, count);
			snprintf(many, sizeof many, "%s/model.safetensors", name);
			o.out = in_folder(name);
			make(rank, peers, &shared, count, &o);
			run(rank, count);
			for (int r = 0; r < count; r++) {
				if (rank[r].rc)
					fail_msg("rank %d: %s", r, rank[r].detail);
				assert_true(
					rank[r].result.weights_hash == rank[0].result.weights_hash);
			}
			same_files(alone, many);
		}
}

/* An interrupt of one rank ends all; the run goes on with two, and then with one. */
static void other_ranks_go_on(void **state)
{
	struct trained rank[MOST];
	struct thread_peers peers[MOST];
	struct thread_peers_shared shared;
	struct neap_train_options o = options("whole", "lif:24r,li");

	(void)state;
	uint64_t hash = train_hash(&o);
	o.out = in_folder("parts");
	o.resume = 1;
	for (int count = 3; count >= 2; count--) {
		make(rank, peers, &shared, count, &o);
		rank[count - 1].stop_after = 4;
		run(rank, count);
		for (int r = 0; r < count; r++) {
			assert_int_equal(rank[r].rc, NEAP_EINTERRUPTED);
			assert_int_equal(peers[r].left, 0);
		}
	}
	assert_true(train_hash(&o) == hash);
	same_files("whole/model.safetensors", "parts/model.safetensors");
}

/* What all fail with is one line; a rank that differs is named. */
static void ranks_that_differ_are_named(void **state)
{
	struct trained rank[MOST];
	struct thread_peers peers[MOST];
	struct thread_peers_shared shared;
	struct neap_train_options o = options("differ", "lif:24r,li");

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		static const char *const says[] = {"unknown optimizer 'best'",
			"learning_rate = 0.004, not 0.5", "has other samples than on rank 0",
			"nowhere.h5"};
		make(rank, peers, &shared, 3, &o);
		for (int r = 0; r < 3; r++)
			if (kind == 0)
				rank[r].options.optimizer = "best";
		if (kind == 1)
			rank[1].options.learning_rate = 0.5;
		if (kind == 2)
			rank[1].options.data = SMALL_TEST;
		if (kind == 3)
			rank[1].options.data = "nowhere.h5";
		run(rank, 3);
		for (int r = 0; r < 3; r++) {
			assert_true(rank[r].rc < 0 && rank[r].rc == rank[0].rc);
			assert_string_equal(rank[r].detail, rank[0].detail);
			assert_non_null(strstr(rank[r].detail, says[kind]));
			assert_int_equal(kind > 0, strncmp(rank[r].detail, "rank 1 (", 8) == 0);
			assert_int_equal(peers[r].left, 0);
		}
		assert_false(exists("differ"));
	}
}

/* Turns a bit of the hash of weights that is compared, on its way. */
static int all_but_one_bit(void *user, const void *own, size_t bytes, void *all)
{
	uint64_t hash;

	if (bytes != sizeof hash)
		return thread_peers_all(user, own, bytes, all);
	memcpy(&hash, own, sizeof hash);
	hash ^= 1;
	return thread_peers_all(user, &hash, bytes, all);
}

static void other_weights_are_noticed(void **state)
{
	struct trained rank[MOST];
	struct thread_peers peers[MOST];
	struct thread_peers_shared shared;
	struct neap_train_options o = options("weights", "lif:24r,li");

	(void)state;
	make(rank, peers, &shared, 3, &o);
	peers[1].peers.all = all_but_one_bit;
	run(rank, 3);
	for (int r = 0; r < 3; r++) {
		assert_int_equal(rank[r].rc, NEAP_ECORRUPT);
		assert_non_null(strstr(rank[r].detail, "rank 1 ("));
		assert_non_null(strstr(rank[r].detail, "differ from those of rank 0"));
	}
	assert_false(exists("weights/last.safetensors"));
}

static int no_exchange(void *user, const void *out, const size_t *to, void *in, const size_t *from)
{
	(void)user, (void)out, (void)to, (void)in, (void)from;
	return -5;
}

/* A rank that fails where the others do not know of it leaves, which ends them. */
static void a_rank_that_fails_alone_leaves(void **state)
{
	struct trained rank[MOST];
	struct thread_peers peers[MOST];
	struct thread_peers_shared shared;
	struct neap_train_options o = options("leaves", "lif:24r,li");

	(void)state;
	make(rank, peers, &shared, 3, &o);
	peers[1].peers.exchange = no_exchange;
	run(rank, 3);
	assert_int_equal(rank[1].rc, -5);
	assert_non_null(strstr(rank[1].detail, "the ranks failed to exchange gradients"));
	assert_int_equal(peers[1].left, -5);
	for (int r = 0; r < 3; r++)
		assert_true(rank[r].rc < 0);
}

/* Calls and bytes of a batch, as they were measured, are those of neap_ranks_predict. */
static void exchanges_are_as_predicted(void **state)
{
	struct trained rank[MOST];
	struct thread_peers peers[MOST];
	struct thread_peers_shared shared;
	struct neap_train_options o = options("exchange", "lif:200r,li");
	struct neap_problem problem = NEAP_PROBLEM_INIT;
	struct neap_plan plan = {.size = sizeof plan};

	(void)state;
	problem.chain.steps = 10;
	problem.chain.state = problem.chain.adjoint = problem.chain.tape = 8;
	problem.memory = 1 << 20;
	assert_int_equal(neap_plan_make(&plan, &problem, "bptt", NULL), 0);
	o.batch = 36;
	o.net.group = 6;
	o.epochs = 2;
	for (int count = 2; count <= 4; count++) {
		char name[32];
		uint64_t most = 0;
		snprintf(name, sizeof name, "exchange%d", count);
		o.out = in_folder(name);
		make(rank, peers, &shared, count, &o);
		run(rank, count);
		struct neap_ranks q = {.size = sizeof q,
			.ranks = count,
			.parameters = 20 * 200 + 200 * 200 + 200 + 200 * 4 + 4,
			.units = 200,
			.batch = o.batch,
			.group = 6,
			.threads = 1};
		struct neap_ranks_cost cost = {.size = sizeof cost};
		assert_int_equal(neap_ranks_predict(&cost, &problem, &plan, &q), 0);
		for (int r = 0; r < count; r++) {
			const struct neap_exchange *e = &rank[r].result.exchange;
			if (rank[r].rc)
				fail_msg("rank %d: %s", r, rank[r].detail);
			assert_int_equal(e->ranks, count);
			assert_int_equal(e->batches, 10);
			/* The agreement after the last batch of an epoch is in none. */
			if (count == 2)
				assert_int_equal(e->calls, 10 * cost.messages - 2);
			assert_int_equal(e->calls, rank[0].result.exchange.calls);
			assert_true(e->seconds > 0 && e->waited >= e->seconds);
			assert_true(e->seconds == rank[0].result.exchange.seconds);
			most = e->sent > most ? e->sent : most;
		}
		double measured = (double)most / 10, predicted = (double)cost.sent;
		if (measured < 0.95 * predicted || measured > 1.05 * predicted)
			fail_msg("%d ranks: %g bytes a batch, predicted %g", count, measured,
				predicted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_train_as_one),
		cmocka_unit_test(other_ranks_go_on),
		cmocka_unit_test(ranks_that_differ_are_named),
		cmocka_unit_test(other_weights_are_noticed),
		cmocka_unit_test(a_rank_that_fails_alone_leaves),
		cmocka_unit_test(exchanges_are_as_predicted),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
