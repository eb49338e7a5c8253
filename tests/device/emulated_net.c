/* SPDX-License-Identifier: Apache-2.0 */
/* emulated_net.c: the two passes, and the comparison (emulated_net.h). */
#include "emulated_net.h"
#include "device/readout_steps.h"
#include "emulator/emulator.h"
#include "nn/core/cell.h"
#include "nn/batch/sum_tree.h"

/* A call forward: its tapes. */
struct piece {
	struct neap__device_tapes tapes;
	float *outputs, *factors;
};

struct emulated_net {
	struct emulated_case *c;
	struct neap__device_net device;
	struct neap__device_launcher launcher;
	struct neap__device_room room;
	u32 *events_at, *start;
	u16 *unit;
	float *values;
	u32 **passes;  /* [layers] of dropout */
	float **leaks; /* [layers][DEVICE_LEAKS] decays of units */
	u8 **delays;   /* [layers] */
	float **parts; /* [layers] of learned delays */
	int *length;
	unsigned char *state, *adjoint;
	float *work;
	struct piece *piece;
	int pieces;
	uint32_t seed;
	char wrong[256];
};

static int run_kernel(void *user, const struct neap__device_launch *launch)
{
	struct emulated_net *e = user;
	void *args[] = {(void *)(uintptr_t)launch->arguments};

	if (e->c->launch)
		return e->c->launch(e->c->user, launch);
	if (emulator_launch_clusters(emulated_kernel(neap__device_kernel_name(launch->kernel)),
		    launch->blocks, launch->cluster ? launch->cluster : 1, launch->threads,
		    launch->shared_bytes, args, e->seed ? e->seed++ : 0) == 0)
		return 0;
	snprintf(e->wrong, sizeof e->wrong, "%s", emulator_report());
	return -1;
}

static int clear(void *user, void *at, size_t bytes)
{
	(void)user;
	memset(at, 0, bytes);
	return 0;
}

static int differ(struct emulated_net *e, const char *what, int at, const void *a, const void *b,
	size_t bytes)
{
	size_t first = 0;

	if (e->c->keeps) {
		memcpy((void *)(uintptr_t)a, b, bytes);
		return 0;
	}
	while (first < bytes && ((const char *)a)[first] == ((const char *)b)[first])
		first++;
	if (first == bytes)
		return 0;
	snprintf(e->wrong, sizeof e->wrong, "%s %d differs at byte %zu of %zu", what, at, first,
		bytes);
	return -1;
}

/* Memory of exactly so many bytes, so that AddressSanitizer finds accesses beyond them. */
static void *exactly(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);
	assert_non_null(p);
	memset(p, 0xA5, bytes);
	return p;
}

static void *zeros(size_t bytes)
{
	return memset(exactly(bytes), 0, bytes);
}

/* Puts the numbers of steps [t0, t1) on the device. */
static void load_values(struct emulated_net *e, int t0, int t1)
{
	const struct neap_batch *batch = &e->c->batch.batch;
	size_t inputs = (size_t)batch->inputs, row = (size_t)batch->size * inputs;

	free(e->values);
	e->values = zeros((size_t)(t1 - t0) * row * sizeof *e->values);
	for (int s = 0; s < batch->size; s++)
		for (int t = t0; t < t1 && t < batch->sequences[s].length; t++)
			memcpy(e->values + (size_t)(t - t0) * row + (size_t)s * inputs,
				batch->sequences[s].values + (size_t)t * inputs,
				inputs * sizeof *e->values);
	e->device.batch.first_step = t0;
	e->device.batch.length = e->length;
	e->device.batch.values = e->values;
}

/* Puts the events of steps [t0, t1) on the device. */
static void load_events(struct emulated_net *e, int t0, int t1)
{
	const struct neap_batch *batch = &e->c->batch.batch;
	size_t starts = 0, events = 0, most = 0;

	if (batch->values) {
		load_values(e, t0, t1);
		return;
	}
	for (int s = 0; s < batch->size; s++)
		if (batch->sequences[s].length > t0)
			most += batch->sequences[s].start[batch->sequences[s].length];
	free(e->start);
	free(e->unit);
	e->start = exactly((size_t)batch->size * (size_t)(t1 - t0 + 1) * sizeof *e->start);
	e->unit = exactly(most * sizeof *e->unit);
	for (int s = 0; s < batch->size; s++) {
		const struct neap_sequence *q = &batch->sequences[s];
		int end = q->length < t1 ? (int)q->length : t1;
		e->events_at[s] = (u32)starts;
		for (int t = t0; t < end; t++) {
			e->start[starts++] = (u32)events;
			for (u32 k = q->start[t]; k < q->start[t + 1]; k++)
				e->unit[events++] = q->unit[k];
		}
		e->start[starts++] = (u32)events;
	}
	e->device.batch.first_step = t0;
	e->device.batch.length = e->length;
	e->device.batch.events_at = e->events_at;
	e->device.batch.start = e->start;
	e->device.batch.unit = e->unit;
}

static void make_dense_room(struct emulated_net *e)
{
	const struct neap__device_net *d = &e->device;
	struct neap__device_room *r = &e->room;
	size_t layers = (size_t)d->layers, samples = (size_t)d->batch.samples;
	size_t rows = (BLOCK + 1) * samples * sizeof(float);
	size_t columns = (size_t)d->readout.classes, most = 0;

	r->dense_outputs = zeros(3 * layers * sizeof *r->dense_outputs);
	r->values = r->dense_outputs + layers;
	r->gated_values = r->values + layers;
	for (size_t l = 0; l < layers; l++) {
		size_t units = (size_t)d->dense[l].units, in = (size_t)d->dense[l].in;
		r->dense_outputs[l] = exactly(rows * units);
		r->values[l] = exactly(rows * units);
		r->gated_values[l] = exactly(rows * (d->dense[l].candidate ? units : 0));
		columns = in > columns ? in : columns;
		most = units > most ? units : most;
	}
	r->passed = exactly(rows * most);
	r->sums = exactly(BLOCK * samples * columns * sizeof *r->sums);
	r->gated = exactly(samples * most * sizeof *r->gated);
}

static void make_room(struct emulated_net *e)
{
	const struct neap_net *net = e->c->net;
	const struct neap__device_net *d = &e->device;
	struct neap__device_room *r = &e->room;
	size_t layers = (size_t)d->layers, samples = (size_t)d->batch.samples, steps = BLOCK;
	size_t bits = 2 * (size_t)d->batch.group * (size_t)d->groups * sizeof(u32);
	size_t tensors = (size_t)net->ntensors, classes = (size_t)d->readout.classes, first = 0;

	r->steps = BLOCK;
	r->replay_steps = e->c->replay_steps;
	r->spikes = zeros(layers * sizeof *r->spikes);
	r->currents = zeros(layers * sizeof *r->currents);
	r->rows = zeros(layers * sizeof *r->rows);
	r->count = zeros(layers * sizeof *r->count);
	r->part = zeros(tensors * sizeof *r->part);
	r->total = zeros(tensors * sizeof *r->total);
	r->turned = zeros(2 * tensors * sizeof *r->turned);
	r->spread = r->turned + tensors;
	r->row_start = zeros(tensors * sizeof *r->row_start);
	r->column = zeros(tensors * sizeof *r->column);
	r->row_bytes = bits * ((size_t)net->hidden + (size_t)d->batch.inputs);
	r->row_bits = exactly(r->row_bytes);
	r->input_rows = (u32 *)(void *)((char *)r->row_bits + bits * (size_t)net->hidden);
	if (d->dense)
		make_dense_room(e);
	for (size_t l = 0; l < layers; l++) {
		size_t units = (size_t)neap__device_units(d, (int)l);
		size_t wide = d->dense ? (size_t)d->dense[l].sums : units;
		r->spikes[l] = exactly((steps + 1) * samples * neap__device_words((int)units) *
				       sizeof **r->spikes);
		r->currents[l] = exactly((steps + 1) * samples * wide * sizeof **r->currents);
		r->rows[l] = (u32 *)(void *)((char *)r->row_bits + bits * first);
		first += units;
		r->count[l] = zeros((size_t)neap__device_counts(d) * units * sizeof **r->count);
	}
	for (size_t i = 0; i < tensors; i++) {
		size_t count = (size_t)d->groups * (size_t)net->tensors[i].count;
		r->part[i] = zeros(count * sizeof **r->part);
		r->total[i] = zeros(count * sizeof **r->total);
		size_t places = (size_t)(net->tensors[i].rows * net->tensors[i].columns);
		r->row_start[i] = net->tensors[i].row_start;
		r->column[i] = net->tensors[i].column;
		if (neap__device_turns(d, (int)i))
			r->turned[i] = exactly(places * sizeof(float));
		if (neap__device_spreads(d, (int)i))
			r->spread[i] = exactly(places * sizeof(float));
	}
	r->leak_terms = zeros(DEVICE_LEAKS * (layers + 1) * sizeof *r->leak_terms);
	for (size_t l = 0; l <= layers; l++)
		for (size_t k = 0; k < (size_t)neap__learned(&net->layers[l]); k++)
			r->leak_terms[DEVICE_LEAKS * l + k] =
				exactly((steps + 1) * samples * (size_t)net->layers[l].n *
					sizeof **r->leak_terms);
	r->readout_currents = exactly((steps + 1) * samples * classes * sizeof(float));
	r->errors = exactly(steps * samples * classes * sizeof(float));
	r->penalty = net->has_penalty ? (const float **)(void *)net->penalty : NULL;
	e->work = exactly(3 * classes * sizeof *e->work);
}

/* Which units dropout lets pass. */
static void load_passes(struct emulated_net *e)
{
	struct neap__device_net *d = &e->device;

	e->passes = zeros((size_t)d->layers * sizeof *e->passes);
	for (int l = 0; l < d->layers && e->c->net->drops; l++)
		if (neap__device_drops(d, l)) {
			size_t words = neap__device_words(neap__device_units(d, l));
			e->passes[l] =
				exactly((size_t)d->batch.samples * words * sizeof **e->passes);
			neap__device_passes_write(d, l, e->passes[l]);
			neap__device_passes_set(d, l, e->passes[l]);
		}
}

/* Decays and delays of units, in memory of exactly their size. */
static void load_units(struct emulated_net *e)
{
	struct neap__device_net *d = &e->device;

	e->delays = zeros((size_t)(d->layers + 1) * sizeof *e->delays);
	e->parts = zeros((size_t)(d->layers + 1) * sizeof *e->parts);
	e->leaks = zeros(DEVICE_LEAKS * (size_t)(d->layers + 1) * sizeof *e->leaks);
	for (int l = 0; l <= d->layers; l++) {
		const struct neap__layer *layer = &e->c->net->layers[l];
		float **rows = e->leaks + DEVICE_LEAKS * (size_t)l;
		if (neap__has_delays(layer)) {
			size_t units = (size_t)layer->delays.units;
			e->delays[l] = copy_of(layer->delays.whole, units);
			e->parts[l] = copy_of(layer->delays.part, units * sizeof **e->parts);
			neap__device_delays_set(d, l, e->delays[l], e->parts[l]);
		}
		if (!neap__device_leaks(layer))
			continue;
		for (int k = 0; k < layer->nleaks && k < DEVICE_LEAKS; k++)
			rows[k] = copy_of(
				layer->leaks[k].decay, 3 * (size_t)layer->n * sizeof **rows);
		neap__device_leaks_set(d, l, (const float *const *)rows);
	}
}

static void begin(struct emulated_net *e)
{
	const struct neap_net *net = e->c->net;
	const float **weights = calloc((size_t)net->ntensors, sizeof *weights);

	for (int i = 0; i < net->ntensors; i++)
		weights[i] = net->tensors[i].data;
	assert_int_equal(neap__device_net_describe(&e->device, net, weights), 0);
	free(weights);
	e->device.shared = e->c->shared;
	e->device.processors = e->c->processors;
	assert_int_equal(neap__device_clusters(&e->device, &e->c->clusters), 0);
	e->launcher = (struct neap__device_launcher){run_kernel, clear, e};
	e->events_at = exactly((size_t)net->batch->size * sizeof *e->events_at);
	e->length = exactly((size_t)net->batch->size * sizeof *e->length);
	for (int s = 0; s < net->batch->size; s++)
		e->length[s] = (int)net->batch->sequences[s].length;
	load_events(e, 0, (int)net->batch->steps);
	load_passes(e);
	load_units(e);
	make_room(e);
	e->state = zeros(e->c->sizes.state);
	e->adjoint = copy_of(e->c->turned, e->c->sizes.adjoint);
	e->piece = zeros((size_t)net->batch->steps * sizeof *e->piece);
}

static void end_piece(const struct emulated_net *e, struct piece *piece)
{
	for (int l = 0; l < e->device.layers; l++) {
		free(piece->tapes.layer[l].tape);
		free(piece->tapes.layer[l].offset);
		free(piece->tapes.layer[l].done);
		free(piece->tapes.layer[l].bytes);
		free(piece->tapes.layer[l].near);
	}
	free(piece->tapes.layer);
	free(piece->outputs);
	free(piece->factors);
}

static void end(struct emulated_net *e)
{
	for (int i = 0; i < e->pieces; i++)
		end_piece(e, &e->piece[i]);
	for (int l = 0; l < e->device.layers; l++) {
		free(e->room.spikes[l]);
		free(e->room.currents[l]);
		free(e->room.count[l]);
		free(e->passes[l]);
		if (!e->device.dense)
			continue;
		free(e->room.dense_outputs[l]);
		free(e->room.values[l]);
		free(e->room.gated_values[l]);
	}
	for (int i = 0; i < e->c->net->ntensors; i++) {
		free(e->room.part[i]);
		free(e->room.total[i]);
		free(e->room.turned[i]);
		free(e->room.spread[i]);
	}
	for (int i = 0; i < DEVICE_LEAKS * (e->device.layers + 1); i++) {
		free(e->leaks[i]);
		free(e->room.leak_terms[i]);
	}
	for (int l = 0; l <= e->device.layers; l++) {
		free(e->delays[l]);
		free(e->parts[l]);
	}
	free(e->delays);
	free(e->parts);
	free(e->leaks);
	free(e->room.leak_terms);
	free(e->room.dense_outputs);
	free(e->room.sums);
	free(e->room.passed);
	free(e->room.gated);
	free(e->room.spikes);
	free(e->room.currents);
	free(e->room.rows);
	free(e->room.count);
	free(e->room.part);
	free(e->room.total);
	free(e->room.turned);
	free(e->room.row_start);
	free(e->room.column);
	free(e->room.readout_currents);
	free(e->room.errors);
	free(e->room.row_bits);
	free(e->work);
	free(e->events_at);
	free(e->start);
	free(e->unit);
	free(e->values);
	free(e->passes);
	free(e->length);
	free(e->state);
	free(e->adjoint);
	free(e->piece);
	neap__device_net_free(&e->device);
}

/* Memory for the tapes of steps [t0, t1). */
static struct piece piece_make(const struct emulated_net *e, int t0, int t1)
{
	size_t samples = (size_t)e->device.batch.samples, layers = (size_t)e->device.layers;
	size_t steps = (size_t)(t1 - t0);
	struct piece p = {.tapes = {.t0 = t0, .t1 = t1, .most = t1 - t0}};

	p.tapes.layer = zeros(layers * sizeof *p.tapes.layer);
	p.outputs =
		exactly(steps * samples * (size_t)e->device.readout.classes * sizeof *p.outputs);
	p.factors =
		exactly(steps * samples * (size_t)e->device.readout.classes * sizeof *p.factors);
	p.tapes.factors = p.factors;
	for (size_t l = 0; l < layers; l++) {
		struct neap__device_layer_tapes *to = &p.tapes.layer[l];
		size_t most = neap__device_tape_most(&e->device, (int)l);
		size_t held = e->c->share_steps ? (size_t)e->c->share_steps : steps;
		to->share = (u32)((held * most + 7) & ~(size_t)7);
		to->tape = exactly(samples * to->share);
		to->offset = exactly(samples * (steps + 1) * sizeof *to->offset);
		to->done = exactly(samples * sizeof *to->done);
		to->bytes = exactly(samples * sizeof *to->bytes);
		to->near = exactly(samples * sizeof *to->near);
	}
	return p;
}

/* The step before which the first sample stopped. */
static int least_done(const struct emulated_net *e, const struct piece *p)
{
	int done = p->tapes.t1;

	for (int l = 0; l < e->device.layers; l++)
		for (int s = 0; s < e->device.batch.samples; s++)
			if (p->tapes.layer[l].done[s] < done)
				done = p->tapes.layer[l].done[s];
	return done;
}

/* Moves the tapes of a call together. */
static int pack_piece(struct emulated_net *e, struct piece *p)
{
	size_t samples = (size_t)e->device.batch.samples, layers = (size_t)e->device.layers;
	size_t steps = (size_t)(p->tapes.t1 - p->tapes.t0);
	struct neap__device_layer_tapes to[layers];
	u32 *start = exactly(layers * samples * sizeof *start);

	for (size_t l = 0; l < layers; l++) {
		u32 used = 0;
		for (size_t s = 0; s < samples; s++) {
			start[l * samples + s] = used;
			used += p->tapes.layer[l].bytes[s];
		}
		to[l] = (struct neap__device_layer_tapes){.tape = exactly(used),
			.offset = exactly(samples * (steps + 1) * sizeof(u32))};
	}
	int rc = neap__device_pack(&e->device, &e->launcher, &p->tapes, start, to);
	for (size_t l = 0; l < layers; l++) {
		struct neap__device_layer_tapes *layer = &p->tapes.layer[l];
		free(layer->tape);
		free(layer->offset);
		layer->tape = to[l].tape;
		layer->offset = to[l].offset;
		layer->share = 0;
	}
	p->tapes.most = (int)steps;
	free(start);
	return rc;
}

/* Records from t0 up to t1, or as far as the tapes have room; returns the step, or -1. */
static int record_piece(struct emulated_net *e, int t0, int t1)
{
	size_t bytes = e->c->sizes.state;
	unsigned char *old = copy_of(e->state, bytes);
	struct piece *p = &e->piece[e->pieces++];

	if (e->c->window)
		load_events(e, t0, t1);
	*p = piece_make(e, t0, t1);
	e->room.outputs = p->outputs;
	int rc = neap__device_forward(
		&e->device, &e->launcher, &e->room, e->state, t0, t1, &p->tapes);
	int done = rc ? -1 : least_done(e, p);
	if (rc == 0 && done < t1) {
		memcpy(e->state, old, bytes);
		p->tapes.t1 = done;
		rc = neap__device_forward(
			&e->device, &e->launcher, &e->room, e->state, t0, done, &p->tapes);
		done = rc == 0 && least_done(e, p) == done && done > t0 ? done : -1;
	}
	free(old);
	if (rc == 0 && done > 0 && e->c->pack)
		rc = pack_piece(e, p);
	if (rc == 0 && done > 0)
		rc = neap__device_count(&e->device, &e->launcher, &e->room, t0, done);
	if (e->device.has_errors && done > 0)
		neap__device_keep_outputs(&e->device, p->outputs, t0, done, 0, e->state);
	return rc ? -1 : done;
}

/* The tape of a step of a layer and sample, and its bytes. */
static const u8 *tape_of(const struct piece *p, int l, int s, int row, size_t *bytes)
{
	const struct neap__device_layer_tapes *layer = &p->tapes.layer[l];
	const u32 *offset = layer->offset + (size_t)s * (size_t)(p->tapes.most + 1) + row;

	*bytes = offset[1] - offset[0];
	return layer->tape + (size_t)s * layer->share + offset[0];
}

/* Whether two pieces have the same tapes of the same steps. */
static int same_tapes(struct emulated_net *e, const struct piece *a, const struct piece *b)
{
	size_t steps = (size_t)(a->tapes.t1 - a->tapes.t0), bytes, more;

	for (int l = 0; l < e->device.layers; l++)
		for (int s = 0; s < e->device.batch.samples; s++) {
			for (int row = 0; row < (int)steps; row++) {
				const u8 *want = tape_of(a, l, s, row, &bytes);
				const u8 *found = tape_of(b, l, s, row, &more);
				if (bytes != more || differ(e, "replayed tape of step",
							     a->tapes.t0 + row, want, found, bytes))
					return -1;
			}
			if (differ(e, "units inside the support of layer", l,
				    &a->tapes.layer[l].near[s], &b->tapes.layer[l].near[s],
				    sizeof(u32)))
				return -1;
		}
	return 0;
}

/* Outputs of a piece, of the steps that samples have. */
static int same_outputs(struct emulated_net *e, const struct piece *a, const struct piece *b)
{
	size_t samples = (size_t)e->device.batch.samples,
	       classes = (size_t)e->device.readout.classes;

	for (int t = a->tapes.t0; t < a->tapes.t1; t++)
		for (size_t s = 0; s < samples; s++) {
			size_t at = ((size_t)(t - a->tapes.t0) * samples + s) * classes;
			if (t >= e->length[s])
				continue;
			if (differ(e, "replayed outputs of step", t, a->outputs + at,
				    b->outputs + at, classes * sizeof *a->outputs))
				return -1;
			if (e->device.readout.learned &&
				differ(e, "replayed factors of step", t, a->factors + at,
					b->factors + at, classes * sizeof *a->factors))
				return -1;
		}
	return 0;
}

/* Replays [t0, t1) and moves `state`; returns the step that all samples reached, or -1. */
static int replay_steps(struct emulated_net *e, struct piece *p, unsigned char *state, int t0,
	int t1, const u8 *log)
{
	struct neap__device_room room = e->room;

	*p = piece_make(e, t0, t1);
	room.outputs = p->outputs;
	if (e->c->window)
		load_events(e, t0, t1);
	int rc =
		neap__device_replay(&e->device, &e->launcher, &room, state, t0, t1, &p->tapes, log);
	if (rc == 0 && e->device.has_errors && least_done(e, p) == t1)
		neap__device_keep_outputs(&e->device, p->outputs, t0, t1, 0, state);
	return rc ? -1 : least_done(e, p);
}

/*
 * Replays the pieces of a block from its log; each is first tried as far as it was when it was
 * recorded, so that a tape without room stops at the same step.
 */
static int replay_alike(struct emulated_net *e, const unsigned char *from, int t0, int t1,
	const u8 *log, const struct piece *piece)
{
	size_t bytes = e->c->sizes.state, row = neap__device_log_row(&e->device);
	unsigned char *state = copy_of(from, bytes);
	int rc = 0, end;

	for (int t = t0; t < t1 && rc == 0; t = piece++->tapes.t1) {
		const u8 *at = log + (size_t)(t - t0) * row;
		int most = e->c->cut && t + e->c->cut < t1 ? t + e->c->cut : t1;
		unsigned char *old = copy_of(state, bytes);
		struct piece found;
		end = replay_steps(e, &found, state, t, most, at);
		if (end >= 0 && end < most && end == piece->tapes.t1) {
			end_piece(e, &found);
			memcpy(state, old, bytes);
			end = replay_steps(e, &found, state, t, end, at);
		}
		rc = end == piece->tapes.t1 ? same_tapes(e, piece, &found) : -1;
		rc = rc ? rc : same_outputs(e, piece, &found);
		e->c->replayed += end - t;
		end_piece(e, &found);
		free(old);
	}
	if (rc == 0)
		rc = differ(e, "replayed state of step", t1, e->state, state, bytes);
	free(state);
	return rc;
}

/*
 * Also advances without tapes, from the same state, which must end in the same state, and replays
 * what it logs. `piece`: what was recorded.
 */
static int advance_alike(struct emulated_net *e, const unsigned char *from, int t0, int t1,
	const struct piece *piece)
{
	int logs = e->c->replay_steps && neap__device_logs(&e->device);
	u8 *log = logs ? exactly((size_t)(t1 - t0) * neap__device_log_row(&e->device)) : NULL;
	unsigned char *state = copy_of(from, e->c->sizes.state);
	struct neap__device_room room = e->room;
	float *outputs = exactly(BLOCK * (size_t)e->device.batch.samples *
				 (size_t)e->device.readout.classes * sizeof *outputs);

	room.outputs = outputs;
	if (e->c->window)
		load_events(e, t0, t1);
	int rc = neap__device_forward(&e->device, &e->launcher, &room, state, t0, t1, NULL);
	if (rc == 0 && e->device.has_errors)
		neap__device_keep_outputs(&e->device, outputs, t0, t1, 0, state);
	if (rc == 0)
		rc = differ(
			e, "state without tapes of step", t1, state, e->state, e->c->sizes.state);
	if (rc == 0 && logs)
		rc = neap__device_write_log(&e->device, &e->launcher, &room, t0, t1, log);
	if (rc == 0 && logs)
		rc = replay_alike(e, from, t0, t1, log, piece);
	free(log);
	free(state);
	free(outputs);
	return rc;
}

static const struct piece *piece_of(const struct emulated_net *e, int t)
{
	const struct piece *p = e->piece;
	while (t >= p->tapes.t1)
		p++;
	return p;
}

/* The head of a round of the CPU's tapes (nn/step_functions.c). */
struct round {
	uint64_t previous;
	int64_t t0, t1;
	uint64_t group[];
};

/* The tape of a step and sample, of a hidden layer or of the readout; moves *tape behind it. */
static int compare_tape(struct emulated_net *e, const unsigned char **tape, int l, int t, int s)
{
	const struct piece *p = piece_of(e, t);
	size_t row = (size_t)(t - p->tapes.t0), bytes;
	const void *found;
	size_t at = 0;

	if (l < e->device.layers) {
		const struct neap__device_layer_tapes *from = &p->tapes.layer[l];
		const u32 *offset = from->offset + (size_t)s * (size_t)(p->tapes.most + 1) + row;
		found = from->tape + (size_t)s * from->share + offset[0];
		bytes = offset[1] - offset[0];
	} else {
		size_t classes = (size_t)e->device.readout.classes;
		at = (row * (size_t)e->device.batch.samples + (size_t)s) * classes;
		found = p->outputs + at;
		bytes = e->device.has_errors ? classes * sizeof *p->outputs : 0;
	}
	if (differ(e, "tape of step", t, *tape, found, bytes))
		return -1;
	*tape += bytes;
	if (l < e->device.layers || !e->device.readout.learned)
		return 0;
	bytes = (size_t)e->device.readout.classes * sizeof *p->factors;
	if (differ(e, "factors of step", t, *tape, p->factors + at, bytes))
		return -1;
	*tape += bytes;
	return 0;
}

/* All tapes of a group at step t. */
static int compare_step(
	struct emulated_net *e, const struct neap__group *group, const unsigned char *tape, int t)
{
	for (int l = 0; l <= e->device.layers; l++)
		for (int s = group->first; s < group->first + group->size; s++)
			if (e->length[s] > t && compare_tape(e, &tape, l, t, s))
				return -1;
	return 0;
}

static int compare_tapes(struct emulated_net *e, int b)
{
	const unsigned char *tape = e->c->tape[b];
	const struct round *round = (const void *)(tape + *(const uint64_t *)(const void *)tape);
	const struct neap_net *net = e->c->net;

	for (int g = 0; g < net->ngroups; g++) {
		const unsigned char *first = (const unsigned char *)round + round->group[g];
		const u32 *offset = (const void *)first;
		for (int t = (int)round->t0; t < (int)round->t1; t++)
			if (compare_step(e, &net->groups[g], first + offset[t - round->t0], t))
				return -1;
	}
	return 0;
}

static int forward(struct emulated_net *e)
{
	for (int b = 0; b < e->c->blocks; b++) {
		int end = block_end(e->c, b), t = b * BLOCK, first = e->pieces;
		unsigned char *from = copy_of(e->state, e->c->sizes.state);
		while (t >= 0 && t < end) {
			int most = e->c->cut && t + e->c->cut < end ? t + e->c->cut : end;
			t = record_piece(e, t, most);
		}
		int rc = t < 0 ? -1
			       : differ(e, "state of step", end, e->c->state[b], e->state,
					 e->c->sizes.state);
		if (rc == 0)
			rc = advance_alike(e, from, b * BLOCK, end, &e->piece[first]);
		free(from);
		if (rc || compare_tapes(e, b))
			return -1;
	}
	return 0;
}

static int backward(struct emulated_net *e)
{
	size_t bytes = e->c->sizes.adjoint;

	for (int i = e->pieces - 1; i >= 0; i--) {
		const struct piece *p = &e->piece[i];
		if (e->c->window)
			load_events(e, p->tapes.t0, p->tapes.t1);
		if (e->device.has_errors)
			neap__device_errors(&e->device, p->outputs, p->tapes.t0, p->tapes.t1,
				e->c->turned, e->room.errors, e->work);
		if (neap__device_backward(&e->device, &e->launcher, &e->room, e->adjoint,
			    p->tapes.t1, p->tapes.t0, &p->tapes))
			return -1;
		if (p->tapes.t0 % BLOCK == 0 &&
			differ(e, "adjoint of step", p->tapes.t0,
				e->c->adjoint[p->tapes.t0 / BLOCK], e->adjoint, bytes))
			return -1;
	}
	return 0;
}

/* The sums of all groups of samples, in the order of nn/batch/sum_tree.h. */
static int compare_gradient(struct emulated_net *e, int tensor)
{
	const struct neap__param *t = &e->c->net->tensors[tensor];
	size_t count = (size_t)t->count;
	struct neap__sum_tree tree = {0};

	for (int g = 0; g < e->device.groups; g++)
		neap__sum_tree_add(&tree, e->room.total[tensor] + (size_t)g * count, g, 1, count);
	const double *sum = neap__sum_tree_end(&tree, count);
	for (size_t i = 0; i < count; i++) {
		double gradient = 0 + sum[i]; /* as group_sums.c adds to zero */
		if (e->c->keeps)
			t->grad[i] = gradient;
		if (memcmp(&gradient, &t->grad[i], sizeof gradient) == 0)
			continue;
		snprintf(e->wrong, sizeof e->wrong, "gradient %zu of %s is %.17g, not %.17g", i,
			t->name, gradient, t->grad[i]);
		return -1;
	}
	return 0;
}

/* The sum of the counts of a unit, as neap__unit_sum makes it of those of the CPU. */
static double count_of(const struct emulated_net *e, int l, int unit)
{
	const struct neap__device_net *d = &e->device;
	size_t units = (size_t)neap__device_units(d, l);
	const double *count = e->room.count[l] + unit;
	struct neap__number_tree tree = {0};

	if (!d->dense)
		return *count;
	for (int g = 0; g < d->groups; g++) {
		double sum = 0;
		for (int p = 0; p < d->parts; p++, count += units)
			sum += *count;
		neap__number_tree_add(&tree, sum, g, 1);
	}
	return neap__number_tree_end(&tree);
}

/* Spikes or outputs of each unit, and how many units were inside the support of the surrogate. */
static int compare_counts(struct emulated_net *e)
{
	const double *count = e->c->count;
	double near = 0;

	for (int l = 0; l < e->device.layers; l++) {
		for (int i = 0; i < neap__device_units(&e->device, l); i++) {
			double found = count_of(e, l, i);
			if (differ(e, "spikes of layer", l, count++, &found, sizeof found))
				return -1;
		}
		for (int i = 0; i < e->pieces; i++)
			for (int s = 0; s < e->device.batch.samples; s++)
				near += e->piece[i].tapes.layer[l].near[s];
	}
	return differ(e, "units inside the support of", 0, &e->c->near, &near, sizeof near);
}

/* The turn from the emulator's state. */
static void turn(struct emulated_net *e)
{
	assert_int_equal(neap_net_turn(e->c->net, e->state, e->c->turned, &e->c->loss), 0);
	memcpy(e->adjoint, e->c->turned, e->c->sizes.adjoint);
}

const char *emulated_case_compare(struct emulated_case *c, uint32_t seed)
{
	static char wrong[256];
	struct emulated_net e = {.c = c, .seed = seed};

	begin(&e);
	int rc = forward(&e);
	if (rc == 0)
		rc = compare_counts(&e);
	if (rc == 0 && c->keeps)
		turn(&e);
	if (rc == 0)
		rc = backward(&e);
	for (int i = 0; i < c->net->ntensors && rc == 0; i++)
		rc = compare_gradient(&e, i);
	end(&e);
	snprintf(wrong, sizeof wrong, "%s", e.wrong[0] ? e.wrong : "a call stopped early");
	return rc ? wrong : NULL;
}
