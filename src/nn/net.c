/* SPDX-License-Identifier: Apache-2.0 */
/* net.c: making and freeing a net, its parameters, and what a batch found. */
#include "nn/net.h"
#include "nn/core/net_state.h"
#include "nn/cellfile/cell_program.h"
#include "nn/gradients/outer_tiles.h"
#include "nn/filter.h"
#include "nn/freeze.h"
#include "nn/bf16_net.h"
#include "nn/layout.h"
#include "nn/batch/peer_sum.h"
#include "nn/precision_ops.h"
#include "nn/replay/packed_weights.h"
#include "nn/spec.h"
#include "nn/tensors.h"
#include "nn/core/on_device.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "base/debug_log.h"
#include "sys/pool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

enum {
	INPUTS_MOST = 65536, /* numbers of inputs have 16 bits */
	THREADS_MOST = 1024  /* more than any machine here has processors */
};

static int check_options(const struct neap_net_options *o)
{
	if (o->precision != NEAP_FLOAT && o->precision != NEAP_DOUBLE && o->precision != NEAP_BF16)
		return neap__fail(NEAP_EUSAGE, "precision must be float, double or bf16");
	if (o->math != NEAP_MATH_EXACT && o->math != NEAP_MATH_TF32X3 && o->math != NEAP_MATH_BF16)
		return neap__fail(NEAP_EUSAGE, "math must be exact, tf32x3 or bf16");
	if (o->products != NEAP_CHAINS && o->products != NEAP_TILES)
		return neap__fail(NEAP_EUSAGE, "products must be chains or tiles");
	if (o->inputs < 1 || o->inputs > INPUTS_MOST)
		return neap__fail(
			NEAP_EUSAGE, "inputs must be 1 to %d, not %d", INPUTS_MOST, o->inputs);
	if (o->classes < 1 || o->classes > NEAP__UNITS_MOST)
		return neap__fail(NEAP_EUSAGE, "classes must be 1 to %d, not %d", NEAP__UNITS_MOST,
			o->classes);
	if (!isfinite(o->dt) || o->dt <= 0)
		return neap__fail(NEAP_EUSAGE, "--dt must be a positive time, not %g", o->dt);
	if ((int)o->readout < 0 || (int)o->readout >= NEAP_READOUTS)
		return neap__fail(NEAP_EUSAGE, "readout is %d, which is not a kind of readout",
			(int)o->readout);
	if (o->group < 0)
		return neap__fail(NEAP_EUSAGE, "--group must be 0 or more, not %d", o->group);
	if (o->threads < 0 || o->threads > THREADS_MOST)
		return neap__fail(
			NEAP_EUSAGE, "--threads must be 0 to %d, not %d", THREADS_MOST, o->threads);
	return 0;
}

static int make_arrays(struct neap_net *net)
{
	net->penalty = neap__net_get_zeroed(net, (uint64_t)net->nlayers, sizeof *net->penalty);
	net->rate = neap__net_get_zeroed(net, (uint64_t)net->nlayers, sizeof *net->rate);
	if (!net->penalty || !net->rate)
		return neap__fail_errno(ENOMEM, "net");
	for (int l = 0; l < net->nlayers; l++) {
		net->penalty[l] =
			neap__net_get_zeroed(net, (uint64_t)net->layers[l].n, net->ops->real);
		if (!net->penalty[l])
			return neap__fail_errno(ENOMEM, "net");
	}
	return 0;
}

static int build(struct neap_net *net)
{
	int threads = net->options.threads ? net->options.threads : neap__processors();
	enum neap__isa isa;

	NEAP_TRY(check_options(&net->options));
	net->ops = net->options.precision == NEAP_DOUBLE ? &neap__precision_ops_double
							 : &neap__precision_ops_float;
	NEAP_TRY(neap__isa_choose(&isa));
	net->kernels = net->ops->kernels(isa);
	NEAP_TRY(neap__net_parse(net));
	neap__debug("net '%s': kernels %s, %d threads", net->options.spec, neap__isa_name(isa),
		threads);
	if (net->options.compile_cells)
		NEAP_TRY(neap__cells_compile(net));
	NEAP_TRY(neap__net_layout(net));
	if (net->options.precision == NEAP_BF16)
		NEAP_TRY(neap__bf16_check(net, isa));
	NEAP_TRY(neap__tiles_choose(net, isa));
	NEAP_TRY(neap__net_tensors(net));
	net->slice_to = net->elements;
	NEAP_TRY(neap__net_freeze(net));
	NEAP_TRY(make_arrays(net));
	NEAP_TRY(neap__bf16_mark(net));
	NEAP_TRY(neap__net_packed(net));
	NEAP_TRY(neap__outer_tiles_make(net));
	return neap__thread_pool_create(&net->pool, threads);
}

int neap__net_create_in(struct neap_net **out, const struct neap_net_options *options,
	const struct neap__net_memory *memory)
{
	NEAP_NEED(out, options);
	*out = NULL;
	if (!options || options->size < sizeof options->size || options->size > sizeof *options)
		return neap__fail(NEAP_EUSAGE, "net options of unknown size");
	struct neap_net *net = calloc(1, sizeof *net);
	if (!net)
		return neap__fail_errno(ENOMEM, "net");
	memcpy(&net->options, options, options->size);
	net->blocks.memory = memory;
	int rc = build(net);
	if (rc == 0)
		rc = neap__on_device_open(net);
	net->options.device = NULL; /* borrowed for this call */
	net->options.spec = net->spec;
	net->options.freeze = NULL; /* borrowed for this call */
	net->options.shape = NULL;  /* the specification has it as a key */
	if (rc < 0) {
		neap_net_free(net);
		return rc;
	}
	*out = net;
	return 0;
}

int neap__net_weights(double *weights, const struct neap_net_options *options)
{
	struct neap_net net = {.options = *options, .blocks = {.memory = &neap__heap_memory}};
	int rc = check_options(options);

	if (rc == 0)
		rc = neap__net_parse(&net);
	*weights = 0;
	for (int l = 0; l < net.nlayers && rc == 0; l++) {
		const struct neap__layer *layer = &net.layers[l];
		double columns = layer->conv[0] ? neap__filter_columns(layer) : layer->n;
		double own = layer->is_recurrent ? (double)layer->n * layer->n : 0;
		*weights += layer->density * (neap__filter_rows(layer) * columns + own);
	}
	neap__net_put_all(&net);
	free(net.spec);
	return rc;
}

int neap_net_create(struct neap_net **out, const struct neap_net_options *options)
{
	return neap__net_create_in(out, options, &neap__heap_memory);
}

void neap_net_free(struct neap_net *net)
{
	if (!net)
		return;
	neap__on_device_free(net);
	neap__thread_pool_free(net->pool);
	neap__net_put_all(net);
	free(net->spec);
	free(net->whole_spec);
	free(net);
}

int neap_net_params(const struct neap_net *net)
{
	NEAP_NEED(net);
	return net->ntensors;
}

int neap_net_param(const struct neap_net *net, int index, struct neap_param *param)
{
	NEAP_NEED(net, param);
	if (index < 0 || index >= net->ntensors)
		return neap__fail(NEAP_EUSAGE, "the net has %d tensors; there is no number %d",
			net->ntensors, index);
	NEAP_TRY(neap__on_device_share((struct neap_net *)(uintptr_t)net));
	const struct neap__param *t = &net->tensors[index];
	*param = (struct neap_param){.name = t->name,
		.rows = t->rows,
		.columns = t->columns,
		.count = t->count,
		.data = t->data,
		.grad = t->grad,
		.row_start = t->row_start,
		.column = t->column,
		.is_leak = t->is_leak || t->is_delay,
		.precision = neap__number_type(net)};
	return 0;
}

int neap_net_frozen(const struct neap_net *net, int index)
{
	NEAP_NEED(net);
	return index >= 0 && index < net->ntensors && net->tensors[index].is_frozen;
}

const char *neap_net_spec(const struct neap_net *net)
{
	if (!net)
		return NULL;
	return net->spec;
}

uint64_t neap_net_grad_hash(const struct neap_net *net)
{
	if (!net)
		return 0;
	XXH3_state_t state;

	XXH3_64bits_reset(&state);
	for (int i = 0; i < net->ntensors; i++)
		XXH3_64bits_update(&state, net->tensors[i].grad,
			(size_t)net->tensors[i].count * sizeof(double));
	return XXH3_64bits_digest(&state);
}

int neap_net_get_result(const struct neap_net *net, struct neap_net_result *result)
{
	NEAP_NEED(net, result);
	double support = 0, recorded = 0;

	/* Of all that was recorded, also after turn. */
	for (int g = 0; g < net->ngroups; g++) {
		support += net->groups[g].support;
		recorded += net->groups[g].recorded;
	}
	if (net->peer_room && net->peer_room->ended) {
		support = net->peer_room->support;
		recorded = net->peer_room->recorded;
	}
	NEAP_TRY(
		neap__struct_size(result->size, sizeof *result, sizeof *result, "neap_net_result"));
	*result = net->result;
	result->size = sizeof *result;
	result->support = recorded > 0 ? support / recorded : 0;
	return 0;
}
