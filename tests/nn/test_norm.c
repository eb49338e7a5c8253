/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch normalisation: a net with a norm is the net with the weights and biases that the norm
 * makes, gradients included; differences of the loss agree; statistics are those of plain loops,
 * whatever the division of the steps and the number of threads.
 */
#include "nn/nets.h"
#include "nn/batch/norm_sums.h"
#include "nn/core/net_state.h"

#include <neap/ports.h>

static const int64_t lengths[] = {60, 31, 64, 1, 0, 59, 66};
enum { SAMPLES = sizeof lengths / sizeof lengths[0] };

static const struct neap_objective objective = {.size = sizeof objective, .dropout = 3};

static struct neap_objective entropy(void)
{
	struct neap_objective o = objective;
	o.loss = neap_loss_find("cross-entropy");
	return o;
}

static double drawn(uint64_t place, double low, double high)
{
	return low + (high - low) * neap__random_uniform(5, NEAP__STREAM_TEST, 7, place);
}

/* Gives the norms of a net scales, means and variances. */
static void draw_norms(struct neap_net *net)
{
	for (int l = 0; l < net->nlayers; l++) {
		const struct neap__norm *norm = &net->layers[l].norm;
		for (int c = 0; norm->kind && c < norm->channels; c++) {
			uint64_t place = (uint64_t)(l * 1000 + c) * 4;
			((double *)net->tensors[norm->scale].data)[c] = drawn(place, 0.6, 1.4);
			((double *)net->tensors[norm->mean].data)[c] = drawn(place + 1, -0.2, 0.2);
			((double *)net->tensors[norm->variance].data)[c] = drawn(place + 2, 0.4, 2);
			((double *)net->tensors[net->layers[l].bias].data)[c] =
				drawn(place + 3, -0.1, 0.1);
		}
	}
}

/* The channel of a number of the weights of a layer, by its place in them. */
static int channel_of(const struct neap__layer *layer, const struct neap__param *t, int64_t k)
{
	if (t->column)
		return t->column[k];
	int64_t row = k / t->columns, column = k % t->columns;
	if (!layer->conv[0])
		return (int)column;
	int64_t below = row / (layer->conv[0] * layer->conv[1]);
	return (int)(below / (layer->from.channels / layer->groups) *
			     (layer->channels / layer->groups) +
		     column);
}

/* Writes the spec without `:norm=batch`. */
static void without_norm(char *to, const char *spec)
{
	static const char key[] = ":norm=batch";

	for (const char *at; (at = strstr(spec, key)); spec = at + sizeof key - 1) {
		memcpy(to, spec, (size_t)(at - spec));
		to += at - spec;
	}
	strcpy(to, spec);
}

static void near(double a, double b, double size, const char *name, int64_t k)
{
	if (!(fabs(a - b) <= 1e-11 * size))
		fail_msg("%s[%d]: %.17g instead of %.17g", name, (int)k, a, b);
}

/* Compares the gradients of a layer with those of the layer without a norm. */
static void compare_layer(const struct neap_net *net, const struct neap_net *plain, int l)
{
	const struct neap__layer *layer = &net->layers[l];
	const struct neap__norm *norm = &layer->norm;
	const struct neap__param *t = net->tensors, *w = &t[layer->weight];
	const double *grad = plain->tensors[plain->layers[l].weight].grad, *data = w->data;
	const double *bias = plain->tensors[plain->layers[l].bias].grad;
	double scale[64] = {0}, size = 0;

	for (int64_t k = 0; k < w->count; k++)
		size = fmax(size, fabs(grad[k]));
	for (int64_t k = 0; k < w->count; k++) {
		int c = channel_of(layer, w, k);
		double spread = sqrt(((double *)t[norm->variance].data)[c] + 1e-5);
		double factor = ((double *)t[norm->scale].data)[c] / spread;
		scale[c] += grad[k] * data[k] / spread;
		near(w->grad[k], factor * grad[k], size, w->name, k);
	}
	for (int c = 0; c < norm->channels; c++) {
		double spread = sqrt(((double *)t[norm->variance].data)[c] + 1e-5);
		scale[c] -= bias[c] * ((double *)t[norm->mean].data)[c] / spread;
		near(t[layer->bias].grad[c], bias[c], size + fabs(bias[c]), "bias", c);
		near(t[norm->scale].grad[c], scale[c], size + fabs(scale[c]), "scale", c);
		assert_true(t[norm->mean].grad[c] == 0 && t[norm->variance].grad[c] == 0);
	}
	assert_true(size > 0);
}

static const char *const specs[] = {
	"lif:30r:norm=batch,lif:20:norm=batch:reset=zero,li",
	"lif:30:density=0.4,cubalif:20r:density=0.4:norm=batch:dropout=0.3,alif:12:norm=batch,li",
	("lif:conv=1x3:channels=6:shape=1x1x19:norm=batch,"
	 "adlif:conv=1x4:channels=8:groups=2:pool=1x2:conv_pool=1x3:conv_pool_stride=1:norm=batch:"
	 "scale=60,"
	 "li"),
	("lif:30:from=input+layer1:norm=batch,seadlif:20r:scale=40:from=input+layer0:norm=batch,"
	 "brf:9:scale=900:norm=batch,li"),
	"lif:20,lif:20:delay=0..9:learn:norm=batch:learn=tau,li",
};

/* The net without norms, with what they make of its weights and biases. */
static struct neap_net *plain_of(const struct neap_net *net, const char *spec)
{
	char text[400];

	without_norm(text, spec);
	struct neap_net_options o = net_options(text);
	struct neap_net *plain = net_make(&o);
	for (int l = 0; l < net->nlayers; l++) {
		const struct neap__layer *layer = &net->layers[l];
		const struct neap__norm *norm = &layer->norm;
		const struct neap__param *t = net->tensors;
		double *w = plain->tensors[plain->layers[l].weight].data;
		double *b = plain->tensors[plain->layers[l].bias].data;
		for (int64_t k = 0; norm->kind && k < t[layer->weight].count; k++) {
			int c = channel_of(layer, &t[layer->weight], k);
			w[k] = ((double *)t[layer->weight].data)[k] *
			       ((double *)t[norm->scale].data)[c] /
			       sqrt(((double *)t[norm->variance].data)[c] + 1e-5);
		}
		for (int c = 0; norm->kind && c < norm->channels; c++)
			b[c] = ((double *)t[layer->bias].data)[c] -
			       ((double *)t[norm->scale].data)[c] *
				       ((double *)t[norm->mean].data)[c] /
				       sqrt(((double *)t[norm->variance].data)[c] + 1e-5);
	}
	return plain;
}

static void folded(void **state)
{
	struct neap_objective loss = entropy();
	struct batch_room room;

	(void)state;
	batch_make(&room, 8, SAMPLES, 19, 0, 5, 0.15, lengths);
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
		struct neap_net_options o = net_options(specs[s]);
		struct neap_net *net = net_make(&o);
		draw_norms(net);
		struct neap_net *plain = plain_of(net, specs[s]);
		double a = sweep_plain(net, &room.batch, &loss);
		double b = sweep_plain(plain, &room.batch, &loss);
		assert_true(fabs(a - b) < 1e-12 * fabs(b));
		for (int l = 0; l < net->nlayers; l++)
			if (net->layers[l].norm.kind)
				compare_layer(net, plain, l);
		neap_net_free(net);
		neap_net_free(plain);
	}
	batch_free(&room);
}

/* Differences of the loss of a smooth net by scales, weights and biases. */
static void differences(void **state)
{
	struct neap_objective loss = entropy();
	struct batch_room room;

	(void)state;
	batch_make(&room, 8, 3, 19, 0, 5, 0.2, (const int64_t[]){12, 9, 15});
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
		struct neap_net_options o = net_options(specs[s]);
		o.smooth = 1;
		o.surrogate = NEAP_SIGMOID;
		struct neap_net *net = net_make(&o);
		draw_norms(net);
		sweep_plain(net, &room.batch, &loss);
		double *grad = room_for(net->elements * sizeof *grad);
		memcpy(grad, net->tensors[0].grad, net->elements * sizeof *grad);
		for (int i = 0; i < net->ntensors; i++) {
			const struct neap__param *t = &net->tensors[i];
			for (int64_t k = 0; k < t->count && !t->is_frozen; k += 1 + t->count / 4) {
				double *w = (double *)t->data + k, was = *w, h = 1e-5;
				*w = was + h;
				double up = sweep_plain(net, &room.batch, &loss);
				*w = was - h;
				double down = sweep_plain(net, &room.batch, &loss);
				*w = was;
				double difference = (up - down) / (2 * h);
				if (fabs(difference - grad[t->offset + (size_t)k]) >
					1e-6 * fmax(fabs(difference), 1e-2))
					fail_msg("%s: %s[%d] %g instead of %g", o.spec, t->name,
						(int)k, grad[t->offset + (size_t)k], difference);
			}
		}
		free(grad);
		neap_net_free(net);
	}
	batch_free(&room);
}

/* Mean and variance of W x over all samples, steps and units of a channel. */
static void plain_statistics(
	const struct neap_net *net, const struct batch_room *room, double *mean, double *variance)
{
	const struct neap__layer *layer = &net->layers[0];
	const double *w = net->tensors[layer->weight].data;
	int channels = layer->norm.channels, kernel = layer->conv[1], units = layer->n / channels;
	double count = 0;

	memset(mean, 0, (size_t)channels * sizeof *mean);
	memset(variance, 0, (size_t)channels * sizeof *variance);
	for (int pass = 0; pass < 2; pass++) {
		for (int b = 0; b < room->batch.size; b++) {
			const struct neap_sequence *q = &room->sequences[b];
			for (int64_t t = 0; t < q->length; t++, count += pass ? 0 : units)
				for (int i = 0; i < layer->n; i++) {
					int c = i % channels;
					double x = 0;
					for (uint32_t e = q->start[t]; e < q->start[t + 1]; e++) {
						int tap = q->unit[e] - i / channels;
						if (!kernel)
							x += w[q->unit[e] * channels + c];
						else if (tap >= 0 && tap < kernel)
							x += w[tap * channels + c];
					}
					if (pass)
						variance[c] += (x - mean[c]) * (x - mean[c]);
					else
						mean[c] += x;
				}
		}
		for (int c = 0; c < channels; c++)
			*(pass ? &variance[c] : &mean[c]) /= count;
	}
}

static void statistics(void **state)
{
	static const char *const layers[] = {"lif:23r:norm=batch,lif:9:norm=batch,li",
		"alif:conv=1x3:channels=5:shape=1x1x19:norm=batch,cubalif:9:norm=batch,li"};
	struct neap_objective loss = entropy();
	struct batch_room room;
	double mean[64], variance[64], first[64] = {0};

	(void)state;
	batch_make(&room, 8, SAMPLES, 19, 0, 5, 0.15, lengths);
	for (int s = 0; s < 4; s++) {
		struct neap_net_options o = net_options(layers[s / 2]);
		o.threads = s % 2 ? 3 : 1;
		o.group = 2;
		struct neap_net *net = net_make(&o);
		draw_norms(net);
		const struct neap__norm *norm = &net->layers[0].norm;
		const struct neap__norm *above = &net->layers[1].norm;
		((double *)net->tensors[norm->scale].data)[1] = 0; /* its products are not known */
		sweep_plain(net, &room.batch, &loss);
		plain_statistics(net, &room, mean, variance);
		for (int c = 0; c < norm->channels; c++) {
			double m = ((double *)net->tensors[norm->mean].data)[c];
			double v = ((double *)net->tensors[norm->variance].data)[c];
			assert_true(fabs(norm->found[0][c] - (c == 1 ? m : mean[c])) < 1e-12);
			assert_true(fabs(norm->found[1][c] - (c == 1 ? v : variance[c])) < 1e-12);
			mean[c] = m + 0.1 * (norm->found[0][c] - m);
		}
		for (int c = 0; c < above->channels; c++) { /* bits of three threads */
			if (s % 2)
				assert_true(first[c] == above->found[1][c]);
			first[c] = above->found[1][c];
			assert_true(first[c] > 0);
		}
		neap__norm_move(net);
		for (int c = 0; c < norm->channels; c++)
			assert_true(((double *)net->tensors[norm->mean].data)[c] == mean[c]);
		neap__norm_move(net); /* once for a batch */
		assert_true(((double *)net->tensors[norm->mean].data)[0] == mean[0]);
		neap_net_free(net);
	}
	batch_free(&room);
}

/* The first statistics of a layer keep the deviation of its products. */
static void start(void **state)
{
	struct neap_objective loss = entropy();
	struct batch_room room;
	double mean[64], variance[64], sum = 0;

	(void)state;
	batch_make(&room, 8, SAMPLES, 19, 0, 5, 0.15, lengths);
	struct neap_net_options o = net_options("lif:23:norm=batch,li");
	struct neap_net *net = net_make(&o);
	const struct neap__norm *norm = &net->layers[0].norm;
	sweep_plain(net, &room.batch, &loss);
	plain_statistics(net, &room, mean, variance);
	neap__norm_start(net, 0);
	for (int c = 0; c < norm->channels; c++)
		sum += variance[c] / norm->channels;
	for (int c = 0; c < norm->channels; c++) {
		const struct neap__param *t = net->tensors;
		assert_true(fabs(((double *)t[norm->mean].data)[c] - mean[c]) < 1e-12);
		assert_true(fabs(((double *)t[norm->variance].data)[c] - variance[c]) < 1e-12);
		assert_true(fabs(((double *)t[norm->scale].data)[c] - sqrt(sum)) < 1e-12);
	}
	neap_net_free(net);
	batch_free(&room);
}

static void frozen(void **state)
{
	static const struct {
		const char *freeze;
		int refused, moves;
	} cases[] = {{"layer0", 0, 0}, {"layer0.norm_scale", 0, 1}, {"layer0.weight", 1, 0},
		{"layer0.bias", 1, 0}, {"layer0.weight,layer0.bias", 1, 0},
		{"layer0.weight,layer0.bias,layer0.norm_scale", 0, 0}};
	struct neap_objective loss = entropy();
	struct batch_room room;

	(void)state;
	batch_make(&room, 8, SAMPLES, 19, 0, 5, 0.15, lengths);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct neap_net_options o = net_options("lif:23:norm=batch,lif:9,li");
		struct neap_net *net = NULL;
		o.freeze = cases[i].freeze;
		assert_int_equal(neap_net_create(&net, &o), cases[i].refused ? NEAP_EUSAGE : 0);
		if (cases[i].refused) {
			assert_non_null(strstr(neap_detail(), "normalised together"));
			continue;
		}
		const struct neap__norm *norm = &net->layers[0].norm;
		sweep_plain(net, &room.batch, &loss);
		neap__norm_move(net);
		assert_true((((double *)net->tensors[norm->mean].data)[0] != 0) == cases[i].moves);
		assert_true(net->tensors[norm->scale].grad[0] == 0);
		struct neap_ports ports = {.size = sizeof ports, .samples = 1, .steps = 1};
		assert_int_equal(neap_net_set_ports(net, &ports), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), "norm=batch"));
		neap_net_free(net);
	}
	batch_free(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folded),
		cmocka_unit_test(differences),
		cmocka_unit_test(statistics),
		cmocka_unit_test(start),
		cmocka_unit_test(frozen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
