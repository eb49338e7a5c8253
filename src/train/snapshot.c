/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c: last.safetensors, from which an interrupted run resumes to the same bits. */
#include "train/trainer.h"
#include "nn/core/on_device.h"
#include "train/model.h"
#include "train/settings.h"
#include "data/row_reading.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/print.h"
#include "base/quote.h"
#include "sys/clock.h"
#include "sys/isa.h"

#include <neap/machine.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A counter in the metadata of a snapshot; whole: an integer, else a double. */
static const struct counter {
	const char *name;
	size_t offset;
	int whole;
} table[] = {
#define WHOLE(field)                                                                               \
	{                                                                                          \
		"count." #field, offsetof(struct neap__counters, field), 1                         \
	}
#define REAL(field)                                                                                \
	{                                                                                          \
		"count." #field, offsetof(struct neap__counters, field), 0                         \
	}
	WHOLE(epoch),
	WHOLE(batch),
	WHOLE(update),
	WHOLE(best_epoch),
	REAL(best_validation),
	REAL(best_loss),
	REAL(seconds),
	WHOLE(seen),
	WHOLE(correct),
	WHOLE(judged),
	REAL(loss),
	REAL(penalty),
	REAL(spikes),
	REAL(support),
	WHOLE(overflows),
	WHOLE(recoveries),
	REAL(predicted),
	REAL(measured),
	WHOLE(peak_planned),
	WHOLE(peak_measured),
	WHOLE(arena),
	REAL(exchanged),
	REAL(waited),
	WHOLE(sent),
};
#define COUNTERS (sizeof table / sizeof table[0])
_Static_assert(COUNTERS * 8 == sizeof(struct neap__counters), "a counter has no row");

static void add_counters(struct neap__tensor_bundle *bundle, const struct neap__counters *counters)
{
	char text[40];
	for (size_t i = 0; i < COUNTERS; i++) {
		const char *at = (const char *)counters + table[i].offset;
		if (table[i].whole)
			neap__print(text, sizeof text, "%" PRId64, *(const int64_t *)at);
		else
			neap__json_exact(text, *(const double *)at);
		neap__tensor_bundle_meta(bundle, table[i].name, text);
	}
}

static int take_counters(struct neap__counters *counters, const struct neap__safetensors *file)
{
	for (size_t i = 0; i < COUNTERS; i++) {
		const char *text = neap__safetensors_meta(file, table[i].name);
		char *at = (char *)counters + table[i].offset, *end = NULL;
		if (!text && table[i].offset == offsetof(struct neap__counters, judged))
			text = neap__safetensors_meta(file, "count.seen"); /* of older versions */
		if (!text && table[i].offset >= offsetof(struct neap__counters, exchanged))
			text = "0"; /* the same */
		if (!text || !*text)
			return neap__fail(NEAP_EFORMAT,
				"its '%s' is missing; the file may be damaged", table[i].name);
		errno = 0;
		int bad;
		if (table[i].whole) {
			*(int64_t *)at = strtoll(text, &end, 10);
			bad = *end || errno || *(int64_t *)at < 0;
		} else {
			bad = neap__json_read_number((double *)at, text) < 0;
		}
		if (bad)
			return neap__fail(NEAP_EFORMAT,
				"its '%s' is '%.40s', which is not a number; the file may be "
				"damaged",
				table[i].name, text);
	}
	return 0;
}

int neap__snapshot_save(struct neap__trainer *trainer)
{
	struct neap__tensor_bundle bundle = {0};
	struct neap_machine machine = {.size = sizeof machine};
	char hex[24];
	struct neap__json settings = {0};

	NEAP_TRY(neap__on_device_share(trainer->net));
	neap__settings_write(&settings, NULL, &trainer->options, 1);
	neap_machine_describe(&machine);
	trainer->counters.seconds = trainer->session + neap__seconds() - trainer->started;
	neap__model_describe(
		&bundle, &trainer->options.net, trainer->data.set, trainer->options.max_steps);
	neap__model_rows_write(&bundle, trainer->data.set);
	neap__tensor_bundle_meta(&bundle, "neap.loss", trainer->options.loss);
	neap__tensor_bundle_json(&bundle, "neap.settings", &settings);
	neap__tensor_bundle_meta(&bundle, "neap.isa", machine.isa);
	neap__print(hex, sizeof hex, "%016" PRIx64, trainer->data.fingerprint);
	neap__tensor_bundle_meta(&bundle, "neap.data", hex);
	add_counters(&bundle, &trainer->counters);
	neap__model_add(&bundle, trainer->net);
	neap__moments_add(&bundle, neap__rank_moments(trainer), trainer->net);
	int rc = neap__tensor_bundle_write(&bundle, trainer->last);
	neap__tensor_bundle_free(&bundle);
	trainer->snapshot = neap__seconds();
	return rc;
}

/*
 * Adds to *wrong what differs from the settings of a snapshot, which are stored as text, and to
 * *options the same as options, if all of it can be given so.
 */
static int compare_settings(struct neap__text *wrong, struct neap__text *options,
	const struct neap__trainer *trainer, const char *text)
{
	struct neap__json now = {0};
	char why[NEAP__JSON_WHY];
	json_t *was = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *is = NULL;
	int rc = 0;

	neap__settings_write(&now, NULL, &trainer->options, 1);
	if (!now.text.error)
		is = neap__json_read(now.text.data, now.text.length, why);
	if (!was)
		rc = neap__fail(NEAP_EFORMAT,
			"%s is not a snapshot of neap; remove it, or choose another folder with "
			"--out",
			trainer->last);
	else if (!is)
		rc = neap__fail_errno(ENOMEM, "%s", trainer->last);
	else
		neap__settings_compare(wrong, was, is);
	if (was && is && !neap__settings_changed(options, was, is))
		neap__text_free(options);
	json_decref(was);
	json_decref(is);
	neap__json_free(&now);
	return rc;
}

/* Fewer epochs would have another schedule of the learning rate; `wrong`: "--epochs 9, not 5". */
static int fewer_epochs(const struct neap__trainer *trainer, const struct neap__safetensors *file,
	const char *wrong)
{
	const char *done = neap__safetensors_meta(file, "count.epoch");

	return neap__fail(NEAP_EUSAGE,
		"cannot resume '%s': the run was started with %s; epochs done so far: %.20s. Pass "
		"at least as many, or remove --epochs; for fewer, start a new run with another "
		"--out",
		trainer->options.out, wrong, done ? done : "0");
}

/*
 * What cannot be resumed can begin as a run of its own. `options`: what differs, as options, or
 * NULL; is_fit: the weights fit the net, if there is a model already.
 */
static int new_run(
	const struct neap__trainer *trainer, const char *wrong, const char *options, int is_fit)
{
	const struct neap_train_options *o = &trainer->options;
	struct neap__text to = {0};

	is_fit = is_fit && access(trainer->model, F_OK) == 0; /* it exists after an epoch */
	if (options) {
		neap__text_add(&to, ": neap train %s", neap__quoted(o->data));
		if (o->test)
			neap__text_add(&to, " --test %s", neap__quoted(o->test));
		if (is_fit)
			neap__text_add(&to, " --from %s", neap__quoted(o->out));
		neap__text_add(&to, "%s --out NEW", options);
	} else if (is_fit)
		neap__text_add(&to, " with --from %s and another --out", neap__quoted(o->out));
	else
		neap__text_add(&to, " with another --out");
	int rc = neap__fail(NEAP_EUSAGE,
		"cannot resume '%s': the run was started with %s. --resume may increase --epochs "
		"and change the options of memory, plan and threads. Pass the same data and other "
		"options, or start a new run%s",
		o->out, wrong, to.data ? to.data : "");
	neap__text_free(&to);
	return rc;
}

/* Refuses a snapshot of another run; one line has all that differs. */
static int check_same(struct neap__trainer *trainer, const struct neap__safetensors *file)
{
	const char *text = neap__safetensors_meta(file, "neap.settings");
	const char *data = neap__safetensors_meta(file, "neap.data");
	const char *isa = neap__safetensors_meta(file, "neap.isa");
	struct neap_machine machine = {.size = sizeof machine};
	struct neap__text wrong = {0}, options = {0};
	char hex[24];

	if (!text || !data || !isa)
		return neap__fail(NEAP_EFORMAT,
			"%s is not a snapshot of neap; remove it, or choose another folder with "
			"--out",
			trainer->last);
	neap__print(hex, sizeof hex, "%016" PRIx64, trainer->data.fingerprint);
	int rc = compare_settings(&wrong, &options, trainer, text);
	if (strcmp(hex, data) != 0) /* of a run.json that is missing or was changed */
		neap__text_add(&wrong, "%sother data than %.200s (the contents differ)",
			wrong.length ? "; " : "", trainer->options.data);
	neap_machine_describe(&machine);
	if (!neap__isa_same_bits(machine.isa, isa))
		neap__text_add(&wrong,
			"%sthe instruction set '%.20s', here it is '%s', which would give other "
			"weights",
			wrong.length ? "; " : "", isa, machine.isa);
	if (rc == 0 && wrong.error)
		rc = neap__fail_errno(ENOMEM, "%s", trainer->last);
	if (rc == 0 && wrong.length && !strchr(wrong.data, ';') &&
		strncmp(wrong.data, "--epochs ", strlen("--epochs ")) == 0)
		rc = fewer_epochs(trainer, file, wrong.data);
	int is_fit = wrong.length && !strstr(wrong.data, "--net "); /* the weights fit the net */
	if (rc == 0 && wrong.length)
		rc = new_run(trainer, wrong.data, options.data, is_fit);
	neap__text_free(&wrong);
	neap__text_free(&options);
	return rc;
}

static int check_counters(const struct neap__trainer *trainer)
{
	const struct neap__counters *c = &trainer->counters;
	int64_t batches = neap_loader_batches(trainer->data.loader);

	if (c->epoch > trainer->options.epochs || c->batch > batches ||
		c->update != c->epoch * batches + c->batch || c->best_epoch > c->epoch)
		return neap__fail(
			NEAP_EFORMAT, "its counters are inconsistent; the file may be damaged");
	return 0;
}

double neap__snapshot_readout_gain(const struct neap__trainer *trainer)
{
	struct neap__safetensors file;
	double gain = 0;

	if (neap__safetensors_read(&file, trainer->last) < 0)
		return gain; /* neap__snapshot_load reports it */
	const char *text = neap__safetensors_meta(&file, "neap.settings");
	json_t *was = text ? json_loads(text, 0, NULL) : NULL;
	const char *value = json_string_value(json_object_get(was, "readout_gain"));
	if (value && neap__json_read_number(&gain, value) < 0)
		gain = 0;
	json_decref(was);
	neap__safetensors_free(&file);
	return gain;
}

int neap__snapshot_load(struct neap__trainer *trainer)
{
	struct neap__safetensors file;

	if (access(trainer->last, F_OK) < 0 && errno == ENOENT)
		return 0;
	NEAP_TRY(neap__safetensors_read(&file, trainer->last));
	int rc = check_same(trainer, &file);
	if (rc == 0) {
		rc = neap__model_take(trainer->net, &file);
		/* Weights that a run began with may have brought means and deviations along. */
		if (rc == 0)
			rc = neap__model_rows_scale(trainer->data.set, &file);
		if (rc > 0)
			rc = trainer->data.test
				     ? neap__rows_copy(trainer->data.test, trainer->data.set)
				     : 0;
		if (rc == 0)
			rc = neap__moments_take(neap__rank_moments(trainer), trainer->net, &file);
		if (rc == 0)
			rc = neap__optimizer_send(&trainer->optimizer, trainer->net);
		if (rc == 0)
			rc = take_counters(&trainer->counters, &file);
		if (rc == 0)
			rc = check_counters(trainer);
		if (rc < 0)
			rc = neap__fail_in(rc, "%s: ", trainer->last);
	}
	neap__safetensors_free(&file);
	trainer->session = trainer->counters.seconds;
	return rc < 0 ? rc : 1;
}
