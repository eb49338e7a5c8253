/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cells.c: CPU time of forward and backward passes of networks 700-512-20 whose hidden layer
 * is a cell file, interpreted and compiled, over that of the built-in cell with the same equations.
 * 2% of the inputs spike per step. The networks take turns, pass by pass, so that other load of
 * the machine reaches all of them. Rows of cells that are not built in compare compiled with
 * interpreted ones.
 */
#include "bench/benchmark.h"

#include <errno.h>
#include <math.h>
#include <neap/net.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/fail.h"
#include "base/philox.h"

enum { INPUTS = 700, CLASSES = 20, SAMPLES = 16, STEPS = 500, NETS = 3, USUAL = 9 };
#define RATE 0.02

/* A cell, the built-in one with its equations or NULL, and what the ratios are to be at most. */
struct timed_cell {
	const char *name, *text, *built_in;
	double targets[NETS]; /* of the nets in their order; NAN: none */
};

static const struct timed_cell cells[] = {
	{"lif", "cell lif;state u;u=decay(20ms)*u+in;reset u=u-1;spike u-1:512:scale=2,li",
		"lif:512:scale=2,li", {NAN, 3, 1.2}},
	{"alif",
		"cell alif;state u;state a;a=decay(100ms)*a+spike;u=decay(20ms)*u+in;"
		"reset u=u-1;spike u-0.1*a-1:512:scale=2,li",
		"alif:512:scale=2,li", {NAN, NAN, NAN}},
	{"seadlif",
		"cell seadlif;state u;state w;u=decay(20ms)*u+(1-decay(20ms))*(in-w);spike u-1;"
		"reset u=0;w=decay(100ms)*w+(1-decay(100ms))*(2*u+3*spike):512:scale=30,li",
		"seadlif:512:scale=30:a=2:b=3,li", {NAN, NAN, NAN}},
	{"eif",
		"cell eif;state v;drive=0.2*exp(min((v-1)/0.2;10));v=v+dt/20ms*(drive-v)+in;"
		"spike v-2;reset v=0:512:scale=2,li",
		NULL, {NAN, NAN, NAN}},
	{"izhikevich",
		"cell izhikevich;state v=-65;state u=-13;h=dt/1ms;old=v;"
		"v=min(v+h*(0.04*v^2+5*v+140-u+50*in);60);u=u+h*0.02*(0.2*old-u);"
		"spike (v-30)/20;reset v=-65;reset u=u+8:512:scale=2,li",
		NULL, {NAN, NAN, NAN}},
};
enum { CELLS = sizeof cells / sizeof cells[0] };

static const char *const ways[NETS] = {"built-in", "interpreted", "compiled"};

struct timed_net {
	struct neap_net *net;
	void *state, *adjoint, *tape;
	size_t room;
	double seconds[NEAP__BENCH_RUNS_MOST];
};

static struct neap_sequence *make_sequence(struct neap_sequence *s, int sample)
{
	uint32_t *start = calloc(STEPS + 1, sizeof *start), count = 0;
	uint16_t *unit = calloc((size_t)STEPS * INPUTS, sizeof *unit);

	*s = (struct neap_sequence){.length = STEPS,
		.start = start,
		.unit = unit,
		.label = sample % CLASSES,
		.index = sample};
	for (int t = 0; start && unit && t < STEPS; t++) {
		for (int i = 0; i < INPUTS; i++)
			if (neap__random_uniform(1, NEAP__STREAM_TEST, (uint32_t)sample,
				    (uint64_t)t * INPUTS + (uint64_t)i) < RATE)
				unit[count++] = (uint16_t)i;
		start[t + 1] = count;
	}
	return start && unit ? s : NULL;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int make_net(struct timed_net *n, const char *spec, int threads, int compiled)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;

	o.spec = spec;
	o.inputs = INPUTS;
	o.classes = CLASSES;
	o.seed = 1;
	o.threads = threads;
	o.compile_cells = compiled;
	return neap_net_create(&n->net, &o);
}

/* A pass that stores everything; the first one allocates. */
static int pass(struct timed_net *n, const struct neap_batch *batch, double *seconds)
{
	struct neap_objective objective = {.size = sizeof objective};
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	double begin = cpu_seconds(), loss;
	int64_t done;
	size_t used;

	objective.loss = neap_loss_find("cross-entropy");
	NEAP_TRY(neap_net_begin(n->net, batch, &objective));
	neap_net_get_sizes(n->net, &sizes);
	if (!n->tape) {
		n->room = sizes.tape_max * (STEPS + 1);
		n->state = aligned_alloc(64, (sizes.state + 63) & ~(size_t)63);
		n->adjoint = aligned_alloc(64, (sizes.adjoint + 63) & ~(size_t)63);
		n->tape = aligned_alloc(64, (n->room + 63) & ~(size_t)63);
	}
	if (!n->state || !n->adjoint || !n->tape)
		return neap__fail_errno(ENOMEM, "benchmark of cells");
	memset(n->state, 0, sizes.state);
	NEAP_TRY(neap_net_record(n->net, n->state, 0, STEPS, 1, n->tape, n->room, &used, &done));
	NEAP_TRY(neap_net_turn(n->net, n->state, n->adjoint, &loss));
	NEAP_TRY(neap_net_backward(n->net, n->adjoint, STEPS, 0, n->tape));
	NEAP_TRY(neap_net_end(n->net));
	*seconds = cpu_seconds() - begin;
	return 0;
}

/* Largest difference of gradients, relative to the largest gradient of each tensor. */
static double distance(const struct neap_net *a, const struct neap_net *b)
{
	double worst = 0;

	for (int i = 0; i < neap_net_params(a); i++) {
		struct neap_param p, q;
		double top = 1e-300, most = 0;
		neap_net_param(a, i, &p);
		neap_net_param(b, i, &q);
		for (int64_t k = 0; k < p.count; k++) {
			top = fmax(top, fabs(p.grad[k]));
			most = fmax(most, fabs(p.grad[k] - q.grad[k]));
		}
		worst = fmax(worst, most / top);
	}
	return worst;
}

static int hand_out(struct neap__bench *bench, const struct timed_cell *cell, int threads, int way,
	const struct timed_net *nets, int first, int runs)
{
	struct neap_bench_row row = {.unit = "ratio", .target = cell->targets[way], .nmore = 3};
	struct neap_net_result found = {.size = sizeof found};
	double ratio[NEAP__BENCH_RUNS_MOST], least = INFINITY;

	snprintf(row.name, sizeof row.name, "%s %s, %d thread%s", cell->name, ways[way], threads,
		threads > 1 ? "s" : "");
	snprintf(row.what, sizeof row.what, "CPU time of a pass over that of the %s cell",
		ways[first]);
	if (!neap__bench_wants(bench, row.name))
		return 0;
	for (int i = 0; i < runs; i++) {
		ratio[i] = nets[way].seconds[i] / nets[first].seconds[i];
		least = fmin(least, nets[way].seconds[i]);
	}
	neap_net_get_result(nets[way].net, &found);
	row.more[0].name = "least_seconds";
	row.more[0].value = least;
	row.more[1].name = "spikes";
	row.more[1].value = found.spikes;
	row.more[2].name = "gradient_distance";
	row.more[2].value = distance(nets[first].net, nets[way].net);
	neap__bench_sample(&row, ratio, runs);
	return neap__bench_row(bench, &row);
}

static int measure(struct neap__bench *bench, const struct timed_cell *cell, int threads,
	const struct neap_batch *batch, struct timed_net nets[NETS])
{
	int first = cell->built_in ? 0 : 1, runs = neap__bench_runs(bench, USUAL);
	double unused;

	for (int way = first; way < NETS; way++) {
		NEAP_TRY(
			make_net(&nets[way], way ? cell->text : cell->built_in, threads, way == 2));
		NEAP_TRY(pass(&nets[way], batch, &unused));
	}
	for (int i = 0; i < runs; i++)
		for (int way = first; way < NETS; way++) {
			NEAP_TRY(pass(&nets[way], batch, &nets[way].seconds[i]));
			NEAP_TRY(neap__bench_stopped(bench));
		}
	for (int way = first + 1; way < NETS; way++)
		NEAP_TRY(hand_out(bench, cell, threads, way, nets, first, runs));
	return 0;
}

static int wants(const struct neap__bench *bench, const struct timed_cell *cell, int threads)
{
	char name[48];
	int any = 0;

	for (int way = 1; way < NETS; way++) {
		snprintf(name, sizeof name, "%s %s, %d thread%s", cell->name, ways[way], threads,
			threads > 1 ? "s" : "");
		any |= neap__bench_wants(bench, name);
	}
	return any;
}

static int run(struct neap__bench *bench)
{
	struct neap_sequence sequences[SAMPLES] = {0};
	const struct neap_batch batch = {
		.size = SAMPLES, .inputs = INPUTS, .steps = STEPS, .sequences = sequences};
	int rc = 0;

	for (int i = 0; i < SAMPLES; i++)
		if (!make_sequence(&sequences[i], i))
			rc = neap__fail_errno(ENOMEM, "benchmark of cells");
	for (int i = 0; i < 2 * CELLS && rc == 0; i++) {
		struct timed_net nets[NETS] = {0};
		int threads = 1 + (i & 1);
		if (wants(bench, &cells[i / 2], threads))
			rc = measure(bench, &cells[i / 2], threads, &batch, nets);
		for (int way = 0; way < NETS; way++) {
			neap_net_free(nets[way].net);
			free(nets[way].state);
			free(nets[way].adjoint);
			free(nets[way].tape);
		}
	}
	for (int i = 0; i < SAMPLES; i++) {
		free((void *)sequences[i].start);
		free((void *)sequences[i].unit);
	}
	return rc;
}

const struct neap__benchmark neap__bench_cells = {
	"cells", "cell files, interpreted and compiled, compared with built-in cells", run};
