/* SPDX-License-Identifier: Apache-2.0 */
/* input_doubts.c: reads the inputs of some samples, and formats warnings (input_doubts.h). */
#include "train/reports/input_doubts.h"
#include "measure/target_fit.h"
#include "data/coded_rows.h"
#include "data/step_rows.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"
#include "base/show.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 64 /* that are read */, EVENTS = 4096, NUMBERS = 1 << 16 /* of each, at most */ };
/* Chosen: below the factor of degrees and radians, above that of calm and lively recordings. */
static const double FAR = 30;
/* Deviations between means. Chosen: above that of groups of samples, below that of degrees
 * Fahrenheit of people's temperatures, whose size is not FAR from that in degrees Celsius. */
static const double SHIFTED = 10;
static const double ROUNDING = 1e-6; /* of zeros that were normalised in 32 bits, at most */
enum { SHARE = 4 /* of the features must differ, one of so many; chosen */ };

/* 1 if a sample has a spike; 0 or a negative code. */
static int has_spike(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer)
{
	struct neap__sample_extent extent = {0};
	if (set->ops->adopt) /* each character is one */
		return 1;
	if (!set->ops->part) {
		NEAP_TRY(neap__dataset_read(set, index, buffer));
		return buffer->events.count > 0;
	}
	NEAP_TRY(neap__dataset_extent(set, index, 0, &extent));
	if (!set->coded) /* of a coded set, the extent has only a bound */
		return extent.count > 0;
	int rc = neap__dataset_part(set, index, 0, extent.duration, EVENTS, buffer);
	return rc != 0 ? rc : buffer->events.count > 0; /* 1: there are more than fit */
}

/* Augmentation that moves most spikes out of a sample, or out of their order. */
static int shift_is_large(const struct neap__trainer *trainer)
{
	return trainer->options.augment.shift > trainer->data.info.inputs / 2;
}

static int jitter_is_large(const struct neap__trainer *trainer)
{
	double duration = trainer->data.info.duration;
	return duration > 0 && trainer->options.augment.jitter > duration / 4;
}

int neap__input_doubts_look(struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	struct neap__event_buffer buffer = {0};
	int64_t samples = d->nfirst < SAMPLES ? d->nfirst : SAMPLES;
	int rc = d->info.values; /* numbers are no spikes */

	for (int64_t i = 0; i < samples && rc == 0; i++)
		rc = has_spike(d->set, neap__training_sample(d, i, samples), &buffer);
	neap__event_buffer_free(&buffer);
	trainer->no_inputs = rc == 0 ? samples : 0;
	char line[NEAP__FEW_STEPS_LINE];
	trainer->lost_inputs = shift_is_large(trainer) || jitter_is_large(trainer) ||
			       neap__few_steps(line, &d->info, trainer->options.net.dt,
				       trainer->options.max_steps);
	return rc < 0 ? rc : 0;
}

/* Ranges of normalised numbers, of all features. */
struct ranges {
	double least, most, change; /* the largest difference between a row and the next */
};

/* The normalised numbers of a sample's first rows, and how many; to be freed. */
static int read_rows(float **x, int64_t *count, struct neap_dataset *set, int64_t index)
{
	int64_t rows = set->ops->length(set, index), features = neap__features(set);
	int64_t most = features < NUMBERS ? NUMBERS / features : 1;
	rows = rows < most ? rows : most;
	*count = rows * features;
	if (!(*x = malloc((size_t)*count * sizeof **x)))
		return neap__fail_errno(ENOMEM, "'%s'", set->name);
	pthread_mutex_lock(&set->lock);
	int rc = neap__rows_read(set, index, 0, rows, *x);
	pthread_mutex_unlock(&set->lock);
	return rc;
}

static int read_ranges(struct ranges *r, struct neap_dataset *set, int64_t index)
{
	int64_t features = neap__features(set), count;
	float *x;
	int rc = read_rows(&x, &count, set, index);
	for (int64_t k = 0; rc == 0 && k < count; k++) {
		double now = (double)x[k];
		r->least = fmin(r->least, now);
		r->most = fmax(r->most, now);
		if (k >= features)
			r->change = fmax(r->change, fabs(now - (double)x[k - features]));
	}
	free(x);
	return rc;
}

/* Settings of --encode that make spikes of the numbers. */
static void coding_advice(char *room, size_t size, const struct neap__trainer *trainer)
{
	struct neap_dataset *set = trainer->data.set;
	struct ranges r = {.least = INFINITY, .most = -INFINITY};
	int64_t most;
	const char *kind = neap__rows_coding(set, &most).kind->name;

	neap__print(room, size, "Choose another kind than --encode %s", trainer->options.encode);
	for (int64_t i = 0; i < trainer->no_inputs; i++)
		if (read_ranges(&r, set,
			    neap__training_sample(&trainer->data, i, trainer->no_inputs)) < 0)
			return;
	if (strcmp(kind, "delta") == 0 && r.change > 0)
		neap__print(room, size,
			"The largest change from a step to the next is %.2g. Lower the threshold "
			"of --encode, such as --encode delta:threshold=%.1g",
			r.change, r.change / 8);
	else if (strcmp(kind, "threshold") == 0 && r.most > r.least)
		neap__print(room, size,
			"The numbers are between %.2g and %.2g. Set the level of --encode in "
			"between, such as --encode threshold:level=%.2g",
			r.least, r.most, (r.least + r.most) / 2);
	else if (r.most > r.least)
		neap__print(room, size,
			"The numbers are between %.2g and %.2g, which the gain and offset of "
			"--encode must bring to 0 to 1, such as --encode %s:gain=%.2g,offset=%.2g",
			r.least, r.most, kind, 1 / (r.most - r.least),
			-r.least / (r.most - r.least));
}

static void say_no_inputs(const struct neap__trainer *trainer)
{
	char advice[NEAP__DETAIL_BYTES] = "Check the data";
	const struct neap_dataset *set = trainer->data.set;

	if (trainer->no_inputs == 0 || (set->coded && set->constants == neap__features(set)))
		return; /* constant numbers have a warning of their own */
	if (set->coded)
		coding_advice(advice, sizeof advice, trainer);
	neap__trainer_say(trainer,
		"warning: the inputs of %lld training sample%s have no spike, so nothing can be "
		"learned. %s",
		(long long)trainer->no_inputs, trainer->no_inputs == 1 ? "" : "s", advice);
}

static void say_augment(const struct neap__trainer *trainer)
{
	const struct neap_augment *a = &trainer->options.augment;
	const struct neap__data *d = &trainer->data;
	int inputs = d->info.inputs;
	char jitter[24], lasts[24];

	if (shift_is_large(trainer))
		neap__trainer_say(trainer,
			"warning: --shift %d moves the spikes of a sample by up to %d of %d "
			"channels, so most of them are lost. Decrease it, such as --shift %d",
			a->shift, a->shift, inputs, inputs / 20);
	if (jitter_is_large(trainer))
		neap__trainer_say(trainer,
			"warning: --jitter %s is large for samples that last %s or less, so the "
			"order of their spikes is lost. Decrease it, such as --jitter %.0gms",
			neap__show_time(jitter, a->jitter),
			neap__show_time(lasts, d->info.duration),
			fmax(1, d->info.duration * 1e3 / 100));
}

static void say_scale(
	const struct neap__trainer *trainer, struct neap_dataset *set, const char *whose)
{
	char line[NEAP__TAKEN_TEXT];
	if (set && neap__scale_doubt(line, set, whose) > 0)
		neap__trainer_say(trainer, "%s", line);
}

static void say_short_text(const struct neap__trainer *trainer)
{
	enum { LEAST = 100 /* characters; chosen */ };
	const struct neap__data *d = &trainer->data;
	if (d->set->ops->adopt && d->info.events < LEAST)
		neap__trainer_say(trainer,
			"warning: the text has only %lld characters, too few to learn from. Pass a "
			"longer one",
			(long long)d->info.events + 1);
}

/* The characters that a sample of a text loses to --max-steps. 1: there are some. */
static int say_cut_text(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	int64_t most = trainer->options.max_steps;
	const char *file = strchr(d->set->name, ':'); /* text:FILE or text:steps=N:FILE */

	if (file && strncmp(++file, "steps=", 6) == 0)
		file = strchr(file, ':') ? strchr(file, ':') + 1 : file;
	if (!file || !d->set->ops->adopt || most <= 0 || most >= d->info.steps)
		return 0;
	neap__trainer_say(trainer,
		"warning: --max-steps %lld leaves out the end of each sample of %lld "
		"characters, %.0f%% of the text. To learn all of it in samples of %lld, "
		"pass text:steps=%lld:%s instead",
		(long long)most, (long long)d->info.steps,
		100.0 * (double)(d->info.steps - most) / (double)d->info.steps, (long long)most,
		(long long)most, file);
	return 1;
}

/*
 * Rows of zeros at the end of a sample, 0 as well if such rows are elsewhere in it, since these are
 * ordinary steps then; or a negative code. `length`: of all rows.
 */
static int64_t padding_of(struct neap_dataset *set, int64_t index, int64_t *length)
{
	int64_t features = neap__features(set), count, zeros = 0, others = 0;
	float *x;
	int rc = read_rows(&x, &count, set, index);
	*length = set->ops->length(set, index);
	if (rc == 0 && count < *length * features) /* longer than what is read */
		count = 0;
	for (int64_t t = 0; rc == 0 && t < count / features; t++) {
		int is_zero = 1;
		for (int64_t f = 0; f < features; f++) {
			double zero = (0 - set->shift[f]) * set->scale[f];
			is_zero &= fabs((double)x[t * features + f] - zero) <=
				   ROUNDING * fmax(1, fabs(zero));
		}
		others += !is_zero && zeros > 0; /* rows of zeros before it */
		zeros = is_zero ? zeros + 1 : zeros;
	}
	free(x);
	return rc < 0 ? rc : others ? 0 : zeros;
}

/* Samples of one length that end in rows of zeros, in numbers that differ: padding. */
static void say_padding(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	int64_t samples = d->nfirst < SAMPLES ? d->nfirst : SAMPLES, padded = 0, most = 0, least;
	int64_t length, first = 0;
	const char *name = d->set->name;
	char command[NEAP__DETAIL_BYTES] = "";

	if (!d->set->ops->values || !d->set->shift || samples < 2)
		return;
	least = INT64_MAX;
	for (int64_t i = 0; i < samples; i++) {
		int64_t zeros = padding_of(d->set, neap__training_sample(d, i, samples), &length);
		first = i == 0 ? length : first;
		if (zeros < 0 || length != first)
			return;
		padded += zeros > 0;
		most = zeros > most ? zeros : most;
		least = zeros < least ? zeros : least;
	}
	if (2 * padded < samples || most == least || most == first)
		return;
	if (neap__has_step_targets(d->set) || !strstr(name, ".npz"))
		neap__print(command, sizeof command, " (docs/data.md)");
	else
		neap__print(command, sizeof command,
			": python3 -c \"import numpy; d = dict(numpy.load(%s)); d['lengths'] = "
			"[max([0, *numpy.flatnonzero(s.reshape(len(s), -1).any(1))]) + 1 for s in "
			"d['x']]; numpy.savez('neap.npz', **d)\"",
			neap__python_quoted(name));
	neap__trainer_say(trainer,
		"warning: %lld of %lld samples end in rows of zeros, up to %lld of %lld, which are "
		"read as steps. If they are padding, save the number of steps of each sample as "
		"'lengths'%s",
		(long long)padded, (long long)samples, (long long)most, (long long)first, command);
}

void neap__input_doubts_say(const struct neap__trainer *trainer)
{
	char line[NEAP__FEW_STEPS_LINE];

	say_no_inputs(trainer);
	say_augment(trainer);
	say_short_text(trainer);
	int is_cut = say_cut_text(trainer);
	say_padding(trainer);
	say_scale(trainer, trainer->data.test, "the training data");
	say_scale(trainer, trainer->options.from ? trainer->data.set : NULL, NEAP__OF_MODEL);
	if (!is_cut && neap__few_steps(line, &trainer->data.info, trainer->options.net.dt,
			       trainer->options.max_steps))
		neap__trainer_say(trainer, "%s", line);
}

/* Of one feature, in some samples. */
struct size {
	double squares; /* of the numbers as they are in the file */
	double sum;	/* of the numbers as they are normalised */
};

/* Adds a sample's numbers to size[features]. */
static int add_sizes(struct size *size, int64_t *rows, struct neap_dataset *set, int64_t index)
{
	int64_t features = neap__features(set), count;
	float *x;
	int rc = read_rows(&x, &count, set, index);
	for (int64_t k = 0; rc == 0 && k < count; k++) {
		int64_t f = k % features;
		double number = (double)x[k] / set->scale[f] + set->shift[f];
		size[f].squares += number * number;
		size[f].sum += (double)x[k];
	}
	*rows += count / features;
	free(x);
	return rc;
}

/* Root mean square of feature f in the data that the normalisation is of; 0: it has no spread. */
static double known_size(const struct neap_dataset *set, int f)
{
	double shift = set->shift[f], scale = set->scale[f];
	return scale == 1 ? 0 : sqrt(shift * shift + 1 / (scale * scale));
}

/* The line about feature f of `far` ones, whose numbers in `count` rows have the given size. */
static void show_far(char line[NEAP__TAKEN_TEXT], const struct neap_dataset *set, int f, int far,
	const struct size *size, int64_t count, const char *whose)
{
	double was = known_size(set, f), is = sqrt(size->squares / (double)count);
	double times = is > was ? is / was : was / is, mean = size->sum / (double)count;
	double unit = times < 100 ? 1 : pow(10, floor(log10(times))); /* one digit */
	const char *name = f < set->nfeature_names ? set->feature_names[f] : NULL;
	char which[100], more[60] = "";

	neap__print(which, sizeof which, name ? "feature %d '%.60s'" : "feature %d", f, name);
	if (far > 1)
		neap__print(more, sizeof more, "; %d of %d features are like this", far,
			neap__features(set));
	if (times > FAR)
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: %s of '%.200s' is about %.0f times %s than in %s (root mean "
			"square %.3g, not %.3g%s). Convert the data to the same units",
			which, set->name, round(times / unit) * unit,
			is > was ? "larger" : "smaller", whose, is, was, more);
	else
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: %s of '%.200s' has a mean of %.3g, but of %.3g in %s (%.0f "
			"standard deviations%s). Convert the data to the same units",
			which, set->name, mean / set->scale[f] + set->shift[f], set->shift[f],
			whose, fabs(mean), more);
}

static int is_far(const struct neap_dataset *set, int f, const struct size *size, int64_t count)
{
	double was = known_size(set, f), is = sqrt(size->squares / (double)count);

	return was > 0 && ((is > ROUNDING * was && (is > FAR * was || is < was / FAR)) ||
				  fabs(size->sum) > SHIFTED * (double)count);
}

int neap__scale_doubt(char line[NEAP__TAKEN_TEXT], struct neap_dataset *set, const char *whose)
{
	int features = neap__features(set), far = 0, first = 0;
	int64_t count = 0, samples = set->info.samples < SAMPLES ? set->info.samples : SAMPLES;

	if (!set->ops->values || !set->shift)
		return 0;
	struct size *size = calloc((size_t)features, sizeof *size);
	int rc = size ? 0 : neap__fail_errno(ENOMEM, "'%s'", set->name);
	for (int64_t i = 0; i < samples && rc == 0; i++)
		rc = add_sizes(size, &count, set, i * (set->info.samples / samples));
	for (int f = 0; f < features && rc == 0 && count > 0; f++)
		if (is_far(set, f, &size[f], count))
			first = far++ ? first : f;
	/* A few of many features, such as the pixels of a margin, may be small by chance. */
	int found = rc == 0 && far > 0 && far * SHARE >= features;
	if (found)
		show_far(line, set, first, far, &size[first], count, whose);
	free(size);
	return rc < 0 ? rc : found;
}
