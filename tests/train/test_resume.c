/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that were stopped, politely or by SIGKILL, end in the bits of one that was not. */
#include "runs.h"
#include "train/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <neap/data.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

struct stop {
	int64_t update; /* stop after this many updates */
	int at_epoch;	/* or at the end of an epoch */
};

static int stop_there(void *user, const struct neap_train_progress *p)
{
	struct stop *stop = user;
	return stop->at_epoch ? p->epoch_done : !p->epoch_done && p->update >= stop->update;
}

static uint64_t whole(void)
{
	static uint64_t hash;
	if (!hash) {
		struct neap_train_options o = small_run("whole");
		hash = train_hash(&o);
	}
	return hash;
}

static void interrupted_after_any_batch(void **state)
{
	(void)state;
	whole();
	for (int64_t update = 1; update <= 36; update += update < 14 ? 1 : 5) {
		char name[32];
		snprintf(name, sizeof name, "batch%d", (int)update);
		struct neap_train_options o = small_run(name);
		struct neap_train_result r = {.size = sizeof r};
		struct stop stop = {.update = update};
		o.progress = stop_there;
		o.user = &stop;
		assert_int_equal(neap_train(&r, &o), NEAP_EINTERRUPTED);
		assert_non_null(strstr(neap_detail(), "--resume"));
		o.resume = 1;
		o.progress = NULL;
		o.sweep.memory = 200 << 10; /* memory, strategy and threads may change */
		o.sweep.strategy = update % 2 ? "standard" : NULL;
		o.net.threads = 2;
		if (train_hash(&o) != whole())
			fail_msg("stopped after update %d: other weights", (int)update);
		char a[64];
		snprintf(a, sizeof a, "%s/model.safetensors", name);
		same_files(a, "whole/model.safetensors");
	}
}

static struct neap_train_options augmented_run(const char *name)
{
	struct neap_train_options o = small_run(name);
	o.augment = (struct neap_augment){
		.stretch_low = 0.9, .stretch_high = 1.2, .jitter = 2e-3, .shift = 2};
	o.net.spec = "lif:24r,lif:9:delay=0..20:learn,li:delay=3";
	o.net.dropout = 0.2;
	o.net.learn = NEAP_LEARN_TAU;
	return o;
}

/* What is drawn for a sample depends on the epoch and the sample, not on the session. */
static void augmented_and_interrupted(void **state)
{
	(void)state;
	struct neap_train_options o = augmented_run("augmented");
	uint64_t hash = train_hash(&o);
	assert_true(hash != whole());
	for (int64_t update = 3; update <= 33; update += 10) {
		char name[32];
		snprintf(name, sizeof name, "augmented%d", (int)update);
		struct neap_train_result r = {.size = sizeof r};
		struct stop stop = {.update = update};
		o = augmented_run(name);
		o.progress = stop_there;
		o.user = &stop;
		assert_int_equal(neap_train(&r, &o), NEAP_EINTERRUPTED);
		o.resume = 1;
		o.progress = NULL;
		o.sweep.memory = 200 << 10;
		o.sweep.strategy = update % 4 == 1 ? "standard" : NULL;
		o.net.threads = 2;
		if (train_hash(&o) != hash)
			fail_msg("stopped after update %d: other weights", (int)update);
	}
}

static void interrupted_again_and_again(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("again");
	struct neap_train_result r = {.size = sizeof r};
	struct stop stop = {.update = 0};
	int rc = 0, sessions = 0;
	o.progress = stop_there;
	o.user = &stop;
	for (; sessions < 50; sessions++) {
		stop.update += 5;
		rc = neap_train(&r, &o);
		o.resume = 1;
		if (rc != NEAP_EINTERRUPTED)
			break;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(sessions, 7); /* 36 updates */
	assert_true(r.weights_hash == whole());
	neap_train_result_free(&r);
	same_files("again/model.safetensors", "whole/model.safetensors");
}

static void at_the_end_of_an_epoch(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("epoch");
	struct neap_train_result r = {.size = sizeof r};
	struct stop stop = {.at_epoch = 1};
	o.progress = stop_there;
	o.user = &stop;
	assert_int_equal(neap_train(&r, &o), NEAP_EINTERRUPTED);
	o.resume = 1;
	assert_int_equal(neap_train(&r, &o), NEAP_EINTERRUPTED);
	assert_int_equal(neap_train(&r, &o), 0);
	assert_true(r.weights_hash == whole());
	neap_train_result_free(&r);
	/* a finished run can be resumed too: nothing is left but to evaluate */
	assert_true(train_hash(&o) == whole());
}

static void rows_of(const char *name, int rows)
{
	char line[512];
	int n = 0;
	FILE *f = fopen(in_folder(name), "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (n++ > 0)
			assert_int_equal(atoi(line), n - 1);
	fclose(f);
	assert_int_equal(n, rows + 1);
}

static void metrics_lose_what_the_snapshot_has_not(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("rows");
	struct neap_train_result r = {.size = sizeof r};
	struct stop stop = {.update = 30};
	o.progress = stop_there;
	o.user = &stop;
	assert_int_equal(neap_train(&r, &o), NEAP_EINTERRUPTED);
	rows_of("rows/metrics.csv", 2);
	rows_of("rows/costs.csv", 2);
	FILE *f = fopen(in_folder("rows/metrics.csv"), "a");
	fprintf(f, "3,36,0,0,0,0,0,0,0\n4,half a r");
	fclose(f);
	f = fopen(in_folder("rows/costs.csv"), "a");
	fprintf(f, "3,0,0,0,0,0,0,0,0,0\n4,ha");
	fclose(f);
	o.resume = 1;
	o.progress = NULL;
	assert_true(train_hash(&o) == whole());
	rows_of("rows/metrics.csv", 3);
	rows_of("rows/costs.csv", 3);
}

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(in_folder(name), "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	fclose(f);
}

static void has_text(const char *name, const char *text)
{
	char found[1024];
	FILE *f = fopen(in_folder(name), "r");
	assert_non_null(f);
	found[fread(found, 1, sizeof found - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(found, text);
}

/* Rows of neap before 0.2 had their costs behind them; a run may be killed between the two files.
 */
static void older_metrics_are_cut_in_two(void **state)
{
	(void)state;
	char metrics[256], costs[256];
	const char *told = "epoch,updates,learning_rate,train_loss,train_penalty,train_accuracy,"
			   "validation_loss,validation_accuracy,spikes\n"
			   "1,7,0.1,2,0,0.3,,,0.5\n2,14,0.2,1,0,0.4,,,0.6\n";
	const char *spent = "epoch,support,peak_planned,peak_measured,overflows,recoveries,seconds,"
			    "exchanged,waited,sent,joules\n"
			    "1,0.01,10,11,0,0,1.5,,,,\n2,0.02,20,21,3,4,2.5,,,,\n";
	const char *older = "epoch,updates,anything\n"
			    "1,7,0.1,2,0,0.3,,,0.5,0.01,10,11,0,0,1.5\n"
			    "2,14,0.2,1,0,0.4,,,0.6,0.02,20,21,3,4,2.5\n"
			    "3,21,0.2,1,0,0.4,,,0.6,0.02,20,21,3,4,3.5\n";
	snprintf(metrics, sizeof metrics, "%s", in_folder("metrics.csv"));
	snprintf(costs, sizeof costs, "%s", in_folder("costs.csv"));
	const struct neap__trainer trainer = {
		.metrics = metrics, .costs = costs, .counters = {.epoch = 2}};
	write_text("metrics.csv", older);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(neap__metrics_start(&trainer), 0);
		has_text("metrics.csv", told);
		has_text("costs.csv", spent);
		if (round == 0)
			write_text("metrics.csv", older);
	}
	unlink(metrics);
	unlink(costs);
}

static void killed_in_mid_epoch(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("killed");
	int kills = 0;
	whole();
	o.snapshot_seconds = 1e-9; /* after every batch */
	for (int round = 0; round < 12; round++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			struct neap_train_result r = {.size = sizeof r};
			_exit(neap_train(&r, &o) == 0 ? 0 : 1);
		}
		struct timespec nap = {0, 15000000 + 9000000 * round};
		nanosleep(&nap, NULL);
		kill(child, SIGKILL);
		int status;
		assert_true(waitpid(child, &status, 0) == child);
		kills += WIFSIGNALED(status);
		if (WIFEXITED(status))
			assert_int_equal(WEXITSTATUS(status), 0);
		o.resume = 1; /* also before the first snapshot, or the folder */
	}
	assert_true(kills > 0);
	o.snapshot_seconds = 0;
	assert_true(train_hash(&o) == whole());
	same_files("killed/model.safetensors", "whole/model.safetensors");
	char command[120]; /* five files, and nothing half-written */
	snprintf(command, sizeof command, "test $(ls -A %s | wc -l) = 5", in_folder("killed"));
	assert_int_equal(system(command), 0);
}

/* From the second epoch on no file may grow beyond 4 KiB. */
static int fill_the_disk(void *user, const struct neap_train_progress *p)
{
	(void)user;
	if (p->epoch == 1 && p->batch == 1) {
		const struct rlimit limit = {4096, 4096};
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	return 0;
}

static void a_full_disk_costs_no_snapshot(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("full");
	whole();
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct neap_train_result r = {.size = sizeof r};
		signal(SIGXFSZ, SIG_IGN);
		o.progress = fill_the_disk;
		int rc = neap_train(&r, &o);
		_exit(rc == -EFBIG && strstr(neap_detail(), "safetensors") ? 0 : 1);
	}
	int status;
	assert_true(waitpid(child, &status, 0) == child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	o.resume = 1;
	assert_true(train_hash(&o) == whole());
	same_files("full/model.safetensors", "whole/model.safetensors");
}

static void two_at_once_are_refused(void **state)
{
	(void)state;
	whole();
	int fd = open(in_folder("whole"), O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
	struct neap_train_options o = small_run("whole");
	struct neap_train_result r = {.size = sizeof r};
	o.resume = 1;
	assert_int_equal(neap_train(&r, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "is locked"));
	close(fd);
	assert_true(train_hash(&o) == whole());
}

static char said[512];
static void keep_line(void *user, const char *line)
{
	(void)user;
	if (strstr(line, "afresh"))
		snprintf(said, sizeof said, "%s", line);
}

static void refused(const struct neap_train_options *o, int code, const char *says)
{
	struct neap_train_result r = {.size = sizeof r};
	assert_int_equal(neap_train(&r, o), code);
	if (!strstr(neap_detail(), says))
		fail_msg("'%s' does not say '%s'", neap_detail(), says);
}

static void without_a_snapshot_it_starts_afresh(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("afresh");
	o.resume = 1;
	o.say = keep_line;
	assert_true(train_hash(&o) == whole());
	assert_non_null(strstr(said, "afresh"));
	assert_int_equal(unlink(in_folder("afresh/last.safetensors")), 0);
	refused(&o, NEAP_EUSAGE, "is missing, and training from the beginning would replace");
	assert_int_equal(unlink(in_folder("afresh/model.safetensors")), 0);
	said[0] = '\0';
	assert_true(train_hash(&o) == whole());
	assert_non_null(strstr(said, "afresh"));
}

static void other_settings_are_refused(void **state)
{
	(void)state;
	struct neap_train_options o;
	whole();
#define REFUSED(change, code, says)                                                                \
	do {                                                                                       \
		o = small_run("whole");                                                            \
		o.resume = 1;                                                                      \
		change;                                                                            \
		refused(&o, code, says);                                                           \
	} while (0)
	REFUSED(o.net.spec = "lif:33r,li", NEAP_EUSAGE, "--net ");
	REFUSED(o.seed = 2, NEAP_EUSAGE, "--seed 1, not 2");
	REFUSED(o.batch = 8, NEAP_EUSAGE, "--batch 16, not 8");
	REFUSED(o.epochs = 2, NEAP_EUSAGE, "--epochs 3, not 2");
	REFUSED((o.seed = 2, o.clip = 3), NEAP_EUSAGE, "; --seed 1, not 2");
	REFUSED(o.learning_rate = 0.1, NEAP_EUSAGE, "--lr 0.004, not 0.1");
	REFUSED(o.optimizer = "sgd", NEAP_EUSAGE, "optimizer");
	REFUSED(o.net.learn = NEAP_LEARN_TAU, NEAP_EUSAGE, "--learn none, not tau");
	REFUSED(o.net.dropout = 0.5, NEAP_EUSAGE, "--dropout 0, not 0.5");
	REFUSED(o.augment.shift = 2, NEAP_EUSAGE, "--shift 0, not 2");
	REFUSED(o.augment.jitter = 2e-3, NEAP_EUSAGE, "--jitter 0, not 0.002");
	REFUSED((o.augment.stretch_low = 0.5, o.augment.stretch_high = 1), NEAP_EUSAGE,
		"--stretch");
	REFUSED(o.net.dt = 2e-3, NEAP_EUSAGE, "--dt 0.001, not 0.002");
	REFUSED(o.data = "randman:classes=4,units=20,steps=60,samples=200,seed=4", NEAP_EUSAGE,
		"other data");
	o = small_run("whole"); /* and left as it was */
	o.resume = 1;
	assert_true(train_hash(&o) == whole());
}

/* 40 samples of 30 events; in sample `other` one event is on another unit. */
static void write_samples(const char *path, int64_t other)
{
	struct neap_shd_writer *writer;
	static const char *const names[] = {"a", "b"};
	assert_int_equal(neap_shd_create(&writer, path, 20), 0);
	for (int64_t i = 0; i < 40; i++) {
		double time[30];
		uint16_t unit[30];
		for (int k = 0; k < 30; k++) {
			time[k] = 1e-3 * k;
			unit[k] = (uint16_t)((3 * i + 7 * k) % 20);
		}
		unit[13] = (uint16_t)((unit[13] + (i == other)) % 20);
		const struct neap_events events = {.count = 30,
			.time = time,
			.unit = unit,
			.duration = 0.03,
			.label = (int)(i % 2),
			.speaker = -1};
		assert_int_equal(neap_shd_add(writer, &events), 0);
	}
	assert_int_equal(neap_shd_finish(writer, names, 2, NULL, 0, NULL, 0), 0);
}

/* Of a large data set some samples tell it from another, the first and the last among them. */
static void other_samples_are_refused(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("samples");
	o.data = in_folder("samples.h5");
	o.net.spec = "lif:8r,li";
	write_samples(o.data, -1);
	uint64_t hash = train_hash(&o);
	o.resume = 1;
	const int64_t changed[] = {0, 5, 39};
	for (int i = 0; i < 3; i++) {
		write_samples(o.data, changed[i]);
		refused(&o, NEAP_EUSAGE, "other data");
	}
	write_samples(o.data, -1);
	assert_true(train_hash(&o) == hash);
}

/* The default network is another one than the run's, as with a run that an earlier version started.
 */
static void without_a_network_it_keeps_its_own(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("network");
	struct neap_train_result r = {.size = sizeof r};
	struct stop stop = {.update = 7};
	o.progress = stop_there;
	o.user = &stop;
	assert_int_equal(neap_train(&r, &o), NEAP_EINTERRUPTED);
	o.resume = 1;
	o.progress = NULL;
	o.net.spec = NULL;
	assert_true(train_hash(&o) == whole());
	same_files("network/model.safetensors", "whole/model.safetensors");
}

/* A run's folder keeps its options; more epochs go on from where it ended. */
static void options_are_kept(void **state)
{
	(void)state;
	struct neap_train_options o = small_run("kept");
	struct neap_problem costs = NEAP_PROBLEM_INIT;
	struct neap_run *run;
	o.test = SMALL_TEST;
	o.sweep.strategy = "revolve";
	o.sweep.params.chunk = 3;
	o.sweep.patience = INFINITY;
	o.sweep.inputs = 123456;
	o.net.threads = 1;
	o.net.learn = NEAP_LEARN_TAU;
	o.snapshot_seconds = 0.25;
	o.seed = UINT64_MAX;
	costs.chain.advance = 1e-6;
	costs.chain.record = costs.chain.backward = 2e-6;
	o.sweep.costs = &costs;
	train_hash(&o);
	assert_int_equal(neap_run_open(&run, o.out), 0);
	struct neap_train_options kept = *neap_run_options(run);
	assert_string_equal(kept.data, SMALL_DATA);
	assert_string_equal(kept.test, SMALL_TEST);
	assert_string_equal(kept.net.spec, o.net.spec);
	assert_string_equal(kept.sweep.strategy, "revolve");
	assert_null(kept.holdout);
	assert_int_equal(kept.sweep.params.chunk, 3);
	assert_true(isinf(kept.sweep.patience) && kept.snapshot_seconds == 0.25);
	assert_int_equal(kept.sweep.memory, o.sweep.memory);
	assert_int_equal(kept.sweep.inputs, 123456);
	assert_int_equal(kept.net.threads, 1);
	assert_int_equal(kept.net.learn, NEAP_LEARN_TAU);
	assert_true(kept.seed == UINT64_MAX && kept.net.seed == UINT64_MAX);
	assert_true(kept.net.scale == o.net.scale && kept.sweep.costs->chain.record == 2e-6);
	kept.out = o.out;
	kept.epochs = 5;
	struct neap_train_result r = {.size = sizeof r};
	assert_int_equal(neap_train(&r, &kept), 0);
	assert_int_equal(r.epochs_done, 5);
	assert_int_equal(r.test.samples, 100);
	neap_train_result_free(&r);
	neap_run_close(run);
	assert_int_equal(neap_run_open(&run, in_folder("none")), -ENOENT);
	assert_null(run);
}

/* A damaged snapshot is refused and left alone, wherever the damage is. */
static void damaged_snapshots_are_refused(void **state)
{
	(void)state;
	static char text[1 << 20];
	struct neap_train_options o = small_run("whole");
	struct neap_train_result r = {.size = sizeof r};
	const char *path = in_folder("whole/last.safetensors");
	whole();
	o.resume = 1;
	FILE *f = fopen(path, "rb");
	size_t n = fread(text, 1, sizeof text, f);
	fclose(f);
	assert_true(n > 1000 && n < sizeof text);
	for (size_t cut = 0; cut < n; cut += n / 7) {
		f = fopen(path, "wb");
		fwrite(text, 1, cut, f);
		fclose(f);
		int rc = neap_train(&r, &o);
		if (rc != NEAP_EFORMAT || !strstr(neap_detail(), "last.safetensors"))
			fail_msg("cut at %zu: %s: %s", cut, neap_strerror(rc), neap_detail());
	}
	char *isa = memmem(text, n, "\"neap.isa\":\"", 12);
	assert_non_null(isa);
	char letter = isa[12];
	isa[12] = '?'; /* another machine's instruction set */
	f = fopen(path, "wb");
	fwrite(text, 1, n, f);
	fclose(f);
	refused(&o, NEAP_EUSAGE, "instruction set");
	isa[12] = letter;
	char *place = memmem(text, n, "\"count.update\":\"36\"", 19);
	assert_non_null(place);
	place[16] = '7';
	f = fopen(path, "wb");
	fwrite(text, 1, n, f);
	fclose(f);
	assert_int_equal(neap_train(&r, &o), NEAP_EFORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interrupted_after_any_batch),
		cmocka_unit_test(augmented_and_interrupted),
		cmocka_unit_test(interrupted_again_and_again),
		cmocka_unit_test(at_the_end_of_an_epoch),
		cmocka_unit_test(metrics_lose_what_the_snapshot_has_not),
		cmocka_unit_test(older_metrics_are_cut_in_two),
		cmocka_unit_test(killed_in_mid_epoch),
		cmocka_unit_test(without_a_snapshot_it_starts_afresh),
		cmocka_unit_test(a_full_disk_costs_no_snapshot),
		cmocka_unit_test(two_at_once_are_refused),
		cmocka_unit_test(other_settings_are_refused),
		cmocka_unit_test(other_samples_are_refused),
		cmocka_unit_test(without_a_network_it_keeps_its_own),
		cmocka_unit_test(options_are_kept),
		cmocka_unit_test(damaged_snapshots_are_refused),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
