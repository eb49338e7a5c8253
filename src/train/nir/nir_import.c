/* SPDX-License-Identifier: Apache-2.0 */
/* nir_import.c: a graph of NIR as the file of a model (nir_model.h). */
#include "train/nir/nir_model.h"
#include "train/nir/nir_chain.h"
#include "train/nir/nir_weights.h"
#include "train/settings.h"
#include "nn/core/cell.h"
#include "nn/net.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/print.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Decays of a graph and of the net in its metadata are the same where they differ by less. */
#define SAME 1e-5
/* The logit of a decay that leaves nothing. */
#define LEAST_LOGIT (-40.0)

static const char *const reset_names[] = {NEAP_RESET_TABLE(NEAP_CHOICE_NAME)};

struct importing {
	const char *path;
	const struct neap__nir_hints *hints;
	const struct neap__nir_graph *graph;
	struct neap__nir_sums sums;
	struct neap__nir_chain chain;
	double dt;
	json_t *json; /* of the metadata's net, which owns texts of `described` */
	struct neap_net_options described;
	struct neap_net *net;
	char *settings; /* what the file of the model says of its net */
};

static const char *meta_text(const struct importing *m, const char *name)
{
	const struct neap__nir_meta *meta = neap__nir_meta(m->graph, name);
	return meta ? meta->text : NULL;
}

/* Seconds, as settings accept them. */
static const double LEAST_STEP = 1e-12, LONGEST_STEP = 1e6;

static int find_dt(struct importing *m)
{
	const struct neap__nir_meta *meta = neap__nir_meta(m->graph, "dt");

	m->dt = m->hints->dt;
	if (!(m->dt > 0) && meta && meta->array.count == 1)
		m->dt = meta->array.data[0];
	double said = meta && meta->array.count == 1 ? meta->array.data[0] : 0;
	if (m->hints->keeps_dt && said >= LEAST_STEP && said <= LONGEST_STEP) {
		if (!(fabs(m->dt - said) <= 1e-6 * said))
			return neap__fail(NEAP_EUSAGE,
				"'%s' specifies a time step of %g s, but --dt is %g s. Remove "
				"--dt, which is for graphs that do not specify one",
				m->path, said, m->dt);
		m->dt = said;
	}
	if (m->dt >= LEAST_STEP && m->dt <= LONGEST_STEP)
		return 0;
	if (m->dt > 0)
		return neap__fail(NEAP_EUSAGE,
			"'%s': the time step is %g s; it must be between %g and %g s", m->path,
			m->dt, LEAST_STEP, LONGEST_STEP);
	return neap__fail(NEAP_EUSAGE,
		"'%s' does not specify its time step. Pass --dt (graphs of snnTorch use 0.1ms)",
		m->path);
}

/* ---- the net that metadata describes ---- */

/* The cell of a layer. */
static const char *cell_of(const struct neap__nir_layer *l)
{
	return l->is_readout					   ? "li"
	       : l->type == NEAP__NIR_CUBALIF			   ? "cubalif"
	       : l->type == NEAP__NIR_LI || l->type == NEAP__NIR_I ? "integrator"
								   : "lif";
}

static int is_cell(const char *name, size_t length, const struct neap__nir_layer *l)
{
	const char *want = cell_of(l);
	return strlen(want) == length && memcmp(want, name, length) == 0;
}

/* Compares layers and sizes before anything is made of a text that may claim any. */
static int spec_fits(const struct importing *m)
{
	const char *at = m->described.spec;
	const struct neap__nir_chain *chain = &m->chain;

	if (m->described.inputs != chain->inputs ||
		m->described.classes != chain->layer[chain->layers - 1].n)
		return 0;
	for (int l = 0; l < chain->layers; l++) {
		size_t name = strcspn(at, ":,");
		char *end = NULL;
		long n = at[name] == ':' ? strtol(at + name + 1, &end, 10) : 0;
		int last = l == chain->layers - 1,
		    is_conv = neap__nir_conv(&chain->layer[l]) != NULL;
		if (!is_cell(at, name, &chain->layer[l]) ||
			(!is_conv && n != chain->layer[l].n && !(last && end == at + name + 1) &&
				!(last && n == 0)))
			return 0;
		at += strcspn(at, ",");
		if ((*at == ',') == last)
			return 0;
		at++;
	}
	return 1;
}

/* Weights that a text asks for, against the numbers of the graph. */
static int weights_fit(const struct importing *m)
{
	double weights, numbers = UINT16_MAX;

	for (int i = 0; i < m->graph->nodes; i++)
		for (int p = 0; p < NEAP__NIR_PARAMS; p++)
			numbers += (double)m->graph->node[i].param[p].count;
	return neap__net_weights(&weights, &m->described) == 0 && weights <= 2 * numbers;
}

static int near(double a, double b)
{
	return fabs(a - b) <= SAME * fmax(fabs(a), fabs(b)) + 1e-12;
}

static double decay_at(const struct neap_net *net, const struct neap__leak *leak, int64_t i)
{
	struct neap_param p;

	if (leak->tensor < 0 || neap_net_param(net, leak->tensor, &p) < 0)
		return leak->start;
	double logit = p.precision == NEAP_DOUBLE ? ((const double *)p.data)[i]
						  : (double)((const float *)p.data)[i];
	return 1 / (1 + exp(-logit));
}

static int windows_agree(const struct neap__nir_filter *a, const struct neap__windows *b)
{
	for (int i = 0; i < 2; i++)
		if (b->size[i] != (a ? a->kernel[i] : 0) ||
			(a && (b->stride[i] != a->stride[i] || b->pad[i] != a->pad[i])))
			return 0;
	return !a || b->by == (a->is_average ? NEAP__POOL_AVERAGE : NEAP__POOL_SUM);
}

static int filter_agrees(const struct neap__nir_layer *a, const struct neap__layer *b)
{
	const struct neap__nir_filter *conv = neap__nir_conv(a), *pool = neap__nir_pool(a);

	const struct neap__nir_image *from = pool ? &pool->from : conv ? &conv->from : NULL;

	if (from && (b->from.channels != from->channels || b->from.height != from->height ||
			    b->from.width != from->width))
		return 0;
	if (conv && b->channels != conv->to.channels)
		return 0;
	for (int i = 0; i < 2; i++)
		if (b->conv[i] != (conv ? conv->kernel[i] : 0) ||
			(conv && (b->stride[i] != conv->stride[i] || b->pad[i] != conv->pad[i] ||
					 b->dilation[i] != conv->dilation[i])))
			return 0;
	return (!conv || b->groups == conv->groups) && windows_agree(pool, &b->pool) &&
	       windows_agree(neap__nir_behind(a), &b->conv_pool);
}

/* The steps of delay that all units have; -1: they have different ones. */
static int delay_of(const struct neap__layer *layer)
{
	if (layer->delays.tensor >= 0)
		return -1;
	return layer->delay ? layer->delay : layer->delays.most;
}

/* Does the graph still say of a layer what the net does? Resets are beyond a graph. */
static int layer_agrees(const struct importing *m, int index)
{
	const struct neap__nir_layer *a = &m->chain.layer[index];
	const struct neap__layer *b = &m->net->layers[index];

	if (b->nsources != a->feeds || b->norm.kind) /* a graph has no statistics */
		return 0;
	for (int i = 0; i < a->feeds; i++)
		if (b->source[i].layer != a->feed[i].layer)
			return 0;
	if (b->n != a->n || b->below != a->below || delay_of(b) != a->delay ||
		b->is_recurrent != (a->own != NULL) || !filter_agrees(a, b))
		return 0;
	for (int64_t i = 0; i < a->n; i++) {
		if (a->gain[i] != 1)
			return 0;
		for (int k = 0; k < b->nleaks; k++)
			if (!near(1 - decay_at(m->net, &b->leaks[k], i),
				    1 - a->decay[k][neap__nir_unit(a, i)]))
				return 0;
	}
	if (!(b->cell->traits & NEAP__HAS_THRESHOLD))
		return 1;
	return near(a->threshold, b->threshold) &&
	       (b->reset != NEAP_RESET_HARD || near(a->reset_value, b->reset_value));
}

/* Logits of leaks as metadata keeps them, where they are there. */
static void take_logits(const struct importing *m)
{
	struct neap_param p;

	for (int i = 0; i < neap_net_params(m->net); i++) {
		if (neap_net_param(m->net, i, &p) < 0 || !p.is_leak)
			continue;
		const struct neap__nir_meta *meta = neap__nir_meta(m->graph, p.name);
		if (!meta || meta->text || meta->array.count != p.count)
			continue;
		for (int64_t k = 0; k < p.count; k++) {
			if (p.precision == NEAP_DOUBLE)
				((double *)p.data)[k] = meta->array.data[k];
			else
				((float *)p.data)[k] = (float)meta->array.data[k];
		}
	}
}

/* Makes the net of the metadata where it fits the graph: 1, 0 where it does not, or -ENOMEM. */
static int make_described(struct importing *m)
{
	const char *text = meta_text(m, "neap.net");

	m->json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (!m->json || neap__settings_take_net(&m->described, m->json) < 0 || !spec_fits(m) ||
		!weights_fit(m))
		return 0;
	m->described.threads = 1;
	int rc = neap_net_create(&m->net, &m->described);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	take_logits(m);
	return 1;
}

/* ---- the net that the graph alone says ---- */

/* A Threshold and a layer that repeats another one have no membrane: what a reset does is lost. */
static enum neap_reset reset_of(const struct importing *m, const struct neap__nir_layer *l,
	const struct neap_net *described, int index)
{
	if (l->type == NEAP__NIR_THRESHOLD)
		return NEAP_RESET_HARD;
	if (m->hints->reset)
		return *m->hints->reset;
	return described && index < described->nlayers ? described->layers[index].reset
						       : NEAP_RESET_HARD;
}

static void add_windows(
	struct neap__text *spec, const char *name, const struct neap__nir_filter *pool)
{
	if (pool)
		neap__text_add(spec, ":%s=%dx%d:%sing=%s:%s_stride=%dx%d:%s_pad=%dx%d", name,
			pool->kernel[0], pool->kernel[1], name, pool->is_average ? "avg" : "sum",
			name, pool->stride[0], pool->stride[1], name, pool->pad[0], pool->pad[1]);
}

static void add_filter(struct neap__text *spec, const struct neap__nir_layer *l)
{
	const struct neap__nir_filter *conv = neap__nir_conv(l), *pool = neap__nir_pool(l);
	const struct neap__nir_image *from = pool ? &pool->from : conv ? &conv->from : NULL;

	if (from)
		neap__text_add(spec, ":shape=%lldx%lldx%lld", (long long)from->channels,
			(long long)from->height, (long long)from->width);
	add_windows(spec, "pool", pool);
	if (conv)
		neap__text_add(spec,
			":conv=%dx%d:channels=%lld:stride=%dx%d:pad=%dx%d:dilation=%dx%d:groups=%d",
			conv->kernel[0], conv->kernel[1], (long long)conv->to.channels,
			conv->stride[0], conv->stride[1], conv->pad[0], conv->pad[1],
			conv->dilation[0], conv->dilation[1], conv->groups);
	add_windows(spec, "conv_pool", neap__nir_behind(l));
}

/* What a layer receives, where that is not the layer below alone. */
static void add_sources(struct neap__text *spec, const struct neap__nir_layer *l, int index)
{
	if (l->feeds == 1 && l->feed[0].layer == index - 1)
		return;
	for (int i = 0; i < l->feeds; i++) {
		neap__text_add(spec, i ? "+" : ":from=");
		if (l->feed[i].layer < 0)
			neap__text_add(spec, "input");
		else
			neap__text_add(spec, "layer%d", l->feed[i].layer);
	}
}

static int add_layer(const struct importing *m, struct neap__text *spec, int index,
	const struct neap_net *described)
{
	const struct neap__nir_layer *l = &m->chain.layer[index];
	int cuba = l->type == NEAP__NIR_CUBALIF, same = l->same[0] && (!cuba || l->same[1]);

	int spikes = l->type != NEAP__NIR_LI && l->type != NEAP__NIR_I;

	neap__text_add(spec, "%s%s", index ? "," : "", cell_of(l));
	if (!l->is_readout)
		neap__text_add(spec, ":%lld%s:dropout=0", (long long)l->n, l->own ? "r" : "");
	if (spikes)
		neap__text_add(spec, ":reset=%s:reset_value=%.17g:threshold=%.17g",
			reset_names[reset_of(m, l, described, index)], l->reset_value,
			l->threshold);
	add_sources(spec, l, index);
	add_filter(spec, l);
	neap__text_add(spec, ":tau=%.17gs", l->tau[0]);
	if (cuba)
		neap__text_add(spec, ":tau_syn=%.17gs", l->tau[1]);
	if (index > 0)
		neap__text_add(spec, ":delay=%d", l->delay);
	return neap__text_add(spec, ":density=1:learn=%s", same ? "none" : "tau");
}

/* Sets the logits of a layer's leaks. */
static void set_logits(const struct importing *m, int index)
{
	const struct neap__nir_layer *a = &m->chain.layer[index];
	const struct neap__layer *b = &m->net->layers[index];
	struct neap_param p;

	for (int k = 0; k < neap__learned(b); k++) {
		if (neap_net_param(m->net, b->leaks[k].tensor, &p) < 0)
			continue;
		for (int64_t i = 0; i < a->n; i++) {
			double d = a->decay[k][neap__nir_unit(a, i)];
			double logit = d > 0 ? log(d / (1 - d)) : LEAST_LOGIT;
			logit = fmin(fmax(logit, LEAST_LOGIT), -LEAST_LOGIT);
			if (p.precision == NEAP_DOUBLE)
				((double *)p.data)[i] = logit;
			else
				((float *)p.data)[i] = (float)logit;
		}
	}
}

static int make_own(struct importing *m)
{
	const struct neap__nir_chain *chain = &m->chain;
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	struct neap_net *described = m->net;
	struct neap__text spec = {0};
	struct neap__json json = {0};
	int rc = 0;

	m->net = NULL;
	for (int l = 0; rc == 0 && l < chain->layers; l++)
		rc = add_layer(m, &spec, l, described);
	o.values = described ? m->described.values : m->hints->values;
	if (described) /* what no graph says */
		o.readout = m->described.readout;
	else
		o.readout =
			chain->layer[chain->layers - 1].node < 0 ? NEAP_READ_SUM : NEAP_READ_MEAN;
	neap_net_free(described);
	o.spec = spec.data;
	o.inputs = (int)chain->inputs;
	o.classes = (int)chain->layer[chain->layers - 1].n;
	o.dt = m->dt;
	o.euler = 1;
	o.seed = 1;
	o.threads = 1;
	o.precision = chain->is_single ? NEAP_FLOAT : NEAP_DOUBLE;
	if (rc == 0) {
		rc = neap_net_create(&m->net, &o);
		if (rc == NEAP_EUSAGE)
			rc = neap__fail_in(NEAP_EFORMAT, "'%s': ", m->path);
	}
	if (rc == 0) {
		for (int l = 0; l < chain->layers; l++)
			set_logits(m, l);
		o.threads = 0;
		neap__settings_write_net(&json, &o);
		if (json.text.error || !(m->settings = strdup(json.text.data)))
			rc = neap__fail_errno(ENOMEM, "'%s'", m->path);
	}
	neap__json_free(&json);
	neap__text_free(&spec);
	return rc;
}

/* ---- the file of a model ---- */

/* Adds a tensor whose numbers are copied to *at. */
static void add_tensor(struct neap__safetensors *file, const char *name, enum neap__dtype dtype,
	int dims, const uint64_t *shape, const void *data, char **at)
{
	struct neap__file_tensor *t = &file->tensor[file->tensors++];

	*t = (struct neap__file_tensor){.name = name,
		.dtype = dtype,
		.dims = dims,
		.data = *at,
		.bytes = neap__dtype_bytes(dtype)};
	for (int i = 0; i < dims; i++) {
		t->shape[i] = shape[i];
		t->bytes *= (size_t)shape[i];
	}
	if (t->bytes)
		memcpy(*at, data, t->bytes);
	*at += (t->bytes + 7) & ~(size_t)7;
}

/* A text that the file owns. */
static const char *own(struct neap__safetensors *file, const char *text)
{
	json_t *copy = json_string_nocheck(text);
	if (!copy || json_array_append_new(file->header, copy) < 0)
		return NULL;
	return json_string_value(copy);
}

static int add_pair(struct neap__safetensors *file, const char *key, const char *value)
{
	const char *k = own(file, key), *v = own(file, value);

	if (!k || !v)
		return -ENOMEM;
	file->pair[file->pairs++] = (struct neap__metadata){k, v};
	return 0;
}

static int add_pairs(const struct importing *m, struct neap__safetensors *file)
{
	static const char *const kept[] = {"neap.classes", "neap.loss", "neap.target", "neap.epoch",
		"neap.inputs", "neap.encoder", "neap.features", "neap.events", "neap.channels",
		"neap.samples"};
	const char *cut = meta_text(m, "neap.max_steps");

	NEAP_TRY(add_pair(file, "neap.format", "1"));
	NEAP_TRY(add_pair(file, "neap.net", m->settings));
	NEAP_TRY(add_pair(file, "neap.max_steps", cut ? cut : "0"));
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		if (meta_text(m, kept[i]))
			NEAP_TRY(add_pair(file, kept[i], meta_text(m, kept[i])));
	return 0;
}

static int add_tensors(const struct importing *m, struct neap__safetensors *file)
{
	char *at = file->buffer, name[96];
	struct neap_param p;

	for (int i = 0; i < neap_net_params(m->net); i++) {
		NEAP_TRY(neap_net_param(m->net, i, &p));
		uint64_t shape[2] = {(uint64_t)p.rows, (uint64_t)p.columns};
		uint64_t rows = (uint64_t)p.rows + 1, count = (uint64_t)p.count;
		const char *own_name = own(file, p.name);
		if (!own_name)
			return -ENOMEM;
		add_tensor(file, own_name, p.precision == NEAP_DOUBLE ? NEAP__F64 : NEAP__F32,
			p.column ? 1 : 2, p.column ? &count : shape, p.data, &at);
		if (!p.column)
			continue;
		neap__print(name, sizeof name, "%s.row_start", p.name);
		if (!(own_name = own(file, name)))
			return -ENOMEM;
		add_tensor(file, own_name, NEAP__U32, 1, &rows, p.row_start, &at);
		neap__print(name, sizeof name, "%s.column", p.name);
		if (!(own_name = own(file, name)))
			return -ENOMEM;
		add_tensor(file, own_name, NEAP__U16, 1, &count, p.column, &at);
	}
	return 0;
}

static int make_file(const struct importing *m, struct neap__safetensors *file)
{
	size_t bytes = 0, tensors = (size_t)neap_net_params(m->net) * 3;
	struct neap_param p;

	for (int i = 0; i < neap_net_params(m->net); i++) {
		NEAP_TRY(neap_net_param(m->net, i, &p));
		bytes += (size_t)p.count * (sizeof(double) + sizeof(uint16_t)) +
			 ((size_t)p.rows + 1) * sizeof(uint32_t) + 64;
	}
	*file = (struct neap__safetensors){.tensor = calloc(tensors + 1, sizeof *file->tensor),
		.pair = calloc(16, sizeof *file->pair),
		.header = json_array(),
		.buffer = malloc(bytes + 1)};
	int rc = file->tensor && file->pair && file->header && file->buffer ? 0 : -ENOMEM;
	if (rc == 0)
		rc = add_tensors(m, file);
	if (rc == 0)
		rc = add_pairs(m, file);
	if (rc == 0)
		return 0;
	neap__safetensors_free(file);
	return neap__fail_errno(ENOMEM, "'%s'", m->path);
}

/* Makes m->net and its weights: that of the metadata, if the graph agrees; else one of the graph.
 */
static int make_net(struct importing *m)
{
	const struct neap__nir_meta *meta = neap__nir_meta(m->graph, "dt");
	int agrees;

	NEAP_TRY(agrees = make_described(m));
	if (m->hints->reset || (agrees && m->described.dt != m->dt) || !meta)
		agrees = 0;
	for (int l = 0; agrees && l < m->chain.layers; l++)
		agrees = layer_agrees(m, l);
	if (agrees && neap__nir_weights_set(m->net, &m->chain)) {
		m->settings = strdup(meta_text(m, "neap.net"));
		return m->settings ? 0 : neap__fail_errno(ENOMEM, "'%s'", m->path);
	}
	NEAP_TRY(make_own(m));
	return neap__nir_weights_set(m->net, &m->chain)
		       ? 0
		       : neap__fail(
				 NEAP_EFORMAT, "'%s': the weights do not fit the network", m->path);
}

int neap__nir_model_of(struct neap__safetensors *file, const struct neap__nir_graph *graph,
	const char *path, const struct neap__nir_hints *hints)
{
	struct importing m = {.path = path, .hints = hints, .graph = graph};

	*file = (struct neap__safetensors){0};
	NEAP_TRY(find_dt(&m));
	int rc = neap__nir_sums_make(&m.sums, graph, path);
	if (rc == 0)
		rc = neap__nir_chain_make(&m.chain, &m.sums, m.dt);
	if (rc == 0)
		rc = make_net(&m);
	if (rc == 0)
		rc = make_file(&m, file);
	neap_net_free(m.net);
	free(m.settings);
	json_decref(m.json);
	neap__nir_chain_free(&m.chain);
	neap__nir_sums_free(&m.sums);
	return rc;
}

int neap__nir_model_read(
	struct neap__safetensors *file, const char *path, const struct neap__nir_hints *hints)
{
	struct neap__nir_graph graph;

	*file = (struct neap__safetensors){0};
	NEAP_TRY(neap__nir_read(&graph, path));
	int rc = neap__nir_model_of(file, &graph, path, hints);
	neap__nir_free(&graph);
	return rc;
}
