/* SPDX-License-Identifier: Apache-2.0 */
/* Delays of units: where they begin, that they stay in their range, what they take, what they do.
 */
#include "nn/nets.h"

static const int64_t lengths[] = {70, 90, 33, 1};

static const struct neap_objective *objective(void)
{
	static struct neap_objective o = {.size = sizeof o};
	o.loss = neap_loss_find("cross-entropy");
	return &o;
}

static struct neap_param delays_of(const struct neap_net *net)
{
	struct neap_param p;
	assert_int_equal(neap_net_param(net, neap_net_params(net) - 1, &p), 0);
	assert_non_null(strstr(p.name, ".delay"));
	return p;
}

/* They begin in their range, by the seed; weights begin as without them. */
static void beginning(void **arg)
{
	(void)arg;
	for (int learns = 0; learns < 2; learns++) {
		struct neap_net_options o = net_options("lif:400,li");
		struct neap_net *plain = net_make(&o);
		o.spec = learns ? "lif:400,li:delay=3..90:learn" : "lif:400,li:delay=3..90";
		struct neap_net *a = net_make(&o), *b = net_make(&o);
		o.seed++;
		struct neap_net *other = net_make(&o);
		struct neap_param p = delays_of(a), q = delays_of(b), r = delays_of(other);
		int least = 0, most = 0, whole = 0, moved = 0;
		assert_string_equal(p.name, "readout.delay");
		assert_int_equal(p.columns, 400);
		assert_int_equal(p.is_leak, 1);
		assert_int_equal(neap_net_frozen(a, neap_net_params(a) - 1), !learns);
		for (int i = 0; i < 400; i++) {
			double d = ((double *)p.data)[i];
			assert_true(d >= 3 && d <= 90 && d == ((double *)q.data)[i]);
			least += d < 10;
			most += d > 83;
			whole += d == floor(d);
			moved += d != ((double *)r.data)[i];
		}
		assert_true(least > 10 && most > 10 && moved > 300);
		assert_int_equal(whole, learns ? 0 : 400);
		for (int i = 0; i < neap_net_params(plain); i++) {
			struct neap_param u, v;
			neap_net_param(plain, i, &u);
			neap_net_param(a, i, &v);
			assert_memory_equal(u.data, v.data, (size_t)u.count * sizeof(double));
		}
		neap_net_free(plain);
		neap_net_free(a);
		neap_net_free(b);
		neap_net_free(other);
	}
}

/* Numbers outside of the range, which files can have, are moved to its end when a batch begins. */
static void range(void **arg)
{
	static const double given[] = {-1, 2, 2.5, 6.999, 7, 8, 1e300, -INFINITY, INFINITY, NAN};
	static const double used[2][10] = {
		{2, 2, 2, 7, 7, 7, 7, 2, 7, 2}, {2, 2, 2.5, 6.999, 7, 7, 7, 2, 7, 2}};
	struct batch_room room;

	(void)arg;
	batch_make(&room, 3, 4, 19, 0, 5, 0.3, lengths);
	for (int learns = 0; learns < 2; learns++) {
		struct neap_net_options o =
			net_options(learns ? "lif:10,li:delay=2..7:learn" : "lif:10,li:delay=2..7");
		double loss[2];
		for (int k = 0; k < 2; k++) {
			struct neap_net *net = net_make(&o);
			struct neap_param p = delays_of(net);
			memcpy(p.data, k ? used[learns] : given, sizeof given);
			loss[k] = sweep_plain(net, &room.batch, objective());
			assert_memory_equal(p.data, used[learns], sizeof given);
			neap_net_free(net);
		}
		assert_true(loss[0] == loss[1]);
	}
	batch_free(&room);
}

/* Delays that are equal do what one delay of all units does, and the key of one step. */
static void equal_ones(void **arg)
{
	static const char *const same[][2] = {{"lif:40r:dropout=0.3,lif:20r:delay=0..1,li",
						      "lif:40r:dropout=0.3,lif:20r:delay=%d,li"},
		{"lif:40r,alif:20:delay=0..1:learn,li", "lif:40r,alif:20:delay=%d,li"},
		{"adlif:40r:scale=30,li:delay=0..40", "adlif:40r:scale=30,li:delay=%d"},
		{"lif:40r,gru:20:delay=0..40:learn,li", NULL}};
	struct batch_room room;

	(void)arg;
	batch_make(&room, 3, 4, 19, 0, 5, 0.3, lengths);
	for (size_t s = 0; s < sizeof same / sizeof same[0]; s++)
		for (int delay = 0; delay < (s < 2 ? 2 : 40); delay += s < 2 ? 1 : 13) {
			char spec[100];
			struct neap_net_options o = net_options(same[s][0]);
			struct neap_net *a = net_make(&o);
			struct neap_param p = delays_of(a);
			for (int i = 0; i < p.count; i++)
				((double *)p.data)[i] = delay;
			if (s < 3)
				snprintf(spec, sizeof spec, same[s][1], delay);
			else
				snprintf(spec, sizeof spec, "lif:40r,gru:20:delay=%d,li", delay);
			o.spec = spec;
			struct neap_net *b = net_make(&o);
			double x = sweep_plain(a, &room.batch, objective());
			double y = sweep_plain(b, &room.batch, objective());
			assert_true(fabs(x - y) < 1e-12);
			for (int i = 0; i < neap_net_params(b); i++) {
				struct neap_param u, v;
				double top = 0;
				neap_net_param(a, i, &u);
				neap_net_param(b, i, &v);
				for (int64_t k = 0; k < v.count; k++)
					top = fmax(top, fabs(v.grad[k]));
				for (int64_t k = 0; k < v.count; k++)
					assert_true(fabs(u.grad[k] - v.grad[k]) <= 1e-11 * top);
				assert_true(top > 0);
			}
			neap_net_free(a);
			neap_net_free(b);
		}
	batch_free(&room);
}

/* A bitmap a step in the state, a row of d(in) a step in the adjoint; none in the tape. */
static void bytes(void **arg)
{
	struct neap_net_sizes z[2] = {{.size = sizeof *z}, {.size = sizeof *z}};
	struct batch_room room;

	(void)arg;
	batch_make(&room, 3, 4, 19, 0, 5, 0.3, lengths);
	for (int k = 0; k < 2; k++) {
		struct neap_net_options o = net_options(
			k ? "lif:256,lif:128:delay=0..63:learn,li" : "lif:256,lif:128,li");
		o.precision = NEAP_FLOAT;
		struct neap_net *net = net_make(&o);
		assert_int_equal(neap_net_begin(net, &room.batch, objective()), 0);
		neap_net_get_sizes(net, &z[k]);
		neap_net_end(net);
		neap_net_free(net);
	}
	assert_int_equal(z[1].state - z[0].state, 4 * 64 * 256 / 8);
	assert_int_equal(z[1].adjoint - z[0].adjoint, 4 * 64 * 128 * 4);
	assert_int_equal(z[1].tape_max, z[0].tape_max);
	assert_int_equal(z[1].log_max, 0);
	batch_free(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(beginning), cmocka_unit_test(range),
		cmocka_unit_test(equal_ones), cmocka_unit_test(bytes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
