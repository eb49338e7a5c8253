/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerstep.c: neap's program for the comparison with other frameworks. Runs one network on one
 * batch; reads commands from standard input and writes one JSON object per line.
 *
 *     peerstep DATA SPEC [KEY=VALUE]...   batch, threads, seed, steps, precision=double|bf16
 *     -> {"inputs":..,"classes":..,"steps":..,"batch":..,"tensors":[{"name":..,"rows":..}..]}
 *     export DIR           events, labels, weights to DIR
 *     prepare NAME BYTES   a sweep by strategy NAME within BYTES (0: any); its first run
 *                          tells the memory it takes
 *     step NAME            one forward and backward pass -> {"seconds":..,"loss":..}
 *     gradients DIR        of the last step to DIR
 *
 * Files are raw: gradients and weights doubles, events (step, sample, unit) and labels
 * int32. Steps are those of Euler's rule, decay 1 - dt/tau, so that decays are exact.
 */
#include <neap/net.h>
#include <neap/sweep.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SWEEPS = 4, RETRIES = 3 };
#define TAPE_MARGIN 1.05 /* factor over the mean tape of the first pass; chosen */

/* One way to run the step. */
struct way {
	char name[32];
	uint64_t memory;
	struct neap_sweep *sweep;
};

struct session {
	struct neap_dataset *set;
	struct neap_loader *loader;
	struct neap_net *net;
	const struct neap_batch *batch;
	struct neap_objective objective;
	struct way ways[SWEEPS];
	int nways;
};

static int fail(const char *what)
{
	fprintf(stderr, "peerstep: %s: %s\n", what, neap_detail());
	return 1;
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A value of a file in /proc, in bytes. */
static int64_t resident(const char *path, const char *key)
{
	char line[256];
	long long kib = 0;
	FILE *file = fopen(path, "r");
	if (!file)
		return 0;
	while (fgets(line, sizeof line, file))
		if (strncmp(line, key, strlen(key)) == 0)
			sscanf(line + strlen(key) + 1, "%lld", &kib);
	fclose(file);
	return (int64_t)kib * 1024;
}

/* The high-water mark. The kernel updates it in batches of pages: accurate to about 100 kB. */
static int64_t peak_now(void)
{
	return resident("/proc/self/status", "VmHWM");
}

/* The resident memory now, counted page by page. */
static int64_t pages_now(void)
{
	return resident("/proc/self/smaps_rollup", "Rss");
}

/* Resets the high-water mark to the resident memory. */
static void forget_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY);
	if (fd < 0 || write(fd, "5", 1) != 1)
		fprintf(stderr, "peerstep: /proc/self/clear_refs: memory is not measured\n");
	if (fd >= 0)
		close(fd);
}

static void fill_ops(struct neap_step_ops *ops, const struct neap_net *net, double tape)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	neap_net_get_sizes(net, &sizes);
	*ops = (struct neap_step_ops){.size = sizeof *ops,
		.advance = neap_net_advance,
		.record = neap_net_record,
		.turn = neap_net_turn,
		.backward = neap_net_backward,
		.will_touch = neap_net_will_touch,
		.state_bytes = sizes.state,
		.adjoint_bytes = sizes.adjoint,
		.tape_bytes = tape > 0 ? (size_t)tape : sizes.tape_mean,
		.tape_max_bytes = sizes.tape_max};
	if (ops->tape_bytes > sizes.tape_max)
		ops->tape_bytes = sizes.tape_max;
	if (sizes.log_max == 0)
		return;
	ops->advance_log = neap_net_advance_log;
	ops->replay = neap_net_replay;
	ops->log_max_bytes = sizes.log_max;
	ops->log_bytes = sizes.log_mean + sizes.log_mean / 16;
	if (ops->log_bytes > sizes.log_max)
		ops->log_bytes = sizes.log_max;
}

/* One training step without the weight update: zeroes, computes and sums the gradients. */
static int step(struct session *s, struct way *way, struct neap_sweep_stats *stats, double *took)
{
	double loss, start = seconds();
	int rc = neap_net_begin(s->net, s->batch, &s->objective);
	if (rc == 0)
		rc = neap_sweep_run(way->sweep, NULL, NULL, &loss, stats);
	if (rc == 0)
		rc = neap_net_end(s->net);
	*took = seconds() - start;
	return rc;
}

/* Plans with the tape sizes measured in the last pass, until all tapes fit as planned. */
static int plan(struct session *s, struct way *way, struct neap_sweep_stats *stats)
{
	struct neap_step_ops ops;
	double tape = 0, per, took;
	int64_t steps = s->batch->steps;
	struct neap_sweep_options o = {.size = sizeof o, .steps = steps, .strategy = "bptt"};

	int rc = neap_net_begin(s->net, s->batch, &s->objective);
	for (int i = 0; rc == 0 && i < RETRIES; i++) {
		fill_ops(&ops, s->net, tape);
		rc = way->sweep ? neap_sweep_replan(way->sweep, &ops, &o)
				: neap_sweep_create(&way->sweep, &ops, s->net, &o);
		if (rc == 0)
			rc = step(s, way, stats, &took);
		if (rc < 0)
			return rc;
		per = (double)stats->tape_bytes / (double)stats->record_steps;
		o.advance = stats->record / (double)stats->record_steps;
		o.record = o.advance;
		o.backward = stats->backward / (double)stats->backward_steps;
		o.strategy = way->name;
		o.memory = way->memory;
		/* under a tight budget plan for the largest tapes, not the mean */
		tape = TAPE_MARGIN * (way->memory ? (double)stats->tape_largest > per
							     ? (double)stats->tape_largest
							     : per
						  : per);
		if (i == 0) { /* free the arena of the first pass, which stored everything */
			neap_sweep_free(way->sweep);
			way->sweep = NULL;
		}
	}
	return rc;
}

static struct way *find(struct session *s, const char *name, uint64_t memory, int add)
{
	for (int i = 0; i < s->nways; i++)
		if (strcmp(s->ways[i].name, name) == 0)
			return &s->ways[i];
	if (!add || s->nways == SWEEPS)
		return NULL;
	struct way *way = &s->ways[s->nways++];
	*way = (struct way){.memory = memory};
	snprintf(way->name, sizeof way->name, "%.31s", name);
	return way;
}

/* Reports a budget that is too small as a reply and continues. */
static int refuse(struct session *s, struct way *way)
{
	char why[512];
	snprintf(why, sizeof why, "%s", neap_detail());
	for (char *c = why; *c; c++)
		if (*c == '"' || *c == '\\')
			*c = '\'';
	printf("{\"error\":\"%s\"}\n", why);
	neap_sweep_free(way->sweep);
	s->nways--;
	return 0;
}

static int prepare(struct session *s, const char *name, uint64_t memory)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_net_result result = {.size = sizeof result};
	struct way *way = find(s, name, memory, 1);
	double took;

	if (!way)
		return fail("too many ways to run a step");
	if (plan(s, way, &stats) < 0)
		return refuse(s, way);
	const struct neap_plan *made = neap_sweep_plan(way->sweep);
	neap_sweep_release(way->sweep);
	forget_peak();
	int64_t before = peak_now(), pages = pages_now();
	if (step(s, way, &stats, &took) < 0)
		return fail(name);
	/* The arena of the step is still mapped: a small arena is visible only in the exact count.
	 */
	int64_t growth = peak_now() - before, held = pages_now() - pages;
	growth = held > growth ? held : growth;
	neap_net_get_result(s->net, &result);
	printf("{\"growth\":%lld,\"arena\":%llu,\"peak\":%llu,\"strategy\":\"%s\",\"overflows\":%"
	       "lld,"
	       "\"spikes\":%.6g,\"support\":%.6g}\n",
		(long long)growth, (unsigned long long)stats.arena_bytes,
		(unsigned long long)stats.peak_measured, made->chosen ? made->chosen : name,
		(long long)stats.overflows, result.spikes, result.support);
	return 0;
}

static int run(struct session *s, const char *name)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_net_result result = {.size = sizeof result};
	struct way *way = find(s, name, 0, 0);
	double took;

	if (!way)
		return fail("step before prepare");
	if (step(s, way, &stats, &took) < 0)
		return fail(name);
	neap_net_get_result(s->net, &result);
	printf("{\"seconds\":%.9g,\"loss\":%.17g,\"overflows\":%lld,\"hash\":\"%016llx\"}\n", took,
		result.loss, (long long)stats.overflows,
		(unsigned long long)neap_net_grad_hash(s->net));
	return 0;
}

static FILE *create(const char *folder, const char *name, const char *suffix)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
	FILE *file = fopen(path, "wb");
	if (!file)
		perror(path);
	return file;
}

static int finish(FILE *file)
{
	int bad = ferror(file);
	return fclose(file) || bad ? fail("writing") : 0;
}

static int write_tensors(struct session *s, const char *folder, int grads)
{
	struct neap_param p;
	for (int i = 0; i < neap_net_params(s->net); i++) {
		neap_net_param(s->net, i, &p);
		FILE *file = create(folder, p.name, grads ? ".grad" : ".data");
		if (!file)
			return 1;
		for (int64_t k = 0; k < p.count; k++) {
			double v = grads			? p.grad[k]
				   : p.precision == NEAP_DOUBLE ? ((double *)p.data)[k]
								: (double)((float *)p.data)[k];
			fwrite(&v, sizeof v, 1, file);
		}
		if (finish(file))
			return 1;
	}
	return 0;
}

static int write_batch(struct session *s, const char *folder)
{
	FILE *events = create(folder, "events", ""), *labels = create(folder, "labels", "");
	if (!events || !labels)
		return 1;
	for (int b = 0; b < s->batch->size; b++) {
		const struct neap_sequence *q = &s->batch->sequences[b];
		int32_t label = q->label;
		fwrite(&label, sizeof label, 1, labels);
		for (int64_t t = 0; t < q->length; t++)
			for (uint32_t k = q->start[t]; k < q->start[t + 1]; k++) {
				int32_t row[3] = {(int32_t)t, b, q->unit[k]};
				fwrite(row, sizeof row, 1, events);
			}
	}
	return finish(events) | finish(labels);
}

static void greet(struct session *s)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct neap_param p;
	neap_net_get_sizes(s->net, &sizes);
	printf("{\"inputs\":%d,\"batch\":%d,\"steps\":%lld,\"input_bytes\":%llu,\"spec\":\"%s\","
	       "\"tensors\":[",
		s->batch->inputs, s->batch->size, (long long)s->batch->steps,
		(unsigned long long)s->batch->bytes, neap_net_spec(s->net));
	for (int i = 0; i < neap_net_params(s->net); i++) {
		neap_net_param(s->net, i, &p);
		printf("%s{\"name\":\"%s\",\"rows\":%lld,\"columns\":%lld}", i ? "," : "", p.name,
			(long long)p.rows, (long long)p.columns);
	}
	puts("]}");
}

static int start(struct session *s, int argc, char **argv)
{
	struct neap_net_options net = NEAP_NET_OPTIONS_INIT;
	struct neap_loader_options load = {
		.size = sizeof load, .batch = 32, .window_bytes = 1u << 30};
	struct neap_dataset_info info = {.size = sizeof info};

	net.spec = argv[2];
	net.euler = 1;
	net.seed = 1;
	net.readout = NEAP_READ_MEAN; /* as in the compared programs */
	for (int i = 3; i < argc; i++) {
		const char *value = strchr(argv[i], '=');
		if (value && strncmp(argv[i], "batch=", 6) == 0)
			load.batch = atoi(value + 1);
		else if (value && strncmp(argv[i], "steps=", 6) == 0)
			load.steps = atoll(value + 1);
		else if (value && strncmp(argv[i], "threads=", 8) == 0)
			net.threads = atoi(value + 1);
		else if (value && strncmp(argv[i], "seed=", 5) == 0)
			net.seed = strtoull(value + 1, NULL, 10);
		else if (strcmp(argv[i], "precision=double") == 0)
			net.precision = NEAP_DOUBLE;
		else if (strcmp(argv[i], "precision=bf16") == 0)
			net.precision = NEAP_BF16;
		else if (strcmp(argv[i], "precision=float") != 0)
			return fail(argv[i]);
	}
	load.dt = net.dt;
	if (neap_dataset_open(&s->set, argv[1]) < 0 ||
		neap_loader_open(&s->loader, s->set, &load) < 0 ||
		neap_loader_start(s->loader, 0, 0) < 0 ||
		neap_loader_next(s->loader, &s->batch) <= 0)
		return fail(argv[1]);
	neap_dataset_info(s->set, &info);
	net.inputs = info.inputs;
	net.classes = info.classes;
	s->objective.size = sizeof s->objective;
	s->objective.loss = neap_loss_find("cross-entropy");
	if (neap_net_create(&s->net, &net) < 0 ||
		neap_net_begin(s->net, s->batch, &s->objective) < 0)
		return fail(argv[2]);
	if (s->batch->windows)
		return fail("the batch is too long to be held");
	greet(s);
	return 0;
}

static int answer(struct session *s, char *line)
{
	char word[16], name[4000];
	unsigned long long memory = 0;
	int words = sscanf(line, "%15s %3999s %llu", word, name, &memory);

	if (words >= 2 && strcmp(word, "prepare") == 0)
		return prepare(s, name, memory);
	if (words >= 2 && strcmp(word, "step") == 0)
		return run(s, name);
	if (words >= 2 && (strcmp(word, "export") == 0 || strcmp(word, "gradients") == 0)) {
		int grads = word[0] == 'g';
		if (write_tensors(s, name, grads) || (!grads && write_batch(s, name)))
			return 1;
		puts("{}");
		return 0;
	}
	fprintf(stderr, "peerstep: not understood: %s\n", line);
	return 1;
}

int main(int argc, char **argv)
{
	struct session s = {0};
	char line[4096];

	if (argc < 3) {
		fputs("usage: peerstep DATA SPEC [KEY=VALUE]...\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	int rc = start(&s, argc, argv);
	while (rc == 0 && fgets(line, sizeof line, stdin))
		rc = answer(&s, line);
	for (int i = 0; i < s.nways; i++)
		neap_sweep_free(s.ways[i].sweep);
	neap_net_free(s.net);
	neap_loader_close(s.loader);
	neap_dataset_close(s.set);
	return rc;
}
