/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what a trained net does with the first samples of a data set, for tests that compare it
 * with the same net elsewhere: a line of JSON a sample with label, events and hidden outputs of
 * every step and the answer, then a line with the loss, by the C code.
 *     print_net MODEL DATA COUNT [DT [RESET]]
 * MODEL is a run, a .safetensors file or a NIR graph, whose step and reset may follow.
 * Outputs of a layer and step are the units that spiked or, where they are numbers, pairs of unit
 * and number.
 */
#include "nn/core/precision.h"
#include "train/model.h"
#include "train/model_file.h"
#include "train/nir/nir_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "print_net: %s\n", neap_detail());
	exit(2);
}

struct lines {
	char **text;
	size_t *length;
	FILE **file;
};

static void print_list(FILE *to, const struct neap_net *net, const struct neap__list *list)
{
	fputc('[', to);
	for (int k = 0; k < list->count; k++) {
		if (k)
			fputc(',', to);
		if (!list->value)
			fprintf(to, "%d", list->id[k]);
		else
			fprintf(to, "[%d,%.17g]", list->id[k],
				net->options.precision == NEAP_DOUBLE
					? ((const double *)list->value)[k]
					: (double)((const float *)list->value)[k]);
	}
	fputc(']', to);
}

static void print_events(FILE *to, const struct neap_sequence *s)
{
	fprintf(to, "{\"label\":%d,\"events\":[", s->label);
	for (int64_t t = 0; t < s->length; t++) {
		fprintf(to, t ? ",[" : "[");
		for (uint32_t k = s->start[t]; k < s->start[t + 1]; k++)
			fprintf(to, "%s%d", k > s->start[t] ? "," : "", s->unit[k]);
		fputc(']', to);
	}
	fprintf(to, "],\"outputs\":[");
}

/* Outputs of the step just made, a list of layers. */
static void print_step(struct lines *lines, struct neap_net *net, int64_t t)
{
	for (int g = 0; g < net->ngroups; g++) {
		const struct neap__group *group = &net->groups[g];
		for (int s = 0; s < group->size; s++) {
			int b = group->first + s;
			if (t >= net->batch->sequences[b].length)
				continue;
			fprintf(lines->file[b], t ? ",[" : "[");
			for (int l = 0; l < net->nlayers - 1; l++) {
				if (l)
					fputc(',', lines->file[b]);
				print_list(lines->file[b], net,
					neap__list_of(group->spike_lists[t & 1], net, s, l));
			}
			fputc(']', lines->file[b]);
		}
	}
}

/* The first numbers of the first layer's state in the first sample: membranes of lif. */
static void print_membranes(
	FILE *to, const struct neap_net *net, const unsigned char *state, int64_t t)
{
	const unsigned char *at = state + net->groups[0].state_at + net->layers[0].state_at;

	for (int i = 0; i < net->layers[0].n; i++)
		fprintf(to, "%s%.17g",
			i   ? ","
			: t ? ",["
			    : "[",
			net->options.precision == NEAP_DOUBLE
				? ((const double *)(const void *)at)[i]
				: (double)((const float *)(const void *)at)[i]);
	fprintf(to, "]");
}

static void run(struct neap_net *net, const struct neap_batch *batch, const struct neap_loss *loss)
{
	struct neap_objective objective = {.size = sizeof objective, .loss = loss};
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct neap_net_result found = {.size = sizeof found};
	size_t n = (size_t)batch->size;
	struct lines lines = {
		calloc(n, sizeof(char *)), calloc(n, sizeof(size_t)), calloc(n, sizeof(FILE *))};
	double value;
	char *rows = NULL;
	size_t length = 0;
	FILE *membranes = getenv("NEAP_PRINT_MEMBRANES") ? open_memstream(&rows, &length) : NULL;

	for (int b = 0; b < batch->size; b++) {
		lines.file[b] = open_memstream(&lines.text[b], &lines.length[b]);
		print_events(lines.file[b], &batch->sequences[b]);
	}
	need(neap_net_begin(net, batch, &objective));
	neap_net_get_sizes(net, &sizes);
	unsigned char *state = aligned_alloc(64, (sizes.state + 127) & ~(size_t)63);
	memset(state, 0, sizes.state);
	for (int64_t t = 0; t < batch->steps; t++) {
		need(neap_net_advance(net, state, t, t + 1, 1));
		print_step(&lines, net, t);
		if (membranes)
			print_membranes(membranes, net, state, t);
	}
	need(neap_net_turn(net, state, NULL, &value));
	neap_net_get_result(net, &found);
	for (int b = 0; b < batch->size; b++) {
		if (membranes && b == 0) {
			fclose(membranes);
			fprintf(lines.file[b], "],\"membranes\":[%s", rows);
		}
		fprintf(lines.file[b], "],\"answer\":[");
		for (int c = 0; c < net->options.classes; c++)
			fprintf(lines.file[b], "%s%.17g", c ? "," : "",
				found.answer[(size_t)b * (size_t)net->options.classes + (size_t)c]);
		fprintf(lines.file[b], "]}\n");
		fclose(lines.file[b]);
		fputs(lines.text[b], stdout);
		free(lines.text[b]);
	}
	printf("{\"loss\":%.17g}\n", value);
	need(neap_net_end(net));
	free(state);
	free(lines.text);
	free(lines.length);
	free(lines.file);
	free(rows);
}

int main(int argc, char **argv)
{
	struct neap__safetensors file = {0};
	struct neap_net_options options;
	struct neap_dataset *set;
	struct neap_loader *loader;
	const struct neap_batch *batch;
	struct neap_net *net;
	int64_t most, index[1024];
	static const char *const resets[] = {NEAP_RESET_TABLE(NEAP_CHOICE_NAME) NULL};
	enum neap_reset reset = NEAP_RESET_HARD;

	if (argc < 4 || argc > 6 || atoi(argv[3]) < 1 || atoi(argv[3]) > 1024)
		return fprintf(stderr, "print_net MODEL DATA COUNT [DT [RESET]]\n"), 2;
	for (int i = 0; i < 1024; i++)
		index[i] = i;
	for (int i = 0; argc > 5 && resets[i]; i++)
		if (strcmp(resets[i], argv[5]) == 0)
			reset = (enum neap_reset)i;
	const struct neap__nir_hints hints = {
		.dt = argc > 4 ? atof(argv[4]) : 0, .reset = argc > 5 ? &reset : NULL};
	need(neap__model_file_read(&file, argv[1], &hints));
	need(neap__model_open(&net, &options, &most, &file, 1, NULL, 0));
	need(neap_dataset_open(&set, argv[2]));
	struct neap_loader_options loading = {.size = sizeof loading,
		.batch = atoi(argv[3]),
		.dt = options.dt,
		.steps = most,
		.index = index,
		.count = atoi(argv[3]),
		.window_bytes = (uint64_t)1 << 32};
	const char *loss = neap__safetensors_meta(&file, "neap.loss");
	need(neap_loader_open(&loader, set, &loading));
	need(neap_loader_start(loader, 0, 0));
	need(neap_loader_next(loader, &batch));
	struct neap_batch wide = *batch;
	wide.inputs = options.inputs;
	run(net, &wide, neap_loss_find(loss ? loss : "cross-entropy"));
	neap_loader_close(loader);
	neap_dataset_close(set);
	neap_net_free(net);
	neap__safetensors_free(&file);
	return 0;
}
