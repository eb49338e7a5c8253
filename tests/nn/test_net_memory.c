/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_net_memory.c: a net whose arrays lie in a memory of the test's. Every block lies between
 * pages that cannot be touched, is full of a pattern at first, and unmapped once it is returned.
 * Gradients have the bits that they have on the heap; a call that fails, whichever it is, leaves no
 * block and no batch behind; and the net reports the bytes that it holds.
 */
#include "nn/nets.h"
#include "nn/net.h"
#include "nn/batch/batch_groups.h"
#include "nn/core/net_state.h"

#include <errno.h>
#include <neap/peers.h>
#include <sys/mman.h>

enum { PAGE = 4096, BLOCKS = 4096, PATTERN = 0xA5 };

struct guarded_memory {
	struct neap__net_memory table;
	long calls, fails; /* of get; the call that fails, from 1; 0: none */
	int blocks;
	size_t held;
	struct {
		unsigned char *at;
		size_t bytes;
	} block[BLOCKS];
};

static size_t pages_of(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void *guarded_get(void *user, size_t bytes)
{
	struct guarded_memory *m = user;
	size_t pages = pages_of(bytes);

	assert_true(bytes > 0 && bytes % NEAP__BLOCK_ALIGN == 0);
	if (++m->calls == m->fails)
		return NULL;
	unsigned char *map = mmap(NULL, pages + 2 * PAGE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(map != MAP_FAILED && m->blocks < BLOCKS);
	assert_int_equal(mprotect(map + PAGE, pages, PROT_READ | PROT_WRITE), 0);
	memset(map + PAGE, PATTERN, pages);
	m->block[m->blocks].at = map + PAGE + pages - bytes;
	m->block[m->blocks].bytes = bytes;
	m->held += bytes;
	return m->block[m->blocks++].at;
}

static void guarded_put(void *user, void *at, size_t bytes)
{
	struct guarded_memory *m = user;
	size_t pages = pages_of(bytes);
	int i = 0;

	while (i < m->blocks && m->block[i].at != at)
		i++;
	assert_true(i < m->blocks);
	assert_int_equal(m->block[i].bytes, bytes);
	unsigned char *first = m->block[i].at + bytes - pages;
	for (size_t k = 0; k < pages - bytes; k++) /* nothing before the block was written */
		assert_int_equal(first[k], PATTERN);
	munmap(first - PAGE, pages + 2 * PAGE);
	m->block[i] = m->block[--m->blocks];
	m->held -= bytes;
}

static void guarded_make(struct guarded_memory *m)
{
	*m = (struct guarded_memory){.table = {guarded_get, guarded_put, m}};
}

/* Peers of one rank alone. */
static int alone_all(void *user, const void *own, size_t bytes, void *all)
{
	(void)user;
	memcpy(all, own, bytes);
	return 0;
}

static int alone_exchange(
	void *user, const void *out, const size_t *to, void *in, const size_t *from)
{
	(void)user;
	memcpy(in, out, to[0]);
	return to[0] == from[0] ? 0 : -EIO;
}

static int alone_gather(void *user, void *at, const size_t *bytes)
{
	(void)user;
	(void)at;
	(void)bytes;
	return 0;
}

static const struct neap_peers alone = {.size = sizeof alone,
	.count = 1,
	.all = alone_all,
	.exchange = alone_exchange,
	.gather = alone_gather};

/* Nets of every kind of array: logs, strips, compressed rows, dropout, learned decays, outputs. */
static const struct kind {
	const char *spec;
	int values, with_peers;
} kinds[] = {{"lif:32r,li", 0, 0}, {"lif:16:density=0.4,lif:9r:dropout=0.3,li", 0, 0},
	{"alif:13:learn=tau,li", 0, 0}, {"lif:16r,li", 0, 1}, {"gru:16,li", 0, 1},
	{"lstm:8,rnn:16:dropout=0.2,li", 1, 0}, {"lif:12r,li", 1, 0}, {"egru:7,li", 0, 0},
	{"lif:conv=1x2:channels=4:pool=1x2:pooling=max:shape=2x4x4,li:pool=2x1", 0, 0},
	{"lif:conv=3:channels=4:shape=2x4x4:dropout=0.3,alif:6r:pool=2:pooling=avg,li", 0, 1},
	{"lif:16r:from=input+layer1,lif:9:from=input+layer0:dropout=0.3,li:from=layer0+layer1", 0,
		0},
	{"integrator:13:learn=tau,lif:6:from=input+layer0:density=0.4,li:from=input+layer1", 1, 1},
	{"lif:9r,alif:6:delay=0..20:learn,li:delay=7", 0, 0}};
enum { KINDS = sizeof kinds / sizeof kinds[0], SIZES = 4, FIRST = 5, STEPS = 70, MOST = 70 };
/* Cut as the first, less of them, cut otherwise, and cut otherwise once more. */
static const int sizes[SIZES] = {FIRST, 3, MOST, 11};

/* The batches of a net of some kind, of each of the sizes. */
struct series {
	struct neap_net_options options;
	struct neap_objective goal;
	struct batch_room room[SIZES];
};

static void series_make(struct series *s, const struct kind *kind, int precision)
{
	s->options = net_options(kind->spec);
	s->options.inputs = 32;
	s->options.threads = 2;
	s->options.values = kind->values;
	s->options.precision = precision ? NEAP_DOUBLE : NEAP_FLOAT;
	s->goal = (struct neap_objective){.size = sizeof(struct neap_objective),
		.loss = neap_loss_at(0),
		.dropout = 3,
		.peers = kind->with_peers ? &alone : NULL,
		.rates = {.upper = 0.01, .upper_weight = 1}};
	for (int i = 0; i < SIZES; i++) {
		struct batch_room *room = &s->room[i];
		batch_make(room, (uint64_t)i, sizes[i], s->options.inputs, i == 2 ? 8 : STEPS,
			s->options.classes, 0.002 * (1 + 20 * (i == 3)), NULL);
		if (kind->values)
			batch_numbers(room, (uint64_t)i, 1, NEAP_TARGET_LABEL, s->options.classes);
		room->batch.of = kind->with_peers ? sizes[i] : 0;
	}
}

static void series_free(struct series *s)
{
	for (int i = 0; i < SIZES; i++)
		batch_free(&s->room[i]);
}

static void assert_reported(const struct neap_net *net, const struct guarded_memory *m)
{
	struct neap_net_sizes z = {.size = sizeof z};

	assert_int_equal(neap_net_get_sizes(net, &z), 0);
	assert_int_equal(z.weights + z.grads + z.workspace, m->held);
	assert_true(z.workspace < m->held);
}

/* The hash of the gradients of a series; every begin is as expected of the memory. */
static uint64_t run(struct neap_net *net, const struct series *s, const struct guarded_memory *m)
{
	uint64_t hash = 0;

	for (int i = 0; i < SIZES; i++) {
		const size_t held = m ? m->held : 0;
		const uint64_t most = neap__net_growth(net, &sizes[i], 1, 1);
		sweep_plain(net, &s->room[i].batch, &s->goal);
		hash = hash * 31 + neap_net_grad_hash(net);
		if (!m)
			continue;
		assert_reported(net, m);
		if (!s->goal.peers) /* their room is made before (train/memory_total.c) */
			assert_true(m->held <= held + most);
		/* Numbers have a row for every input from the start: growth is exact. */
		if (!s->goal.peers && s->options.values && m->held > held)
			assert_int_equal(m->held - held, most);
	}
	return hash;
}

static void test_bits(void **unused)
{
	static struct guarded_memory m;
	(void)unused;
	for (int i = 0; i < KINDS; i++)
		for (int precision = 0; precision < 2; precision++) {
			struct series s;
			struct neap_net *net, *heap;
			series_make(&s, &kinds[i], precision);
			guarded_make(&m);
			assert_int_equal(neap__net_create_in(&net, &s.options, &m.table), 0);
			assert_reported(net, &m);
			heap = net_make(&s.options);
			assert_true(run(net, &s, &m) == run(heap, &s, NULL));
			const long calls = m.calls;
			run(net, &s, &m);
			/* All batches fit now; inputs that are spikes may be others in a group. */
			if (s.options.values)
				assert_int_equal(m.calls, calls);
			neap_net_free(net);
			neap_net_free(heap);
			assert_int_equal(m.blocks, 0);
			assert_int_equal(m.held, 0);
			series_free(&s);
		}
}

/* Groups of a batch that is cut otherwise replace those there were: nothing of these stays. */
static void test_other_batch(void **unused)
{
	static struct guarded_memory once, twice;
	(void)unused;
	for (int i = 0; i < KINDS; i++) {
		struct series s;
		struct neap_net *a, *b;
		series_make(&s, &kinds[i], 0);
		guarded_make(&once);
		guarded_make(&twice);
		assert_int_equal(neap__net_create_in(&a, &s.options, &once.table), 0);
		assert_int_equal(neap__net_create_in(&b, &s.options, &twice.table), 0);
		assert_int_equal(neap_net_begin(a, &s.room[2].batch, &s.goal), 0);
		assert_int_equal(neap_net_begin(b, &s.room[0].batch, &s.goal), 0);
		assert_true(twice.held < once.held);
		assert_int_equal(neap_net_begin(b, &s.room[2].batch, &s.goal), 0);
		assert_int_equal(twice.held, once.held);
		assert_int_equal(twice.blocks, once.blocks);
		neap_net_free(a);
		neap_net_free(b);
		series_free(&s);
	}
}

/* After a begin that failed: no batch, no result of one, and a count that is right. */
static void assert_nothing_begun(struct neap_net *net, const struct guarded_memory *m)
{
	struct neap_net_result result = {.size = sizeof result};
	static const int one = MOST;

	assert_reported(net, m);
	neap__net_growth(net, &one, 1, 1);
	assert_null(net->batch);
	assert_int_equal(neap_net_get_result(net, &result), 0);
	assert_null(result.prediction);
	assert_null(result.answer);
	assert_int_equal(neap_net_end(net), 0);
}

/* Lets the n-th call of a series fail. Returns 0 where there are fewer. */
static int fail_at(const struct series *s, long n, uint64_t hash)
{
	static struct guarded_memory m;
	struct neap_net *net;
	int failed = 0;

	guarded_make(&m);
	m.fails = n;
	int rc = neap__net_create_in(&net, &s->options, &m.table);
	if (rc < 0) {
		assert_int_equal(rc, -ENOMEM);
		assert_null(net);
		assert_int_equal(m.blocks, 0);
		assert_int_equal(m.held, 0);
		return 1;
	}
	for (int i = 0; i < SIZES; i++) {
		rc = neap_net_begin(net, &s->room[i].batch, &s->goal);
		assert_true(rc == 0 || rc == -ENOMEM);
		assert_int_equal(rc < 0, m.calls >= n && !failed);
		failed |= rc < 0;
		if (rc < 0)
			assert_nothing_begun(net, &m);
		else
			net->batch = NULL; /* its sums have nothing to add up */
	}
	if (failed)
		assert_true(run(net, s, NULL) == hash);
	neap_net_free(net);
	assert_int_equal(m.blocks, 0);
	assert_int_equal(m.held, 0);
	return failed;
}

static void test_every_call_fails(void **unused)
{
	(void)unused;
	for (int i = 0; i < KINDS; i++) {
		struct series s;
		long n = 1;
		series_make(&s, &kinds[i], 0);
		struct neap_net *net = net_make(&s.options);
		uint64_t hash = run(net, &s, NULL);
		neap_net_free(net);
		while (fail_at(&s, n, hash))
			n++;
		assert_true(n > 40);
		series_free(&s);
	}
}

static void test_sizes(void **unused)
{
	static struct guarded_memory m;
	struct neap_net_options o = net_options("lif:4,li");
	struct neap_net *net;

	(void)unused;
	guarded_make(&m);
	assert_int_equal(neap__net_create_in(&net, &o, &m.table), 0);
	const long calls = m.calls;
	/* What overflows never comes to the memory. */
	assert_null(neap__net_get(net, UINT64_MAX / 2, 3));
	assert_null(neap__net_get(net, UINT64_MAX, 1));
	assert_null(neap__net_get_zeroed(net, (uint64_t)PTRDIFF_MAX, 1));
	assert_int_equal(m.calls, calls);
	/* An array of no elements is a block of its own; zeroed blocks are zero to their end. */
	unsigned char *none = neap__net_get(net, 0, 8), *more = neap__net_get_zeroed(net, 65, 1);
	assert_non_null(none);
	assert_non_null(more);
	for (int i = 0; i < 2 * NEAP__BLOCK_ALIGN; i++)
		assert_int_equal(more[i], 0);
	assert_int_equal(m.held, net->blocks.bytes);
	neap__net_put(net, NULL);
	neap__net_put(net, none);
	neap__net_put(net, more);
	assert_int_equal(m.calls, calls + 2);
	assert_int_equal(m.held, net->blocks.bytes);
	neap_net_free(net);
	assert_int_equal(m.blocks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_other_batch),
		cmocka_unit_test(test_every_call_fails),
		cmocka_unit_test(test_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
