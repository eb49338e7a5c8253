/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay writes the tapes and leaves the state that record would, byte for byte: nets
 * of every reset and readout, recurrent, deep, with delays, of odd sizes, in either
 * precision, samples of all lengths, ranges cut anywhere, whatever room there is; and
 * advance_log moves as advance.
 */
#include "nn/nets.h"

#include "nn/allocations.h"

static const struct variant {
	const char *spec;
	enum neap_precision precision;
	enum neap_readout readout;
	int dense, delay, inputs, group, threads;
	double rate;
} variants[] = {
	{"lif:70r,li", NEAP_FLOAT, NEAP_READ_MEAN, 0, 0, 19, 3, 1, 0.1},
	{"lif:70r,li", NEAP_DOUBLE, NEAP_READ_SUM, 0, 0, 19, 3, 2, 0.1},
	{"lif:1r,li", NEAP_FLOAT, NEAP_READ_MEAN, 0, 0, 1, 8, 1, 0.5},
	{"lif:33,li", NEAP_FLOAT, NEAP_READ_LAST, 0, 0, 40, 11, 1, 0.1},
	{"lif:32r:reset=zero,lif:33:reset=hard,li", NEAP_FLOAT, NEAP_READ_MAX, 0, 0, 19, 3, 2, 0.1},
	{"lif:70:reset=hard,lif:31r:reset=zero,li", NEAP_DOUBLE, NEAP_READ_STEP, 0, 1, 19, 2, 1,
		0.1},
	{"lif:65r:reset=soft,lif:33r,lif:20,li", NEAP_FLOAT, NEAP_READ_SOFTMAX, 0, 1, 19, 4, 2,
		0.2},
	{"lif:70r:reset=zero:detach=1,li", NEAP_FLOAT, NEAP_READ_LAST, 0, 0, 19, 3, 1, 0.1},
	{"lif:70r:reset=zero,lif:9r,li", NEAP_FLOAT, NEAP_READ_MEAN, 1, 0, 19, 3, 1, 0.1},
	{"lif:70r,lif:33r:dropout=0.4,li", NEAP_FLOAT, NEAP_READ_SUM, 0, 0, 19, 3, 2, 0.1},
	{"lif:257r,lif:100:reset=subtract,li", NEAP_FLOAT, NEAP_READ_MEAN, 0, 0, 64, 8, 2, 0.05},
	{"lif:70r:width=1.5,li", NEAP_FLOAT, NEAP_READ_MEAN, 0, 0, 19, 3, 2, 0.1},
	{"lif:70r:width=4,lif:40r:width=2,li", NEAP_DOUBLE, NEAP_READ_MEAN, 0, 0, 19, 3, 1, 0.1},
	{"lif:70r:reset=hard:threshold=-0.1:reset_value=-1,lif:33:reset=hard:threshold=0,li",
		NEAP_FLOAT, NEAP_READ_MEAN, 0, 0, 19, 3, 1, 0.1},
	{"lif:33000,lif:9r,li", NEAP_FLOAT, NEAP_READ_MEAN, 0, 0, 3, 2, 2, 0.05},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static const int64_t lengths[] = {200, 131, 64, 65, 1, 0, 199, 180, 128, 190, 77};

static struct neap_net *variant_net(const struct variant *v)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	o.spec = v->spec;
	o.precision = v->precision;
	o.readout = v->readout;
	o.dense = v->dense;
	o.delay = v->delay;
	o.inputs = v->inputs;
	o.classes = 5;
	o.scale = 3;
	o.group = v->group;
	o.threads = v->threads;
	o.seed = 4;
	return net_make(&o);
}

struct rooms {
	struct neap_net_sizes sizes;
	size_t room, log_room;
	void *state, *other, *start, *tape, *again, *log, *adjoint;
};

static struct rooms rooms_for(struct neap_net *net, int64_t steps)
{
	struct rooms r = {.room = 0};
	r.sizes.size = sizeof r.sizes;
	neap_net_get_sizes(net, &r.sizes);
	r.room = r.sizes.tape_max * (size_t)(steps + 1);
	r.log_room = r.sizes.log_max * (size_t)(steps + 1);
	r.state = room_for(r.sizes.state);
	r.other = room_for(r.sizes.state);
	r.start = room_for(r.sizes.state);
	r.adjoint = room_for(r.sizes.adjoint);
	r.tape = room_for(r.room);
	r.again = room_for(r.room);
	r.log = room_for(r.log_room);
	return r;
}

static void rooms_free(struct rooms *r)
{
	free(r->state);
	free(r->other);
	free(r->start);
	free(r->adjoint);
	free(r->tape);
	free(r->again);
	free(r->log);
}

static int64_t random_to(uint64_t n, uint64_t most)
{
	return (int64_t)neap__random_below(9, NEAP__STREAM_TEST, 2, n, most);
}

/* Logs [t0, t1); then record and replay parts of it, in equal room, to the same bytes. */
static void check_range(struct neap_net *net, struct rooms *r, int64_t t0, int64_t t1, uint64_t n)
{
	size_t used, used_again;
	int64_t done, done_again, t = t0;
	memcpy(r->start, r->state, r->sizes.state);
	memcpy(r->other, r->state, r->sizes.state);
	assert_int_equal(
		neap_net_advance_log(net, r->state, t0, t1, 1, r->log, r->log_room, &used, &done),
		0);
	assert_int_equal(done, t1);
	assert_int_equal(neap_net_advance(net, r->other, t0, t1, 0), 0);
	assert_memory_equal(r->state, r->other, r->sizes.state);
	memcpy(r->state, r->start, r->sizes.state);
	memcpy(r->other, r->start, r->sizes.state);
	for (uint64_t k = 0; t < t1; k++) {
		int64_t end = t + 1 + random_to(n * 100 + k, 64);
		size_t room = r->sizes.tape_max * (size_t)(1 + random_to(n * 100 + k + 50, 40));
		end = end < t1 ? end : t1;
		memset(r->tape, 0xA5, r->room);
		memset(r->again, 0xA5, r->room);
		assert_int_equal(
			neap_net_record(net, r->state, t, end, 0, r->tape, room, &used, &done), 0);
		int rc = neap_net_replay(net, r->other, t, end, r->log, t0, r->again, room,
			&used_again, &done_again);
		if (rc < 0)
			fail_msg("%s", neap_detail());
		assert_int_equal(used, used_again);
		assert_int_equal(done, done_again);
		assert_true(done > t && done <= end);
		assert_memory_equal(r->state, r->other, r->sizes.state);
		if (memcmp(r->tape, r->again, used) != 0)
			fail_msg("tapes of %lld to %lld differ", (long long)t, (long long)done);
		t = done;
	}
}

static void same_bytes(void **state)
{
	(void)state;
	for (int v = 0; v < VARIANTS; v++) {
		struct neap_net *net = variant_net(&variants[v]);
		struct neap_objective o = {
			.size = sizeof o, .loss = neap_loss_find("cross-entropy"), .dropout = 1};
		struct neap_net_result result = {.size = sizeof result};
		struct batch_room batch;
		double loss;
		batch_make(&batch, 8, 11, variants[v].inputs, 0, 5, variants[v].rate, lengths);
		assert_int_equal(neap_net_begin(net, &batch.batch, &o), 0);
		struct rooms r = rooms_for(net, 210);
		assert_true(r.sizes.log_max > 0 && r.sizes.log_mean <= r.sizes.log_max);
		memset(r.state, 0, r.sizes.state);
		uint64_t n = 0;
		for (int64_t t = 0, end; t < 200; t = end) {
			end = t + 1 + random_to(1000 + n, 90);
			end = end < 200 ? end : 200;
			check_range(net, &r, t, end, ++n);
		}
		assert_int_equal(neap_net_turn(net, r.state, r.adjoint, &loss), 0);
		neap_net_get_result(net, &result);
		assert_true(result.spikes > 0.001);
		assert_int_equal(neap_net_end(net), 0);
		rooms_free(&r);
		batch_free(&batch);
		neap_net_free(net);
	}
}

/* Little room: logs stop early, at any step, and go on. */
static void short_of_room(void **state)
{
	(void)state;
	struct neap_net *net = variant_net(&variants[4]);
	struct batch_room batch;
	batch_make(&batch, 8, 11, variants[4].inputs, 0, 5, variants[4].rate, lengths);
	assert_int_equal(neap_net_begin(net, &batch.batch, NULL), 0);
	struct rooms r = rooms_for(net, 210);
	size_t used;
	int64_t done, t = 0, calls = 0;
	memset(r.state, 0, r.sizes.state);
	memset(r.other, 0, r.sizes.state);
	assert_int_equal(neap_net_advance_log(
				 net, r.state, 0, 9, 1, r.log, r.sizes.log_max - 1, &used, &done),
		0);
	assert_true(done == 0 && used == 0);
	for (; t < 200; t = done, calls++) {
		size_t room = r.sizes.log_max * (size_t)(1 + random_to((uint64_t)calls, 4)) + 8;
		memcpy(r.start, r.state, r.sizes.state);
		assert_int_equal(
			neap_net_advance_log(net, r.state, t, 200, 1, r.log, room, &used, &done),
			0);
		assert_true(done > t && used <= room);
		assert_true(done == 200 || room - used < r.sizes.log_max);
		int64_t end = done;
		for (int64_t at = t; at < end; at = done)
			assert_int_equal(
				neap_net_replay(net, r.start, at, end - at > 64 ? at + 64 : end,
					r.log, t, r.tape, r.room, &used, &done),
				0);
		assert_memory_equal(r.start, r.state, r.sizes.state);
		done = end;
	}
	assert_true(calls > 2);
	assert_int_equal(neap_net_end(net), 0);
	rooms_free(&r);
	batch_free(&batch);
	neap_net_free(net);
}

/* Nets that have no log, logs of other steps; and nothing is allocated. */
static void refusals(void **state)
{
	(void)state;
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct batch_room batch;
	size_t used;
	int64_t done;
	char x[64];
	o.spec = "lif:30r:density=0.5,li";
	o.inputs = 19;
	o.classes = 5;
	struct neap_net *net = net_make(&o);
	batch_make(&batch, 8, 3, 19, 20, 5, 0.1, NULL);
	assert_int_equal(neap_net_begin(net, &batch.batch, NULL), 0);
	neap_net_get_sizes(net, &sizes);
	assert_int_equal(sizes.log_max, 0);
	assert_int_equal(neap_net_advance_log(net, x, 0, 1, 1, x, 64, &used, &done), NEAP_EUSAGE);
	assert_int_equal(neap_net_end(net), 0);
	neap_net_free(net);
	net = variant_net(&variants[0]);
	assert_int_equal(neap_net_begin(net, &batch.batch, NULL), 0);
	struct rooms r = rooms_for(net, 30);
	memset(r.state, 0, r.sizes.state);
	assert_int_equal(
		neap_net_advance_log(net, r.state, 0, 10, 1, r.log, r.log_room, &used, &done), 0);
	assert_int_equal(
		neap_net_replay(net, r.state, 5, 12, r.log, 0, r.tape, r.room, &used, &done),
		NEAP_EMODEL);
	assert_int_equal(
		neap_net_replay(net, r.state, 5, 9, r.log, 1, r.tape, r.room, &used, &done),
		NEAP_EMODEL);
	long before = allocations();
	memset(r.state, 0, r.sizes.state);
	assert_int_equal(
		neap_net_advance_log(net, r.state, 0, 10, 0, r.log, r.log_room, &used, &done), 0);
	memset(r.state, 0, r.sizes.state);
	assert_int_equal(
		neap_net_replay(net, r.state, 0, 10, r.log, 0, r.tape, r.room, &used, &done), 0);
	assert_int_equal(allocations(), before);
	assert_int_equal(neap_net_end(net), 0);
	rooms_free(&r);
	batch_free(&batch);
	neap_net_free(net);
}

/*
 * Bytes of tapes and logs by activity: at most 1.05 times 2 a spike and 6 a unit inside the
 * support, and 2 a spike; and two threads, which also move them together, write what one does.
 */
static void sizes(void **state)
{
	enum { STEPS = 64, SAMPLES = 64, UNITS = 512 };
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	struct batch_room batch;
	struct rooms r[2];
	size_t tape[2], log[2];
	int64_t done;
	(void)state;
	o.spec = "lif:512r:scale=2:recurrent_scale=0.5:width=0.4,li";
	o.inputs = 100;
	o.classes = 5;
	batch_make(&batch, 8, SAMPLES, o.inputs, STEPS, 5, 0.02, NULL);
	for (int i = 0; i < 2; i++) {
		struct neap_objective objective = {
			.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};
		struct neap_net_result result = {.size = sizeof result};
		double loss, cells = STEPS * SAMPLES * UNITS;
		o.threads = i + 1;
		struct neap_net *net = net_make(&o);
		assert_int_equal(neap_net_begin(net, &batch.batch, &objective), 0);
		r[i] = rooms_for(net, STEPS);
		memset(r[i].state, 0, r[i].sizes.state);
		assert_int_equal(neap_net_advance_log(net, r[i].state, 0, STEPS, 0, r[i].log,
					 r[i].log_room, &log[i], &done),
			0);
		assert_int_equal(done, STEPS);
		memset(r[i].state, 0, r[i].sizes.state);
		assert_int_equal(neap_net_record(net, r[i].state, 0, STEPS, 1, r[i].tape, r[i].room,
					 &tape[i], &done),
			0);
		assert_int_equal(done, STEPS);
		assert_int_equal(neap_net_turn(net, r[i].state, r[i].adjoint, &loss), 0);
		neap_net_get_result(net, &result);
		double a = result.spikes, p = result.support;
		double tapes = (double)tape[i] / cells / (2 * a + 6 * p);
		double logs = (double)log[i] / cells / (2 * a);
		fprintf(stderr, "# %.3g%% spikes, %.3g%% inside: tape %.3f, log %.3f\n", 100 * a,
			100 * p, tapes, logs);
		assert_true(a > 0.01 && a < 0.04 && p > 0.05 && p < 0.2);
		assert_true(tapes <= 1.05 && logs <= 1.05);
		assert_int_equal(neap_net_end(net), 0);
		neap_net_free(net);
	}
	assert_true(tape[0] == tape[1] && tape[0] > 1 << 20 && log[0] == log[1]);
	assert_memory_equal(r[0].tape, r[1].tape, tape[0]);
	assert_memory_equal(r[0].log, r[1].log, log[0]);
	rooms_free(&r[0]);
	rooms_free(&r[1]);
	batch_free(&batch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_bytes),
		cmocka_unit_test(short_of_room),
		cmocka_unit_test(refusals),
		cmocka_unit_test(sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
