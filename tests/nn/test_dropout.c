/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dropout against a net without it whose weights do the same: rows of dropped units are zero,
 * those of the others twice as large (half are dropped: the factor is exact).
 */
#include "nn/nets.h"

enum { INPUTS = 9, BELOW = 24, ABOVE = 12 };

static const int64_t lengths[] = {150};

static struct neap_net *make_net(const char *spec, double dropout)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	o.spec = spec;
	o.inputs = INPUTS;
	o.classes = 3;
	o.seed = 21;
	o.scale = 3;
	o.threads = 2;
	o.dropout = dropout;
	return net_make(&o);
}

static struct neap_objective objective(uint32_t dropout)
{
	struct neap_objective o = {.size = sizeof o,
		.rates = {.upper = 0.02, .upper_weight = 1, .l2 = 0.1},
		.dropout = dropout};
	o.loss = neap_loss_find("cross-entropy");
	return o;
}

static struct neap_param tensor(const struct neap_net *net, const char *name)
{
	struct neap_param param;
	for (int i = 0; i < neap_net_params(net); i++)
		if (neap_net_param(net, i, &param) == 0 && strcmp(param.name, name) == 0)
			return param;
	fail_msg("no tensor %s", name);
	return param;
}

/* Which units are kept, as the header says. */
static int kept(uint32_t draw, int64_t sample, int layer, int unit, double dropout)
{
	uint64_t key = neap__random_u64(21, NEAP__STREAM_DROPOUT, draw, (uint64_t)sample);
	return neap__random_uniform(key, NEAP__STREAM_DROPOUT, (uint32_t)layer, (uint64_t)unit) >=
	       dropout;
}

static void as_with_other_weights(void **state)
{
	static const struct {
		const char *spec, *above;
	} nets[] = {{"lif:24r,li", "readout.weight"},
		{"lif:24r,lif:12r:dropout=0,li", "layer1.weight"},
		{"lif:24:reset=zero,lif:12:delay=1:dropout=0,li", "layer1.weight"},
		{"lif:24r:reset=hard:surrogate=sigmoid,li", "readout.weight"},
		{"gru:24,lif:12:dropout=0,li", "layer1.weight"},
		{"egru:24:threshold=0.1,li", "readout.weight"}};
	struct batch_room room;

	(void)state;
	batch_make(&room, 3, 1, INPUTS, 0, 3, 0.2, lengths);
	for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++)
		for (uint32_t draw = 1; draw < 4; draw++) {
			struct neap_net *net = make_net(nets[i].spec, 0.5);
			struct neap_net *plain = make_net(nets[i].spec, 0);
			struct neap_param other = tensor(plain, nets[i].above);
			struct neap_objective o = objective(draw), none = objective(draw);
			float *w = other.data;
			int dropped = 0;
			room.sequences[0].index = 1000 + (int64_t)i;
			for (int64_t k = 0; k < other.count; k++) {
				int unit = (int)(k / other.columns);
				int keep = kept(draw, 1000 + (int64_t)i, 0, unit, 0.5);
				w[k] = keep ? 2 * w[k] : 0;
				dropped += !keep && k % other.columns == 0;
			}
			assert_in_range(dropped, 4, 20);
			double loss = sweep_plain(net, &room.batch, &o);
			assert_true(loss == sweep_plain(plain, &room.batch, &none));
			for (int p = 0; p < neap_net_params(net); p++) {
				struct neap_param a, b;
				assert_int_equal(neap_net_param(net, p, &a), 0);
				assert_int_equal(neap_net_param(plain, p, &b), 0);
				int above = strcmp(a.name, nets[i].above) == 0;
				for (int64_t k = 0; k < a.count; k++) {
					int unit = (int)(k / a.columns);
					int keep = !above ||
						   kept(draw, 1000 + (int64_t)i, 0, unit, 0.5);
					double factor = above ? 2.0 * keep : 1;
					/* The penalty is added behind the product, here before. */
					double slack = 1e-4 * fabs(b.grad[k]) + 1e-9;
					if (fabs(a.grad[k] - factor * b.grad[k]) > slack)
						fail_msg("%s, %s[%d]: %g, not %g", nets[i].spec,
							a.name, (int)k, a.grad[k],
							factor * b.grad[k]);
				}
			}
			neap_net_free(net);
			neap_net_free(plain);
		}
	batch_free(&room);
}

static uint64_t hash_of(
	const char *spec, double dropout, struct neap_batch *batch, uint32_t draw, double *loss)
{
	struct neap_net *net = make_net(spec, dropout);
	struct neap_objective o = objective(draw);
	*loss = sweep_plain(net, batch, &o);
	uint64_t hash = neap_net_grad_hash(net);
	neap_net_free(net);
	return hash;
}

static void off_means_off(void **state)
{
	struct batch_room room;
	double loss, plain;

	(void)state;
	batch_make(&room, 3, 1, INPUTS, 0, 3, 0.2, lengths);
	uint64_t hash = hash_of("lif:24r,lif:12,li", 0, &room.batch, 0, &plain);
	assert_true(hash_of("lif:24r,lif:12,li", 0, &room.batch, 5, &loss) == hash);
	assert_true(hash_of("lif:24r,lif:12,li", 0.4, &room.batch, 0, &loss) == hash);
	assert_true(loss == plain);
	uint64_t one = hash_of("lif:24r,lif:12,li", 0.4, &room.batch, 1, &loss);
	assert_true(loss != plain && one != hash);
	assert_true(hash_of("lif:24r,lif:12,li", 0.4, &room.batch, 1, &loss) == one);
	assert_true(hash_of("lif:24r,lif:12,li", 0.4, &room.batch, 2, &loss) != one);
	assert_true(hash_of("lif:24r:dropout=0.4,lif:12:dropout=0.4,li", 0, &room.batch, 1,
			    &loss) == one);
	room.sequences[0].index = 1;
	assert_true(hash_of("lif:24r,lif:12,li", 0.4, &room.batch, 1, &loss) != one);
	batch_free(&room);
}

/* A sample's masks are its own: alone it has the answer that it has among others. */
static void whatever_the_batch(void **state)
{
	static const int64_t many[] = {60, 80, 75, 33, 80};
	struct batch_room room;
	struct neap_objective o = objective(2);
	struct neap_net *net = make_net("lif:24r,lif:12,li", 0.3), *alone;
	struct neap_net_result all = {.size = sizeof all}, one = {.size = sizeof one};

	(void)state;
	batch_make(&room, 4, 5, INPUTS, 0, 3, 0.2, many);
	sweep_plain(net, &room.batch, &o);
	neap_net_get_result(net, &all);
	alone = make_net("lif:24r,lif:12,li", 0.3);
	for (int i = 0; i < 5; i++) {
		struct neap_batch single = {.size = 1,
			.inputs = INPUTS,
			.steps = many[i],
			.sequences = &room.sequences[i]};
		sweep_plain(alone, &single, &o);
		neap_net_get_result(alone, &one);
		assert_memory_equal(one.answer, all.answer + 3 * i, 3 * sizeof *one.answer);
	}
	neap_net_free(net);
	neap_net_free(alone);
	batch_free(&room);
}

static void share_of_units(void **state)
{
	int sum = 0;
	(void)state;
	for (int sample = 0; sample < 100; sample++)
		for (int unit = 0; unit < 100; unit++)
			sum += kept(1, sample, 0, unit, 0.2);
	assert_in_range(sum, 7800, 8200);
}

/* Spikes that dropout changes on their way to a layer are not logged; the readout asks for none. */
static void logs(void **state)
{
	static const struct {
		const char *spec;
		int has;
	} nets[] = {{"lif:24r,lif:12,li", 1}, {"lif:24r:dropout=0.5,lif:12,li", 0},
		{"lif:24r,lif:12:dropout=0.5,li", 1}};
	struct batch_room room;
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct neap_objective o = objective(1);

	(void)state;
	batch_make(&room, 3, 1, INPUTS, 0, 3, 0.2, lengths);
	for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
		struct neap_net *net = make_net(nets[i].spec, 0);
		assert_int_equal(neap_net_begin(net, &room.batch, &o), 0);
		neap_net_get_sizes(net, &sizes);
		assert_true((sizes.log_max > 0) == nets[i].has);
		neap_net_end(net);
		neap_net_free(net);
	}
	batch_free(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_with_other_weights),
		cmocka_unit_test(off_means_off),
		cmocka_unit_test(whatever_the_batch),
		cmocka_unit_test(share_of_units),
		cmocka_unit_test(logs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
