/* SPDX-License-Identifier: Apache-2.0 */
/* Training runs: they learn, to the same bits however they are run, and refuse what they must. */
#include "runs.h"
#include "train/evaluate.h"
#include "train/safetensors.h"

#include <jansson.h>
#include <errno.h>

struct seen {
	double first, last; /* losses of epochs */
	int batches, epochs, lines;
};

static int watch(void *user, const struct neap_train_progress *p)
{
	struct seen *seen = user;
	if (!p->epoch_done) {
		seen->batches++;
		assert_true(p->batch >= 1 && p->batch <= p->batches);
		assert_true(p->peak_measured > 0 && p->peak_measured <= 1 << 20);
		return 0;
	}
	if (seen->epochs++ == 0)
		seen->first = p->loss;
	seen->last = p->loss;
	return 0;
}

static void count_lines(void *user, const char *line)
{
	assert_null(strchr(line, '\n'));
	((struct seen *)user)->lines++;
}

static void it_learns(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("learns");
	struct neap_train_result r = {.size = sizeof r};
	struct seen seen = {0};
	o.test = SMALL_TEST;
	o.epochs = 25;
	o.progress = watch;
	o.say = count_lines;
	o.user = &seen;
	o.command = "neap train test";
	assert_int_equal(neap_train(&r, &o), 0);
	assert_int_equal(seen.batches, 25 * 12);
	assert_int_equal(seen.epochs, 25);
	assert_true(seen.lines >= 2);
	assert_true(seen.last < 0.5 * seen.first);
	assert_int_equal(r.epochs_done, 25);
	assert_int_equal(r.updates, 300);
	assert_int_equal(r.validation.samples, 20);
	assert_int_equal(r.test.samples, 100);
	assert_true(r.test.accuracy > 0.6);
	assert_true(r.test.low < r.test.accuracy && r.test.accuracy < r.test.high);
	assert_true(r.arena_bytes <= o.sweep.memory && r.peak_measured <= r.arena_bytes);
	assert_true(r.validation.accuracy == r.best_validation);

	/* the model in the folder is the one that was tested */
	struct neap_eval_options eo = {
		.size = sizeof eo, .model = o.out, .data = SMALL_TEST, .batch = 7, .threads = 1};
	struct neap_eval_result e = {.size = sizeof e};
	assert_int_equal(neap_eval(&e, &eo), 0);
	assert_int_equal(e.correct, r.test.correct);
	assert_true(fabs(e.loss - r.test.loss) < 1e-12);
	int64_t sum = 0, diagonal = 0;
	for (int i = 0; i < 16; i++) {
		sum += e.confusion[i];
		diagonal += i % 5 == 0 ? e.confusion[i] : 0;
	}
	assert_int_equal(sum, 100);
	assert_int_equal(diagonal, e.correct);
	assert_int_equal(e.layers, 1);
	assert_true(e.rates[0] > 0 && e.rates[0] < 1);
	neap_eval_result_free(&e);
	neap_train_result_free(&r);
}

static json_t *read_json(const char *name)
{
	json_t *root = json_load_file(in_folder(name), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	return root;
}

static void run_json_tells_all(void **state)
{
	(void)state;
	json_t *root = read_json("learns/run.json");
	static const char *const keys[] = {"command", "settings", "sweep", "data", "machine", "isa",
		"versions", "plan", "memory", "results"};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (!json_object_get(root, keys[i]))
			fail_msg("run.json has no '%s'", keys[i]);
	json_t *results = json_object_get(root, "results");
	assert_string_equal(json_string_value(json_object_get(results, "state")), "done");
	assert_int_equal(json_number_value(json_object_get(results, "epochs_done")), 25);
	json_decref(root);

	int rows = 0;
	char text[512];
	FILE *f = fopen(in_folder("learns/metrics.csv"), "r");
	assert_non_null(f);
	while (fgets(text, sizeof text, f))
		rows++;
	fclose(f);
	assert_int_equal(rows, 26);
}

/* A last batch of one sample, whose tapes all have one size that no mean of larger batches says. */
static void tapes_of_one_size_are_planned(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("one_size");
	o.data = "randman:part=train,classes=4,units=20,samples=54,steps=70";
	o.net.spec = "egru:10,li";
	o.batch = 12;
	o.epochs = 2;
	uint64_t hash = train_hash(&o);
	o = small_run("one_size_kept");
	o.data = "randman:part=train,classes=4,units=20,samples=54,steps=70";
	o.net.spec = "egru:10,li";
	o.batch = 12;
	o.epochs = 2;
	o.sweep.strategy = "bptt";
	assert_true(train_hash(&o) == hash);
}

static void strategies_budgets_and_threads_agree(void **state)
{
	(void)state;
	static const struct {
		const char *strategy, *slow;
		uint64_t memory;
		int threads;
	} ways[] = {{"auto", NULL, 1 << 20, 2}, {"bptt", NULL, 4 << 20, 1},
		{"standard", NULL, 200 << 10, 2}, {"revolve", NULL, 150 << 10, 1},
		{"double", "mem:8M", 150 << 10, 2}, {"remote", "mem:8M", 150 << 10, 1},
		{"hierarchical", "mem:8M", 200 << 10, 3}, {"auto", NULL, 120 << 10, 2}};
	uint64_t first = 0;
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		char name[32];
		snprintf(name, sizeof name, "way%zu", i);
		struct neap_train_options o = small_run(name);
		o.sweep.strategy = ways[i].strategy;
		o.sweep.slow = ways[i].slow;
		o.sweep.memory = ways[i].memory;
		o.net.threads = ways[i].threads;
		o.max_steps = 40;
		uint64_t hash = train_hash(&o);
		if (i == 0)
			first = hash;
		if (hash != first)
			fail_msg("%s in %llu bytes: other weights", ways[i].strategy,
				(unsigned long long)ways[i].memory);
	}
	struct neap_train_options o = small_run("seed");
	o.max_steps = 40;
	o.seed = 2;
	assert_true(train_hash(&o) != first);
}

/* A run that must be refused; nothing may be left behind. */
static void refused(const struct neap_train_options *o, int code, const char *says)
{
	struct neap_train_result r = {.size = sizeof r};
	int rc = neap_train(&r, o);
	if (rc != code)
		fail_msg("%s, not %s: %s", neap_strerror(rc), neap_strerror(code), neap_detail());
	if (!strstr(neap_detail(), says) || strchr(neap_detail(), '\n'))
		fail_msg("'%s' does not say '%s'", neap_detail(), says);
}

static void bad_questions_are_refused(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("bad");
#define REFUSED(change, code, says)                                                                \
	do {                                                                                       \
		o = small_run("bad");                                                              \
		change;                                                                            \
		refused(&o, code, says);                                                           \
		assert_false(exists("bad"));                                                       \
	} while (0)
	REFUSED(o.data = NULL, NEAP_EUSAGE, "randman");
	REFUSED(o.data = in_folder("none.h5"), -ENOENT, "none.h5");
	REFUSED(o.test = in_folder("none.h5"), -ENOENT, "none.h5");
	REFUSED(o.test = "randman:classes=5,units=20,steps=60", NEAP_EUSAGE, "5 classes");
	REFUSED(o.test = "randman:classes=4,units=21,steps=60", NEAP_EUSAGE, "21 input channels");
	REFUSED(o.net.spec = "lif:32r", NEAP_EUSAGE, "");
	REFUSED(o.loss = "hinge", NEAP_EUSAGE, "hinge");
	REFUSED(o.optimizer = "lion", NEAP_EUSAGE, "lion");
	REFUSED(o.schedule = "step", NEAP_EUSAGE, "step");
	REFUSED(o.holdout = "george", NEAP_EUSAGE, "george");
	REFUSED(o.learning_rate = NAN, NEAP_EUSAGE, "learning_rate");
	REFUSED(o.learning_rate = -1, NEAP_EUSAGE, "learning_rate");
	REFUSED(o.net.dt = 0, NEAP_EUSAGE, "dt");
	REFUSED(o.batch = 0, NEAP_EUSAGE, "batch");
	REFUSED(o.epochs = 0, NEAP_EUSAGE, "epochs");
	REFUSED(o.beta1 = 1, NEAP_EUSAGE, "beta1");
	REFUSED(o.validation = 1, NEAP_EUSAGE, "validation");
	REFUSED(o.size = 8, NEAP_EUSAGE, "sizeof, not 8");
	REFUSED(o.size += 8, NEAP_EUSAGE, "older than the header");
	REFUSED(o.sweep.memory = 1000, NEAP_EINFEASIBLE, "1000 bytes");
	REFUSED((o.sweep.memory = 12 << 10, o.sweep.strategy = "bptt"), NEAP_EINFEASIBLE, "bptt");
	REFUSED(o.sweep.strategy = "tide", NEAP_EUSAGE, "tide");
	REFUSED(o.sweep.slow = "mem:", NEAP_EUSAGE, "");
	REFUSED(o.sweep.slow = in_folder("none/none"), -ENOENT, "none");
	o = small_run("learns");
	refused(&o, NEAP_EUSAGE, "--resume");
	o.out = in_folder("learns/run.json");
	refused(&o, -ENOTDIR, "run.json");
	o.out = in_folder("learns/run.json/below");
	refused(&o, -ENOTDIR, "run.json/below");
	o.out = in_folder("none/below");
	refused(&o, NEAP_EUSAGE, "none/below");
	o.out = "/proc/neap";
	refused(&o, -ENOENT, "/proc/neap");
}

static void eval_refuses_what_does_not_fit(void **state)
{
	(void)state;
	const char *model = in_folder("learns");
	struct {
		const char *model, *data;
		int code;
	} bad[] = {{model, "randman:classes=4,units=30", NEAP_EUSAGE},
		{model, "randman:classes=9,units=20", NEAP_EUSAGE},
		{in_folder("none"), SMALL_TEST, -ENOENT}, {folder, SMALL_TEST, -ENOENT},
		{in_folder("learns/run.json"), SMALL_TEST, NEAP_EFORMAT},
		{model, NULL, NEAP_EUSAGE}};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct neap_eval_options o = {
			.size = sizeof o, .model = bad[i].model, .data = bad[i].data};
		struct neap_eval_result r = {.size = sizeof r};
		assert_int_equal(neap_eval(&r, &o), bad[i].code);
		assert_true(neap_detail()[0] && !strchr(neap_detail(), '\n'));
	}
	/* fewer channels and classes than the model's are fine; so is a snapshot */
	struct neap_eval_options o = {.size = sizeof o,
		.model = in_folder("learns/last.safetensors"),
		.data = "randman:classes=3,units=11,steps=30,samples=9"};
	struct neap_eval_result r = {.size = sizeof r};
	assert_int_equal(neap_eval(&r, &o), 0);
	assert_int_equal(r.classes, 4);
	assert_int_equal(r.samples, 9);
	neap_eval_result_free(&r);
}

struct seen_steps {
	int64_t steps, spikes, answers;
};

static int see_step(void *user, const struct neap_step_view *view)
{
	struct seen_steps *seen = user;

	assert_int_equal(view->step, seen->steps % view->steps);
	assert_int_equal(view->sample, seen->steps / view->steps);
	assert_int_equal(view->layers, 2);
	assert_string_equal(view->layer[0].name, "layer0");
	assert_string_equal(view->layer[0].state_name[0], "membrane");
	assert_string_equal(view->layer[1].name, "readout");
	assert_int_equal(view->layer[1].spikes, -1);
	for (int i = 0; i < view->layer[0].spikes; i++)
		assert_true(view->layer[0].spike[i] < view->layer[0].units);
	seen->steps++;
	seen->spikes += view->layer[0].spikes;
	return seen->steps == 1000 ? -EDOM : 0;
}

static int see_answer(void *user, const struct neap_answer *answer)
{
	struct seen_steps *seen = user;
	assert_int_equal(seen->steps, (answer->index + 1) * answer->steps);
	seen->answers++;
	return 0;
}

/* Every step is seen in its order, before its sample's answer, and a code of the caller ends all.
 */
static void steps_are_seen(void **state)
{
	(void)state;
	const int64_t last = 8;
	struct seen_steps seen = {0};
	struct neap_eval_options o = {.size = sizeof o,
		.model = in_folder("learns"),
		.data = "randman:classes=3,units=11,steps=30,samples=9",
		.stepped = see_step,
		.answered = see_answer,
		.user = &seen};
	struct neap_eval_result r = {.size = sizeof r};

	assert_int_equal(neap_eval(&r, &o), 0);
	assert_int_equal(seen.steps, 270);
	assert_int_equal(seen.answers, 9);
	int64_t units = 32;
	assert_true(fabs(r.rates[0] - (double)seen.spikes / (double)(270 * units)) < 1e-12);
	neap_eval_result_free(&r);
	seen = (struct seen_steps){.steps = last * 30};
	o.sample = &last;
	assert_int_equal(neap_eval(&r, &o), 0);
	assert_int_equal(r.samples, 1);
	neap_eval_result_free(&r);
	seen = (struct seen_steps){0};
	o.sample = NULL;
	o.data = "randman:classes=3,units=11,steps=30,samples=90";
	assert_int_equal(neap_eval(&r, &o), -EDOM);
	assert_int_equal(seen.steps, 1000);
	o.layer = "layer0";
	assert_int_equal(neap_eval(&r, &o), NEAP_EUSAGE);
}

/* The model of `it_learns` with one text of its header changed to another. */
static int eval_changed(const char *from, const char *to)
{
	static char text[1 << 20], out[(1 << 20) + 4096];
	struct neap_eval_options o = {
		.size = sizeof o, .model = in_folder("changed.safetensors"), .data = SMALL_TEST};
	struct neap_eval_result r = {.size = sizeof r};
	FILE *f = fopen(in_folder("learns/model.safetensors"), "rb");
	size_t n = fread(text, 1, sizeof text, f), a = strlen(from), b = strlen(to);
	fclose(f);
	char *place = memmem(text, n, from, a);
	assert_non_null(place);
	size_t before = (size_t)(place - text);
	uint64_t header;
	memcpy(&header, text, 8);
	header += b - a;
	memcpy(out, text, before);
	memcpy(out + before, to, b);
	memcpy(out + before + b, place + a, n - before - a);
	memcpy(out, &header, 8);
	f = fopen(o.model, "wb");
	fwrite(out, 1, n + b - a, f);
	fclose(f);
	int rc = neap_eval(&r, &o);
	if (rc == 0)
		neap_eval_result_free(&r);
	return rc;
}

static void changed_models_are_refused(void **state)
{
	(void)state;
	static const char *const changes[][2] = {{"lif:32r,li", "lif:65535r,lif:65535r,li"},
		{"lif:32r,li", "lif:33r,li"}, {"lif:32r,li", "lif:32,li"}, {"lif:32r,li", "egg"},
		{"lif:32r,li", ""}, {"\\\"inputs\\\":\\\"20\\\"", "\\\"inputs\\\":\\\"-1\\\""},
		{"\\\"inputs\\\":\\\"20\\\"", "\\\"inputs\\\":\\\"65536\\\""},
		{"\\\"dt\\\":\\\"0.001\\\"", "\\\"dt\\\":\\\"nan\\\""},
		{"\\\"dt\\\":\\\"0.001\\\"", "\\\"td\\\":\\\"0.001\\\""}, {"subtract", "retract"},
		{"\"neap.max_steps\":\"0\"", "\"neap.max_steps\":\"-1\""}, {"neap.net", "neap.nut"},
		{"layer0.weight", "layer0.wait"}};
	assert_int_equal(eval_changed("neap.format", "neap.format"), 0);
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
		if (eval_changed(changes[i][0], changes[i][1]) != NEAP_EFORMAT)
			fail_msg("%s for %s was taken", changes[i][1], changes[i][0]);
}

static void divergence_ends_the_run(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("diverged");
	struct neap_train_result r = {.size = sizeof r};
	o.optimizer = "sgd";
	o.learning_rate = 1e6; /* weights grow by 1e5 and more an update */
	o.weight_decay = 1;
	o.schedule = "constant";
	o.clip = 0;
	o.snapshot_seconds = 1e-9; /* after every batch */
	assert_int_equal(neap_train(&r, &o), NEAP_EDIVERGED);
	assert_non_null(strstr(neap_detail(), "epoch 1"));
	struct neap__safetensors file;
	assert_int_equal(neap__safetensors_read(&file, in_folder("diverged/last.safetensors")), 0);
	const struct neap__file_tensor *t = neap__safetensors_find(&file, "layer0.weight");
	for (size_t i = 0; i < t->bytes / sizeof(float); i++) {
		float w;
		memcpy(&w, (const char *)t->data + i * sizeof w, sizeof w);
		assert_true(isfinite(w));
	}
	assert_string_not_equal(neap__safetensors_meta(&file, "count.update"), "0");
	neap__safetensors_free(&file);
}

/* The limit on the norm of gradients reaches the updates. */
static void gradients_are_clipped(void **state)
{
	static const double limits[] = {0, 1e-3, 1e30};
	uint64_t weights[3];
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct neap_train_options o = small_run(i == 0 ? "free" : i == 1 ? "cut" : "wide");
		struct neap_train_result r = {.size = sizeof r};
		o.optimizer = "sgd";
		o.schedule = "constant";
		o.momentum = o.weight_decay = 0;
		o.epochs = 1;
		o.clip = limits[i];
		assert_int_equal(neap_train(&r, &o), 0);
		weights[i] = r.weights_hash;
		neap_train_result_free(&r);
	}
	assert_true(weights[0] != weights[1]);
	assert_true(weights[0] == weights[2]); /* below the limit: as without */
}

/* Weights that stand still: the same score on the validation split, another loss in training. */
static void only_training_samples_are_augmented(void **state)
{
	(void)state;
	struct neap_train_result plain = {.size = sizeof plain},
				 augmented = {.size = sizeof augmented};
	struct neap_train_options o = small_run("plain");
	o.learning_rate = 0;
	o.epochs = 1;
	o.test = SMALL_DATA;
	assert_int_equal(neap_train(&plain, &o), 0);
	o.out = in_folder("augmented");
	o.augment = (struct neap_augment){
		.stretch_low = 0.5, .stretch_high = 2, .jitter = 5e-3, .shift = 3};
	o.net.dropout = 0.3;
	assert_int_equal(neap_train(&augmented, &o), 0);
	assert_true(plain.weights_hash == augmented.weights_hash);
	assert_true(plain.validation.loss == augmented.validation.loss);
	assert_true(plain.test.loss == augmented.test.loss);
	assert_true(plain.train_loss != augmented.train_loss);
	neap_train_result_free(&plain);
	neap_train_result_free(&augmented);
	json_t *root = read_json("augmented/run.json"), *settings;
	settings = json_object_get(root, "settings");
	assert_true(json_number_value(json_object_get(settings, "stretch_low")) == 0.5);
	assert_true(json_number_value(json_object_get(settings, "stretch_high")) == 2);
	assert_true(json_number_value(json_object_get(settings, "jitter")) == 5e-3);
	assert_int_equal(json_integer_value(json_object_get(settings, "shift")), 3);
	assert_true(json_number_value(json_object_get(settings, "dropout")) == 0.3);
	/* Planned for samples of twice the length. */
	json_t *data = json_object_get(root, "data");
	assert_int_equal(json_integer_value(json_object_get(data, "longest_steps")), 120);
	json_decref(root);
}

/* A last batch of fewer samples has less room for logs than the batches before it took. */
static void smaller_batches_have_smaller_logs(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("smaller");
	struct neap_train_result r = {.size = sizeof r};
	o.data = "randman:units=700,steps=250,samples=256,spikes=1,classes=2";
	o.net.spec = "lif:32,li";
	o.net.scale = 1;
	o.net.threads = 1;
	o.batch = 128;
	o.seed = o.net.seed = 34;
	o.epochs = 2;
	o.sweep.memory = 8 << 20;
	assert_int_equal(neap_train(&r, &o), 0);
	assert_int_equal(r.updates, 4);
	neap_train_result_free(&r);
}

static void without_validation_the_last_is_kept(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("novalidation");
	struct neap_train_result r = {.size = sizeof r};
	o.validation = 0;
	assert_int_equal(neap_train(&r, &o), 0);
	assert_int_equal(r.best_epoch, 3);
	assert_int_equal(r.validation.samples, 0);
	assert_int_equal(r.updates, 3 * 13);
	neap_train_result_free(&r);
}

static void sparse_and_double_nets_are_kept_whole(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("sparse");
	struct neap_train_result r = {.size = sizeof r};
	o.net.spec = "lif:32r:density=0.3,lif:16,li";
	o.net.precision = NEAP_DOUBLE;
	o.optimizer = "adamw";
	o.weight_decay = 0.01;
	o.epochs = 2;
	assert_int_equal(neap_train(&r, &o), 0);
	struct neap_eval_options eo = {.size = sizeof eo, .model = o.out, .data = SMALL_TEST};
	struct neap_eval_result e = {.size = sizeof e};
	assert_int_equal(neap_eval(&e, &eo), 0);
	assert_int_equal(e.layers, 2);
	neap_eval_result_free(&e);
	neap_train_result_free(&r);
	struct neap__safetensors file;
	assert_int_equal(neap__safetensors_read(&file, in_folder("sparse/model.safetensors")), 0);
	assert_non_null(neap__safetensors_find(&file, "layer0.recurrent.column"));
	neap__safetensors_free(&file);
}

static void wilson_is_wilsons(void **state)
{
	(void)state;
	double low, high;
	neap__wilson(&low, &high, 0, 0);
	assert_true(low == 0 && high == 1);
	neap__wilson(&low, &high, 118, 120); /* 0.9413 .. 0.9954 */
	assert_true(fabs(low - 0.94126) < 2e-5 && fabs(high - 0.99542) < 2e-5);
	neap__wilson(&low, &high, 10, 10);
	assert_true(fabs(low - 0.72247) < 2e-5 && high == 1);
	neap__wilson(&low, &high, 0, 10);
	assert_true(low == 0 && fabs(high - 0.27753) < 2e-5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_learns),
		cmocka_unit_test(run_json_tells_all),
		cmocka_unit_test(tapes_of_one_size_are_planned),
		cmocka_unit_test(strategies_budgets_and_threads_agree),
		cmocka_unit_test(bad_questions_are_refused),
		cmocka_unit_test(eval_refuses_what_does_not_fit),
		cmocka_unit_test(steps_are_seen),
		cmocka_unit_test(changed_models_are_refused),
		cmocka_unit_test(divergence_ends_the_run),
		cmocka_unit_test(gradients_are_clipped),
		cmocka_unit_test(only_training_samples_are_augmented),
		cmocka_unit_test(smaller_batches_have_smaller_logs),
		cmocka_unit_test(without_validation_the_last_is_kept),
		cmocka_unit_test(sparse_and_double_nets_are_kept_whole),
		cmocka_unit_test(wilson_is_wilsons),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
