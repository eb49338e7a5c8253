/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_encoding.c: what a model was trained on, by the metadata of its file, and the lines about
 * data of another kind; how recordings and events became spikes, compared with how another data set
 * was encoded.
 */
#include "train/model.h"
#include "data/dataset.h"
#include "data/events/event_source.h"
#include "data/formats/contents.h"
#include "data/events/late_events.h"
#include "data/recordings.h"
#include "data/sound/encoder.h"
#include "data/tables/csv.h"
#include "base/fail.h"
#include "base/quote.h"
#include "base/print.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOUND NEAP__MODEL_SOUND
#define EVENTS NEAP__MODEL_EVENTS
#define TIME_UNIT "neap.time_unit"
#define FROM_FIRST "neap.from_first_event" /* there only if it is so */
#define CHANNELS "neap.channels"	   /* of the data, if --channels gave the network more */

void neap__model_encoding_write(struct neap__tensor_bundle *bundle,
	const struct neap_net_options *options, const struct neap_dataset *set)
{
	struct neap_encoder_options o = set->encoder;
	struct neap__json sound = {0}, events = {0};
	const char *name;
	char text[32];

	if (o.size) {
		neap__json_begin(&sound, NULL, '{');
		neap__json_int(&sound, "channels", o.channels);
		for (int i = 0; i < neap__encoder_numbers(); i++) {
			double value = *neap__encoder_number(&o, i, &name);
			neap__json_number(&sound, name, value);
		}
		neap__json_int(&sound, "span", o.span);
		if (o.pool > 1)
			neap__json_int(&sound, "pool", o.pool);
		neap__json_end(&sound, '}');
		neap__tensor_bundle_json(bundle, SOUND, &sound);
	}
	if (set->has_events) {
		neap__json_begin(&events, NULL, '{');
		for (int i = 0; i < NEAP__EVENT_NUMBERS; i++)
			neap__json_number(&events, neap__event_numbers[i], set->events[i]);
		neap__json_end(&events, '}');
		neap__tensor_bundle_json(bundle, EVENTS, &events);
	}
	if (set->has_time_unit) {
		neap__print(text, sizeof text, "%.17g", set->time_unit);
		neap__tensor_bundle_meta(bundle, TIME_UNIT, text);
	}
	if (set->from_first)
		neap__tensor_bundle_meta(bundle, FROM_FIRST, "1");
	if (set->info.inputs != options->inputs) {
		neap__print(text, sizeof text, "%d", set->info.inputs);
		neap__tensor_bundle_meta(bundle, CHANNELS, text);
	}
}

int neap__model_encoder(struct neap_encoder_options *encoder, const struct neap__safetensors *file)
{
	const char *text = neap__safetensors_meta(file, SOUND);
	json_t *json = text ? json_loads(text, 0, NULL) : NULL;
	struct neap_encoder_options o = {.size = sizeof o};

	if (!text)
		return 0;
	o.channels = (int)json_integer_value(json_object_get(json, "channels"));
	o.span = (int)json_integer_value(json_object_get(json, "span"));
	o.pool = (int)json_integer_value(json_object_get(json, "pool")); /* 0: none */
	for (int i = 0; i < neap__encoder_numbers(); i++) {
		const char *name;
		double *value = neap__encoder_number(&o, i, &name);
		*value = json_number_value(json_object_get(json, name));
	}
	json_decref(json);
	return neap__encoder_settle(encoder, &o) < 0 ? NEAP_EFORMAT : 1;
}

int neap__model_encoding(struct neap__encoding *encoding, const struct neap__safetensors *file,
	const struct neap_net_options *options)
{
	const char *text = neap__safetensors_meta(file, EVENTS);
	const char *channels = neap__safetensors_meta(file, CHANNELS);
	const char *unit = neap__safetensors_meta(file, TIME_UNIT);
	json_t *json = text ? json_loads(text, 0, NULL) : NULL;
	int known = channels ? (int)strtol(channels, NULL, 10) : 0;

	*encoding = (struct neap__encoding){.has_events = json != NULL};
	encoding->channels = known > 0 && known < options->inputs ? known : options->inputs;
	for (int i = 0; i < NEAP__EVENT_NUMBERS; i++)
		encoding->events[i] =
			json_number_value(json_object_get(json, neap__event_numbers[i]));
	json_decref(json);
	encoding->has_time_unit = unit && neap__json_read_number(&encoding->time_unit, unit) == 0;
	encoding->from_first = neap__safetensors_meta(file, FROM_FIRST) != NULL;
	char **missing = NULL;
	int count = 0;
	NEAP_TRY(neap__model_texts(&missing, &count, file, NEAP__MODEL_MISSING));
	neap__print(encoding->missing, sizeof encoding->missing, "%s", count ? missing[0] : "");
	neap__model_class_names_free(missing, count);
	int rc = neap__model_encoder(&encoding->sound, file);
	return rc < 0 ? rc : 0;
}

/* The name and the two values of a number of the sound encoder that differs; 0: none does. */
static int sound_differs(const struct neap__encoding *was, const struct neap_dataset *set,
	const char **name, double *a, double *b)
{
	struct neap_encoder_options then = was->sound, now = set->encoder;

	*name = "channels";
	*a = then.channels;
	*b = now.channels;
	if (*a == *b) {
		*name = "pool";
		*a = then.pool;
		*b = now.pool;
	}
	for (int i = 0; i < neap__encoder_numbers() && fabs(*a - *b) <= 1e-6 * fabs(*a); i++) {
		*a = *neap__encoder_number(&then, i, name);
		*b = *neap__encoder_number(&now, i, name);
	}
	return fabs(*a - *b) > 1e-6 * fabs(*a);
}

/* The same of events. Numbers are whole. */
static int events_differ(const struct neap__encoding *was, const struct neap_dataset *set,
	const char **name, double *a, double *b)
{
	for (int i = 0; i < NEAP__EVENT_NUMBERS; i++) {
		*name = neap__event_numbers[i];
		*a = was->events[i];
		*b = set->events[i];
		if (*a != *b)
			return 1;
	}
	return 0;
}

/* A setting's value as people give it. */
static const char *show(char room[32], const char *name, double value)
{
	static const char *const polarities[] = {"split", "merge", "on", "off"};

	if (strcmp(name, "polarity") == 0 && value >= 0 && value < 4)
		return polarities[(int)value];
	neap__print(room, 32, "%g", value);
	return room;
}

/* The numbers of events, in the order of neap__event_numbers. */
enum { POOL, POLARITY, WIDTH, HEIGHT, X, Y, COLUMNS, ROWS };

/* The options of `neap encode` that give events like those of the training data. */
static void add_event_options(struct neap__text *to, const double *was, const double *now)
{
	char room[32];

	if (was[POOL] != now[POOL])
		neap__text_add(to, " --pool %g", was[POOL]);
	if (was[POLARITY] != now[POLARITY])
		neap__text_add(to, " --polarity %s", show(room, "polarity", was[POLARITY]));
	if (was[WIDTH] != now[WIDTH] || was[HEIGHT] != now[HEIGHT])
		neap__text_add(to, " --sensor %gx%g", was[WIDTH], was[HEIGHT]);
	/* Columns and rows are of squares, the last of which may reach beyond the crop. */
	double square = fmax(was[POOL], now[POOL]);
	if (was[X] != now[X] || was[Y] != now[Y] ||
		fabs(was[COLUMNS] * was[POOL] - now[COLUMNS] * now[POOL]) >= square ||
		fabs(was[ROWS] * was[POOL] - now[ROWS] * now[POOL]) >= square)
		neap__text_add(to, " --crop %gx%g+%g+%g", was[COLUMNS] * was[POOL],
			was[ROWS] * was[POOL], was[X], was[Y]);
}

/* The same of sound, those at their defaults left out. */
static void add_sound_options(struct neap__text *to, struct neap_encoder_options was)
{
	struct neap_encoder_options usual = {.size = sizeof usual};
	const char *name;

	if (neap__encoder_settle(&usual, &usual) < 0)
		return;
	if (was.channels != usual.channels)
		neap__text_add(to, " --channels %d", was.channels);
	if (was.pool != usual.pool)
		neap__text_add(to, " --pool %d", was.pool);
	for (int i = 0; i < neap__encoder_numbers(); i++) {
		double value = *neap__encoder_number(&was, i, &name);
		if (value != *neap__encoder_number(&usual, i, &name))
			neap__text_add(to, " --%s %g", name, value);
	}
}

/* Those of sound that a data set of the model's inputs needs, if it is encoded with `pool`. */
static void add_shape_of_sound(
	struct neap__text *to, const struct neap_encoder_options *was, int pool)
{
	neap__text_add(to, " --channels %d --low %g --high %g", was->channels, was->low, was->high);
	if (was->pool != 1 || pool != 1)
		neap__text_add(to, " --pool %d", was->pool);
}

/* "with --time-unit 1ms". */
static const char *show_unit(char room[32], double unit)
{
	static const struct {
		double times;
		const char *name;
	} units[] = {{1, "s"}, {1e3, "ms"}, {1e6, "us"}, {1e9, "ns"}};
	int i = 0;

	if (!(unit > 0))
		return "without --time-unit";
	while (i < 3 && unit * units[i].times < 1)
		i++;
	neap__print(room, 32, "with --time-unit %g%s", unit * units[i].times, units[i].name);
	return room;
}

int neap__model_encode_options(char line[NEAP__ENCODE_OPTIONS],
	const struct neap__safetensors *file, const struct neap_net_options *options,
	const struct neap_dataset *set)
{
	struct neap__encoding was;
	struct neap__text to = {0};
	char unit[32];

	line[0] = '\0';
	if (neap__model_encoding(&was, file, options) < 0)
		return 0;
	/* By default no pixels are merged, and the whole sensor is used, of a size to be given. */
	const double whole[NEAP__EVENT_NUMBERS] = {
		1, NEAP_POLARITY_SPLIT, 0, 0, 0, 0, was.events[WIDTH], was.events[HEIGHT]};
	if (was.has_events && (!set || set->has_events))
		add_event_options(&to, was.events, set ? set->events : whole);
	else if (was.sound.size && !set)
		add_sound_options(&to, was.sound);
	else if (was.sound.size && set->encoder.size)
		add_shape_of_sound(&to, &was.sound, set->encoder.pool);
	if (!was.has_events && was.has_time_unit && !set) /* channels without pixels */
		neap__text_add(&to, " --inputs %d", was.channels);
	if (was.has_time_unit && was.time_unit > 0 && (!set || set->time_unit != was.time_unit))
		neap__text_add(&to, " %s", show_unit(unit, was.time_unit) + strlen("with "));
	if (was.from_first && (!set || !set->from_first))
		neap__text_add(&to, " --from-first-event");
	neap__print(line, NEAP__ENCODE_OPTIONS, "%s", to.data ? to.data : "");
	neap__text_free(&to);
	return line[0] != '\0';
}

struct neap__encoding neap__encoding_of(const struct neap_dataset *set)
{
	struct neap__encoding encoding = {.sound = set->encoder,
		.has_events = set->has_events,
		.channels = set->info.inputs,
		.has_time_unit = set->has_time_unit,
		.time_unit = set->time_unit,
		.from_first = set->from_first};

	memcpy(encoding.events, set->events, sizeof encoding.events);
	neap__print(
		encoding.missing, sizeof encoding.missing, "%s", set->missing ? set->missing : "");
	return encoding;
}

int neap__encoding_differs(char *line, struct neap_dataset *set, const struct neap__encoding *was)
{
	static const char wrong[] =
		"so its answers are unreliable. Encode the data as the training "
		"data was";
	const char *name, *whose = "the model was trained on";
	char then[32], now[32];
	double a = 0, b = 0;
	int from_sound = was->sound.size && set->encoder.size;
	int from_events = was->has_events && set->has_events;

	if ((from_sound && sound_differs(was, set, &name, &a, &b)) ||
		(from_events && events_differ(was, set, &name, &a, &b)))
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: %.100s was encoded with %s %s, but %s %s encoded with %s, %s",
			set->name, name, show(now, name, b), whose,
			from_sound ? "recordings" : "events", show(then, name, a), wrong);
	else if ((was->sound.size && set->has_events) || (was->has_events && set->encoder.size))
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: %.100s was encoded from %s, but %s %s, %s", set->name,
			set->has_events ? "events" : "recordings", whose,
			was->has_events ? "events" : "recordings", wrong);
	else if (!set->info.values && !set->info.inputs_least && set->info.inputs < was->channels)
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: %.100s has %d input channels, but %s %d; the other inputs get no "
			"spikes, %s",
			set->name, set->info.inputs, whose, was->channels, wrong);
	else if (was->has_time_unit && set->has_time_unit && was->time_unit != set->time_unit)
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: %.100s was encoded %s, but %s events encoded %s. If the times in "
			"the two sources have the same unit, the answers are unreliable; encode "
			"%.100s "
			"as the training data was",
			set->name, show_unit(now, set->time_unit), whose,
			show_unit(then, was->time_unit), set->name);
	else if (was->from_first && set->has_time_unit && !set->from_first &&
		 neap__begin_behind_0(set))
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: %.200s was encoded without --from-first-event, but %s events "
			"encoded with it, so its answers are unreliable. Encode the recordings "
			"once "
			"more with --from-first-event",
			set->name, whose);
	else if (set->missing && *was->missing && strcmp(set->missing, was->missing) != 0)
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: %.100s was encoded with --missing %s, but the training data with "
			"--missing %s, %s",
			set->name, set->missing, was->missing, wrong);
	else
		return 0;
	return 1;
}

/* By kind: how a line names it, and what to pass; SOUND and EVENTS end in options of encode. */
static const struct {
	const char *name, *pass;
} kinds[] = {
	[NEAP__OF_TEXT] = {"a text", "pass a text: text:FILE"},
	[NEAP__OF_NUMBERS] = {"real numbers",
		"pass an array (.npz, .h5) or a table (.csv, .tsv) of numbers"},
	[NEAP__OF_SOUND] = {"sound",
		"pass a recording (.wav, .flac, .aiff), or encode a folder of them: neap encode "
		"DIR --out FILE.h5"},
	[NEAP__OF_EVENTS] = {"events of a sensor",
		"encode events as its training data: neap encode DATA --out FILE.h5"},
	[NEAP__OF_SPIKES] = {"spikes", "pass a data set of spikes (HDF5)"},
};

enum neap__model_kind neap__model_kind(const struct neap__safetensors *file)
{
	if (neap__safetensors_meta(file, NEAP__MODEL_INPUTS))
		return NEAP__OF_NUMBERS;
	if (neap__safetensors_meta(file, NEAP__MODEL_SOUND))
		return NEAP__OF_SOUND;
	if (neap__safetensors_meta(file, NEAP__MODEL_EVENTS))
		return NEAP__OF_EVENTS;
	/* Of spikes, only those of a text have a class per step. */
	return neap__model_target(file) == NEAP_TARGET_LABELS ? NEAP__OF_TEXT : NEAP__OF_SPIKES;
}

int neap__model_wants(const struct neap__safetensors *file, const char *format, ...)
{
	enum neap__model_kind kind = neap__model_kind(file);
	const struct neap_net_options none = {
		0}; /* for a number of channels, which is not needed */
	char what[400], options[NEAP__ENCODE_OPTIONS];
	va_list args;

	va_start(args, format);
	neap__vprint(what, sizeof what, format, args);
	va_end(args);
	neap__model_encode_options(options, file, &none, NULL);
	return neap__fail(NEAP_EUSAGE,
		"%s, but the model was trained on %s. Use another model, or %s%s", what,
		kinds[kind].name, kinds[kind].pass, options);
}

const char *neap__model_contents(const struct neap_dataset *set)
{
	return neap__recording_named(set->name) ? "is a recording"
	       : set->ops->adopt		? "is a text"
	       : set->ops->values		? "contains real numbers"
	       : set->encoder.size		? "was encoded from sound"
	       : set->has_events		? "was encoded from events of a sensor"
						: "contains spikes";
}

int neap__model_refuse(const struct neap__safetensors *file, const struct neap_dataset *set)
{
	return neap__model_wants(file, "'%.300s' %s", set->name, neap__model_contents(set));
}

int neap__model_kind_fits(const struct neap__safetensors *file, const struct neap_dataset *set)
{
	enum neap__model_kind kind = neap__model_kind(file);
	/* Files of earlier versions, and graphs in NIR, do not say what they are of. */
	int may_be_text = kind == NEAP__OF_TEXT ||
			  (kind == NEAP__OF_SPIKES && !neap__safetensors_meta(file, "neap.target"));

	if ((set->ops->adopt ? !may_be_text : kind == NEAP__OF_TEXT) ||
		(kind == NEAP__OF_SOUND && set->has_events) ||
		(kind == NEAP__OF_EVENTS && set->encoder.size))
		return neap__model_refuse(file, set);
	return 0;
}

static const char *const target_names[] = {NEAP_TARGET_TABLE(NEAP_CHOICE_NAME)};

enum neap_target neap__model_target(const struct neap__safetensors *file)
{
	const char *name = neap__safetensors_meta(file, "neap.target");

	for (int i = 0; name && i < NEAP_TARGETS; i++)
		if (strcmp(name, target_names[i]) == 0)
			return (enum neap_target)i;
	return NEAP_TARGET_LABEL;
}
