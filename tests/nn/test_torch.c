/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loss, spikes and gradients equal those of PyTorch, step by step
 * (torch_dump.json, made by make_torch_dump.py: lif; torch_cells.json, made by
 * make_torch_cells.py: the other cells; torch_leaks.json, made by make_torch_leaks.py:
 * time constants that are learned; torch_filters.json, made by make_torch_filters.py:
 * convolutions and pooling; torch_sources.json, made by make_torch_sources.py: layers that
 * receive several; torch_neurons.json, made by make_torch_neurons.py: cells that
 * reset at once; torch_cell_files.json, made by
 * make_torch_cell_files.py: the cells of examples/cells; torch_delays.json, made by
 * make_torch_delays.py: delays of units, fixed and learned).
 */
#include "nn/nets.h"
#include "nn/core/cell.h"

#include <jansson.h>
#include <unistd.h>

static json_t *dump;
static const int spiking_traits = NEAP__HAS_THRESHOLD | NEAP__HAS_SURROGATE;

static json_t *read_dump(const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "tests/nn/%s", name);
	return json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
}

/* All dumps as one. */
static int load(void **arg)
{
	static const char *const others[] = {"torch_cells.json", "torch_leaks.json",
		"torch_cell_files.json", "torch_filters.json", "torch_sources.json",
		"torch_neurons.json", "torch_delays.json"};
	const char *source = getenv("NEAP_SOURCE"); /* specifications have paths in it */
	(void)arg;
	if (source && chdir(source) < 0)
		return -1;
	dump = read_dump("torch_dump.json");
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		json_t *more = read_dump(others[i]);
		if (!dump || !more)
			return -1;
		json_array_extend(json_object_get(dump, "nets"), json_object_get(more, "nets"));
		json_decref(more);
	}
	return 0;
}

static int unload(void **arg)
{
	(void)arg;
	json_decref(dump);
	return 0;
}

static double number(const json_t *from, const char *name)
{
	const json_t *item = json_object_get(from, name);
	assert_true(json_is_number(item));
	return json_number_value(item);
}

static const char *text(const json_t *from, const char *name)
{
	const char *value = json_string_value(json_object_get(from, name));
	assert_non_null(value);
	return value;
}

static void batch_of(struct batch_room *room, const json_t *net)
{
	const json_t *samples = json_object_get(net, "samples");
	int size = (int)json_array_size(samples), inputs = (int)number(net, "inputs");

	room->sequences = calloc((size_t)size, sizeof *room->sequences);
	room->targets = NULL;
	room->batch =
		(struct neap_batch){.size = size, .inputs = inputs, .sequences = room->sequences};
	for (int b = 0; b < size; b++) {
		const json_t *sample = json_array_get(samples, (size_t)b);
		const json_t *events = json_object_get(sample, "events");
		int64_t length = (int64_t)json_array_size(events);
		uint32_t *start = calloc((size_t)length + 1, sizeof *start), count = 0;
		uint16_t *units = calloc((size_t)length * (size_t)inputs, sizeof *units);
		for (int64_t t = 0; t < length; t++) {
			const json_t *step = json_array_get(events, (size_t)t);
			for (size_t k = 0; k < json_array_size(step); k++)
				units[count++] =
					(uint16_t)json_integer_value(json_array_get(step, k));
			start[t + 1] = count;
		}
		room->sequences[b] = (struct neap_sequence){.length = length,
			.start = start,
			.unit = units,
			.label = (int)number(sample, "label")};
		if (length > room->batch.steps)
			room->batch.steps = length;
	}
}

static struct neap_net *net_of(const json_t *from, enum neap_precision precision)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	const json_t *tensors = json_object_get(from, "tensors");

	o.precision = precision;
	o.spec = text(from, "spec");
	o.inputs = (int)number(from, "inputs");
	o.classes = (int)number(from, "classes");
	o.dt = number(dump, "dt");
	o.threads = 2;
	o.group = 2;
	o.readout = strcmp(text(from, "readout"), "softmax") ? NEAP_READ_MEAN : NEAP_READ_SOFTMAX;
	struct neap_net *net = net_make(&o);
	assert_int_equal((int)json_array_size(tensors), neap_net_params(net));
	for (int i = 0; i < neap_net_params(net); i++) {
		const json_t *tensor = json_array_get(tensors, (size_t)i);
		const json_t *values = json_object_get(tensor, "values");
		struct neap_param p;
		assert_int_equal(neap_net_param(net, i, &p), 0);
		assert_string_equal(p.name, text(tensor, "name"));
		assert_int_equal(json_array_size(values), p.count);
		for (int64_t k = 0; k < p.count; k++) {
			double value = json_number_value(json_array_get(values, (size_t)k));
			if (precision == NEAP_DOUBLE)
				((double *)p.data)[k] = value;
			else
				((float *)p.data)[k] = (float)value;
		}
	}
	return net;
}

/* Every sample's spikes of every layer, read from the state after each step. */
static void compare_spikes(struct neap_net *net, const json_t *from, const struct neap_batch *batch,
	const struct neap_objective *objective)
{
	const json_t *samples = json_object_get(from, "spikes");
	struct neap_net_sizes sizes = {.size = sizeof sizes};
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
					!(layer->cell->traits & spiking_traits))
					continue;
				const json_t *sample = json_array_get(samples, (size_t)b);
				const json_t *ids = json_array_get(
					json_array_get(sample, (size_t)l), (size_t)t);
				int want[64] = {0};
				for (size_t k = 0; k < json_array_size(ids); k++, compared++)
					want[json_integer_value(json_array_get(ids, k))] = 1;
				for (int i = 0; i < layer->n; i++)
					assert_int_equal(bits[i >> 3] >> (i & 7) & 1, want[i]);
			}
	}
	for (int l = 0; l < net->nlayers - 1; l++)
		spiking |= net->layers[l].cell->traits & spiking_traits;
	assert_true(compared > 10 || !spiking);
	free(state);
}

static void compare_net(const json_t *from, enum neap_precision precision)
{
	const json_t *penalty = json_object_get(from, "penalty");
	const json_t *tensors = json_object_get(from, "tensors");
	struct neap_objective objective = {.size = sizeof objective,
		.loss = neap_loss_find("cross-entropy"),
		.rates = {.upper = number(penalty, "upper"),
			.upper_weight = number(penalty, "upper_weight"),
			.l2 = number(penalty, "l2")}};
	struct batch_room room;

	batch_of(&room, from);
	struct neap_net *net = net_of(from, precision);
	double loss = sweep_plain(net, &room.batch, &objective);
	assert_true(fabs(loss - number(from, "loss")) < 1e-5 * fabs(loss));
	for (int i = 0; i < (int)json_array_size(tensors); i++) {
		const json_t *grad = json_object_get(json_array_get(tensors, (size_t)i), "grad");
		struct neap_param p;
		double top = 0, worst = 0;
		neap_net_param(net, i, &p);
		for (size_t k = 0; k < json_array_size(grad); k++) {
			double value = json_number_value(json_array_get(grad, k));
			top = fmax(top, fabs(value));
			worst = fmax(worst, fabs(value - p.grad[k]));
		}
		if (neap_net_frozen(net, i)) { /* delays that are fixed */
			assert_true(worst == 0);
			continue;
		}
		if (!(worst < 1e-5 * top))
			fprintf(stderr, "# net %s, %s: off by %g of %g\n", text(from, "name"),
				p.name, worst, top);
		assert_true(top > (strstr(text(from, "name"), "brf") ? 1e-7 : 1e-5));
		/*
		 * In mV, a float of -65 has an error that is large compared with a step's change;
		 * the weights of brf, which are multiplied by dt, are in the thousands.
		 */
		int is_rough = strstr(text(from, "name"), "izhikevich") ||
			       strstr(text(from, "name"), "brf");
		double rounded = is_rough ? 1e-4 : 1e-5;
		assert_true(worst < (precision == NEAP_DOUBLE ? 1e-12 : rounded) * top);
	}
	compare_spikes(net, from, &room.batch, &objective);
	neap_net_free(net);
	batch_free(&room);
}

static void compare_nets(enum neap_precision precision)
{
	const json_t *nets = json_object_get(dump, "nets");
	for (size_t i = 0; i < json_array_size(nets); i++)
		compare_net(json_array_get(nets, i), precision);
}

static void in_double(void **arg)
{
	(void)arg;
	compare_nets(NEAP_DOUBLE);
}

static void in_float(void **arg)
{
	(void)arg;
	compare_nets(NEAP_FLOAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_double),
		cmocka_unit_test(in_float),
	};
	return cmocka_run_group_tests(tests, load, unload);
}
