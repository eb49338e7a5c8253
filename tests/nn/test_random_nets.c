/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random networks of all cells and keys: each is refused with one line, or has gradients that agree
 * with differences; whose bits depend neither on the division of the steps into calls nor on the
 * number of threads; that do not depend on the division into groups, on the form of tapes, or on
 * what is frozen; and the bytes that were announced. `test_random_nets COUNT` for other counts.
 */
#include "nn/random_specs.h"
#include "nn/net.h"
#include "nn/batch/batch_groups.h"
#include "nn/batch/live_batch.h"
#include "nn/batch/peer_sum.h"
#include "nn/core/net_memory.h"
#include "ranks/rank_share.h"
#include "thread_peers.h"

#include <neap/ports.h>

enum { STEPS = 130, SAMPLES = 5, USUAL = 120 };
static int64_t count = USUAL, logs;
static const int64_t lengths[SAMPLES] = {STEPS, 71, 64, 0, 65};
static const int64_t short_lengths[SAMPLES] = {13, 9, 4, 0, 11};

/* A memory that counts. */
struct counted {
	struct neap__net_memory table;
	uint64_t held;
};

static void *counted_get(void *user, size_t bytes)
{
	void *at = aligned_alloc(NEAP__BLOCK_ALIGN, bytes);
	((struct counted *)user)->held += bytes;
	memset(at, 0xA5, bytes);
	return at;
}

static void counted_put(void *user, void *at, size_t bytes)
{
	((struct counted *)user)->held -= bytes;
	free(at);
}

/* A case, and what was found in it. */
struct one_case {
	struct random_net net;
	struct neap_objective objective;
	struct batch_room room;
	uint64_t seed;
	int faults;
};

static void fault(struct one_case *c, const char *format, ...)
{
	const struct neap_net_options *o = &c->net.options;
	va_list list;

	if (!c->faults++)
		fprintf(stderr,
			"# %s\n#   inputs %d classes %d double %d readout %d dense %d smooth %d "
			"delay %d values %d target %d euler %d learn %d freeze %s density %g "
			"products %d\n",
			c->net.spec, o->inputs, o->classes, o->precision == NEAP_DOUBLE, o->readout,
			o->dense, o->smooth, o->delay, o->values, c->net.target, o->euler, o->learn,
			o->freeze ? o->freeze : "-", o->density, o->products);
	fprintf(stderr, "#   NEAP_SEED=%llu: ", (unsigned long long)c->seed);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, "\n");
}

static void open_batch(struct one_case *c, const int64_t *of, uint64_t seed)
{
	const struct neap_net_options *o = &c->net.options;

	batch_make(&c->room, seed, SAMPLES, o->inputs, 0, o->classes, 0.3, of);
	batch_numbers(&c->room, seed + 1, o->values, c->net.target, o->classes);
}

static void open_case(struct one_case *c, uint64_t seed, int units)
{
	*c = (struct one_case){.seed = seed};
	random_net(&c->net, seed, units);
	int numbers = c->net.target == NEAP_TARGET_NUMBERS || c->net.target == NEAP_TARGET_SERIES;
	c->objective = (struct neap_objective){.size = sizeof c->objective,
		.loss = neap_loss_find(numbers ? "mse" : "cross-entropy"),
		.rates = {.l2 = 0.3},
		.dropout = (uint32_t)(seed % 3)};
}

/* A net; NULL: refused, with one line. */
static struct neap_net *open_net(struct one_case *c, const struct neap__net_memory *memory)
{
	struct neap_net *net = NULL;
	int rc = neap__net_create_in(&net, &c->net.options, memory);

	if (rc == 0)
		return net;
	if (rc != NEAP_EUSAGE || !*neap_detail() || strchr(neap_detail(), '\n'))
		fault(c, "refused with %d: '%s'", rc, neap_detail());
	if (getenv("NEAP_SHOW"))
		fprintf(stderr, "# refused: %s\n", neap_detail());
	return NULL;
}

/* A hash of all gradients, and of the statistics of norms. */
static uint64_t bits_of(const struct neap_net *net)
{
	uint64_t hash = neap_net_grad_hash(net);

	for (int l = 0; l < net->nlayers; l++)
		for (int c = 0; c < 2 * net->layers[l].norm.channels; c++) {
			uint64_t bits;
			memcpy(&bits, &net->layers[l].norm.found[0][c], sizeof bits);
			hash = hash * 31 + bits;
		}
	return hash;
}

/*
 * Bits of a sweep: the state at cuts, then tapes from there in random room. In three parts, the
 * readout is computed in the first pass only (neap_objective.readout_once), and states come from
 * two cuts before.
 */
static uint64_t sweep_cut(struct one_case *c, struct neap_net *net, int parts, double *loss)
{
	int once = parts == 3;
	struct draws draw = {c->seed + (uint64_t)parts, 0};
	struct neap_net_sizes z = {.size = sizeof z};
	int64_t cut[STEPS + 1] = {0}, steps = c->room.batch.steps, from[STEPS + 1], done;
	size_t used;

	c->objective.readout_once = once;
	int rc = neap_net_begin(net, &c->room.batch, &c->objective);
	c->objective.readout_once = 0;
	if (rc) {
		fault(c, "begin: %s", neap_detail());
		return 0;
	}
	neap_net_get_sizes(net, &z);
	for (int i = 1; i <= parts; i++) {
		int64_t end = cut[i - 1] + 1 + below(&draw, (int)(2 * steps / parts));
		cut[i] = i == parts || end > steps ? steps : end;
	}
	size_t most = z.tape_max * 9;
	unsigned char *states = room_for(z.state * (size_t)(parts + 1)), *live = room_for(z.state);
	unsigned char *adjoint = room_for(z.adjoint), *tape[STEPS + 1] = {0};
	memset(states, 0, z.state);
	for (int i = 0; i < parts; i++) {
		unsigned char *next = states + (size_t)(i + 1) * z.state;
		memcpy(next, next - z.state, z.state);
		neap_net_advance(net, next, cut[i], cut[i + 1], 1);
	}
	memcpy(live, states + (size_t)parts * z.state, z.state);
	if (neap_net_turn(net, live, adjoint, loss))
		fault(c, "turn: %s", neap_detail());
	for (int i = parts - 1; i >= 0; i--) {
		int n = 0;
		int from_before = once && i > 0;
		memcpy(live, states + (size_t)(i - from_before) * z.state, z.state);
		if (from_before)
			neap_net_advance(net, live, cut[i - 1], cut[i], 0);
		for (int64_t t = cut[i]; t < cut[i + 1]; t = done, n++) {
			size_t room = z.tape_max * (size_t)(1 + below(&draw, 8));
			if (!tape[n])
				tape[n] = room_for(most + 64);
			memset(tape[n] + room, 0x5A, 64);
			rc = neap_net_record(
				net, live, t, cut[i + 1], 0, tape[n], room, &used, &done);
			int touched = 0;
			for (int k = 0; k < 64; k++)
				touched |= tape[n][room + (size_t)k] != 0x5A;
			if (rc || done <= t || used > room || touched)
				fault(c, "record %d: %d, done %d, used %zu of %zu, beyond %d",
					(int)t, rc, (int)done, used, room, touched);
			if (rc || done <= t)
				goto end;
			from[n] = t;
		}
		from[n] = cut[i + 1];
		if (!once && memcmp(live, states + (size_t)(i + 1) * z.state, z.state) != 0)
			fault(c, "record and advance differ in the state of step %d",
				(int)cut[i + 1]);
		while (n-- > 0)
			if (neap_net_backward(net, adjoint, from[n + 1], from[n], tape[n]))
				fault(c, "backward: %s", neap_detail());
	}
end:
	neap_net_end(net);
	for (int i = 0; i <= STEPS; i++)
		free(tape[i]);
	free(states);
	free(live);
	free(adjoint);
	return bits_of(net);
}

/* Divisions into ranges, and threads. */
static void check_bits(struct one_case *c, struct neap_net *net, double loss, uint64_t hash)
{
	static const int parts[] = {1, 3, 20};

	for (int threads = 1; threads <= 3; threads += 2) {
		struct neap_net *other = net;
		if (threads > 1) {
			c->net.options.threads = threads;
			other = open_net(c, &neap__heap_memory);
			c->net.options.threads = 1;
		}
		for (size_t k = threads > 1; k < sizeof parts / sizeof parts[0]; k++) {
			double again = 0;
			uint64_t bits = sweep_cut(c, other, parts[k], &again);
			if (bits != hash || again != loss)
				fault(c, "%d parts, %d threads: loss %.17g instead of %.17g%s",
					parts[k], threads, again, loss,
					bits == hash ? "" : "; other gradients");
		}
		if (threads > 1)
			neap_net_free(other);
	}
}

/* The largest difference of two nets' tensors that both learn; those that are frozen must be 0. */
static double distance(struct one_case *c, const struct neap_net *a, const struct neap_net *b)
{
	double worst = 0, top = 1e-300;

	for (int i = 0; i < neap_net_params(a); i++) {
		struct neap_param p, q;
		neap_net_param(a, i, &p);
		neap_net_param(b, i, &q);
		for (int64_t k = 0; k < p.count; k++)
			top = fmax(top, fabs(p.grad[k]));
		if (p.count != q.count) {
			fault(c, "%s has %lld and %lld numbers", p.name, (long long)p.count,
				(long long)q.count);
			continue;
		}
		for (int64_t k = 0; k < p.count; k++) {
			if (neap_net_frozen(a, i) || neap_net_frozen(b, i)) {
				if ((neap_net_frozen(a, i) && p.grad[k] != 0) ||
					(neap_net_frozen(b, i) && q.grad[k] != 0))
					fault(c, "%s is frozen, but has a gradient", p.name);
				continue;
			}
			double off = fabs(p.grad[k] - q.grad[k]);
			worst = off > worst || isnan(off) ? off : worst;
		}
	}
	return worst / top;
}

/* The same net with other options has the same gradients, up to rounding. */
static void check_same(struct one_case *c, const struct neap_net *net, double loss,
	const struct neap_net_options *as, const char *what)
{
	struct neap_net_options kept = c->net.options;
	int groups = as->group != kept.group, frozen = as->freeze != kept.freeze;
	double again, off, most = frozen ? 0 : kept.precision == NEAP_DOUBLE ? 1e-9 : 2e-2;

	c->net.options = *as;
	struct neap_net *other = open_net(c, &neap__heap_memory);
	c->net.options = kept;
	if (!other) {
		fault(c, "%s: %s", what, neap_detail());
		return;
	}
	again = sweep_plain(other, &c->room.batch, &c->objective);
	off = distance(c, net, other);
	/* In float a rounded membrane may fall to the other side of a threshold. */
	if (kept.precision == NEAP_DOUBLE || groups || frozen)
		if (!(fabs(again - loss) <= most * (1 + fabs(loss))) || !(off <= most))
			fault(c, "%s: loss %.17g instead of %.17g, gradients are off by %g", what,
				again, loss, off);
	neap_net_free(other);
}

static void check_others(struct one_case *c, const struct neap_net *net, double loss)
{
	struct neap_net_options as = c->net.options;

	as.group = c->net.options.group ? 0 : 2;
	check_same(c, net, loss, &as, "other groups");
	as = c->net.options;
	as.dense = !as.dense;
	check_same(c, net, loss, &as, "other tapes");
	as = c->net.options;
	as.freeze = NULL;
	if (c->net.options.freeze)
		check_same(c, net, loss, &as, "nothing frozen");
}

/* The answers of a sample alone, with steps behind its end, have the bits of those in the batch. */
static void check_alone(struct one_case *c, struct neap_net *net)
{
	size_t classes = (size_t)c->net.options.classes, bytes = classes * sizeof(double);
	double *answer = room_for(bytes * SAMPLES);
	struct neap_net_result result = {.size = sizeof result};

	neap_net_get_result(net, &result);
	memcpy(answer, result.answer, bytes * SAMPLES);
	for (int b = 1; b < SAMPLES; b += 3) {
		struct neap_batch alone = c->room.batch;
		alone.size = 1;
		alone.sequences += b;
		alone.steps = alone.sequences->length + 7;
		sweep_plain(net, &alone, &c->objective);
		neap_net_get_result(net, &result);
		if (memcmp(result.answer, answer + (size_t)b * classes, bytes) != 0)
			fault(c, "sample %d alone has other answers", b);
	}
	free(answer);
}

/* Tapes that are rebuilt from a log give the same gradients. 1: the net has a log. */
static int check_log(struct one_case *c, struct neap_net *net, double loss, uint64_t hash)
{
	struct neap_net_sizes z = {.size = sizeof z};
	int64_t steps = c->room.batch.steps, end, done;
	double again = 0;
	size_t used;

	neap_net_begin(net, &c->room.batch, &c->objective);
	neap_net_get_sizes(net, &z);
	if (!z.log_max) {
		neap_net_end(net);
		return 0;
	}
	size_t log_room = z.log_max * (size_t)(steps + 1), room = z.tape_max * (size_t)(steps + 1);
	unsigned char *state = room_for(z.state), *adjoint = room_for(z.adjoint);
	unsigned char *log = room_for(log_room), *tape = room_for(room);
	memset(state, 0, z.state);
	if (neap_net_advance_log(net, state, 0, steps, 1, log, log_room, &used, &end) ||
		end != steps || neap_net_turn(net, state, adjoint, &again))
		fault(c, "log: %s", neap_detail());
	memset(state, 0, z.state);
	if (neap_net_replay(net, state, 0, steps, log, 0, tape, room, &used, &done) ||
		done != steps || neap_net_backward(net, adjoint, steps, 0, tape))
		fault(c, "replay: %s", neap_detail());
	neap_net_end(net);
	if (again != loss || bits_of(net) != hash)
		fault(c, "replay: loss %g instead of %g, or other gradients", again, loss);
	free(state);
	free(adjoint);
	free(log);
	free(tape);
	return 1;
}

/* Gradients are saved in the middle of the backward pass, and another net goes on. */
struct journal {
	unsigned char *bytes;
	size_t count, at;
};

static int write_journal(void *to, const void *from, size_t bytes)
{
	struct journal *j = to;

	j->bytes = realloc(j->bytes, j->count + bytes + 1);
	memcpy(j->bytes + j->count, from, bytes);
	j->count += bytes;
	return 0;
}

static int read_journal(void *from, void *to, size_t bytes)
{
	struct journal *j = from;

	if (bytes > j->count - j->at)
		return -1;
	memcpy(to, j->bytes + j->at, bytes);
	j->at += bytes;
	return 0;
}

static void check_saved(struct one_case *c, struct neap_net *net, uint64_t hash)
{
	struct neap_net_sizes z = {.size = sizeof z};
	struct neap_net *other = open_net(c, &neap__heap_memory);
	struct journal journal = {0};
	int64_t steps = c->room.batch.steps, done;
	double loss;
	size_t used;

	neap_net_begin(net, &c->room.batch, &c->objective);
	neap_net_begin(other, &c->room.batch, &c->objective);
	neap_net_get_sizes(net, &z);
	size_t room = z.tape_max * (size_t)steps;
	unsigned char *state = room_for(z.state), *adjoint = room_for(z.adjoint);
	unsigned char *tape[2] = {room_for(room), room_for(room)};
	memset(state, 0, z.state);
	neap_net_record(net, state, 0, 65, 1, tape[0], room, &used, &done);
	neap_net_record(net, state, 65, steps, 1, tape[1], room, &used, &done);
	neap_net_turn(net, state, adjoint, &loss);
	neap_net_backward(net, adjoint, steps, 65, tape[1]);
	if (neap_net_grad_save(net, write_journal, &journal) ||
		neap_net_grad_load(other, read_journal, &journal) || journal.at != journal.count)
		fault(c, "saved gradients: %zu of %zu bytes are read: %s", journal.at,
			journal.count, neap_detail());
	neap_net_backward(other, adjoint, 65, 0, tape[0]);
	neap_net_end(net);
	neap_net_end(other);
	if (bits_of(other) != hash)
		fault(c, "gradients that were saved and loaded are others");
	neap_net_free(other);
	free(journal.bytes);
	free(state);
	free(adjoint);
	free(tape[0]);
	free(tape[1]);
}

/* Steps that come one by one give the answers of the batch. */
static void check_live(struct one_case *c, struct neap_net *net)
{
	const struct neap_sequence *s = &c->room.sequences[1];
	struct neap_objective none = {.size = sizeof none};
	struct neap_net_sizes z = {.size = sizeof z};
	struct neap_net_result result = {.size = sizeof result};
	struct neap_batch one = c->room.batch;
	struct neap__live_batch live;
	double answer[8], loss;

	if (c->net.options.values || c->net.target > NEAP_TARGET_NUMBERS ||
		c->net.target == NEAP_TARGET_LABELS)
		return;
	one.size = 1;
	one.sequences = s;
	one.steps = s->length;
	neap_net_begin(net, &one, &none);
	neap_net_get_sizes(net, &z);
	unsigned char *state = room_for(z.state);
	memset(state, 0, z.state);
	neap_net_advance(net, state, 0, s->length, 1);
	neap_net_turn(net, state, NULL, &loss);
	neap_net_get_result(net, &result);
	memcpy(answer, result.answer, sizeof *answer * (size_t)c->net.options.classes);
	neap_net_end(net);
	if (neap__live_batch_begin(&live, net))
		fault(c, "live: %s", neap_detail());
	memset(state, 0, z.state);
	for (int64_t t = 0, n = 1; t < s->length; t += n, n = 1 + n % 5) {
		uint32_t start[8];
		n = t + n < s->length ? n : s->length - t;
		for (int64_t k = 0; k <= n; k++)
			start[k] = s->start[t + k] - s->start[t];
		if (neap__live_batch_advance(
			    &live, net, state, t, t + n, start, s->unit + s->start[t]))
			fault(c, "live: %s", neap_detail());
	}
	neap__live_batch_close(&live, net, s->length);
	neap_net_turn(net, state, NULL, &loss);
	neap_net_get_result(net, &result);
	if (memcmp(answer, result.answer, sizeof *answer * (size_t)c->net.options.classes) != 0)
		fault(c, "steps that come one by one have other answers");
	neap_net_end(net);
	free(state);
}

/* A rank of those that share the batch. */
struct rank {
	struct one_case *c;
	const struct thread_peers *peers;
	uint64_t hash;
	double loss;
	pthread_t thread;
};

static void *run_rank(void *arg)
{
	struct rank *rank = arg;
	const struct neap_peers *peers = &rank->peers->peers;
	struct neap_objective goal = rank->c->objective;
	struct neap_batch own = rank->c->room.batch;
	struct neap_net *net;
	char adjoint[8];

	goal.peers = peers;
	assert_int_equal(neap_net_create(&net, &rank->c->net.options), 0);
	int group = neap_net_group(net, own.size), groups = (own.size - 1) / group + 1;
	int first = neap__rank_sample(peers->rank, peers->count, own.size, group);
	own.of = own.size;
	own.size = neap__rank_sample(peers->rank + 1, peers->count, own.size, group) - first;
	own.sequences += first;
	assert_int_equal(neap__peer_room_make(net, peers, own.of, groups), 0);
	if (own.size) {
		rank->loss = sweep_plain(net, &own, &goal);
	} else {
		neap_net_begin(net, &own, &goal);
		neap_net_turn(net, NULL, adjoint, &rank->loss);
		neap_net_end(net);
	}
	rank->hash = bits_of(net);
	neap_net_free(net);
	return NULL;
}

static void check_ranks(struct one_case *c, double loss, uint64_t hash)
{
	enum { RANKS = 2 };
	struct thread_peers_shared shared;
	struct thread_peers peers[RANKS];
	struct rank rank[RANKS];

	thread_peers_make(peers, &shared, RANKS);
	for (int r = 0; r < RANKS; r++) {
		rank[r] = (struct rank){.c = c, .peers = &peers[r]};
		assert_int_equal(pthread_create(&rank[r].thread, NULL, run_rank, &rank[r]), 0);
	}
	for (int r = 0; r < RANKS; r++) {
		pthread_join(rank[r].thread, NULL);
		if (rank[r].hash != hash || rank[r].loss != loss)
			fault(c, "two ranks: loss %.17g instead of %.17g, or other gradients",
				rank[r].loss, loss);
	}
	thread_peers_free(&shared);
}

/* The specification as it is written makes the same net. */
static void check_text(struct one_case *c, const struct neap_net *net, double loss, uint64_t hash)
{
	struct neap_net_options kept = c->net.options;

	c->net.options.spec = neap_net_spec(net);
	struct neap_net *again = open_net(c, &neap__heap_memory);
	c->net.options = kept;
	if (!again) {
		fault(c, "own text %s: %s", neap_net_spec(net), neap_detail());
		return;
	}
	if (sweep_plain(again, &c->room.batch, &c->objective) != loss || bits_of(again) != hash)
		fault(c, "own text makes another net: %s", neap_net_spec(net));
	neap_net_free(again);
}

/* 1: accepted */
static int check_net(struct one_case *c)
{
	struct counted memory = {.table = {counted_get, counted_put, &memory}};
	struct neap_net_sizes z = {.size = sizeof z};
	static const int size = SAMPLES;

	struct neap_net *net = open_net(c, &memory.table);
	if (!net)
		return 0;
	open_batch(c, lengths, c->seed);
	uint64_t held = memory.held, growth = neap__net_growth(net, &size, 1, 1);
	int rc = neap_net_begin(net, &c->room.batch, &c->objective);
	if (rc) {
		fault(c, "begin: %s", neap_detail());
		neap_net_free(net);
		batch_free(&c->room);
		return 1;
	}
	neap_net_get_sizes(net, &z);
	if (z.weights + z.grads + z.workspace != memory.held)
		fault(c, "%zu bytes are reported, %llu held", z.weights + z.grads + z.workspace,
			(unsigned long long)memory.held);
	if (memory.held > held + growth)
		fault(c, "%llu bytes are planned, %llu held", (unsigned long long)(held + growth),
			(unsigned long long)memory.held);
	held = memory.held;
	neap_net_end(net);
	double loss = sweep_plain(net, &c->room.batch, &c->objective);
	uint64_t hash = bits_of(net);
	if (!isfinite(loss))
		fault(c, "loss %g", loss);
	if (memory.held != held)
		fault(c, "steps or a second batch hold more memory");
	check_bits(c, net, loss, hash);
	check_others(c, net, loss);
	check_text(c, net, loss, hash);
	logs += check_log(c, net, loss, hash);
	sweep_plain(net, &c->room.batch, &c->objective);
	check_alone(c, net);
	check_saved(c, net, hash);
	check_live(c, net);
	check_ranks(c, loss, hash);
	neap_net_free(net);
	if (memory.held)
		fault(c, "%llu bytes are left", (unsigned long long)memory.held);
	batch_free(&c->room);
	return 1;
}

static void check_differences(struct one_case *c)
{
	double worst = 1;
	struct neap_net *net = open_net(c, &neap__heap_memory);

	if (!net || c->net.has_kinks) {
		neap_net_free(net);
		return;
	}
	neap_net_free(net);
	open_batch(c, short_lengths, c->seed);
	int rc = neap_gradcheck(&worst, &c->net.options, &c->room.batch, &c->objective, 25);
	if (!rc && c->net.may_have_kinks && !(worst < 1e-3)) { /* no other weights lie there too */
		c->net.options.seed++;
		rc = neap_gradcheck(&worst, &c->net.options, &c->room.batch, &c->objective, 25);
	}
	if (rc || !(worst < 1e-3))
		fault(c, "differences: %d, %g: %s", rc, worst, rc ? neap_detail() : "");
	batch_free(&c->room);
}

static void random_nets(void **arg)
{
	uint64_t first = test_seed(1);
	int accepted = 0, faults = 0, bad = 0;

	(void)arg;
	for (int64_t i = 0; i < count; i++) {
		struct one_case c;
		open_case(&c, first + (uint64_t)i, 40);
		accepted += check_net(&c);
		int wide = c.faults;
		open_case(&c, first + (uint64_t)i, 6);
		check_differences(&c);
		faults += wide + c.faults;
		bad += wide || c.faults;
	}
	fprintf(stderr, "# %lld nets, %d accepted, %lld with logs, %d with faults\n",
		(long long)count, accepted, (long long)logs, bad);
	assert_int_equal(faults, 0);
	assert_true(count < 20 || accepted > count / 3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_nets)};

	count = argc > 1 ? atoll(argv[1]) : USUAL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
