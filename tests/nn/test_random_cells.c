/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cell files that are compiled compute the bits that the interpreter computes: the examples, and
 * random cells of all operations. `test_random_cells COUNT` for other counts of random cells.
 */
#include "nn/nets.h"
#include "nn/cellfile/cell_program.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS = 40, SAMPLES = 3, USUAL = 4 };
static int64_t count = USUAL;
static const int64_t lengths[SAMPLES] = {STEPS, 33, 7};
static char folder[] = "/tmp/neap-cells-XXXXXX";

/* Random numbers, and the text of a cell that is made with them. */
struct maker {
	uint64_t seed, drawn;
	char text[8000];
	int names; /* states and local names that expressions may use */
};

static int below(struct maker *m, int n)
{
	return (int)neap__random_below(m->seed, NEAP__STREAM_TEST, 78, m->drawn++, (uint64_t)n);
}

static void add(struct maker *m, const char *format, ...)
{
	size_t at = strlen(m->text);
	va_list list;

	va_start(list, format);
	vsnprintf(m->text + at, sizeof m->text - at, format, list);
	va_end(list);
}

/* An expression whose value stays moderate; @ is an expression of one level less. */
static void expression(struct maker *m, int depth)
{
	static const char *const forms[] = {"(@+@)", "(@-@)", "@*@", "-@", "0.7*@", "@/(1+@^2)",
		"min(@;@)", "max(@;@)", "if(@>@;@;@)", "if(@<=@;@;@)", "abs(@)", "exp(min(@;2))",
		"log(1+abs(@))", "sqrt(0.1+abs(@))", "tanh(@)", "sigmoid(@)", "sin(@)", "cos(@)",
		"tanh(@)^3", "decay(9ms)*@", "(@>@)*@", "sigmoid(sin(@))"};
	static const char *const leaves[] = {"in", "spike", "p", "0.3", "1.5", "dt/1ms"};

	if (depth == 0) {
		int leaf = below(m, 6 + 3 * m->names);
		if (leaf < 6)
			add(m, "%s", leaves[leaf]);
		else
			add(m, "s%d", (leaf - 6) / 3);
		return;
	}
	const char *form = forms[below(m, (int)(sizeof forms / sizeof forms[0]))];
	for (; *form; form++)
		if (*form == '@')
			expression(m, below(m, depth + 1) ? depth - 1 : 0);
		else
			add(m, "%c", *form);
}

/* A cell of up to four states, as a layer of a network; not every one is accepted. */
static void make_cell(struct maker *m, uint64_t seed)
{
	static const int sizes[] = {1, 13, 64, 130, 515, 1100};

	*m = (struct maker){.seed = seed};
	int states = 1 + below(m, 4), spike = below(m, states + 1);
	add(m, "cell c;param p=%s", below(m, 2) ? "0.4" : "7ms in 0..1");
	for (int k = 0; k < states; k++)
		add(m, below(m, 2) ? ";state s%d" : ";state s%d=0.5", k);
	m->names = states;
	for (int k = 0; k < states; k++) {
		if (k == spike)
			add(m, ";spike s0-0.4");
		add(m, ";s%d=decay(%dms)*s%d+%s", k, 5 + below(m, 20), k, k ? "" : "in+");
		expression(m, below(m, 4));
		if (below(m, 2)) {
			add(m, ";reset s%d=", below(m, k + 1));
			expression(m, below(m, 2));
		}
		if (below(m, 3) == 0) {
			add(m, ";s%d=", m->names);
			expression(m, 2);
			m->names++;
		}
	}
	if (spike == states)
		add(m, ";spike s0-s%d-0.3", states - 1 ? states - 1 : m->names - 1 ? 1 : 0);
	add(m, ":%d%s:detach=%d%s,li", sizes[below(m, 6)], below(m, 2) ? "r" : "", below(m, 2),
		below(m, 3) ? "" : ":support=0.5");
}

static int same_bits(const void *a, const void *b, size_t bytes)
{
	return memcmp(a, b, bytes) == 0;
}

/* The state after steps without a tape. */
static void *advanced(struct neap_net *net, const struct neap_batch *batch)
{
	static const struct neap_objective none = {.size = sizeof none};
	struct neap_net_sizes sizes = {.size = sizeof sizes};

	assert_int_equal(neap_net_begin(net, batch, &none), 0);
	neap_net_get_sizes(net, &sizes);
	void *state = room_for(sizes.state);
	memset(state, 0, sizes.state);
	assert_int_equal(neap_net_advance(net, state, 0, batch->steps, 1), 0);
	return state;
}

/* 1: the specification is accepted, and has the same bits in both ways. */
static int compare(const char *spec, enum neap_precision precision, int dense)
{
	struct neap_objective objective = {
		.size = sizeof objective, .rates = {.upper = 0.02, .upper_weight = 1, .l2 = 0.1}};
	struct neap_net_options o = net_options(spec);
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct neap_net *net[2];
	struct batch_room room;
	double loss[2];
	void *state[2];

	objective.loss = neap_loss_find("cross-entropy");
	o.precision = precision;
	o.dense = dense;
	int rc = neap_net_create(&net[0], &o);
	if (rc == NEAP_EUSAGE && strlen(neap_detail()) > 0)
		return 0;
	assert_int_equal(rc, 0);
	o.compile_cells = 1;
	o.threads = 2;
	net[1] = net_make(&o);
	assert_non_null(net[1]->layers[0].program->compiled[NEAP__CELL_BACK]);
	batch_make(&room, 3, SAMPLES, 19, 0, 5, 0.1, lengths);
	for (int i = 0; i < 2; i++) {
		loss[i] = sweep_plain(net[i], &room.batch, &objective);
		state[i] = advanced(net[i], &room.batch);
	}
	neap_net_get_sizes(net[0], &sizes);
	int equal = same_bits(&loss[0], &loss[1], sizeof loss[0]) &&
		    same_bits(state[0], state[1], sizes.state);
	for (int k = 0; k < neap_net_params(net[0]); k++) {
		struct neap_param p, q;
		neap_net_param(net[0], k, &p);
		neap_net_param(net[1], k, &q);
		equal &= same_bits(p.grad, q.grad, (size_t)p.count * sizeof *p.grad);
	}
	/* Which NaN an operation returns is not specified. */
	if (!equal && isfinite(loss[0]))
		fprintf(stderr, "# %s, precision %d, dense %d: %a, compiled %a\n", spec, precision,
			dense, loss[0], loss[1]);
	assert_true(equal || !isfinite(loss[0]));
	for (int i = 0; i < 2; i++) {
		free(state[i]);
		neap_net_free(net[i]);
	}
	batch_free(&room);
	return isfinite(loss[0]);
}

static void examples(void **arg)
{
	static const char *const cells[] = {"lif.cell:70r", "alif.cell:65r:detach=1",
		"seadlif.cell:130r:scale=40:a=20:b=30", "izhikevich.cell:70:gain=50:width=5",
		"eif.cell:515r:rest=0.1"};
	const char *source = getenv("NEAP_SOURCE");
	char spec[4096];

	(void)arg;
	for (int i = 0; i < 10; i++) {
		snprintf(spec, sizeof spec, "%s/examples/cells/%s,li", source ? source : ".",
			cells[i / 2]);
		assert_true(compare(spec, i & 1 ? NEAP_DOUBLE : NEAP_FLOAT, i == 0));
	}
}

static void random_cells(void **arg)
{
	struct maker m;
	int64_t compared = 0;
	uint64_t seed = 0;

	(void)arg;
	for (; compared < count && seed < (uint64_t)count * 100; seed++) {
		make_cell(&m, seed);
		compared += compare(m.text, seed & 1 ? NEAP_DOUBLE : NEAP_FLOAT, (seed & 7) == 0);
	}
	printf("# %d of %d random cells are accepted and stay finite\n", (int)compared, (int)seed);
	assert_true(compared == count);
}

/* A gradient check needs smooth spikes, which are interpreted. */
static void smooth(void **arg)
{
	struct neap_net_options o =
		net_options("cell c;state u;u=0.9*u+in;reset u=0;spike u-1:7,li");

	(void)arg;
	o.compile_cells = o.smooth = 1;
	struct neap_net *net = net_make(&o);
	assert_null(net->layers[0].program->compiled[NEAP__CELL_STEP]);
	neap_net_free(net);
	o.smooth = 0;
	o.spec = "lif:7,li";
	assert_int_equal(neap_net_create(&net, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "no layer of the network is a cell file"));
}

static int make_folder(void **arg)
{
	(void)arg;
	return mkdtemp(folder) ? setenv("XDG_CACHE_HOME", folder, 1) : -1;
}

/* Removes the compiled files; nothing else may be there. */
static int remove_folder(void **arg)
{
	char path[600];
	struct dirent *entry;

	(void)arg;
	snprintf(path, sizeof path, "%s/neap/code", folder);
	DIR *directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		if (strlen(entry->d_name) != 35 && entry->d_name[0] != '.')
			return -1;
		snprintf(path, sizeof path, "%s/neap/code/%s", folder, entry->d_name);
		unlink(path);
	}
	if (directory)
		closedir(directory);
	for (const char *below_ = "/neap/code\0/neap\0";; below_ += strlen(below_) + 1) {
		snprintf(path, sizeof path, "%s%s", folder, below_);
		rmdir(path);
		if (!*below_)
			return 0;
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples),
		cmocka_unit_test(random_cells),
		cmocka_unit_test(smooth),
	};

	if (argc > 1)
		count = atoll(argv[1]);
	if (system("cc --version > /dev/null 2>&1") != 0) {
		printf("1..0 # SKIP no cc\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
