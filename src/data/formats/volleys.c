/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volleys.c: tasks that need a memory of time. A sample has two volleys of spikes, `gap` steps
 * apart, at a random time; in a volley each channel of a group of `units` channels spikes once,
 * within JITTER steps.
 *     task=xor  two groups; either volley is of the one or of the other, and the class is whether
 *               the two groups differ (delayed exclusive or)
 *     task=lag  the first volley is of the first group, the second of the second; the volleys of
 *               class c are gap + c apart steps apart (detection of coincidences: of delayed spikes
 *               of the one with those of the other)
 * `noise` spikes are added at random channels and times. Every sample is a function of (seed,
 * number).
 */
#include "data/dataset.h"
#include "base/fail.h"
#include "base/philox.h"
#include "base/print.h"
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP 1e-3		/* seconds */
#define FIRST_TEST (1ull << 41) /* the first sample of part=test */

/* Steps: of a volley, in which the second one begins, and before the first and behind the second.
 */
enum { JITTER = 5, ONSET = 20, REST = 20, GROUPS = 2 };

struct volley_keys {
	double gap, apart, classes, units, noise, samples, seed, first;
};

static const struct volleys_key_row {
	const char *name;
	size_t offset;
	double least, most;
} keys[] = {
	{"gap", offsetof(struct volley_keys, gap), 0, 1e6},
	{"apart", offsetof(struct volley_keys, apart), 1, 1e4},
	{"classes", offsetof(struct volley_keys, classes), 2, 1000},
	{"units", offsetof(struct volley_keys, units), 1, 1000},
	{"noise", offsetof(struct volley_keys, noise), 0, 1e6},
	{"samples", offsetof(struct volley_keys, samples), 1, 1e8},
	{"seed", offsetof(struct volley_keys, seed), 0, 9007199254740992.0},
	{"first", offsetof(struct volley_keys, first), 0, 1e12},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

struct volleys {
	struct neap_dataset set;
	struct volley_keys v;
	int is_lag;
	uint64_t first;
};

/* What a sample draws: the places of one Philox stream. */
enum { LABEL, GROUP, BEGIN, JITTERS = 0x100, NOISE = 0x10000 };

static double draw(const struct volleys *v, int64_t index, uint32_t place)
{
	return neap__random_uniform(
		(uint64_t)v->v.seed, NEAP__STREAM_VOLLEYS, place, v->first + (uint64_t)index);
}

static int label_of(const struct volleys *v, int64_t index)
{
	return (int)(draw(v, index, LABEL) * v->set.info.classes);
}

/* What is kept of the spikes: [from, to) seconds, as many as there is room for. */
struct volley_span {
	double from, to;
	int64_t most;
};

/* 1 where there is no room for a spike that is to be kept. */
static int add(struct neap_events *events, const struct volley_span *span, double step, int unit)
{
	double time = (step + 0.5) * STEP;

	if (time < span->from || time >= span->to)
		return 0;
	if (events->count == span->most)
		return 1;
	events->time[events->count] = time;
	events->unit[events->count++] = (uint16_t)unit;
	return 0;
}

static int64_t spikes_of(const struct volleys *v)
{
	return (int64_t)(GROUPS * v->v.units + v->v.noise);
}

/* 1 where there are more spikes in the span than there is room for. */
static int add_all(struct neap_dataset *set, int64_t index, const struct volley_span *span,
	struct neap_events *events)
{
	struct volleys *v = (struct volleys *)set;
	int full = 0, label = set->label[index], units = (int)v->v.units;
	int first = v->is_lag ? 0 : (int)(draw(v, index, GROUP) * GROUPS);
	int group[] = {first, v->is_lag ? 1 : first ^ label};
	double steps = round(set->info.duration / STEP);
	double lag = v->v.gap + (v->is_lag ? label * v->v.apart : 0);
	/* The time of the second volley does not depend on the class: it would give it away. */
	double end = steps - REST - JITTER - floor(draw(v, index, BEGIN) * ONSET);

	events->count = 0;
	for (int i = 0; i < 2 * units; i++) {
		int second = i >= units;
		double jitter = floor(draw(v, index, JITTERS + (uint32_t)i) * JITTER);
		full |= add(events, span, end - !second * lag + jitter,
			group[second] * units + i - second * units);
	}
	for (uint32_t k = 0; k < (uint32_t)v->v.noise; k++)
		full |= add(events, span, floor(draw(v, index, NOISE + 2 * k) * steps),
			(int)(draw(v, index, NOISE + 2 * k + 1) * GROUPS * units));
	return full;
}

static int volleys_read(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer)
{
	const struct volley_span all = {-INFINITY, INFINITY, spikes_of((struct volleys *)set)};

	NEAP_TRY(neap__event_buffer_reserve(buffer, (size_t)all.most));
	buffer->events.duration = set->info.duration;
	(void)add_all(set, index, &all, &buffer->events);
	return neap__events_sort(&buffer->events);
}

static int volleys_extent(
	struct neap_dataset *set, int64_t index, struct neap__sample_extent *extent)
{
	(void)index;
	*extent = (struct neap__sample_extent){
		spikes_of((struct volleys *)set), set->info.duration, 0};
	return 0;
}

static int volleys_part(struct neap_dataset *set, int64_t index, double from, double to,
	size_t most, struct neap__event_buffer *buffer)
{
	const struct volley_span span = {from, to, (int64_t)most};

	NEAP_TRY(neap__event_buffer_reserve(buffer, most));
	return add_all(set, index, &span, &buffer->events);
}

static void volleys_close(struct neap_dataset *set)
{
	(void)set;
}

static const struct neap__dataset_ops volleys_ops = {.read = volleys_read,
	.close = volleys_close,
	.extent = volleys_extent,
	.part = volleys_part};

static int set_number(struct volley_keys *values, const char *name, const char *text)
{
	char known[256] = "task, part";

	for (size_t i = 0; i < KEYS; i++) {
		const struct volleys_key_row *key = &keys[i];
		if (strcmp(key->name, name) != 0) {
			size_t n = strlen(known);
			neap__print(known + n, sizeof known - n, ", %s", key->name);
			continue;
		}
		double *to = (double *)(void *)((char *)values + key->offset);
		if (neap__units_within(to, text, 1, key->least, key->most) == 0)
			return 0;
		return neap__fail(NEAP_EUSAGE,
			"volleys: %s=%s is not valid; it must be a whole number between %.15g and "
			"%.15g",
			name, text, key->least, key->most);
	}
	return neap__fail(NEAP_EUSAGE, "volleys: unknown key '%s'; the keys are %s", name, known);
}

/* The place of a value among two words; -1: it is neither. */
static int which(const char *value, const char *a, const char *b)
{
	return strcmp(value, a) == 0 ? 0 : strcmp(value, b) == 0 ? 1 : -1;
}

/* A bit of its own for each key; 0: it is none. */
static unsigned bit_of(const char *name)
{
	for (unsigned i = 0; i < KEYS; i++)
		if (strcmp(keys[i].name, name) == 0)
			return 1u << i;
	return strcmp(name, "task") == 0 ? 1u << KEYS : strcmp(name, "part") == 0 ? 2u << KEYS : 0;
}

/* "KEY=VALUE,..." into values */
static int parse(struct volley_keys *values, int *is_lag, int *is_test, const char *list)
{
	char *copy = strdup(list), *rest = copy, *pair;
	int rc = copy ? 0 : neap__fail_errno(ENOMEM, "volleys");
	unsigned given = 0;

	while (rc == 0 && (pair = strsep(&rest, ",")) != NULL) {
		char *value = strchr(pair, '=');
		if (!value) {
			rc = neap__fail(NEAP_EUSAGE,
				"volleys: '%s' in '%s' is not valid; expected KEY=VALUE,...", pair,
				list);
			break;
		}
		*value++ = '\0';
		unsigned bit = bit_of(pair);
		if (given & bit) {
			rc = neap__fail(NEAP_EUSAGE, "volleys: %s is given twice", pair);
			break;
		}
		given |= bit;
		int is_task = strcmp(pair, "task") == 0;
		int word = is_task ? which(value, "xor", "lag") : which(value, "train", "test");
		if (!is_task && strcmp(pair, "part") != 0)
			rc = set_number(values, pair, value);
		else if (word < 0)
			rc = neap__fail(NEAP_EUSAGE, "volleys: %s=%s is not valid; it must be %s",
				pair, value, is_task ? "xor or lag" : "train or test");
		else
			*(is_task ? is_lag : is_test) = word;
	}
	free(copy);
	return rc;
}

static int volleys_open(struct neap_dataset **out, const char *name)
{
	struct volley_keys values = {100, 15, 4, 10, 10, 2000, 0, 0};
	int is_lag = 0, is_test = 0;

	if (name[strlen("volleys")] == ':')
		NEAP_TRY(parse(&values, &is_lag, &is_test, name + strlen("volleys:")));
	struct volleys *v = calloc(1, sizeof *v);
	int32_t *label = malloc((size_t)values.samples * sizeof *label);
	if (!v || !label) {
		free(v);
		free(label);
		return neap__fail_errno(ENOMEM, "volleys of %.0f samples", values.samples);
	}
	v->v = values;
	v->is_lag = is_lag;
	v->first = (uint64_t)values.first + (is_test ? FIRST_TEST : 0);
	v->set.ops = &volleys_ops;
	v->set.label = label;
	v->set.info.samples = (int64_t)values.samples;
	v->set.info.inputs = GROUPS * (int)values.units;
	v->set.info.classes = is_lag ? (int)values.classes : 2;
	v->set.info.events = (int64_t)((GROUPS * values.units + values.noise) * values.samples);
	double longest = values.gap + (is_lag ? (values.classes - 1) * values.apart : 0);
	v->set.info.duration = (REST + longest + ONSET + JITTER + REST) * STEP;
	for (int64_t i = 0; i < v->set.info.samples; i++)
		label[i] = label_of(v, i);
	*out = &v->set;
	return 0;
}

static int takes_volleys(const char *name)
{
	size_t n = strlen("volleys");
	return strncmp(name, "volleys", n) == 0 && (name[n] == '\0' || name[n] == ':');
}

const struct neap__dataset_format neap__format_volleys = {"volleys", takes_volleys, volleys_open};
