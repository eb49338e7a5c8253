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
#define CHANNELS "neap.channels" /* of the data, if --channels gave the network more */

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
	neap__print(line, NEAP__ENCODE_OPTIONS, "%s", to.data ? to.data : "");
	neap__text_free(&to);
	return line[0] != '\0';
}

/* 1: an array file of events, which is no data set yet; with these names of classes, if not NULL.
 */
static int has_events(const char *data, char **names, int count)
{
	const struct neap_event_options options = {.size = sizeof options,
		.classes = (const char *const *)names,
		.nclasses = names ? count : 0};
	struct neap__event_source *source;

	if (neap__array_events_open(&source, data, NULL, &options) < 0)
		return 0;
	source->close(source);
	return 1;
}

/* 1: an array file with one recording, whose class only its folder would name. */
static int is_recording(const char *data)
{
	const struct neap_event_options options = {.size = sizeof options};
	struct neap__event_source *source;

	if (neap__array_events_open(&source, data, NULL, &options) < 0)
		return 0;
	int is = source->recording;
	source->close(source);
	return is;
}

/* The names of the model's classes as a command that writes them to classes.txt; "": none is needed
 * to read the events, or they cannot be read. */
static void write_classes(
	struct neap__text *to, const struct neap__safetensors *file, int count, const char *data)
{
	char **names = NULL;

	if (!has_events(data, NULL, 0) && neap__model_class_names(&names, file, count) == 0 &&
		names && has_events(data, names, count)) {
		neap__text_add(to, "printf '%%s\\n'");
		for (int i = 0; i < count; i++)
			neap__text_add(to, " %s", neap__quoted(names[i]));
		neap__text_add(to, " > classes.txt; ");
	}
	neap__model_class_names_free(names, count);
}

static int is_among(const char *name, char *const *names, int count)
{
	for (int k = 0; k < count; k++)
		if (names[k] && strcmp(names[k], name) == 0)
			return 1;
	return 0;
}

/* " --drop time": columns of the table that are none of the features and not `kept`, if given. */
static void add_drops(struct neap__text *to, const char *path, char *const *feature, int count,
	const char *const kept[2])
{
	struct neap__csv csv;
	struct neap__text list = {0};

	if (neap__csv_open(&csv, path) == 0 && neap__csv_next(&csv) > 0)
		for (int64_t i = 0; i < csv.fields; i++)
			if (!is_among(csv.field[i], feature, count) &&
				!(kept[0] && strcmp(kept[0], csv.field[i]) == 0) &&
				!(kept[1] && strcmp(kept[1], csv.field[i]) == 0))
				neap__text_add(&list, "%s%s", list.length ? "," : "", csv.field[i]);
	if (list.length)
		neap__text_add(to, " --drop %s", neap__word(list.data));
	neap__text_free(&list);
	neap__csv_close(&csv);
}

char *neap__model_table_target(const struct neap__safetensors *file, int classes, const char *path,
	char *const *feature, int count)
{
	struct neap__csv csv;
	char **name = NULL, **header = NULL, *found = NULL;
	int64_t fields = 0;
	enum neap_target target = neap__model_target(file);
	int is_number = target == NEAP_TARGET_NUMBERS || target == NEAP_TARGET_SERIES;

	if (neap__model_class_names(&name, file, classes) < 0 || !name)
		return NULL;
	if (neap__csv_open(&csv, path) == 0 && neap__csv_next(&csv) > 0) {
		fields = csv.fields;
		header = calloc((size_t)fields, sizeof *header);
	}
	for (int64_t i = 0; header && i < fields; i++)
		header[i] = strdup(csv.field[i]);
	for (int64_t i = 0; header && is_number && classes == 1 && i < fields && !found; i++)
		if (header[i] && name[0] && strcmp(header[i], name[0]) == 0)
			found = strdup(header[i]);
	if (header && !found && neap__csv_next(&csv) > 0)
		for (int64_t i = 0; i < fields && i < csv.fields && !found; i++)
			if (header[i] && !is_among(header[i], feature, count) &&
				is_among(csv.field[i], name, classes))
				found = strdup(header[i]);
	for (int64_t i = 0; header && i < fields; i++)
		free(header[i]);
	free(header);
	neap__csv_close(&csv);
	neap__model_class_names_free(name, classes);
	return found;
}

char *neap__model_table_options(const struct neap__safetensors *file,
	const struct neap_net_options *options, const char *path, const char *sample)
{
	struct neap__text to = {0};
	char **feature = NULL, *target = NULL;
	int count = 0;

	if (neap__model_texts(&feature, &count, file, NEAP__MODEL_FEATURES) == 0 && count)
		target = neap__model_table_target(file, options->classes, path, feature, count);
	const char *const kept[] = {sample, target};
	if (sample)
		neap__text_add(&to, " --sample-column %s", neap__word(sample));
	neap__text_add(&to, " --target %s", target ? neap__word(target) : "COLUMN");
	if (count)
		add_drops(&to, path, feature, count, kept);
	if (count && !target)
		neap__text_add(&to, ", without COLUMN in the list");
	neap__model_class_names_free(feature, count);
	free(target);
	return to.data;
}

enum { DROPS = 400 /* bytes of these options */ };

/* " --target COLUMN" or " --labels FILE" for tables whose folders do not name their classes;
 * `each_step`: targets are per step, which --labels does not have. */
static void add_labels(struct neap__text *to, const char *target, const char *folder, int each_step)
{
	char labels[300];

	neap__print(labels, sizeof labels, "%s/../labels.csv", folder);
	if (target)
		neap__text_add(to, " --target %s", neap__word(target));
	else if (each_step)
		neap__text_add(to, " --target COLUMN");
	else
		neap__text_add(to, " --labels %s",
			access(labels, R_OK) == 0 ? neap__quoted(labels) : "FILE.csv");
}

/*
 * The options for a folder of tables by the first one: --drop and --missing, or "". For eval,
 * `classes` of the model, also the option for their targets, if the folders have none; else 0.
 */
static void drop_options(
	char room[DROPS], const struct neap__safetensors *file, const char *folder, int classes)
{
	enum neap_target is = neap__model_target(file);
	int each_step = is == NEAP_TARGET_LABELS || is == NEAP_TARGET_SERIES;
	struct neap__recordings all = {0};
	struct neap__text to = {0};
	char **feature = NULL, **missing = NULL;
	const char *kept[2] = {NULL, NULL};
	char *target = NULL;
	int64_t flat = 0;
	int count = 0, filled = 0;

	room[0] = '\0';
	if (neap__model_texts(&feature, &count, file, NEAP__MODEL_FEATURES) == 0 && count &&
		neap__recordings_all(&all, folder) == 0)
		for (int64_t i = 0; i < all.count; i++)
			if (neap__recordings_ends(all.file[i].path, neap__table_endings)) {
				neap__recordings_count(folder, neap__table_endings, &flat);
				if (classes && (flat || is != NEAP_TARGET_LABEL)) {
					target = neap__model_table_target(
						file, classes, all.file[i].path, feature, count);
					add_labels(&to, target, folder, each_step);
				}
				kept[0] = target;
				add_drops(&to, all.file[i].path, feature, count, kept);
				if (neap__model_texts(
					    &missing, &filled, file, NEAP__MODEL_MISSING) == 0 &&
					(filled || neap__tables_have_gaps(folder)))
					neap__text_add(&to, " --missing %s",
						filled ? missing[0] : "previous");
				break;
			}
	if (to.data && to.length < DROPS)
		neap__print(room, DROPS, "%s", to.data);
	neap__model_class_names_free(missing, filled);
	free(target);
	neap__text_free(&to);
	neap__recordings_free(&all);
	neap__model_class_names_free(feature, count);
}

int neap__model_advise_encoding(const struct neap__safetensors *file,
	const struct neap_net_options *options, const char *data, int predicts, int rc)
{
	char settings[NEAP__ENCODE_OPTIONS], line[NEAP__DETAIL_BYTES];
	char option[NEAP__OPTION_TEXT], label[NEAP__OPTION_TEXT] = "";
	char drops[DROPS] = "", part[4096];
	int is_folder = neap__recordings_folder(data);
	int known = neap__model_encode_options(settings, file, options, NULL);

	enum neap__model_kind kind = neap__model_kind(file);

	if (!is_folder && rc != NEAP_EFORMAT)
		return rc;
	if (is_folder && neap__recordings_having(data, NULL) == 0)
		return neap__fail(NEAP_EUSAGE,
			"the folder '%s' is empty. Put the data into it, or pass another one",
			data);
	if (is_folder && neap__recordings_having(data, neap__sound_endings) == 0 &&
		neap__contents_set_in(line, sizeof line, data))
		return neap__fail(NEAP_EUSAGE, "'%s' is a folder. Pass the data set in it: %s",
			data, neap__quoted(line));
	if (is_folder && kind == NEAP__OF_SOUND &&
		neap__recordings_having(data, neap__sound_endings) +
				neap__recordings_having(data, neap__table_endings) ==
			0 &&
		neap__recordings_having(data, neap__event_endings))
		return neap__model_wants(file, "'%s' contains events", data);
	neap__print(line, sizeof line, "%s", neap_detail());
	if (!is_folder && (kind == NEAP__OF_SOUND || kind == NEAP__OF_NUMBERS) &&
		has_events(data, NULL, 0))
		return neap__model_wants(file, "'%s' contains events", data);
	if (!is_folder && !known)
		return neap__fail(rc, "%s", line);
	struct neap__text classes = {0};
	if (!is_folder)
		write_classes(&classes, file, options->classes, data);
	if (!is_folder && !classes.length && !has_events(data, NULL, 0)) {
		neap__text_free(&classes);
		return neap__fail(rc, "%s", line);
	}
	int answered =
		is_folder ? neap__recordings_having(data, neap__sound_endings) +
					    neap__recordings_having(data, neap__table_endings) >
				    0
			  : 0;
	/* A folder of both parts would be evaluated with what the model learned from. */
	int is_part = is_folder && neap__recordings_parts(part, data);
	const char *folder = is_part ? part : data;
	if (is_folder)
		neap__recordings_label(label, folder);
	else if (predicts && known && is_recording(data))
		neap__print(label, sizeof label, " --label '(.*)'");
	if (is_folder)
		drop_options(drops, file, folder, predicts ? 0 : options->classes);
	rc = neap__fail(rc, "'%s' %s. Encode %s first%s: %sneap encode %s --out FILE.h5%s%s%s%s",
		data,
		!is_folder ? "contains events"
		: is_part  ? "is a folder with a part for training"
		: answered ? "is a folder"
		: neap__recordings_having(data, neap__event_endings)
			? "contains events"
			: "contains no recording (.wav, .flac, .aiff) and no table (.csv, .tsv)",
		is_part ? "its part 'test'" : "it",
		known ? ", with the settings of the training data" : "",
		classes.length ? classes.data : "", neap__quoted(folder),
		known ? settings : neap__recordings_option(option, folder),
		!known		     ? ""
		: predicts && *label ? " --label '(.*)'"
				     : label,
		drops, classes.length ? " --classes classes.txt" : "");
	neap__text_free(&classes);
	return rc;
}

struct neap__encoding neap__encoding_of(const struct neap_dataset *set)
{
	struct neap__encoding encoding = {.sound = set->encoder,
		.has_events = set->has_events,
		.channels = set->info.inputs,
		.has_time_unit = set->has_time_unit,
		.time_unit = set->time_unit};

	memcpy(encoding.events, set->events, sizeof encoding.events);
	neap__print(
		encoding.missing, sizeof encoding.missing, "%s", set->missing ? set->missing : "");
	return encoding;
}

int neap__encoding_differs(
	char *line, const struct neap_dataset *set, const struct neap__encoding *was)
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
	else if (set->missing && *was->missing && strcmp(set->missing, was->missing) != 0)
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: missing values of %.100s were filled in with --missing %s, but "
			"the training data with --missing %s, %s",
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
