/* SPDX-License-Identifier: Apache-2.0 */
/* test_isa.c: NEAP_ISA=lowered has the bits of avx512 in whole nets, of bf16 and with products in
 * tiles too, on a machine that has both. */
#include "nets.h"
#include "sys/isa.h"

/* The gradients of a plain sweep with an instruction set. */
static struct neap_net *train_with(
	const char *isa, const struct neap_net_options *options, const struct neap_batch *batch)
{
	struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};

	setenv("NEAP_ISA", isa, 1);
	struct neap_net *net = net_make(options);
	sweep_plain(net, batch, &objective);
	return net;
}

/* 1: a net that bf16 or tiles refuse on this machine. */
static int is_refused(const struct neap_net_options *options)
{
	int is_gated = strncmp(options->spec, "rnn", 3) == 0 ||
		       strncmp(options->spec, "lstm", 4) == 0 ||
		       strncmp(options->spec, "gru", 3) == 0;

	if (options->precision == NEAP_BF16)
		return !is_gated || !neap__isa_has_bf16(NEAP__ISA_AVX512);
	return options->products == NEAP_TILES && options->precision == NEAP_DOUBLE;
}

static void lowered(void **arg)
{
	static const char *const specs[] = {"lif:50r,li", "lif:33:surrogate=sigmoid,li",
		"cubalif:40r,li", "adlif:24r,lif:17,li", "seadlif:24r,li", "brf:24r:scale=900,li",
		"rnn:21,li", "lstm:19,li", "gru:35,li", "egru:20,li",
		"lif:50r:scale=12,lif:40r:scale=9:width=12,li", "lif:300r:scale=12:width=12,li"};
	const char *was = getenv("NEAP_ISA");
	char *kept = was ? strdup(was) : NULL;

	(void)arg;
	if (!neap__isa_works(NEAP__ISA_AVX512)) {
		printf("# SKIP this processor does not have AVX-512\n");
		skip();
	}
	for (size_t i = 0; i < 6 * sizeof specs / sizeof specs[0]; i++) {
		struct neap_net_options options = net_options(specs[i / 6]);
		struct batch_room room;
		options.precision = (enum neap_precision)(i % 3);
		options.products = i / 3 % 2 ? NEAP_TILES : NEAP_CHAINS;
		if (is_refused(&options))
			continue;
		batch_make(&room, 5, 6, options.inputs, 70, options.classes, 0.2, NULL);
		struct neap_net *a = train_with("avx512", &options, &room.batch);
		struct neap_net *b = train_with("lowered", &options, &room.batch);
		assert_true(neap_net_grad_hash(a) == neap_net_grad_hash(b));
		neap_net_free(a);
		neap_net_free(b);
		batch_free(&room);
	}
	if (kept)
		setenv("NEAP_ISA", kept, 1);
	else
		unsetenv("NEAP_ISA");
	free(kept);
}

/* Which sets may be mixed, in a run that is resumed and among ranks. */
static void same_bits(void **arg)
{
	(void)arg;
	assert_true(neap__isa_same_bits("lowered", "avx512"));
	assert_true(neap__isa_same_bits("avx2", "avx2"));
	assert_false(neap__isa_same_bits("lowered", "plain"));
	assert_false(neap__isa_same_bits("avx2", "avx512"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lowered),
		cmocka_unit_test(same_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
