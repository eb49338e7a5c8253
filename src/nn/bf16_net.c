/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_net.c: which nets and tensors compute with bfloat16 (bf16_net.h). */
#include "nn/bf16_net.h"
#include "nn/core/cell.h"
#include "base/fail.h"

#include <string.h>

static int check_processor(enum neap__isa isa)
{
	if (neap__isa_has_bf16(isa))
		return 0;
	if (isa != NEAP__ISA_AVX512 && neap__isa_has_bf16(NEAP__ISA_AVX512))
		return neap__fail(NEAP_EUSAGE,
			"--precision bf16 needs AVX512-BF16, but NEAP_ISA=%s excludes it; unset "
			"NEAP_ISA, or set it to lowered (same results, slow)",
			neap__isa_name(isa));
	return neap__fail(NEAP_EUSAGE,
		"--precision bf16: this processor has no AVX512-BF16; use --precision float, or "
		"set NEAP_ISA=lowered (same results as with AVX512-BF16, slow)");
}

/* 1: the dense products of the cell are those of outer_products.h, and tested in bfloat16. */
static int is_known(const char *cell)
{
	return strcmp(cell, "rnn") == 0 || strcmp(cell, "lstm") == 0 || strcmp(cell, "gru") == 0;
}

int neap__bf16_check(const struct neap_net *net, enum neap__isa isa)
{
	for (int l = 0; l < net->nlayers - 1; l++)
		if (!is_known(net->layers[l].cell->name))
			return neap__fail(NEAP_EUSAGE,
				"--precision bf16: layer %d of '%s' is %s, but only layers of rnn, "
				"lstm and gru compute with bfloat16; use --precision float",
				l, net->options.spec, net->layers[l].cell->name);
	if (!net->dense)
		return neap__fail(NEAP_EUSAGE,
			"--precision bf16: '%s' is not a chain of layers of rnn, lstm and gru with "
			"all weights; remove the keys density, from and learn, or use --precision "
			"float",
			net->options.spec);
	return check_processor(isa);
}

void neap__bf16_mark(struct neap_net *net)
{
	for (int l = 0; l < net->nlayers - 1 && net->options.precision == NEAP_BF16; l++) {
		net->tensors[net->layers[l].weight].is_rounded = 1;
		net->tensors[net->layers[l].recurrent].is_rounded = 1;
	}
}
