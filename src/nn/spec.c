/* SPDX-License-Identifier: Apache-2.0 */
/* spec.c: the table of keys, and the parser and writer of specifications (spec.h). */
#include "nn/spec.h"
#include "nn/cellfile/cell_program.h"
#include "nn/cells/cells.h"
#include "nn/filter.h"
#include "nn/sizes.h"
#include "nn/sources.h"
#include "nn/time_unit.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/suggest.h"
#include "base/units.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum spec_kind { NUMBER, TIME, FLAG, WORD, SIZES, SOURCES, DELAYS };

static const char *const activations[] = {NEAP__ACTIVATION_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const inits[] = {NEAP_INIT_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const learns[] = {NEAP_LEARN_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const norms[] = {NEAP__NORM_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const poolings[] = {NEAP__POOLING_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const resets[] = {NEAP_RESET_TABLE(NEAP_CHOICE_NAME) NULL};
static const char *const surrogates[] = {NEAP_SURROGATE_TABLE(NEAP_CHOICE_NAME) NULL};

/* A row a key, of the cells that have one of the traits `where`. */
static const struct spec_key {
	const char *name;
	enum spec_kind kind;
	size_t at; /* in struct neap__layer */
	int where;
	double low, high; /* what is accepted; `low` is excluded when open */
	int open;
	const char *const *words; /* WORD */
	double fallback;	  /* default of keys that have no option; 0: they have */
	int adapts; /* its default adds up over tau_adapt, and is that of a time_unit */
	int none; /* cells with one of these traits accept 0, also as `none`, although it is open */
	int count; /* of SIZES: so many numbers, each at least `low` */
	int leak;  /* 1 + the number of the leak that it is, whose units may differ; 0: none */
} keys[] = {
#define AT(member) .at = offsetof(struct neap__layer, member)
#define THRESHOLDS NEAP__HAS_THRESHOLD | NEAP__HAS_SURROGATE
#define ALL .where = NEAP__HIDDEN | NEAP__READOUT
#define CONV .where = NEAP__HAS_FILTER
#define POOL .where = NEAP__HAS_FILTER | NEAP__READOUT
#define ANY .low = -INFINITY, .high = INFINITY
#define POSITIVE .low = 0, .high = INFINITY, .open = 1
#define NOT_NEGATIVE .low = 0, .high = INFINITY
	{"tau", TIME, AT(tau), .where = NEAP__HAS_LEAK, POSITIVE, .none = NEAP__READOUT, .leak = 1},
	{"tau_syn", TIME, AT(tau_syn), .where = NEAP__HAS_SYNAPSE, POSITIVE, .fallback = 5e-3,
		.leak = 2},
	{"tau_adapt", TIME, AT(tau_adapt), .where = NEAP__HAS_ADAPTATION, POSITIVE,
		.fallback = 100e-3, .leak = 2},
	{"tau_adapt", TIME, AT(tau_adapt), .where = NEAP__OSCILLATES, POSITIVE, .fallback = 10e-3},
	{"omega", NUMBER, AT(omega), .where = NEAP__OSCILLATES, POSITIVE, .fallback = 50,
		.leak = 1},
	{"b", NUMBER, AT(b), .where = NEAP__OSCILLATES, POSITIVE, .fallback = 20, .leak = 2},
	{"adapt", NUMBER, AT(adapt), .where = NEAP__HAS_RAISED_THRESHOLD, NOT_NEGATIVE,
		.fallback = 0.1},
	{"a", NUMBER, AT(a), .where = NEAP__HAS_COUPLING, ANY, .fallback = 0.1, .adapts = 1},
	{"b", NUMBER, AT(b), .where = NEAP__HAS_COUPLING, ANY, .fallback = 0.2},
	{"a", NUMBER, AT(a), .where = NEAP__HAS_SCALED_COUPLING, ANY, .fallback = 1, .leak = 3},
	{"b", NUMBER, AT(b), .where = NEAP__HAS_SCALED_COUPLING, ANY, .fallback = 1, .leak = 4},
	{"activation", WORD, AT(activation), .where = NEAP__HAS_ACTIVATION, .words = activations},
	{"reset", WORD, AT(reset), .where = NEAP__HAS_RESETS | NEAP__HAS_RESET_KEY,
		.words = resets},
	{"detach", FLAG, AT(detach), .where = NEAP__HAS_DETACH, .high = 1},
	{"surrogate", WORD, AT(surrogate), .where = THRESHOLDS, .words = surrogates},
	{"width", NUMBER, AT(width), .where = THRESHOLDS, POSITIVE},
	{"height", NUMBER, AT(height), .where = THRESHOLDS, POSITIVE},
	{"support", NUMBER, AT(support), .where = THRESHOLDS, NOT_NEGATIVE},
	{"threshold", NUMBER, AT(threshold), .where = NEAP__HAS_THRESHOLD, ANY},
	{"reset_value", NUMBER, AT(reset_value), .where = NEAP__HAS_RESETS | NEAP__HAS_RESET_KEY,
		ANY},
	{"density", NUMBER, AT(density), ALL, .low = 0, .high = 1, .open = 1},
	{"init", WORD, AT(init), ALL, .words = inits},
	{"scale", NUMBER, AT(scale), ALL, NOT_NEGATIVE},
	{"recurrent_scale", NUMBER, AT(recurrent_scale), .where = NEAP__HIDDEN, NOT_NEGATIVE},
	{"dropout", NUMBER, AT(dropout), .where = NEAP__HIDDEN, .low = 0, .high = 0.99},
	{"learn", WORD, AT(learn), .where = NEAP__HAS_LEAK | NEAP__OSCILLATES, .words = learns},
	{"delay", DELAYS, AT(delay), ALL, .high = 1},
	{"from", SOURCES, AT(nsources), ALL},
	{"conv", SIZES, AT(conv), CONV, .low = 1, .count = 2},
	{"stride", SIZES, AT(stride), CONV, .low = 1, .count = 2},
	{"pad", SIZES, AT(pad), CONV, .low = 0, .count = 2},
	{"dilation", SIZES, AT(dilation), CONV, .low = 1, .count = 2},
	{"groups", SIZES, AT(groups), CONV, .low = 1, .count = 1},
	{"channels", SIZES, AT(channels), CONV, .low = 1, .count = 1},
	{"norm", WORD, AT(norm.kind), CONV, .words = norms},
	{"conv_pool", SIZES, AT(conv_pool.size), CONV, .low = 1, .count = 2},
	{"conv_pooling", WORD, AT(conv_pool.by), CONV, .words = poolings},
	{"conv_pool_stride", SIZES, AT(conv_pool.stride), CONV, .low = 1, .count = 2},
	{"conv_pool_pad", SIZES, AT(conv_pool.pad), CONV, .low = 0, .count = 2},
	{"pool", SIZES, AT(pool.size), POOL, .low = 1, .count = 2},
	{"pooling", WORD, AT(pool.by), POOL, .words = poolings},
	{"pool_stride", SIZES, AT(pool.stride), POOL, .low = 1, .count = 2},
	{"pool_pad", SIZES, AT(pool.pad), POOL, .low = 0, .count = 2},
	{"shape", SIZES, AT(from), POOL, .low = 1, .count = 3},
#undef POOL
#undef CONV
#undef NOT_NEGATIVE
#undef POSITIVE
#undef ANY
#undef ALL
#undef THRESHOLDS
#undef AT
};
enum { KEYS = sizeof keys / sizeof keys[0] };

/* Keys as other packages name them. */
static const struct spec_alias {
	const char *name, *key;
	int is_decay; /* it is what a step leaves, of a time constant; else 1/key */
} aliases[] = {
	{"beta", "tau", 1},
	{"alpha", "tau_syn", 1},
	{"slope", "width", 0},
	{0},
};

/* Surrogates as other packages name them. */
static const struct {
	int value;
	const char *name;
} surrogate_aliases[] = {
#define ALIAS(value, name) {value, #name},
	NEAP_SURROGATE_ALIAS_TABLE(ALIAS)
#undef ALIAS
		{0},
};

/* Layers of a net, so that a string of commas does not ask for much memory. */
enum { LAYERS_MOST = 1000 };

/* A word of the string: not terminated. */
struct word {
	const char *text;
	int length;
};

static int same(struct word word, const char *name)
{
	return strlen(name) == (size_t)word.length && memcmp(name, word.text, strlen(name)) == 0;
}

/* Cuts the next word off at `stop` or the end; leaves *p behind the stop. */
static struct word cut(const char **p, const char *end, char stop)
{
	const char *at = memchr(*p, stop, (size_t)(end - *p));
	struct word word = {*p, (int)((at ? at : end) - *p)};
	*p = at ? at + 1 : end;
	return word;
}

static void *field(struct neap__layer *layer, const struct spec_key *key)
{
	return (char *)layer + key->at;
}

/* 1: the layer accepts `none` as a value of the key, which is 0. */
static int accepts_none(const struct neap__layer *layer, const struct spec_key *key)
{
	return (key->none & layer->cell->traits) != 0;
}

static int in_range(const struct neap__layer *layer, const struct spec_key *key, double v)
{
	int open = key->open && !accepts_none(layer, key);
	return isfinite(v) && v <= key->high && (open ? v > key->low : v >= key->low);
}

static const char *accepted_range(const struct neap__layer *layer, const struct spec_key *key)
{
	if (accepts_none(layer, key))
		return "none or a time such as 20ms";
	switch (key->kind) {
	case DELAYS:
		return "0 to 127 steps such as 20, or a range of them such as 0..64";
	case TIME:
		return "a positive time such as 20ms";
	case FLAG:
		return "0 or 1";
	case SIZES:
		return key->count == 3	 ? "CHANNELSxHEIGHTxWIDTH such as 2x34x34"
		       : key->count == 1 ? "a whole number, 1 or more"
		       : key->low > 0	 ? "a whole number such as 5, or HEIGHTxWIDTH such as 3x5"
					 : "a whole number such as 2, or HEIGHTxWIDTH such as 1x2";
	default:
		break;
	}
	if (key->high < 1)
		return "0 to 0.99";
	if (key->high == 1)
		return "above 0 and at most 1";
	return key->low < 0 ? "a finite number"
	       : key->open  ? "a number above 0"
			    : "a number, 0 or more";
}

/* A decimal number, and for times a unit; NAN where it is none. */
static double number(struct word word, enum spec_kind kind)
{
	char text[64];
	double v;

	if (word.length >= (int)sizeof text)
		return NAN;
	memcpy(text, word.text, (size_t)word.length);
	text[word.length] = 0;
	int rc = kind == TIME ? neap__units_time(&v, text) : neap__units_number(&v, text);
	return rc < 0 ? NAN : v;
}

static int set_sizes(struct neap__layer *layer, const struct spec_key *key, struct word value)
{
	if (neap__sizes_read(
		    field(layer, key), key->count, (int)key->low, value.text, value.length))
		return 0;
	return neap__fail(NEAP_EUSAGE, "--net: %s must be %s, not '%.*s'", key->name,
		accepted_range(layer, key), value.length, value.text);
}

/* A whole number of steps; -1 where it is none. */
static int steps_of(struct word word)
{
	int steps = word.length > 0 ? 0 : -1;

	for (int i = 0; i < word.length && steps >= 0; i++) {
		int digit = word.text[i] - '0';
		steps = digit < 0 || digit > 9 ? -1 : steps * 10 + digit;
		steps = steps > NEAP__DELAY_MOST ? -1 : steps;
	}
	return steps;
}

/* STEPS or STEPS..STEPS. One step for all is what reads the outputs of the step before. */
static int set_delays(struct neap__layer *layer, const struct spec_key *key, struct word value)
{
	const char *dots = value.text, *end = value.text + value.length;

	while (dots < end && !(dots + 1 < end && dots[0] == '.' && dots[1] == '.'))
		dots++;
	int least = steps_of((struct word){value.text, (int)(dots - value.text)});
	int most = dots < end ? steps_of((struct word){dots + 2, (int)(end - dots - 2)}) : least;
	if (least < 0 || most < least)
		return neap__fail(NEAP_EUSAGE, "--net: %s must be %s, not '%.*s'", key->name,
			accepted_range(layer, key), value.length, value.text);
	layer->delay = least == 1 && most == 1;
	layer->delays = (struct neap__delays){.tensor = -1};
	if (most > least || most > 1) {
		layer->delays.least = least;
		layer->delays.most = most;
	}
	return 0;
}

/* The word `learn` behind delay=STEPS..STEPS. */
static int learn_delays(struct neap__layer *layer)
{
	if (layer->delays.most == layer->delays.least)
		return neap__fail(NEAP_EUSAGE,
			"--net: 'learn' behind a colon learns the delays of a range, and %s has "
			"none. Write delay=0..64:learn, or learn=tau for time constants",
			layer->cell->name);
	layer->delays.learns = 1;
	return 0;
}

/* Delays of units need layers of spikes below; those of maxima are one delay for all. */
static int check_delays(const struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap__delays *delays = &layer->delays;
	const char *key = layer->wide ? "conv_pooling" : "pooling";
	int is_max = layer->wide || (layer->pool.size[0] && layer->pool.by == NEAP__POOL_MAX);

	if (!neap__has_delays(layer))
		return 0;
	if (delays->units == 0)
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has a delay of up to %d steps, but receives no layer "
			"below, and the inputs and layers above are not delayed. Remove delay",
			layer->index, delays->most);
	if (is_max && delays->most > delays->least)
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has %s=max and delay=%d..%d, but maxima need the same "
			"delay of all units. Use delay=%d, or %s=sum or avg",
			layer->index, key, delays->least, delays->most, delays->most, key);
	for (int k = 0; k < layer->nsources; k++) {
		const struct neap__layer *from = neap__source_of(layer, k);
		if (layer->source[k].is_delayed && !neap__layer_spikes(net, from))
			return neap__fail(NEAP_EUSAGE,
				"--net: layer %d has a delay of up to %d steps, but receives the "
				"outputs of %s, which are numbers. Such delays are available for "
				"spikes; use delay=0 or delay=1",
				layer->index, delays->most, from->cell->name);
	}
	return 0;
}

static int set_word(struct neap__layer *layer, const struct spec_key *key, struct word value)
{
	struct neap__text names = {0};

	for (int i = 0; key->words[i]; i++)
		if (same(value, key->words[i])) {
			memcpy(field(layer, key), &i, sizeof i); /* enums are ints */
			return 0;
		}
	for (int i = 0; key->words == surrogates && surrogate_aliases[i].name; i++)
		if (same(value, surrogate_aliases[i].name)) {
			layer->surrogate = (enum neap_surrogate)surrogate_aliases[i].value;
			return 0;
		}
	for (int i = 0; key->words[i]; i++)
		neap__text_add(&names, "%s%s", i ? ", " : "", key->words[i]);
	int rc = neap__fail(NEAP_EUSAGE, "--net: %s '%.*s' is not one of %s", key->name,
		value.length, value.text, names.data ? names.data : "");
	neap__text_free(&names);
	return rc;
}

/* LOW..HIGH, of each unit: a range of a parameter. Its middle is the value of the key. */
static int set_range(
	struct neap__layer *layer, const struct spec_key *key, struct word value, const char *dots)
{
	struct neap__leak *leak = &layer->leaks[key->leak - 1];
	int first = (int)(dots - value.text), second = value.length - first - 2;
	double low = number((struct word){value.text, first}, key->kind);
	double high = number((struct word){dots + 2, second}, key->kind);

	if (layer->cell->readout)
		return neap__fail(NEAP_EUSAGE,
			"--net: %s of a readout is one value, not '%.*s'; only the units of hidden "
			"layers can differ",
			key->name, value.length, value.text);
	if (!in_range(layer, key, low) || !in_range(layer, key, high) || !(low < high))
		return neap__fail(NEAP_EUSAGE,
			"--net: %s='%.*s' is not a range. Write LOW..HIGH, each %s, LOW below HIGH",
			key->name, value.length, value.text, accepted_range(layer, key));
	leak->has_range = 1;
	leak->low = low;
	leak->high = high;
	*(double *)field(layer, key) = low + (high - low) / 2;
	return 0;
}

/* Refuses a second value of a parameter, by the same key or by another name of it. */
static int see_key(const struct neap__layer *layer, struct word *seen, struct word name)
{
	if (seen->text)
		return neap__fail(NEAP_EUSAGE,
			"--net: %s has '%.*s' and '%.*s', which set the same parameter. Remove one",
			layer->cell->name, seen->length, seen->text, name.length, name.text);
	*seen = name;
	return 0;
}

/* 1 where the layer has the key that the alias stands for; its value goes there. */
static int set_alias(const struct neap_net *net, struct neap__layer *layer, struct word name,
	struct word value, struct word seen[KEYS], int *rc)
{
	const struct spec_alias *alias = aliases;

	while (alias->name && !same(name, alias->name))
		alias++;
	for (int i = 0; alias->name && i < KEYS; i++) {
		if (strcmp(keys[i].name, alias->key) || !(keys[i].where & layer->cell->traits))
			continue;
		double v = number(value, NUMBER), *into = field(layer, &keys[i]);
		*rc = see_key(layer, &seen[i], name);
		if (*rc < 0)
			return 1;
		if (!(v > 0) || !isfinite(v) || (alias->is_decay && v >= 1))
			*rc = neap__fail(NEAP_EUSAGE,
				"--net: %s must be a number above 0%s, not '%.*s'", alias->name,
				alias->is_decay ? " and below 1" : "", value.length, value.text);
		else if (alias->is_decay)
			*into = neap__units_tau(v, net->options.dt, net->options.euler);
		else
			*into = 1 / v;
		return 1;
	}
	return 0;
}

/* Sets a key that is a number. */
static int set_number(struct neap__layer *layer, const struct spec_key *key, struct word value)
{
	double v = accepts_none(layer, key) && same(value, "none") ? 0 : number(value, key->kind);

	if (!in_range(layer, key, v) || (key->kind == FLAG && v != 0 && v != 1))
		return neap__fail(NEAP_EUSAGE, "--net: %s must be %s, not '%.*s'", key->name,
			accepted_range(layer, key), value.length, value.text);
	if (key->kind == FLAG)
		*(int *)field(layer, key) = (int)v;
	else
		*(double *)field(layer, key) = v;
	layer->said_scale |= key->at == offsetof(struct neap__layer, scale);
	layer->said_recurrent_scale |= key->at == offsetof(struct neap__layer, recurrent_scale);
	return 0;
}

static int set_value(const struct neap_net *net, struct neap__layer *layer,
	const struct spec_key *key, struct word value)
{
	const char *dots;

	if (layer->index == 0 && strcmp(key->name, "delay") == 0)
		return neap__fail(NEAP_EUSAGE,
			"--net: delay applies to the input from the layer below, which the "
			"first layer does not have. Remove it");
	switch (key->kind) {
	case WORD:
		return set_word(layer, key, value);
	case SIZES:
		return set_sizes(layer, key, value);
	case SOURCES:
		return neap__sources_read(net, layer, value.text, value.length);
	case DELAYS:
		return set_delays(layer, key, value);
	default:
		dots = memmem(value.text, (size_t)value.length, "..", 2);
		return key->leak && dots ? set_range(layer, key, value, dots)
					 : set_number(layer, key, value);
	}
}

/* The line about a key that the layer's cell does not have. */
static int no_such_key(const struct neap__layer *layer, struct word name)
{
	struct neap__suggestion meant = {.text = name.text, .length = (size_t)name.length};
	struct neap__text names = {0};
	char room[80];

	for (int i = 0; layer->program && i < layer->program->nparams; i++) {
		const char *own = layer->program->param[i].name;
		neap__suggest(&meant, own);
		neap__text_add(&names, "%s%s", names.length ? ", " : "", own);
	}
	for (int i = 0; i < KEYS; i++) {
		if (!(keys[i].where & layer->cell->traits))
			continue;
		neap__suggest(&meant, keys[i].name);
		neap__text_add(&names, "%s%s", names.length ? ", " : "", keys[i].name);
	}
	int rc = neap__fail(NEAP_EUSAGE, "--net: %s has no key '%.*s'; it has %s%s",
		layer->cell->name, name.length, name.text, names.data ? names.data : "",
		neap__did_you_mean(room, &meant, ""));
	neap__text_free(&names);
	return rc;
}

static int set_key(const struct neap_net *net, struct neap__layer *layer, struct word name,
	struct word value, struct word seen[KEYS])
{
	int rc;

	if (layer->program) {
		rc = neap__cell_program_set(
			layer->program, name.text, name.length, value.text, value.length);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	for (int i = 0; i < KEYS; i++) {
		const struct spec_key *key = &keys[i];
		if (!same(name, key->name) || !(key->where & layer->cell->traits))
			continue;
		NEAP_TRY(see_key(layer, &seen[i], name));
		return set_value(net, layer, key, value);
	}
	return set_alias(net, layer, name, value, seen, &rc) ? rc : no_such_key(layer, name);
}

/* SIZE[r] */
static int set_size(struct neap__layer *layer, struct word word)
{
	long n = 0;
	int i = 0;

	for (; i < word.length && word.text[i] >= '0' && word.text[i] <= '9' &&
		n <= NEAP__UNITS_MOST;
		i++)
		n = n * 10 + (word.text[i] - '0');
	if (i < word.length && word.text[i] == 'r' && !layer->cell->readout) {
		layer->is_recurrent = 1;
		i++;
	}
	if (n > 0 && i < word.length && (word.text[i] == 'x' || word.text[i] == '*'))
		return neap__fail(NEAP_EUSAGE,
			"--net: size of %s must be a single number, not '%.*s'. Write each layer, "
			"such as %s:%ld,%s:%ld,li",
			layer->cell->name, word.length, word.text, layer->cell->name, n,
			layer->cell->name, n);
	if (word.length == 0 || i != word.length || n < 1 || n > NEAP__UNITS_MOST)
		return neap__fail(NEAP_EUSAGE,
			"--net: size of %s must be 1 to %d%s, not '%.*s'. Example: gru:64,li",
			layer->cell->name, NEAP__UNITS_MOST,
			layer->cell->readout || layer->cell->traits & NEAP__IS_RECURRENT
				? ""
				: ", with r behind it if recurrent",
			word.length, word.text);
	layer->n = (int)n;
	return 0;
}

static void set_defaults(const struct neap_net *net, struct neap__layer *layer)
{
	const struct neap_net_options *o = &net->options;

	for (int i = 0; i < KEYS; i++)
		if (keys[i].fallback > 0 && (keys[i].where & layer->cell->traits))
			*(double *)field(layer, &keys[i]) = keys[i].adapts ? NAN : keys[i].fallback;
	layer->is_recurrent = (layer->cell->traits & NEAP__IS_RECURRENT) != 0;
	layer->learn = o->learn;
	int at_once = layer->cell->traits & (NEAP__HAS_SCALED_COUPLING | NEAP__OSCILLATES);
	layer->reset = layer->cell->traits & NEAP__HAS_RESETS ? o->reset
		       : at_once			      ? NEAP_RESET_HARD
							      : NEAP_RESET_SUBTRACT;
	layer->detach = o->detach;
	layer->surrogate = o->surrogate;
	layer->width = o->width;
	layer->height = o->height;
	layer->support = o->support;
	layer->threshold = o->threshold != 0 ? o->threshold : neap__cell_threshold(layer->cell);
	layer->reset_value = at_once ? 0 : o->reset_value;
	layer->tau = layer->cell->readout ? o->tau_out : o->tau;
	layer->init = o->init;
	layer->scale = layer->cell->readout ? 1.0 : o->scale;
	layer->recurrent_scale = o->recurrent_scale;
	layer->density = layer->cell->readout ? 1.0 : o->density;
	layer->dropout = o->dropout;
	layer->delay = layer->index > 0 && o->delay;
	for (int i = 0; i < 2; i++)
		layer->stride[i] = layer->dilation[i] = 1;
	layer->groups = 1;
}

static int set_cell(struct neap_net *net, struct neap__layer *layer, struct word name)
{
	if (neap__cell_program_named(name.text, name.length)) {
		NEAP_TRY(neap__cell_program_open(&layer->program, net, name.text, name.length));
		layer->cell = &layer->program->cell;
		return 0;
	}
	layer->cell = neap__cell_find(name.text, (size_t)name.length);
	return layer->cell ? 0 : neap__cell_unknown(name.text, name.length);
}

/* Replaces what was left to be chosen, and checks what was not. */
static int choose(const struct neap_net *net, struct neap__layer *layer)
{
	if (layer->init == NEAP_INIT_TORCH && (layer->said_scale || layer->said_recurrent_scale))
		return neap__fail(NEAP_EUSAGE,
			"--net: %s has init=torch and %s, which only init=normal uses; remove one",
			layer->cell->name, layer->said_scale ? "scale" : "recurrent_scale");
	if (layer->init == NEAP_INIT_AUTO)
		layer->init = neap__automatic_init(net, layer);
	if (layer->cell->readout &&
		(layer->tau == NEAP_TAU_OUT_AUTO || layer->tau == NEAP__TAU_OUT_NUMBERS))
		layer->tau = neap__automatic_tau_out(net, layer);
	for (int i = 0; i < KEYS; i++)
		if (keys[i].adapts && (keys[i].where & layer->cell->traits) &&
			isnan(*(double *)field(layer, &keys[i])))
			*(double *)field(layer, &keys[i]) =
				keys[i].fallback * neap__unit_leak(&net->options, layer->tau_adapt);
	return 0;
}

/* A word behind a colon that is not KEY=VALUE: often the next layer. */
static int unexpected(struct word text, struct word word)
{
	if (neap__cell_find(word.text, (size_t)word.length))
		return neap__fail(NEAP_EUSAGE,
			"--net: '%.*s' has the cell '%.*s' behind a colon, but layers are "
			"separated by commas. Write %.*s,%.*s",
			text.length, text.text, word.length, word.text,
			(int)(word.text - text.text) - 1, text.text,
			text.length - (int)(word.text - text.text), word.text);
	return neap__fail(NEAP_EUSAGE, "--net: '%.*s' is not valid; expected KEY=VALUE",
		word.length, word.text);
}

/* NAME[:SIZE[r]][:KEY=VALUE]... */
static int parse_layer(struct neap_net *net, struct neap__layer *layer, struct word text)
{
	const char *p = text.text, *end = p + text.length;
	struct word seen[KEYS] = {0};
	int words = 0;

	NEAP_TRY(set_cell(net, layer, cut(&p, end, ':')));
	set_defaults(net, layer);
	if (text.length > 0 && end[-1] == ':')
		return neap__fail(NEAP_EUSAGE,
			"--net: '%.*s' ends in a colon. Remove it, or add KEY=VALUE", text.length,
			text.text);
	for (; p < end; words++) {
		struct word word = cut(&p, end, ':');
		const char *q = word.text;
		if (memchr(word.text, '=', (size_t)word.length)) {
			struct word name = cut(&q, word.text + word.length, '=');
			NEAP_TRY(set_key(net, layer, name,
				(struct word){q, (int)(word.text + word.length - q)}, seen));
		} else if (words > 0 && same(word, "learn")) {
			NEAP_TRY(learn_delays(layer));
		} else if (words == 0) {
			NEAP_TRY(set_size(layer, word));
		} else {
			return unexpected(text, word);
		}
	}
	NEAP_TRY(neap__sources_default(net, layer));
	NEAP_TRY(choose(net, layer));
	if (layer->cell->readout) {
		if (layer->n && layer->n != net->options.classes)
			return neap__fail(NEAP_EUSAGE,
				"--net: %s has %d units, but there are %d classes or outputs. "
				"Write li without a size",
				layer->cell->name, layer->n, net->options.classes);
		layer->n = net->options.classes;
	}
	NEAP_TRY(neap__filter_settle(net, layer));
	if (layer->n || layer->cell->readout)
		return 0;
	return neap__fail(NEAP_EUSAGE, "--net: %s needs a size, such as %s:64,li",
		layer->cell->name, layer->cell->name);
}

/* Checks the values of a layer's keys: those of options come in unchecked. */
static int check_keys(struct neap__layer *layer)
{
	for (int i = 0; i < KEYS; i++) {
		const struct spec_key *key = &keys[i];
		if (!(key->where & layer->cell->traits) || key->kind == SIZES ||
			key->kind == SOURCES)
			continue;
		if (key->kind == WORD) {
			int word, count = 0;
			memcpy(&word, field(layer, key), sizeof word);
			while (key->words[count])
				count++;
			if (word < 0 || word >= count)
				return neap__fail(NEAP_EUSAGE, "%s must be 0 to %d, not %d",
					key->name, count - 1, word);
			continue;
		}
		double v = key->kind == FLAG || key->kind == DELAYS ? *(int *)field(layer, key)
								    : *(double *)field(layer, key);
		if (!in_range(layer, key, v))
			return neap__fail(NEAP_EUSAGE, "%s must be %s, not %g", key->name,
				accepted_range(layer, key), v);
	}
	return 0;
}

/* Checks all keys of a layer, and derives its leaks. */
static int check_layer(struct neap_net *net, struct neap__layer *layer)
{
	int where = layer->cell->traits;

	NEAP_TRY(check_keys(layer));
	/* What is taken from a membrane, or drawn relative to a threshold, needs one above 0. */
	if ((where & NEAP__HAS_THRESHOLD) && !(layer->threshold > 0) &&
		layer->reset != NEAP_RESET_HARD)
		return neap__fail(NEAP_EUSAGE,
			"--net: threshold must be a number above 0, not '%g'. Only lif and cubalif "
			"with reset=hard accept others",
			layer->threshold);
	if ((where & NEAP__HAS_RESET_KEY) && layer->reset == NEAP_RESET_ZERO)
		return neap__fail(NEAP_EUSAGE,
			"--net: %s has no reset 'zero'; it has subtract, hard, soft",
			layer->cell->name);
	NEAP_TRY(neap__layer_leaks(net, layer));
	return layer->program ? neap__cell_program_build(net, layer) : 0;
}

static int is_within(const struct spec_key *key, size_t windows)
{
	return key->at >= windows && key->at < windows + sizeof(struct neap__windows);
}

/* 1: the key is part of the text, where it is one of these windows. Strides and paddings are where
 * they are not those of a plain pool. */
static int writes_windows(const struct spec_key *key, const struct neap__windows *w, size_t at)
{
	if (key->at == at + offsetof(struct neap__windows, stride))
		return w->size[0] && (w->stride[0] != w->size[0] || w->stride[1] != w->size[1]);
	if (key->at == at + offsetof(struct neap__windows, pad))
		return w->size[0] && (w->pad[0] || w->pad[1]);
	return w->size[0] > 0;
}

/* 1: the key is part of the text. Only NEAP_INIT_NORMAL has scales. */
static int is_written(const struct neap__layer *layer, const struct spec_key *key)
{
	int is_torch = layer->init == NEAP_INIT_TORCH;

	if (!(key->where & layer->cell->traits))
		return 0;
	if (key->at == offsetof(struct neap__layer, scale) ||
		key->at == offsetof(struct neap__layer, recurrent_scale))
		return !is_torch;
	if (key->at == offsetof(struct neap__layer, from))
		return neap__has_filter(layer);
	if (key->where == (NEAP__HAS_FILTER | NEAP__READOUT))
		return writes_windows(key, &layer->pool, offsetof(struct neap__layer, pool));
	if (key->at == offsetof(struct neap__layer, norm.kind))
		return layer->norm.kind != NEAP__NORM_NONE;
	if (is_within(key, offsetof(struct neap__layer, conv_pool)))
		return writes_windows(
			key, &layer->conv_pool, offsetof(struct neap__layer, conv_pool));
	if (key->where == NEAP__HAS_FILTER)
		return layer->conv[0] > 0;
	if (key->kind == SOURCES)
		return !neap__is_in_chain(layer);
	return layer->index > 0 || key->at != offsetof(struct neap__layer, delay);
}

static void write_delays(struct neap__text *text, const struct neap__delays *delays)
{
	neap__text_add(text, ":delay=%d", delays->least);
	if (delays->most > delays->least)
		neap__text_add(text, "..%d%s", delays->most, delays->learns ? ":learn" : "");
}

static int write_layer(struct neap__text *text, struct neap__layer *layer)
{
	neap__text_add(text, "%s%s:%d%s", layer->index ? "," : "",
		layer->program ? layer->program->text : layer->cell->name, layer->n,
		layer->is_recurrent ? "r" : "");
	for (int i = 0; layer->program && i < layer->program->nparams; i++)
		neap__text_add(text, ":%s=%.17g", layer->program->param[i].name,
			layer->program->param[i].value);
	for (int i = 0; i < KEYS; i++) {
		const struct spec_key *key = &keys[i];
		int word;
		if (!is_written(layer, key))
			continue;
		memcpy(&word, field(layer, key), sizeof word);
		if (key->kind == WORD)
			neap__text_add(text, ":%s=%s", key->name, key->words[word]);
		else if (key->kind == DELAYS && neap__has_delays(layer))
			write_delays(text, &layer->delays);
		else if (key->kind == FLAG || key->kind == DELAYS)
			neap__text_add(text, ":%s=%d", key->name, word);
		else if (key->kind == SOURCES) {
			neap__text_add(text, ":%s=", key->name);
			neap__sources_write(text, layer);
		} else if (key->kind == SIZES) {
			neap__text_add(text, ":%s=", key->name);
			neap__sizes_write(text, field(layer, key), key->count);
		} else if (key->leak && layer->leaks[key->leak - 1].has_range)
			neap__text_add(text, ":%s=%.17g..%.17g", key->name,
				layer->leaks[key->leak - 1].low, layer->leaks[key->leak - 1].high);
		else
			neap__text_add(text, ":%s=%.17g", key->name, *(double *)field(layer, key));
	}
	return text->error;
}

static int read_shape(struct neap__plane *plane, const char *text)
{
	int size[3];

	if (!neap__sizes_read(size, 3, 1, text, (int)strnlen(text, 64)))
		return 0;
	*plane = (struct neap__plane){size[0], size[1], size[2]};
	return 1;
}

/* Makes room for the layers of a network's text, without their keys. */
static int make_layers(struct neap_net *net, const char *spec)
{
	struct neap__plane inputs = {0};
	int layers = 1;

	if (!*spec)
		return neap__fail(NEAP_EUSAGE, "--net: the value is empty; try lif:256r,li");
	for (const char *c = spec; *c; c++)
		layers += *c == ',';
	if (layers > LAYERS_MOST)
		return neap__fail(NEAP_EUSAGE, "--net: %d layers are more than the limit of %d",
			layers, LAYERS_MOST);
	net->layers = neap__net_get_zeroed(net, (uint64_t)layers, sizeof *net->layers);
	if (!net->layers)
		return neap__fail_errno(ENOMEM, "net of %d layers", layers);
	net->nlayers = layers;
	if (net->options.shape && *net->options.shape && !read_shape(&inputs, net->options.shape))
		return neap__fail(NEAP_EUSAGE,
			"--shape must be CHANNELSxHEIGHTxWIDTH such as 2x34x34, not '%s'",
			net->options.shape);
	net->layers[0].from = inputs;
	return 0;
}

int neap__net_parse(struct neap_net *net)
{
	if (!net->options.spec)
		net->options.spec = neap__automatic_spec(&net->options, net->options.values);
	const char *spec = net->options.spec, *p = spec, *end = spec + strlen(spec);
	struct neap__text text = {0};
	int rc = 0;

	NEAP_TRY(make_layers(net, spec));
	int layers = net->nlayers;
	for (int l = 0; l < layers; l++) {
		struct neap__layer *layer = &net->layers[l];
		struct word word = cut(&p, end, ',');
		layer->index = l;
		NEAP_TRY(parse_layer(net, layer, word));
		if (l == layers - 1 && !layer->cell->readout)
			return neap__fail(NEAP_EUSAGE,
				"--net: the last layer is '%.*s', not a readout. Use %s,li",
				word.length, word.text, spec);
		if (l < layers - 1 && layer->cell->readout)
			return neap__fail(NEAP_EUSAGE,
				"--net: %s is a readout, which must be the last layer. Remove it",
				layer->cell->name);
		NEAP_TRY(check_layer(net, layer));
	}
	NEAP_TRY(neap__sources_settle(net));
	for (int l = 1; l < layers; l++)
		NEAP_TRY(check_delays(net, &net->layers[l]));
	if (net->options.readout == NEAP_READ_AUTO)
		net->options.readout = neap__automatic_readout(&net->options, 0);
	for (int l = 0; l < layers && !rc; l++)
		rc = write_layer(&text, &net->layers[l]);
	net->spec = text.data;
	if (!rc)
		rc = neap__cell_program_whole(net);
	return rc ? neap__fail_errno(ENOMEM, "net") : 0;
}
