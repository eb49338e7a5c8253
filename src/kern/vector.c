/* SPDX-License-Identifier: Apache-2.0 */
/* vector.c: the entries of the table that this instruction set overrides. */
#include "kern/vector.h"

#define PUT_(isa) NEAP_R(neap__vector_##isa)
#define PUT(isa) PUT_(isa)

void PUT(NEAP__ISA)(struct neap__kernels *kernels)
{
	NEAP_V(neap__state_begin)();
	kernels->rows[0].add = NEAP_V(neap__adds);
	kernels->rows[0].dot = NEAP_V(neap__dots);
	kernels->rows[0].grad = NEAP_V(neap__grads);
	kernels->rows[2].add = NEAP_V(neap__filter_adds);
	kernels->rows[2].dot = NEAP_V(neap__filter_dots);
	kernels->rows[2].grad = NEAP_V(neap__filter_grads);
	kernels->gather = NEAP_V(neap__gather);
	kernels->product = NEAP_V(neap__product);
	kernels->product_columns = NEAP_V(neap__product_columns);
	kernels->outer = NEAP_V(neap__outer);
	kernels->sigmoids = NEAP_V(neap__sigmoid_rows);
	kernels->tanhs = NEAP_V(neap__tanh_rows);
	kernels->decay = NEAP_V(neap__decay);
	kernels->scale = NEAP_V(neap__scale);
	kernels->sum = NEAP_V(neap__sum);
	kernels->fold = NEAP_V(neap__fold);
	kernels->spikes = NEAP_V(neap__spikes);
	kernels->support = NEAP_V(neap__support);
	kernels->leak_step = NEAP_V(neap__leak_step);
	kernels->ceiling_read = NEAP_V(neap__ceiling_read);
	kernels->ceiling_products = NEAP_V(neap__ceiling_products);
	kernels->currents = NEAP_V(neap__currents);
	kernels->walk = NEAP_V(neap__membrane_walk);
	kernels->collect = NEAP_V(neap__collect);
	kernels->walk_units = NEAP__WALK_VECTORS * WIDE;
}
