/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loss, spikes and gradients equal those of PyTorch, step by step
 * (torch_dump.json, made by make_torch_dump.py: lif; torch_cells.json, made by
 * make_torch_cells.py: the other cells; torch_leaks.json, made by make_torch_leaks.py:
 * time constants that are learned).
 */
#include "nn/nets.h"
#include "nn/core/cell.h"

#include <cjson/cJSON.h>

static cJSON *dump;

static cJSON *read_dump(const char *name)
{
	char path[4096];
	const char *source = getenv("NEAP_SOURCE");
	snprintf(path, sizeof path, "%s/tests/nn/%s", source ? source : ".", name);
	FILE *file = fopen(path, "rb");
	if (!file)
		return NULL;
	char *text = calloc(1, 1 << 20);
	size_t n = fread(text, 1, (1 << 20) - 1, file);
	fclose(file);
	cJSON *json = cJSON_ParseWithLength(text, n);
	free(text);
	return json;
}

/* All dumps as one. */
static int load(void **arg)
{
	static const char *const others[] = {"torch_cells.json", "torch_leaks.json"};
	(void)arg;
	dump = read_dump("torch_dump.json");
	for (int i = 0; i < 2; i++) {
		cJSON *more = read_dump(others[i]), *net;
		if (!dump || !more)
			return -1;
		while ((net = cJSON_DetachItemFromArray(cJSON_GetObjectItem(more, "nets"), 0)))
			cJSON_AddItemToArray(cJSON_GetObjectItem(dump, "nets"), net);
		cJSON_Delete(more);
	}
	return 0;
}

static int unload(void **arg)
{
	(void)arg;
	cJSON_Delete(dump);
	return 0;
}

static double number(const cJSON *from, const char *name)
{
	const cJSON *item = cJSON_GetObjectItem(from, name);
	assert_true(cJSON_IsNumber(item));
	return item->valuedouble;
}

static const char *text(const cJSON *from, const char *name)
{
	const char *value = cJSON_GetStringValue(cJSON_GetObjectItem(from, name));
	assert_non_null(value);
	return value;
}

static void batch_of(struct batch_room *room, const cJSON *net)
{
	const cJSON *samples = cJSON_GetObjectItem(net, "samples"), *sample, *step, *unit;
	int size = cJSON_GetArraySize(samples), b = 0, inputs = (int)number(net, "inputs");

	room->sequences = calloc((size_t)size, sizeof *room->sequences);
	room->targets = NULL;
	room->batch = (struct neap_batch){size, inputs, 0, room->sequences, 0, NULL};
	cJSON_ArrayForEach(sample, samples)
	{
		const cJSON *events = cJSON_GetObjectItem(sample, "events");
		int64_t length = cJSON_GetArraySize(events), t = 0;
		uint32_t *start = calloc((size_t)length + 1, sizeof *start), count = 0;
		uint16_t *units = calloc((size_t)length * (size_t)inputs, sizeof *units);
		cJSON_ArrayForEach(step, events)
		{
			cJSON_ArrayForEach(unit, step) units[count++] = (uint16_t)unit->valueint;
			start[++t] = count;
		}
		room->sequences[b++] = (struct neap_sequence){.length = length,
			.start = start,
			.unit = units,
			.label = (int)number(sample, "label")};
		if (length > room->batch.steps)
			room->batch.steps = length;
	}
}

static struct neap_net *net_of(const cJSON *from, enum neap_precision precision)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	const cJSON *tensors = cJSON_GetObjectItem(from, "tensors"), *tensor, *value;
	int i = 0;

	o.precision = precision;
	o.spec = text(from, "spec");
	o.inputs = (int)number(from, "inputs");
	o.classes = (int)number(from, "classes");
	o.dt = number(dump, "dt");
	o.threads = 2;
	o.group = 2;
	o.readout = strcmp(text(from, "readout"), "softmax") ? NEAP_READ_MEAN : NEAP_READ_SOFTMAX;
	struct neap_net *net = net_make(&o);
	cJSON_ArrayForEach(tensor, tensors)
	{
		struct neap_param p;
		int64_t k = 0;
		assert_int_equal(neap_net_param(net, i++, &p), 0);
		assert_string_equal(p.name, text(tensor, "name"));
		cJSON_ArrayForEach(value, cJSON_GetObjectItem(tensor, "values"))
		{
			assert_true(k < p.count);
			if (precision == NEAP_DOUBLE)
				((double *)p.data)[k++] = value->valuedouble;
			else
				((float *)p.data)[k++] = (float)value->valuedouble;
		}
		assert_int_equal(k, p.count);
	}
	assert_int_equal(i, neap_net_params(net));
	return net;
}

/* Every sample's spikes of every layer, read from the state after each step. */
static void compare_spikes(struct neap_net *net, const cJSON *from, const struct neap_batch *batch,
	const struct neap_objective *objective)
{
	const cJSON *samples = cJSON_GetObjectItem(from, "spikes");
	struct neap_net_sizes sizes;
	int compared = 0, spiking = 0;

	assert_int_equal(neap_net_begin(net, batch, objective), 0);
	neap_net_get_sizes(net, &sizes);
	unsigned char *state = room_for(sizes.state);
	memset(state, 0, sizes.state);
	for (int64_t t = 0; t < batch->steps; t++) {
		assert_int_equal(neap_net_advance(net, state, t, t + 1, 1), 0);
		for (int b = 0; b < batch->size; b++)
			for (int l = 0; l < net->nlayers - 1; l++) {
				const struct neap__layer *layer = &net->layers[l];
				const unsigned char *bits =
					state + (size_t)b * net->sample_state + layer->spikes_at;
				if (t >= batch->sequences[b].length || !layer->keeps_spikes ||
					!(layer->cell->traits & NEAP__HAS_THRESHOLD))
					continue;
				const cJSON *ids = cJSON_GetArrayItem(
					cJSON_GetArrayItem(cJSON_GetArrayItem(samples, b), l),
					(int)t);
				int want[64] = {0};
				for (int k = 0; k < cJSON_GetArraySize(ids); k++, compared++)
					want[cJSON_GetArrayItem(ids, k)->valueint] = 1;
				for (int i = 0; i < layer->n; i++)
					assert_int_equal(bits[i >> 3] >> (i & 7) & 1, want[i]);
			}
	}
	for (int l = 0; l < net->nlayers - 1; l++)
		spiking |= net->layers[l].cell->traits & NEAP__HAS_THRESHOLD;
	assert_true(compared > 10 || !spiking);
	free(state);
}

static void compare_net(const cJSON *from, enum neap_precision precision)
{
	const cJSON *penalty = cJSON_GetObjectItem(from, "penalty"), *tensor, *value;
	struct neap_objective objective = {.loss = neap_loss_find("cross-entropy"),
		.rates = {.upper = number(penalty, "upper"),
			.upper_weight = number(penalty, "upper_weight"),
			.l2 = number(penalty, "l2")}};
	struct batch_room room;
	int i = 0;

	batch_of(&room, from);
	struct neap_net *net = net_of(from, precision);
	double loss = sweep_plain(net, &room.batch, &objective);
	assert_true(fabs(loss - number(from, "loss")) < 1e-5 * fabs(loss));
	cJSON_ArrayForEach(tensor, cJSON_GetObjectItem(from, "tensors"))
	{
		struct neap_param p;
		double top = 0, worst = 0;
		int64_t k = 0;
		neap_net_param(net, i++, &p);
		cJSON_ArrayForEach(value, cJSON_GetObjectItem(tensor, "grad"))
		{
			top = fmax(top, fabs(value->valuedouble));
			worst = fmax(worst, fabs(value->valuedouble - p.grad[k++]));
		}
		if (!(worst < 1e-5 * top))
			fprintf(stderr, "# net %s, %s: off by %g of %g\n", text(from, "name"),
				p.name, worst, top);
		assert_true(top > 1e-5);
		assert_true(worst < (precision == NEAP_DOUBLE ? 1e-12 : 1e-5) * top);
	}
	compare_spikes(net, from, &room.batch, &objective);
	neap_net_free(net);
	batch_free(&room);
}

static void in_double(void **arg)
{
	const cJSON *net;
	(void)arg;
	cJSON_ArrayForEach(net, cJSON_GetObjectItem(dump, "nets")) compare_net(net, NEAP_DOUBLE);
}

static void in_float(void **arg)
{
	const cJSON *net;
	(void)arg;
	cJSON_ArrayForEach(net, cJSON_GetObjectItem(dump, "nets")) compare_net(net, NEAP_FLOAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_double),
		cmocka_unit_test(in_float),
	};
	return cmocka_run_group_tests(tests, load, unload);
}
