/* SPDX-License-Identifier: Apache-2.0 */
/* A net's sweep that stops anywhere and goes on with another net of the same weights. */
#include "nn/nets.h"
#include "measure/net_steps.h"

#include <neap/sweep.h>
#include <sys/statfs.h>
#include <linux/magic.h>

struct row {
	const char *spec, *strategy, *loss;
	enum neap_precision precision;
	int delay, penalty, dense, smooth;
	enum neap_readout readout;
	int in_groups;
};

static const struct row rows[] = {
	{"lif:24r,li", "revolve", "cross-entropy", NEAP_FLOAT, 0, 0, 0, 0, NEAP_READ_MEAN, 3},
	{"lif:24r,lif:16r,li", "mixed", "cross-entropy", NEAP_DOUBLE, 1, 1, 0, 0, NEAP_READ_LAST,
		2},
	{"lif:24r,li", "auto", "cross-entropy", NEAP_FLOAT, 0, 1, 0, 0, NEAP_READ_STEP, 0},
	{"lif:16r,lif:16,li", "bptt", "cross-entropy", NEAP_FLOAT, 0, 0, 1, 0, NEAP_READ_MAX, 1},
	{"lif:24r,lif:16r,li", "replay", "cross-entropy", NEAP_FLOAT, 0, 1, 0, 0, NEAP_READ_MEAN,
		2},
	{"lif:16,li", "revolve", "cross-entropy", NEAP_DOUBLE, 0, 1, 0, 1, NEAP_READ_MEAN, 0},
};

static char folder[64];
static int in_memory;

struct stopping {
	int64_t asked, at;
};

static int stop(void *user)
{
	struct stopping *s = user;
	return s->at && ++s->asked >= s->at;
}

static struct neap_net *make(const struct row *row)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	o.spec = row->spec;
	o.inputs = 12;
	o.classes = 3;
	o.precision = row->precision;
	o.delay = row->delay;
	o.dense = row->dense;
	o.smooth = row->smooth;
	o.readout = row->readout;
	o.group = row->in_groups;
	o.threads = 2;
	o.scale = 4;
	return net_make(&o);
}

struct outcome {
	uint64_t hash;
	double loss, rate;
	int correct;
	int64_t spared;
};

/* One net's part. Its answer; the outcome where it came to the end. */
static int part(struct outcome *out, const struct row *row, const struct neap_batch *batch,
	int64_t at, const char *journal)
{
	struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find(row->loss)};
	struct stopping stopping = {0, at};
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_net_result found = {.size = sizeof found};
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct neap_step_ops ops;
	struct neap_sweep *sweep;
	if (row->penalty)
		objective.rates =
			(struct neap_rate_penalty){.upper = 0.01, .upper_weight = 0.5, .l2 = 0.1};
	struct neap_net *net = make(row);
	assert_int_equal(neap_net_begin(net, batch, &objective), 0);
	neap_net_get_sizes(net, &sizes);
	neap__net_steps_fill(&ops, net);
	ops.tape_bytes = ops.tape_max_bytes / 2; /* some overflow */
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = batch->steps,
		.memory = strcmp(row->strategy, "bptt") == 0
				  ? 0
				  : 8 * sizes.state + sizes.adjoint + 16 * sizes.tape_max,
		.strategy = row->strategy,
		.interrupted = stop,
		.interrupted_user = &stopping,
		.journal = journal,
		.journal_in_memory = in_memory};
	int rc = neap_sweep_create(&sweep, &ops, net, &o);
	if (rc < 0)
		fail_msg("%s", neap_detail());
	rc = neap_sweep_run(sweep, NULL, NULL, &out->loss, &stats);
	neap_sweep_free(sweep);
	neap_net_get_result(net, &found);
	assert_int_equal(neap_net_end(net), 0);
	out->hash = neap_net_grad_hash(net);
	out->rate = found.spikes;
	out->correct = found.correct;
	out->spared = stats.spared;
	neap_net_free(net);
	return rc;
}

static void goes_on_anywhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		static const int64_t lengths[] = {150, 97, 150, 64, 1, 130};
		struct batch_room room;
		struct outcome whole = {0}, out = {0};
		int64_t at = 1, stops = 0, spared = 0;
		batch_make(&room, 7 + i, 6, 12, 150, 3, 0.2, lengths);
		assert_int_equal(part(&whole, &rows[i], &room.batch, 0, NULL), 0);
		assert_true(whole.rate > 0);
		for (int rc = NEAP_EINTERRUPTED; rc == NEAP_EINTERRUPTED; at += 2) {
			/* Twice on the way, then to the end. */
			rc = part(&out, &rows[i], &room.batch, at, folder);
			if (rc == NEAP_EINTERRUPTED)
				rc = part(&out, &rows[i], &room.batch, at / 2 + 1, folder);
			int again = rc;
			while (again == NEAP_EINTERRUPTED)
				again = part(&out, &rows[i], &room.batch, 0, folder);
			assert_int_equal(again, 0);
			stops++;
			spared += out.spared;
			if (out.hash != whole.hash || out.loss != whole.loss ||
				out.rate != whole.rate || out.correct != whole.correct)
				fail_msg("%s, %s: stopped at call %lld: something else",
					rows[i].spec, rows[i].strategy, (long long)at);
		}
		assert_true(stops > 3 && spared > 0);
		batch_free(&room);
	}
}

static int make_folder(void **state)
{
	struct statfs fs;
	(void)state;
	in_memory = statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC;
	snprintf(folder, sizeof folder, "%s/neap-net-XXXXXX", in_memory ? "/dev/shm" : "/var/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(goes_on_anywhere)};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
