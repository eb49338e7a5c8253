/* SPDX-License-Identifier: Apache-2.0 */
/* Cells from text: equal to built-in cells, differentiated rightly, and refused with a place. */
#include "nn/nets.h"
#include "nn/core/cell.h"
#include "nn/cellfile/cell_program.h"

#include <unistd.h>

static const char *example(char room[4096], const char *name, const char *keys)
{
	const char *source = getenv("NEAP_SOURCE");
	snprintf(room, 4096, "%s/examples/cells/%s.cell:%s", source ? source : ".", name, keys);
	return room;
}

static const struct neap_objective *objective(void)
{
	static struct neap_objective o = {
		.size = sizeof o, .rates = {.upper = 0.02, .upper_weight = 1, .l2 = 0.1}};
	o.loss = neap_loss_find("cross-entropy");
	return &o;
}

/* A cell as text, or @ and a file of examples/cells, and the built-in cell that it is. */
static const char *const pairs[][2] = {
	{"cell c;param tau=20ms;state u;u=decay(tau)*u+in;reset u=u-1;spike u-1:70r,li",
		"lif:70r,li"},
	{"cell c;state u;u=decay(20ms)*u+in;spike u-1;reset u=u-1:70r,li", "lif:70r:reset=soft,li"},
	{"cell c;state u;u=decay(20ms)*u+in;spike u-1;reset u=0.1:70r,li",
		"lif:70r:reset=hard:reset_value=0.1,li"},
	{"cell c;state u;u=decay(20ms)*u+in;reset u=0;spike u-1:70r,li", "lif:70r:reset=zero,li"},
	{"cell c;state u;u=decay(20ms)*u+in;spike u-1;reset u=u-1:70r:detach=1,li",
		"lif:70r:reset=soft:detach=1,li"},
	{"cell c;state u;u=decay(20ms)*u+in;reset u=0;spike u-1:70r:detach=1,li",
		"lif:70r:reset=zero:detach=1,li"},
	{"cell c;state i;state u;i=decay(5ms)*i+in;u=decay(20ms)*u+i;reset u=u-1;spike u-1:"
	 "70r:scale=0.7,lif:40:delay=1,li",
		"cubalif:70r:scale=0.7,lif:40:delay=1,li"},
	{"cell c;state u;state a;a=decay(100ms)*a+spike;u=decay(20ms)*u+in;reset u=u-1;"
	 "spike u-0.1*a-1:70r,li",
		"alif:70r,li"},
	{"cell c;state u;state w;w=decay(100ms)*w+0.1*u+0.2*spike;reset u=u-1;"
	 "u=decay(20ms)*u+(1-decay(20ms))*(in-w);spike u-1:65r:scale=40:detach=1,li",
		"adlif:65r:scale=40:detach=1,li"},
	{"cell c;state u;state w;u=decay(20ms)*u+(1-decay(20ms))*(in-w);spike u-1;reset u=0;"
	 "w=decay(100ms)*w+(1-decay(100ms))*(20*u+30*spike):65r:scale=40,li",
		"seadlif:65r:scale=40:a=20:b=30,li"},
	{"@seadlif:65r:scale=40,li", "seadlif:65r:scale=40:tau=15ms:tau_adapt=180ms:a=60:b=120,li"},
	{"cell c;state u;state w;u=decay(9ms)*u+(1-decay(9ms))*(in-w);spike u-1;reset u=0;"
	 "w=decay(100ms)*w+(1-decay(100ms))*(2*u+30*spike):65r:scale=40:detach=1,lif:30:delay=1,li",
		"seadlif:65r:scale=40:tau=9ms:a=2:b=30:detach=1,lif:30:delay=1,li"},
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

static void equals_built_in(void **arg)
{
	static const int64_t lengths[] = {70, 90, 33, 1, 81, 64};
	struct batch_room room;

	(void)arg;
	batch_make(&room, 3, 6, 19, 0, 5, 0.05, lengths);
	for (int i = 0; i < PAIRS * 4; i++) {
		struct neap_net_result p = {.size = sizeof p}, q = {.size = sizeof q};
		const char *text = pairs[i / 4][0];
		char path[4096], name[64] = "";
		if (sscanf(text, "@%63[^:]", name) == 1)
			text = example(path, name, strchr(text, ':') + 1);
		struct neap_net_options o = net_options(text);
		struct neap_net_sizes y = {.size = sizeof y}, z = {.size = sizeof z};
		int in_float = i & 1;
		o.precision = in_float ? NEAP_FLOAT : NEAP_DOUBLE;
		o.dense = i >> 1 & 1;
		struct neap_net *a = net_make(&o);
		o.spec = pairs[i / 4][1];
		struct neap_net *b = net_make(&o);
		double x = sweep_plain(a, &room.batch, objective());
		double want = sweep_plain(b, &room.batch, objective());
		neap_net_get_result(a, &p);
		neap_net_get_result(b, &q);
		neap_net_get_sizes(a, &y);
		neap_net_get_sizes(b, &z);
		assert_true(q.spikes > 0.005);
		assert_true(p.spikes == q.spikes && p.support == q.support);
		assert_true(fabs(x - want) <= (in_float ? 1e-6 : 1e-13) * fabs(want));
		double distance = grad_distance(a, b);
		if (!(distance < (in_float ? 1e-6 : 1e-12)))
			fprintf(stderr, "# %s, %s: %g\n", pairs[i / 4][0], o.spec, distance);
		assert_true(distance < (in_float ? 1e-6 : 1e-12));
		/* Linear cells need the tape of the built-in ones, except after a reset to 0. */
		if (!strstr(o.spec, "zero"))
			assert_true(y.tape_mean == z.tape_mean);
		neap_net_free(a);
		neap_net_free(b);
	}
	batch_free(&room);
}

/* Numbers per unit on the tape: the fewest from which the derivative follows. */
static void smallest_tapes(void **arg)
{
	static const struct {
		const char *spec;
		int rows, is_sparse, last;
	} cases[] = {
		{"cell c;state u;u=0.9*u+in;spike u-1:7,li", 1, 1, 0},
		{"cell c;state u;state w;w=0.9*w+u;u=0.9*u+in-w;spike u-1;reset u=0:7,li", 1, 1, 0},
		/* the membrane before and after the step */
		{"cell c;state u;u=u+0.1*u^2+in;spike u-1:7,li", 2, 0, 0},
		/* tanh of u follows from u */
		{"cell c;state u;u=tanh(u+in);spike u-1:7,li", 1, 0, 0},
		/* the membrane before the reset, and the spikes that reset it */
		{"cell c;state u;u=0.9*u+in;reset u=0;spike u-1:7,li", 1, 0, 1},
		{"cell c;state u;u=0.9*u+in;reset u=0;spike u-1:7:detach=1,li", 1, 0, 1},
	};
	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct neap_net_options o = net_options(cases[i].spec);
		struct neap_net *net = net_make(&o);
		const struct neap__cell_cut *cut = &net->layers[0].program->cut;
		if (cut->count != cases[i].rows || cut->is_sparse != cases[i].is_sparse ||
			cut->last != cases[i].last)
			fprintf(stderr, "# %s: %d rows, sparse %d, last %d\n", cases[i].spec,
				cut->count, cut->is_sparse, cut->last);
		assert_int_equal(cut->count, cases[i].rows);
		assert_int_equal(cut->is_sparse, cases[i].is_sparse);
		assert_int_equal(cut->last, cases[i].last);
		neap_net_free(net);
	}
}

/* Every operation and every kind of reset, in nets of their own kind and among others. */
static const char *const checked[] = {
	"cell c;state u;u=0.8*u+in;reset u=u-1;spike u-1:6r,li",
	"cell c;state u;u=0.8*u+in;reset u=0.1*u;spike u-1;reset u=u-1:6r,li",
	"cell c;state u=-2;state w=1;u=u+0.1*u^2+in-0.1*w;w=w+0.1*(u-w)+spike;spike (u+1)/2;"
	"reset u=-2;reset w=w+0.2:6r,li",
	"cell c;state u;x=exp(min(u;2))/(2+sin(u)*cos(in));u=tanh(x)+0.5*in;"
	"spike u-sqrt(1+u*u)+0.5*spike;u=u-0.3*spike:5r,lif:4:delay=1,li",
	"cell c;state u;u=if(in>0.1;0.5*u+in;0.4*u+in)+log(2+u^4)-sigmoid(u);"
	"spike abs(u)-max(u;0.3)-0.2:5,cell d;state v;v=0.5*v+in;spike v-1;reset v=0:4r,"
	"li",
};

static void gradients(void **arg)
{
	static const char *const names[] = {"lif", "alif", "seadlif", "izhikevich", "eif"};
	static const char *const keys[] = {"6r,li", "6r,li", "6r:scale=30:a=0.5:b=0.5,li",
		"6r:scale=3:gain=100,li", "5r:scale=3,lif:4,li"};
	static const int64_t lengths[] = {9, 13, 4};
	int count = 5 + sizeof checked / sizeof checked[0];
	struct batch_room room;

	(void)arg;
	batch_make(&room, 5, 3, 7, 13, 3, 0.3, lengths);
	for (int i = 0; i < 2 * count; i++) {
		struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
		char path[4096];
		double worst = 1;
		o.spec = i / 2 < 5 ? example(path, names[i / 2], keys[i / 2]) : checked[i / 2 - 5];
		o.inputs = 7;
		o.classes = 3;
		o.seed = 11;
		o.threads = 1;
		o.scale = 2;
		o.recurrent_scale = 0.7;
		o.detach = i & 1;
		o.surrogate = NEAP_SIGMOID;
		int rc = neap_gradcheck(&worst, &o, &room.batch, objective(), 0);
		if (rc || !(worst < 1e-5))
			fprintf(stderr, "# %s: %d, %g %s\n", o.spec, rc, worst, neap_detail());
		assert_int_equal(rc, 0);
		assert_true(worst < 1e-5);
	}
	batch_free(&room);
}

/* A specification of a net that names a file contains its text, and makes the same net. */
static void text_of_a_file(void **arg)
{
	char path[4096];
	struct neap_net_options o = net_options(example(path, "seadlif", "9r:a=2:tau=10ms,li"));
	(void)arg;
	struct neap_net *a = net_make(&o);
	assert_non_null(strstr(a->whole_spec, "cell seadlif;param tau=15ms in 0..inf;"));
	assert_non_null(strstr(a->whole_spec, ":9r:a=2:tau=10ms,li"));
	assert_non_null(strstr(neap_net_spec(a), ":9r:tau=0.01"));
	o.spec = a->whole_spec;
	struct neap_net *b = net_make(&o);
	assert_string_equal(neap_net_spec(a), neap_net_spec(b));
	o.spec = neap_net_spec(a);
	struct neap_net *c = net_make(&o);
	assert_string_equal(neap_net_spec(a), neap_net_spec(c));
	assert_string_equal(a->layers[0].program->text, c->layers[0].program->text);
	neap_net_free(a);
	neap_net_free(b);
	neap_net_free(c);
}

/* Messages: the place, what is wrong, what to do. */
static void refused(void **arg)
{
	static const char *const cases[][2] = {
		{"cell c;state u;u=0.9*u+inn;spike u-1:5",
			":1:24: unknown name 'inn'. Declare it with 'state' or 'param', or assign "
			"to it before; did you mean 'in'?"},
		{"cell c;state u;u=0.9*u+in;spike u-1;spike u:5", ":1:37: a cell has one spike"},
		{"cell c;state u;u=0.9*u+in:5", ": the cell has no spike condition; add one, such"},
		{"cell c;u=in;spike u-1:5", ": the cell has no state; declare one"},
		{"cell c;state u;spike 1-dt:5", ":1:22: the spike condition is constant"},
		{"cell c;state u;u=(u+in;spike u-1:5", ": expected ')' here"},
		{"cell c;state u;u=u*;spike u-1:5", ":1:20: expected a number, a name or '(' here"},
		{"cell c;state u;u=u$2;spike u-1:5", ":1:19: '$' is not expected here"},
		{"cell c;state u;u=u^1.5;spike u-1:5", ":1:20: an exponent must be a whole number"},
		{"cell c;state u;u=u^0;spike u-1:5", ":1:20: an exponent must be a whole number"},
		{"cell c;state u;u=max(u);spike u-1:5", ":1:23: expected ',' here; max has 2"},
		{"cell c;state u;u=exp u;spike u-1:5", "'exp' is a function; write 'exp(...)'"},
		{"cell c;state u;state u;spike u-1:5", ":1:22: 'u' exists already"},
		{"cell c;state width;spike width-1:5", ":1:14: 'width' has a meaning already"},
		{"cell c;state u;param k=2 in 3..4;spike u-1:5",
			":1:24: the default value 2 is not in the range 3..4"},
		{"cell c;state u;param k=2;k=3;spike u-1:5", ":1:26: 'k' cannot be assigned to"},
		{"cell c;state u;u=in;state v;spike u-1:5", ":1:21: declare states and parameters"},
		{"cell c;state u;reset x=0;spike u-1:5", ":1:22: reset needs the name of a state"},
		{"cell c;state u=x;spike u-1:5", ":1:16: expected a number here"},
		{"cell ;state u;spike u-1:5", ":1:6: cell needs a name, such as"},
		{"cell c;state u;u=3ns5;spike u-1:5", ":1:18: '3ns5' is not a number"},
		{"cell c;param k=1 in 0..2;state u;u=in;spike u-1:5:k=3",
			"k of c.cell must be a number from 0 to 2, not '3'"},
		{"cell c;param k=1;state u;u=in;spike u-1:5:kk=3",
			"c.cell has no key 'kk'; it has k, detach, surrogate, width,"},
		{"cell c;state u;u=in;spike u-1:5:threshold=2", "c.cell has no key 'threshold'"},
		{"cell c;state u;u=in;spike u-1", "c.cell needs a size, such as c.cell:64,li"},
		{"cell c;state u;u=log(-1-u*u)+in;spike u-1:5",
			"has no finite value near the states"},
		{"none.cell:5", "cannot read the cell file 'none.cell': No such file"},
		{"cell=/dev/zero:5", "'/dev/zero' has 16384 bytes or more"},
	};
	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char spec[400];
		struct neap_net *net;
		snprintf(spec, sizeof spec, "%s,li", cases[i][0]);
		struct neap_net_options o = net_options(spec);
		assert_int_equal(neap_net_create(&net, &o), NEAP_EUSAGE);
		if (!strstr(neap_detail(), cases[i][1]))
			fprintf(stderr, "# %s: %s\n", spec, neap_detail());
		assert_non_null(strstr(neap_detail(), cases[i][1]));
	}
}

/* Lines and columns of a file; comments, blank lines and lines within brackets. */
static void places(void **arg)
{
	char path[] = "/tmp/neap-cell-XXXXXX.cell", spec[100];
	static const char text[] = "# a comment\n\ncell c  # named\nstate u\r\n"
				   "u = max(0.9*u,\n\tin)\nspike u - thershold\n";
	struct neap_net *net;
	(void)arg;
	int fd = mkstemps(path, 5);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
	close(fd);
	snprintf(spec, sizeof spec, "%s:5,li", path);
	struct neap_net_options o = net_options(spec);
	assert_int_equal(neap_net_create(&net, &o), NEAP_EUSAGE);
	assert_memory_equal(neap_detail(), path, sizeof path - 1);
	assert_non_null(strstr(neap_detail(), ".cell:7:11: unknown name 'thershold'."));
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_built_in),
		cmocka_unit_test(smallest_tapes),
		cmocka_unit_test(gradients),
		cmocka_unit_test(text_of_a_file),
		cmocka_unit_test(refused),
		cmocka_unit_test(places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
