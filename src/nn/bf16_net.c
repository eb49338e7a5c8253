/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_net.c: which nets and tensors compute with bfloat16, and which in tiles (bf16_net.h). */
#include "nn/bf16_net.h"
#include "nn/core/cell.h"
#include "kern/tiles/tiles.h"
#include "base/debug_log.h"
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
		"--precision bf16: this processor has no AVX512-BF16; set NEAP_ISA=lowered (same "
		"results as with AVX512-BF16, slow), or train with --precision float");
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

int neap__tiles_choose(struct neap_net *net, enum neap__isa isa)
{
	if (net->options.products != NEAP_TILES)
		return 0;
	if (net->options.precision == NEAP_DOUBLE)
		return neap__fail(NEAP_EUSAGE,
			"--products tiles multiplies numbers of 32 bits; use --precision float or "
			"bf16, or --products chains");
	net->tile_ops = neap__tiles_get(isa);
	if (net->tile_ops) {
		neap__debug("net '%s': products in tiles by %s", net->options.spec,
			net->tile_ops->name);
		return 0;
	}
	if (neap__isa_works(NEAP__ISA_AVX512))
		return neap__fail(NEAP_EUSAGE,
			"--products tiles needs AVX-512, but NEAP_ISA=%s excludes it; unset "
			"NEAP_ISA, or set it to lowered (same results, slow)",
			neap__isa_name(isa));
	return neap__fail(NEAP_EUSAGE,
		"--products tiles: this processor has no AVX-512; use --products chains, or set "
		"NEAP_ISA=lowered (same results as with AVX-512 or AMX, slow)");
}

int neap__tiles_work(void)
{
	enum neap__isa isa;

	return neap__isa_choose(&isa) == 0 && neap__tiles_get(isa);
}

/* 1: in float, a tensor's products are computed in tiles where there are many spikes. */
static int has_spikes(const struct neap__param *t)
{
	return t->takes_spikes && !t->sources && neap__has_plain_rows(t);
}

int neap__bf16_mark(struct neap_net *net)
{
	int found = 0;

	for (int l = 0; l < net->nlayers; l++)
		for (int own = 0; own < 2; own++) {
			const struct neap__layer *layer = &net->layers[l];
			int tensor = own ? layer->recurrent : layer->weight;
			if (tensor < 0)
				continue;
			struct neap__param *t = &net->tensors[tensor];
			t->is_rounded =
				net->options.precision == NEAP_BF16 && !layer->cell->readout;
			if (net->tile_ops && net->options.precision == NEAP_BF16)
				t->planes = t->is_rounded;
			else if (net->tile_ops && has_spikes(t))
				t->planes = NEAP__TILE_PLANES;
			found += t->planes;
		}
	if (net->tile_ops && !found)
		return neap__fail(NEAP_EUSAGE,
			"--products tiles: no weights of '%s' multiply spikes; use --products "
			"chains, or for rnn, lstm and gru --precision bf16",
			net->options.spec);
	return 0;
}
