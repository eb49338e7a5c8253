/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_file.c: chain files: sizes and costs of a chain as JSON, a list where steps
 * differ, a number where they do not. Strict: what is not known, not a number of
 * the right kind or not of the right length is one line with the file and the place.
 */
#include "chain_file.h"
#include "base/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MOST (INT64_C(1) << 60) /* sums of a few stay within 64 bits */
#define SECONDS_MOST 1e15

struct chain_reading {
	const char *path, *command;
	struct cli_chain *chain;
	struct neap_problem *problem;
	int64_t steps;	       /* -1: not known yet */
	const char *length_of; /* the key that told it */
	int lists;
};

static int complain(const struct chain_reading *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static int complain(const struct chain_reading *r, const char *format, ...)
{
	char line[300];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	return cli_usage(r->command, "%s: %s", r->path, line);
}

enum chain_unit { BYTES, SECONDS, SHARE };

/* The lists of a chain file; `more`: one entry more than there are steps. */
static const struct chain_key {
	const char *name;
	enum chain_unit unit;
	int more, needed;
	size_t offset; /* of the column in struct cli_chain */
} keys[] = {
	{"advance", SECONDS, 0, 1, offsetof(struct cli_chain, advance)},
	{"record", SECONDS, 0, 0, offsetof(struct cli_chain, record)},
	{"backward", SECONDS, 1, 1, offsetof(struct cli_chain, backward)},
	{"state", BYTES, 1, 1, offsetof(struct cli_chain, state)},
	{"tape", BYTES, 0, 1, offsetof(struct cli_chain, tape)},
	{"advance_tmp", BYTES, 0, 0, offsetof(struct cli_chain, advance_tmp)},
	{"record_tmp", BYTES, 0, 0, offsetof(struct cli_chain, record_tmp)},
	{"backward_tmp", BYTES, 1, 0, offsetof(struct cli_chain, backward_tmp)},
};
#define KEYS (sizeof keys / sizeof keys[0])

static struct cli_column *column(struct cli_chain *chain, const struct chain_key *key)
{
	return (struct cli_column *)(void *)((char *)chain + key->offset);
}

/* A whole number of bytes, exact where it is written as an integer. -1 where it is none. */
static int take_bytes(uint64_t *bytes, const json_t *item)
{
	double v = json_number_value(item);
	if (!(v >= 0 && v <= (double)BYTES_MOST && floor(v) == v))
		return -1;
	*bytes = json_is_integer(item) ? (uint64_t)json_integer_value(item) : (uint64_t)v;
	return *bytes <= (uint64_t)BYTES_MOST ? 0 : -1;
}

/* *value is as it was where the answer is not CLI_DONE. */
static int number(const struct chain_reading *r, const json_t *item, const char *name,
	int64_t index, enum chain_unit unit, union cli_value *value)
{
	char place[64] = "";
	double v = json_number_value(item);
	if (index >= 0)
		snprintf(place, sizeof place, "[%lld]", (long long)index);
	if (!json_is_number(item))
		return complain(r, "%s%s is not a number", name, place);
	if (unit == BYTES && take_bytes(&value->bytes, item) < 0)
		return complain(r,
			"%s%s is %g; it must be a whole number of bytes between 0 and 2^60", name,
			place, v);
	if (unit == SECONDS && !(v >= 0 && v <= SECONDS_MOST))
		return complain(
			r, "%s%s is %g; it must be a time between 0 and 1e15 s", name, place, v);
	if (unit == SHARE && !(v > 0 && v <= 1))
		return complain(r,
			"%s is %g; it must be a fraction of a step, above 0 and at most 1", name,
			v);
	if (unit != BYTES)
		value->seconds = v;
	return CLI_DONE;
}

static int seconds(
	const struct chain_reading *r, const json_t *item, const char *name, double *value)
{
	union cli_value read = {0};
	int rc = number(r, item, name, -1, SECONDS, &read);
	if (rc == CLI_DONE)
		*value = read.seconds;
	return rc;
}

static int set_steps(struct chain_reading *r, int64_t steps, const char *name)
{
	if (r->steps >= 0 && steps != r->steps)
		return complain(r,
			"%s has %lld steps, but %s has %lld; make the lists equally long", name,
			(long long)steps, r->length_of, (long long)r->steps);
	r->steps = steps;
	r->length_of = name;
	return CLI_DONE;
}

static int read_list(struct chain_reading *r, const json_t *item, const struct chain_key *key)
{
	struct cli_column *c = column(r->chain, key);
	int64_t n = (int64_t)json_array_size(item);
	c->given = 1;
	if (!json_is_array(item))
		return number(r, item, key->name, -1, key->unit, &c->scalar);
	if (n < key->more)
		return complain(r, "%s is an empty list; it needs an entry per step", key->name);
	int rc = set_steps(r, n - key->more, key->name);
	if (rc != CLI_DONE)
		return rc;
	r->lists++;
	c->list = calloc((size_t)n + 1, sizeof *c->list);
	if (!c->list)
		return complain(r, "%s: out of memory", key->name);
	for (int64_t i = 0; i < n && rc == CLI_DONE; i++)
		rc = number(
			r, json_array_get(item, (size_t)i), key->name, i, key->unit, &c->list[i]);
	return rc;
}

static int read_flag(struct chain_reading *r, const json_t *item, const char *name, uint32_t *flags,
	uint32_t bit, int *given)
{
	if (!json_is_boolean(item))
		return complain(r, "%s must be true or false", name);
	*given = 1;
	*flags = json_is_true(item) ? *flags | bit : *flags & ~bit;
	return CLI_DONE;
}

static int is_inf(const json_t *item)
{
	return json_is_string(item) && strcmp(json_string_value(item), "inf") == 0;
}

static int read_rate(struct chain_reading *r, const json_t *item, const char *name, double *rate)
{
	double value = json_number_value(item);
	if (is_inf(item))
		return CLI_DONE;
	if (!(value >= 1e-9 && value <= 1e30))
		return complain(r, "%s must be a rate in bytes per second", name);
	*rate = value;
	return CLI_DONE;
}

static int read_tier_key(struct chain_reading *r, struct neap_tier_spec *tier, const char *key,
	const json_t *item, const char *place)
{
	char name[96];
	union cli_value value = {0};
	int rc = CLI_DONE, given;
	snprintf(name, sizeof name, "%s.%.40s", place, key);
	if (strcmp(key, "name") == 0) {
		size_t length = json_string_length(item); /* 0 where it is no text */
		if (length == 0 || length >= sizeof tier->name)
			return complain(r, "%s must be a name of 1 to %zu characters", name,
				sizeof tier->name - 1);
		memcpy(tier->name, json_string_value(item), length + 1);
	} else if (strcmp(key, "capacity") == 0) {
		if (is_inf(item))
			return CLI_DONE;
		rc = number(r, item, name, -1, BYTES, &value);
		if (rc == CLI_DONE)
			tier->capacity = value.bytes;
	} else if (strcmp(key, "write") == 0) {
		rc = read_rate(r, item, name, &tier->write_rate);
	} else if (strcmp(key, "read") == 0) {
		rc = read_rate(r, item, name, &tier->read_rate);
	} else if (strcmp(key, "latency") == 0) {
		rc = seconds(r, item, name, &tier->write_fixed);
		tier->read_fixed = tier->write_fixed;
	} else if (strcmp(key, "cpu") == 0) {
		rc = seconds(r, item, name, &tier->cpu);
	} else if (strcmp(key, "cpu_fixed") == 0) {
		rc = seconds(r, item, name, &tier->cpu_fixed);
	} else if (strcmp(key, "duplex") == 0) {
		rc = read_flag(r, item, name, &tier->flags, NEAP_TIER_DUPLEX, &given);
	} else if (strcmp(key, "sync") == 0) {
		rc = read_flag(r, item, name, &tier->flags, NEAP_TIER_SYNC, &given);
	} else {
		rc = complain(r, "%s: unknown key", name);
	}
	return rc;
}

static int read_tiers(struct chain_reading *r, const json_t *list)
{
	if (!json_is_array(list))
		return complain(r, "tiers must be a list");
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *item = json_array_get(list, i), *entry;
		const char *key;
		char place[32];
		struct neap_problem *p = r->problem;
		snprintf(place, sizeof place, "tiers[%d]", p->ntiers);
		if (p->ntiers == NEAP_TIERS_MAX)
			return complain(r, "tiers has more than %d entries", NEAP_TIERS_MAX);
		if (!json_is_object(item))
			return complain(r, "%s must be an object", place);
		struct neap_tier_spec *tier = &p->tiers[p->ntiers++];
		*tier = (struct neap_tier_spec){.capacity = NEAP_INFINITE};
		json_object_foreach(item, key, entry)
		{
			int rc = read_tier_key(r, tier, key, entry, place);
			if (rc != CLI_DONE)
				return rc;
		}
		if (!tier->name[0])
			return complain(r, "%s has no name", place);
	}
	return CLI_DONE;
}

#define NOWHERE ((size_t)-1)

/* One number for the whole chain. */
static const struct scalar {
	const char *name;
	enum chain_unit unit;
	size_t offset, given; /* of the value in neap_chain, of a flag in cli_chain; NOWHERE */
} scalars[] = {
	{"adjoint", BYTES, offsetof(struct neap_chain, adjoint),
		offsetof(struct cli_chain, adjoint_given)},
	{"tape_mean", BYTES, offsetof(struct neap_chain, tape_mean), NOWHERE},
	{"log", BYTES, offsetof(struct neap_chain, log), NOWHERE},
	{"replay", SECONDS, offsetof(struct neap_chain, replay),
		offsetof(struct cli_chain, replay_given)},
	{"slot_write", SECONDS, offsetof(struct neap_chain, slot_write), NOWHERE},
	{"slot_read", SECONDS, offsetof(struct neap_chain, slot_read), NOWHERE},
	{"call", SECONDS, offsetof(struct neap_chain, call), NOWHERE},
	{"last", SHARE, offsetof(struct neap_chain, last), NOWHERE},
	{"spread", SECONDS, NOWHERE, NOWHERE}, /* said, not used */
};
enum { SCALARS = sizeof scalars / sizeof scalars[0] };

static int read_scalar(struct chain_reading *r, const json_t *item, const struct scalar *scalar)
{
	char *chain = (char *)&r->problem->chain, *given = (char *)r->chain;
	union cli_value value = {0};

	int rc = number(r, item, scalar->name, -1, scalar->unit, &value);
	if (rc != CLI_DONE)
		return rc;
	if (scalar->given != NOWHERE)
		*(int *)(given + scalar->given) = 1;
	if (scalar->offset == NOWHERE)
		return CLI_DONE;
	if (scalar->unit == BYTES)
		*(uint64_t *)(chain + scalar->offset) = value.bytes;
	else
		*(double *)(chain + scalar->offset) = value.seconds;
	return CLI_DONE;
}

static int read_key(struct chain_reading *r, const char *name, const json_t *item)
{
	struct cli_chain *k = r->chain;
	double steps = json_number_value(item);
	for (size_t i = 0; i < KEYS; i++)
		if (strcmp(keys[i].name, name) == 0)
			return read_list(r, item, &keys[i]);
	if (strcmp(name, "steps") == 0) {
		if (!json_is_number(item) || !(steps >= 0 && steps <= 1e12) ||
			floor(steps) != steps)
			return complain(r, "steps must be a whole number between 0 and 1e12");
		return set_steps(r, (int64_t)steps, "steps");
	}
	if (strcmp(name, "tape_holds_output") == 0)
		return read_flag(r, item, name, &k->stages.flags, NEAP_STAGES_TAPE_HOLDS_OUTPUT,
			&k->flags_given);
	if (strcmp(name, "backward_needs_input") == 0)
		return read_flag(r, item, name, &k->stages.flags, NEAP_STAGES_BACKWARD_NEEDS_INPUT,
			&k->flags_given);
	for (size_t i = 0; i < SCALARS; i++)
		if (strcmp(scalars[i].name, name) == 0)
			return read_scalar(r, item, &scalars[i]);
	if (strcmp(name, "tiers") == 0)
		return read_tiers(r, item);
	if (strcmp(name, "device") == 0) {
		size_t length = json_string_length(item); /* 0 where it is no text */
		if (length == 0 || length >= sizeof k->device)
			return complain(r, "device must be a name such as cuda:clusters=8");
		memcpy(k->device, json_string_value(item), length + 1);
		return CLI_DONE;
	}
	return complain(r, "unknown key '%.60s'", name);
}

/* Every step as every other, and no layer chain: a uniform chain. */
static void make_uniform(struct chain_reading *r)
{
	struct neap_chain *c = &r->problem->chain;
	const struct cli_chain *k = r->chain;
	c->steps = r->steps;
	c->advance = k->advance.scalar.seconds;
	c->record = k->record.given ? k->record.scalar.seconds : c->advance;
	c->backward = k->backward.scalar.seconds;
	c->state = c->live = k->state.scalar.bytes;
	c->tape = k->tape.scalar.bytes;
	if (!k->adjoint_given)
		c->adjoint = c->state;
	if (!k->replay_given && c->log)
		c->replay = c->record;
}

static const void *values(const struct cli_column *c)
{
	return c->list;
}

static int make_stages(struct chain_reading *r)
{
	struct cli_chain *k = r->chain;
	if (r->problem->chain.log || k->replay_given)
		return complain(r,
			"%s is only possible if all steps are equal; remove it, or replace the "
			"lists by numbers",
			r->problem->chain.log ? "log" : "replay");
	if (r->problem->chain.call > 0)
		return complain(r, "call is only possible if all steps are equal; add it to the "
				   "times of the steps");
	if (r->problem->chain.last > 0)
		return complain(r, "last is only possible if all steps are equal; put the time of "
				   "the last step into the lists");
	if (r->problem->chain.tape_mean > 0)
		return complain(r, "tape_mean is only possible if all steps are equal; put the "
				   "sizes into the list tape");
	if (r->steps > 1000000)
		return complain(r, "steps is above 1000000, the limit for steps that differ");
	for (size_t i = 0; i < KEYS; i++) {
		struct cli_column *c = column(k, &keys[i]);
		int64_t n = r->steps + keys[i].more;
		if (!c->given || c->list)
			continue;
		c->list = calloc((size_t)n + 1, sizeof *c->list);
		if (!c->list)
			return complain(r, "%s: out of memory", keys[i].name);
		for (int64_t j = 0; j < n; j++)
			if (keys[i].unit == BYTES || j < r->steps)
				c->list[j] = c->scalar; /* one number of seconds: a free loss */
	}
	k->stages.advance = values(&k->advance);
	k->stages.record = values(&k->record);
	k->stages.backward = values(&k->backward);
	k->stages.state = values(&k->state);
	k->stages.tape = values(&k->tape);
	k->stages.advance_tmp = values(&k->advance_tmp);
	k->stages.record_tmp = values(&k->record_tmp);
	k->stages.backward_tmp = values(&k->backward_tmp);
	r->problem->chain.steps = r->steps;
	r->problem->chain.stages = &k->stages;
	return CLI_DONE;
}

static int interpret(struct chain_reading *r, json_t *root)
{
	struct cli_chain *k = r->chain;
	const char *key;
	json_t *item;
	if (!json_is_object(root))
		return complain(r, "the file is not a JSON object");
	json_object_foreach(root, key, item)
	{
		int rc = read_key(r, key, item);
		if (rc != CLI_DONE)
			return rc;
	}
	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].needed && !column(k, &keys[i])->given)
			return complain(r, "%s is missing", keys[i].name);
	if (r->steps < 0)
		return complain(r, "steps is missing; it is required unless another key is a list");
	int temporaries = k->advance_tmp.given || k->record_tmp.given || k->backward_tmp.given;
	if (r->lists == 0 && !temporaries && !(k->flags_given && k->stages.flags)) {
		make_uniform(r);
		return CLI_DONE;
	}
	return make_stages(r);
}

int cli_chain_parse(struct cli_chain *chain, struct neap_problem *problem, const char *text,
	const char *path, const char *command)
{
	struct chain_reading r = {path, command, chain, problem, -1, NULL, 0};
	char why[NEAP__JSON_WHY];
	*chain = (struct cli_chain){
		.stages.flags = NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT};
	json_t *root = neap__json_read(text, strlen(text), why);
	if (!root)
		return complain(&r, "%s", why);
	int rc = interpret(&r, root);
	json_decref(root);
	return rc;
}

int cli_chain_read(struct cli_chain *chain, struct neap_problem *problem, const char *path,
	const char *command)
{
	char *text;
	*chain = (struct cli_chain){0};
	int rc = cli_read_text(&text, NULL, path, command);
	if (rc == CLI_DONE)
		rc = cli_chain_parse(chain, problem, text, path, command);
	free(text);
	return rc;
}

void cli_chain_free(struct cli_chain *chain)
{
	for (size_t i = 0; i < KEYS; i++)
		free(column(chain, &keys[i])->list);
}
