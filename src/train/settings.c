/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c: the tables of settings: names, ranges, writing, reading, comparing. */
#include "train/settings.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The same numbers; as texts of a configuration, TIME, BYTES and RATE may have a unit. */
enum setting_kind { TEXT, COUNT, WHOLE, SEED, BYTES, REAL, TIME, RATE, CHOICE };

static const char *const precisions[] = {NEAP_PRECISION_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const maths[] = {NEAP_MATH_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const products[] = {NEAP_PRODUCTS_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const resets[] = {NEAP_RESET_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const surrogates[] = {NEAP_SURROGATE_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const inits[] = {NEAP_INIT_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const learns[] = {NEAP_LEARN_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const readouts[] = {NEAP_READOUT_TABLE(NEAP_CHOICE_NAME) NULL};

struct train_setting {
	const char *name;
	enum setting_kind kind;
	size_t offset;		    /* in struct neap_train_options */
	const char *const *choices; /* CHOICE */
	double low, high;	    /* REAL, TIME, RATE, COUNT, WHOLE: what is accepted */
};

#define AT(field) offsetof(struct neap_train_options, field)
#define BIG 1e300

/* The net's come first: they are what a model's file keeps. */
static const struct train_setting settings[] = {
	{"net", TEXT, AT(net.spec), NULL, 0, 0},
	{"precision", CHOICE, AT(net.precision), precisions, 0, 0},
	{"inputs", COUNT, AT(net.inputs), NULL, 0, 65536},
	{"classes", COUNT, AT(net.classes), NULL, 0, 65536},
	{"dt", TIME, AT(net.dt), NULL, 1e-12, 1e6},
	{"net_seed", SEED, AT(net.seed), NULL, 0, 0},
	{"reset", CHOICE, AT(net.reset), resets, 0, 0},
	{"detach", COUNT, AT(net.detach), NULL, 0, 1},
	{"surrogate", CHOICE, AT(net.surrogate), surrogates, 0, 0},
	{"width", REAL, AT(net.width), NULL, 1e-12, 1e12},
	{"height", REAL, AT(net.height), NULL, -1e12, 1e12},
	{"support", REAL, AT(net.support), NULL, 0, 1e12},
	{"threshold", REAL, AT(net.threshold), NULL, -1e12, 1e12},
	{"reset_value", REAL, AT(net.reset_value), NULL, -1e12, 1e12},
	{"tau", TIME, AT(net.tau), NULL, 0, 1e12},
	{"tau_out", TIME, AT(net.tau_out), NULL, NEAP_TAU_OUT_AUTO, 1e12},
	{"euler", COUNT, AT(net.euler), NULL, 0, 1},
	{"delay", COUNT, AT(net.delay), NULL, 0, 1},
	{"scale", REAL, AT(net.scale), NULL, 0, 1e12},
	{"recurrent_scale", REAL, AT(net.recurrent_scale), NULL, 0, 1e12},
	{"density", REAL, AT(net.density), NULL, 0, 1},
	{"readout", CHOICE, AT(net.readout), readouts, 0, 0},
	{"group", COUNT, AT(net.group), NULL, 0, 1 << 20},
	{"dense", COUNT, AT(net.dense), NULL, 0, 1},
	{"smooth", COUNT, AT(net.smooth), NULL, 0, 1},
#define NET_SETTINGS 25
	{"loss", TEXT, AT(loss), NULL, 0, 0},
	{"rate_upper", RATE, AT(rates.upper), NULL, 0, 1e12},
	{"rate_upper_weight", REAL, AT(rates.upper_weight), NULL, 0, 1e12},
	{"rate_lower", RATE, AT(rates.lower), NULL, 0, 1e12},
	{"rate_lower_weight", REAL, AT(rates.lower_weight), NULL, 0, 1e12},
	{"rate_l1", REAL, AT(rates.l1), NULL, 0, 1e12},
	{"rate_l2", REAL, AT(rates.l2), NULL, 0, 1e12},
	{"optimizer", TEXT, AT(optimizer), NULL, 0, 0},
	{"learning_rate", REAL, AT(learning_rate), NULL, 0, 1e12},
	{"momentum", REAL, AT(momentum), NULL, 0, 1},
	{"beta1", REAL, AT(beta1), NULL, 0, 1 - 1e-12},
	{"beta2", REAL, AT(beta2), NULL, 0, 1 - 1e-12},
	{"epsilon", REAL, AT(epsilon), NULL, 0, 1e12},
	{"weight_decay", REAL, AT(weight_decay), NULL, 0, 1e12},
	{"schedule", TEXT, AT(schedule), NULL, 0, 0},
	{"warmup", WHOLE, AT(warmup), NULL, -1, 1e15},
	{"clip", REAL, AT(clip), NULL, 0, BIG},
	{"epochs", COUNT, AT(epochs), NULL, 1, 1 << 30},
	{"batch", COUNT, AT(batch), NULL, 1, 1 << 20},
	{"max_steps", WHOLE, AT(max_steps), NULL, 0, 1e15},
	{"validation", REAL, AT(validation), NULL, 0, 0.99},
	{"holdout", TEXT, AT(holdout), NULL, 0, 0},
	{"seed", SEED, AT(seed), NULL, 0, 0},
	{"learn", CHOICE, AT(net.learn), learns, 0, 0},
	{"dropout", REAL, AT(net.dropout), NULL, 0, 0.99},
	{"stretch_low", REAL, AT(augment.stretch_low), NULL, 0, 100},
	{"stretch_high", REAL, AT(augment.stretch_high), NULL, 0, 100},
	{"jitter", TIME, AT(augment.jitter), NULL, 0, 1000},
	{"shift", COUNT, AT(augment.shift), NULL, 0, 65535},
	{"freeze", TEXT, AT(net.freeze), NULL, 0, 0},
	{"time_unit", TIME, AT(net.time_unit), NULL, 0, 1e6},
	{"values", COUNT, AT(net.values), NULL, 0, 1},
	{"no_normalise", COUNT, AT(no_normalise), NULL, 0, 1},
	{"next", COUNT, AT(next), NULL, 0, 1},
	{"gain", REAL, AT(gain), NULL, 0, 1e12},
	{"encode", TEXT, AT(encode), NULL, 0, 0},
	{"no_normalise_targets", COUNT, AT(no_normalise_targets), NULL, 0, 1},
	{"init", CHOICE, AT(net.init), inits, 0, 0},
	{"validation_least", COUNT, AT(validation_least), NULL, 0, 1 << 30},
	{"shape", TEXT, AT(net.shape), NULL, 0, 0},
	{"math", CHOICE, AT(net.math), maths, 0, 0},
	{"products", CHOICE, AT(net.products), products, 0, 0},
	{"readout_gain", REAL, AT(readout_gain), NULL, NEAP_READOUT_GAIN_AUTO, 1e6},
};
#define SETTINGS ((int)(sizeof settings / sizeof settings[0]))

/* How a run's sweeps are run: they change no bit of a result, and any of them may change. */
static const struct train_setting ways[] = {
	{"data", TEXT, AT(data), NULL, 0, 0},
	{"test", TEXT, AT(test), NULL, 0, 0},
	{"from", TEXT, AT(from), NULL, 0, 0}, /* read before the first snapshot only */
	{"fresh_readout", COUNT, AT(fresh_readout), NULL, 0, 1},
	{"memory", BYTES, AT(sweep.memory), NULL, 0, 0},
	{"memory_total", BYTES, AT(sweep.memory_total), NULL, 0, 0},
	{"strategy", TEXT, AT(sweep.strategy), NULL, 0, 0},
#define PARAM(member, option, meaning) {#member, WHOLE, AT(sweep.params.member), NULL, 0, 1e15},
	NEAP_PARAM_OPTION_TABLE(PARAM)
#undef PARAM
		{"slow", TEXT, AT(sweep.slow), NULL, 0, 0},
	{"slow_in_memory", COUNT, AT(sweep.slow_in_memory), NULL, 0, 1},
	{"page_cache", COUNT, AT(sweep.page_cache), NULL, 0, 1},
	{"inputs", BYTES, AT(sweep.inputs), NULL, 0, 0},
	{"patience", TIME, AT(sweep.patience), NULL, -1, INFINITY},
	{"no_replan", COUNT, AT(sweep.no_replan), NULL, 0, 1},
	{"threads", COUNT, AT(net.threads), NULL, 0, 1024},
	{"device", TEXT, AT(net.device), NULL, 0, 0},
	{"snapshot_seconds", TIME, AT(snapshot_seconds), NULL, 0, 1e9},
};
#define WAYS ((int)(sizeof ways / sizeof ways[0]))

/*
 * The row's name in run.json and in configurations, which is an option's; models and snapshots
 * have `name`.
 */
static const char *option_of(const struct train_setting *s)
{
	switch (s->offset) {
	case AT(net.inputs):
		return "channels";
	case AT(rates.upper_weight):
		return "rate_weight";
	case AT(next):
		return "next_step";
	case AT(snapshot_seconds):
		return "snapshot";
	default:
		return s->name;
	}
}

static int is_real(const struct train_setting *s)
{
	return s->kind == REAL || s->kind == TIME || s->kind == RATE;
}

static int is_unsigned(const struct train_setting *s)
{
	return s->kind == SEED || s->kind == BYTES;
}

#define FIELD(type, base, s) (*(const type *)((const char *)(base) + (s)->offset))

/* As a text that reads back to the same value. */
static void write_exact(struct neap__json *json, const struct train_setting *s, const void *base)
{
	char text[40] = "";
	const char *shown = text;

	switch (s->kind) {
	case TEXT:
		shown = FIELD(char *, base, s);
		break;
	case COUNT:
		neap__print(text, sizeof text, "%d", FIELD(int, base, s));
		break;
	case WHOLE:
		neap__print(text, sizeof text, "%" PRId64, FIELD(int64_t, base, s));
		break;
	case SEED:
	case BYTES:
		neap__print(text, sizeof text, "%" PRIu64, FIELD(uint64_t, base, s));
		break;
	case REAL:
	case TIME:
	case RATE:
		neap__json_exact(text, FIELD(double, base, s));
		break;
	case CHOICE:
		shown = s->choices[FIELD(int, base, s)];
		break;
	}
	neap__json_text(json, s->name, shown ? shown : "");
}

/* As a number or a name, for people. */
static void write_shown(struct neap__json *json, const struct train_setting *s, const void *base)
{
	const char *name = option_of(s);

	if (s->kind == COUNT)
		neap__json_int(json, name, FIELD(int, base, s));
	else if (s->kind == WHOLE)
		neap__json_int(json, name, FIELD(int64_t, base, s));
	else if (is_unsigned(s) && FIELD(uint64_t, base, s) > INT64_MAX)
		write_exact(json, s, base); /* beyond what readers of JSON take as a number */
	else if (is_unsigned(s))
		neap__json_bytes(json, name, FIELD(uint64_t, base, s));
	else if (is_real(s))
		neap__json_number(json, name, FIELD(double, base, s));
	else if (s->kind == TEXT)
		neap__json_text(json, name, FIELD(char *, base, s));
	else
		neap__json_text(json, name, s->choices[FIELD(int, base, s)]);
}

void neap__settings_write(struct neap__json *json, const char *key,
	const struct neap_train_options *options, int exact)
{
	neap__json_begin(json, key, '{');
	for (int i = 0; i < SETTINGS; i++)
		(exact ? write_exact : write_shown)(json, &settings[i], options);
	neap__json_end(json, '}');
}

void neap__settings_write_ways(
	struct neap__json *json, const char *key, const struct neap_train_options *options)
{
	neap__json_begin(json, key, '{');
	for (int i = 0; i < WAYS; i++)
		write_shown(json, &ways[i], options);
	neap__json_end(json, '}');
}

/* 1: a run that was begun with `was` can go on with `now`: the same, or more epochs. */
static int goes_on(const struct train_setting *s, const char *was, const char *now)
{
	if (s->offset == AT(epochs))
		return strtol(now, NULL, 10) >= strtol(was, NULL, 10);
	return strcmp(was, now) == 0;
}

/* Adds the option of `s` as the command line names it. */
static void add_option(struct neap__text *to, const struct train_setting *s)
{
	const char *name = s->offset == AT(learning_rate) ? "lr" : option_of(s);

	neap__text_add(to, "%s--", to->length ? "; " : "");
	for (; *name; name++)
		neap__text_add(to, "%c", *name == '_' ? '-' : *name);
}

void neap__settings_compare(struct neap__text *wrong, const json_t *was, const json_t *now)
{
	for (int i = 0; i < SETTINGS; i++) {
		const char *name = settings[i].name;
		const char *a = json_string_value(json_object_get(was, name));
		const char *b = json_string_value(json_object_get(now, name));
		if (!a) /* begun before the setting was there: off */
			a = settings[i].offset == AT(no_normalise_targets) ? "1"
			    : settings[i].kind == CHOICE		   ? settings[i].choices[0]
			    : settings[i].kind == TEXT			   ? ""
									   : "0";
		if (settings[i].offset == AT(net.seed)) /* of --seed, which has its own row */
			continue;
		if (!b || !goes_on(&settings[i], a, b)) {
			add_option(wrong, &settings[i]);
			neap__text_add(wrong, " %.200s, not %.200s", *a ? a : "none",
				b && *b ? b : "none");
		}
	}
}

/* 1: a setting that the data or several options set, so no option has its value. */
static int has_no_option(const struct train_setting *s)
{
	switch (s->offset) {
	case AT(net.inputs):
	case AT(net.classes):
	case AT(net.seed):
	case AT(net.time_unit):
	case AT(net.values):
	case AT(net.shape):
	case AT(augment.stretch_low):
	case AT(augment.stretch_high):
	case AT(validation_least):
	case AT(encode):
		return 1;
	default:
		return 0;
	}
}

int neap__settings_changed(struct neap__text *to, const json_t *was, const json_t *now)
{
	for (int i = 0; i < SETTINGS; i++) {
		const struct train_setting *s = &settings[i];
		const char *a = json_string_value(json_object_get(was, s->name));
		const char *b = json_string_value(json_object_get(now, s->name));
		int is_flag = s->kind == COUNT && s->high == 1;
		struct neap__text option = {0};
		if (strcmp(a ? a : "", b ? b : "") == 0 || s->offset == AT(net.seed))
			continue; /* of --seed, which has its own row */
		if (!a || !b || !*b || has_no_option(s) || (is_flag && *b == '0'))
			return 0;
		add_option(&option, s);
		neap__text_add(to, " %s", option.data ? option.data : "");
		neap__text_free(&option);
		if (!is_flag)
			neap__text_add(to, " %s%s", neap__word(b),
				s->kind == TIME	  ? "s"
				: s->kind == RATE ? "Hz"
						  : "");
	}
	return 1;
}

void neap__settings_differ(struct neap__text *wrong, const json_t *there, const json_t *here)
{
	for (int i = 0; i < SETTINGS; i++) {
		const char *a = json_string_value(json_object_get(there, settings[i].name));
		const char *b = json_string_value(json_object_get(here, settings[i].name));
		if (strcmp(a ? a : "", b ? b : "") != 0)
			neap__text_add(wrong, "%s%s = %.200s, not %.200s",
				wrong->length ? "; " : "", settings[i].name, a && *a ? a : "none",
				b && *b ? b : "none");
	}
}

/*
 * 1: a setting of the net that a model's file has where it is not 0 alone: files of earlier
 * versions have none, and meant 0.
 */
static int may_miss(const struct train_setting *s)
{
	return s->offset == AT(net.learn) || s->offset == AT(net.time_unit) ||
	       s->offset == AT(net.values) || s->offset == AT(net.init) ||
	       s->offset == AT(net.shape) || s->offset == AT(net.math) ||
	       s->offset == AT(net.products);
}

/* 1: such a setting has a value that a model's file must have. */
static int is_said(const struct train_setting *s, const struct neap_train_options *options)
{
	if (s->kind == TEXT)
		return FIELD(char *, options, s) && *FIELD(char *, options, s);
	return is_real(s) ? FIELD(double, options, s) != 0 : FIELD(int, options, s) != 0;
}

void neap__settings_write_net(struct neap__json *json, const struct neap_net_options *net)
{
	struct neap_train_options whole = {.net = *net};
	neap__json_begin(json, NULL, '{');
	for (int i = 0; i < NET_SETTINGS; i++)
		write_exact(json, &settings[i], &whole);
	for (int i = NET_SETTINGS; i < SETTINGS; i++)
		if (may_miss(&settings[i]) && is_said(&settings[i], &whole))
			write_exact(json, &settings[i], &whole);
	neap__json_end(json, '}');
}

static int set_choice(const struct train_setting *s, const char *text, int *out)
{
#define ALIAS(value, name)                                                                         \
	if (s->choices == surrogates && strcmp(#name, text) == 0) {                                \
		*out = value;                                                                      \
		return 0;                                                                          \
	}
	NEAP_SURROGATE_ALIAS_TABLE(ALIAS)
#undef ALIAS
	for (int i = 0; s->choices[i]; i++) {
		if (strcmp(s->choices[i], text) == 0) {
			*out = i;
			return 0;
		}
	}
	return -1;
}

static int set_number(const struct train_setting *s, const char *text, void *base)
{
	char *end, *at = (char *)base + s->offset;

	if (*text == '\0')
		return -1;
	if (is_unsigned(s)) {
		if (*text < '0' || *text > '9')
			return -1;
		*(uint64_t *)at = strtoull(text, &end, 10);
		return *end ? -1 : 0;
	}
	double value;
	if (neap__json_read_number(&value, text) < 0 || !(value >= s->low && value <= s->high))
		return -1;
	if (s->kind == COUNT)
		*(int *)at = (int)value;
	else if (s->kind == WHOLE)
		*(int64_t *)at = (int64_t)value;
	else
		*(double *)at = value;
	return 0;
}

/* A number as people write it, with a unit, as one without; others as they are. */
static int write_plain(char *text, size_t size, const struct train_setting *s, const char *given)
{
	double value;
	uint64_t bytes;

	if (s->offset == AT(net.tau_out) && strcmp(given, "none") == 0)
		neap__print(text, size, "0");
	else if (s->offset == AT(readout_gain) && strcmp(given, "auto") == 0)
		neap__print(text, size, "%g", NEAP_READOUT_GAIN_AUTO);
	else if (s->kind == TIME && strcmp(given, "inf") && neap__units_time(&value, given) == 0)
		neap__json_exact(text, value);
	else if (s->kind == RATE && neap__units_frequency(&value, given) == 0)
		neap__json_exact(text, value / 1000);
	else if (s->kind == BYTES && neap__units_size(&bytes, given) == 0)
		neap__print(text, size, "%" PRIu64, bytes);
	else if (s->kind != CHOICE && strlen(given) >= size)
		return -1;
	else if (s->kind != CHOICE)
		neap__print(text, size, "%s", given);
	return 0;
}

/* A value of run.json into its field; texts are borrowed. */
static int take_shown(const struct train_setting *s, const json_t *value, void *base)
{
	char text[40], *at = (char *)base + s->offset;
	const char *given = json_string_value(value);

	if (s->kind == TEXT) {
		if (!given) /* none, where that is the default as well; a run has a network */
			return json_is_null(value) && !*(const char **)(void *)at &&
					       s->offset != AT(net.spec)
				       ? 0
				       : -1;
		*(const char **)(void *)at = given;
		return 0;
	}
	if (is_real(s) && isinf(s->high) && json_is_null(value)) {
		*(double *)at = INFINITY;
		return 0;
	}
	if (json_is_integer(value))
		neap__print(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		neap__json_exact(text, json_real_value(value));
	else if (json_is_boolean(value) && s->kind == COUNT)
		neap__print(text, sizeof text, "%d", json_is_true(value));
	else if (!given || write_plain(text, sizeof text, s, given) < 0)
		return -1;
	else if (s->kind != CHOICE)
		given = NULL;
	given = given ? given : text;
	return s->kind == CHOICE ? set_choice(s, given, (int *)(void *)at)
				 : set_number(s, given, base);
}

/* '-' and '_' are the same. */
static int same_key(const char *a, const char *b)
{
	while (*a && (*a == *b || (*a == '-' && *b == '_'))) {
		a++;
		b++;
	}
	return *a == *b;
}

/* The row of a key of run.json or of a configuration; NULL: there is none. */
static const struct train_setting *find(
	const struct train_setting *table, int rows, const char *key, int options_alone)
{
	for (int i = 0; i < rows; i++)
		if (same_key(key, option_of(&table[i])) ||
			(!options_alone && strcmp(key, table[i].name) == 0))
			return &table[i];
	return NULL;
}

/* What a setting takes, for the line that refuses another value. */
static void show_accepted(struct neap__text *to, const struct train_setting *s)
{
	static const char *const kinds[] = {[TEXT] = "text in quotes",
		[COUNT] = "a whole number",
		[WHOLE] = "a whole number",
		[SEED] = "a whole number",
		[BYTES] = "a size such as 16M",
		[REAL] = "a number",
		[TIME] = "a time such as 20ms",
		[RATE] = "a rate such as 20Hz",
		[CHOICE] = "one of "};

	neap__text_add(to, "%s", kinds[s->kind]);
	for (int i = 0; s->kind == CHOICE && s->choices[i]; i++)
		neap__text_add(to, "%s%s", i ? ", " : "", s->choices[i]);
	if ((s->kind == COUNT || s->kind == WHOLE || s->kind == REAL) && s->high < BIG)
		neap__text_add(to, " between %.15g and %.15g", s->low, s->high);
}

static int take_row(
	struct neap_train_options *options, const struct train_setting *s, const json_t *value)
{
	struct neap__text accepted = {0};

	if (take_shown(s, value, options) == 0)
		return 0;
	char *given = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
	show_accepted(&accepted, s);
	int rc = neap__fail(NEAP_EFORMAT, "setting %s is %.60s; expected %s", option_of(s),
		given ? given : "not valid", accepted.error ? "another value" : accepted.data);
	free(given);
	neap__text_free(&accepted);
	return rc;
}

int neap__settings_take(struct neap_train_options *options, const json_t *object, int are_ways)
{
	const struct train_setting *table = are_ways ? ways : settings;
	const char *key;
	const json_t *value;

	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		const struct train_setting *s = find(table, are_ways ? WAYS : SETTINGS, key, 0);
		if (!s)
			return neap__fail(NEAP_EFORMAT, "unknown setting '%.60s'", key);
		NEAP_TRY(take_row(options, s, value));
	}
	return 0;
}

/* Shows the names of options that a configuration may have. */
static void suggest_option(
	struct neap__suggestion *meant, const struct train_setting *table, int rows)
{
	for (int i = 0; i < rows; i++)
		neap__suggest(meant, option_of(&table[i]));
}

/* Options of the command line that no file has: of one call, or other names of settings. */
static const struct {
	const char *key, *option, *instead; /* what to write in the file, or NULL */
} call_options[] = {
	{"beta", "beta",
		"the time constant, such as \"tau\": \"9.5ms\" (beta 0.9 at a dt of 1 ms; tau = "
		"-dt / ln(beta))"},
	{"slope", "slope", "\"width\", which is 1 / slope, such as \"width\": 0.04 for slope 25"},
	{"stretch", "stretch", "\"stretch_low\" and \"stretch_high\", such as 0.9 and 1.1"},
	{"text", "text", "\"data\": \"text:FILE\""},
	{"chain", "chain", NULL},
	{"compile_cells", "compile-cells", NULL},
	{"config", "config", NULL},
	{"json", "json", NULL},
	{"out", "out", NULL},
	{"quiet", "quiet", NULL},
	{"resume", "resume", NULL},
	{"trace", "trace", NULL},
	{"trace_batch", "trace-batch", NULL},
};
enum { CALL_OPTIONS = sizeof call_options / sizeof call_options[0] };

/* NEAP_EFORMAT if the key is one of them, else 0. */
static int check_call_option(const char *key)
{
	for (int i = 0; i < CALL_OPTIONS; i++)
		if (strcmp(call_options[i].key, key) == 0)
			return neap__fail(NEAP_EFORMAT,
				"'%s' is an option of the command line only. Remove it from the "
				"file, and pass --%s to 'neap train'%s%s",
				key, call_options[i].option,
				call_options[i].instead ? ", or write " : "",
				call_options[i].instead ? call_options[i].instead : "");
	return 0;
}

static int unknown_option(const char *key)
{
	struct neap__suggestion meant = {.text = key, .length = strlen(key)};
	char room[80];

	NEAP_TRY(check_call_option(key));
	suggest_option(&meant, settings, SETTINGS);
	suggest_option(&meant, ways, WAYS);
	return neap__fail(NEAP_EFORMAT,
		"unknown option '%.60s'%s 'neap help train' lists all options", key,
		meant.name ? neap__did_you_mean(room, &meant, "") : ";");
}

int neap__settings_take_options(struct neap_train_options *options, const json_t *object)
{
	const char *key;
	const json_t *value;

	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		const struct train_setting *s = find(settings, SETTINGS, key, 1);
		if (!s)
			s = find(ways, WAYS, key, 1);
		if (!s && strcmp(key, "lr") == 0) /* as the command line calls it */
			s = find(settings, SETTINGS, "learning_rate", 1);
		if (!s)
			return unknown_option(key);
		NEAP_TRY(take_row(options, s, value));
	}
	return 0;
}

int neap__settings_take_net(struct neap_net_options *net, const json_t *json)
{
	struct neap_train_options whole = NEAP_TRAIN_OPTIONS_INIT;

	whole.net.time_unit = 0;
	whole.net.init = NEAP_INIT_NORMAL;
	for (int i = 0; i < SETTINGS; i++) {
		const struct train_setting *s = &settings[i];
		const char *text = json_string_value(json_object_get(json, s->name));
		if (i >= NET_SETTINGS && (!may_miss(s) || !text))
			continue;
		int bad = !text;
		if (text && s->kind == TEXT)
			*(const char **)((char *)&whole + s->offset) = text;
		else if (text && s->kind == CHOICE)
			bad = set_choice(s, text, (int *)((char *)&whole + s->offset));
		else if (text)
			bad = set_number(s, text, &whole);
		if (bad)
			return neap__fail(NEAP_EFORMAT, "setting %s of the network is %s%.40s",
				s->name, text ? "not valid: " : "missing", text ? text : "");
	}
	*net = whole.net;
	return 0;
}

int neap__settings_check(const struct neap_train_options *options)
{
	for (int i = 0; i < SETTINGS; i++) {
		const struct train_setting *s = &settings[i];
		double value = s->kind == COUNT	  ? FIELD(int, options, s)
			       : s->kind == WHOLE ? (double)FIELD(int64_t, options, s)
			       : is_real(s)	  ? FIELD(double, options, s)
						  : 0;
		int choice = s->kind == CHOICE ? FIELD(int, options, s) : 0, choices = 0;
		while (s->kind == CHOICE && s->choices[choices])
			choices++;
		if (s->kind == CHOICE && (choice < 0 || choice >= choices))
			return neap__fail(NEAP_EUSAGE, "%s is %d; it must be between 0 and %d",
				s->name, choice, choices - 1);
		if (s->kind != TEXT && s->kind != CHOICE && !is_unsigned(s) &&
			!(value >= s->low && value <= s->high))
			return neap__fail(NEAP_EUSAGE,
				"%s is %.15g; it must be between %.15g and %.15g", s->name, value,
				s->low, s->high);
	}
	if (options->readout_gain < 0 && options->readout_gain > NEAP_READOUT_GAIN_AUTO)
		return neap__fail(NEAP_EUSAGE,
			"readout_gain is %g; it must be between 0 and 1e6, or auto",
			options->readout_gain);
	return 0;
}
