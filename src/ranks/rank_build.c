/* SPDX-License-Identifier: Apache-2.0 */
/* rank_build.c: whether all ranks compute the same bits: their builds, machines and C libraries. */
#include "ranks/rank_agreement.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/isa.h"

#include <neap/machine.h>
#include <neap/version.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* What decides the bits that a rank computes, beside options and data. */
struct rank_build {
	char version[32], isa[24], libc[40];
	uint64_t abi, functions;
};

enum { PROBES = 4096 };

/* Hashes what the C library answers to fixed arguments. */
static uint64_t hash_functions(void)
{
	double answer[8];
	uint64_t hash = 0;

	for (int i = 0; i < PROBES; i++) {
		double x = (i + 0.37) / PROBES;
		answer[0] = exp(16 * x - 8);
		answer[1] = log(x);
		answer[2] = tanh(8 * x - 4);
		answer[3] = cos(7 * x);
		answer[4] = atan(9 * x);
		answer[5] = (double)expf((float)(16 * x - 8));
		answer[6] = (double)tanhf((float)(8 * x - 4));
		answer[7] = pow(x, 1.7);
		hash = XXH3_64bits_withSeed(answer, sizeof answer, hash);
	}
	return hash;
}

static void fill_build(struct rank_build *own)
{
	struct neap_machine machine = {.size = sizeof machine};

	memset(own, 0, sizeof *own);
	neap_machine_describe(&machine);
	neap__print(own->version, sizeof own->version, "%s", NEAP_VERSION);
	neap__print(own->isa, sizeof own->isa, "%s", machine.isa);
	if (confstr(_CS_GNU_LIBC_VERSION, own->libc, sizeof own->libc) == 0)
		neap__print(own->libc, sizeof own->libc, "unknown");
	own->abi = neap_abi_hash();
	own->functions = hash_functions();
}

/* The narrower of two instruction sets, which both machines have. */
static const char *narrower(const char *a, const char *b)
{
	for (int isa = 0; isa < NEAP__ISAS; isa++) {
		const char *name = neap__isa_name((enum neap__isa)isa);
		if (strcmp(a, name) == 0 || strcmp(b, name) == 0)
			return name;
	}
	return a;
}

static int compare_build(
	struct neap__ranks *ranks, const struct rank_build *own, const struct rank_build *root)
{
	const char *host = ranks->host[0];

	if (strcmp(own->version, root->version) != 0 || own->abi != root->abi)
		return neap__fail(NEAP_EUSAGE,
			"this is neap %s, but rank 0 (%s) runs another build, %s. Install the same "
			"on all hosts",
			own->version, host, root->version);
	if (!neap__isa_same_bits(own->isa, root->isa))
		return neap__fail(NEAP_EUSAGE,
			"this rank computes with %s, but rank 0 (%s) with %s, which rounds "
			"differently. Set NEAP_ISA=%s on all ranks",
			own->isa, host, root->isa, narrower(own->isa, root->isa));
	if (strcmp(own->libc, root->libc) != 0 || own->functions != root->functions)
		return neap__fail(NEAP_EUSAGE,
			"the C library '%s' rounds exp, log or tanh differently from '%s' on rank "
			"0 (%s). Use hosts with the same system",
			own->libc, root->libc, host);
	return 0;
}

int neap__ranks_same_build(struct neap__ranks *ranks)
{
	struct rank_build own, root;

	if (!ranks->peers)
		return 0;
	fill_build(&own);
	root = own;
	NEAP_TRY(neap__ranks_send(ranks, &root, sizeof root));
	return neap__ranks_agree(ranks, compare_build(ranks, &own, &root));
}
