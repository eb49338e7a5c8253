/* SPDX-License-Identifier: Apache-2.0 */
/* tier_option.c: --tier NAME:key=value,... for problems given by numbers. */
#include "cli.h"
#include "base/quote.h"

#include <string.h>

struct tier_parsing {
	struct neap_tier_spec *tier;
	int classic;
};

static int set_capacity(struct tier_parsing *p, const char *value)
{
	int64_t slots;
	if (strcmp(value, "inf") == 0) {
		p->tier->capacity = NEAP_INFINITE;
		return 0;
	}
	if (!p->classic)
		return neap__units_size(&p->tier->capacity, value);
	if (neap__units_count(&slots, value) < 0 || slots < 0)
		return -1;
	p->tier->capacity = (uint64_t)slots;
	return 0;
}

static int set_write(struct tier_parsing *p, const char *value)
{
	return p->classic ? neap__units_time(&p->tier->write_fixed, value)
			  : neap__units_rate(&p->tier->write_rate, value);
}

static int set_read(struct tier_parsing *p, const char *value)
{
	return p->classic ? neap__units_time(&p->tier->read_fixed, value)
			  : neap__units_rate(&p->tier->read_rate, value);
}

/* Seconds a byte, or a time for a size, such as 300ms/1G. */
static int set_cpu(struct tier_parsing *p, const char *value)
{
	char time[64];
	size_t n = strcspn(value, "/");
	uint64_t bytes = 1;
	if (n >= sizeof time)
		return -1;
	memcpy(time, value, n);
	time[n] = '\0';
	if (value[n] && (neap__units_size(&bytes, value + n + 1) < 0 || bytes == 0))
		return -1;
	if (neap__units_time(&p->tier->cpu, time) < 0)
		return -1;
	p->tier->cpu /= (double)bytes;
	return 0;
}

static int set_cpu_fixed(struct tier_parsing *p, const char *value)
{
	return neap__units_time(&p->tier->cpu_fixed, value);
}

static int set_latency(struct tier_parsing *p, const char *value)
{
	if (neap__units_time(&p->tier->write_fixed, value) < 0)
		return -1;
	p->tier->read_fixed = p->tier->write_fixed;
	return 0;
}

/* Problems in bytes and classic ones, which count slots, take different keys. */
enum { IN_BYTES = 1, CLASSIC = 2, ANY = IN_BYTES | CLASSIC };

static const struct {
	const char *key;
	int forms;
	int (*set)(struct tier_parsing *p, const char *value);
	const char *wants;    /* what its value is to be */
	uint32_t flag, unset; /* of a word without a value: what it sets and clears */
} keys[] = {
	{"capacity", IN_BYTES, set_capacity, "a size or inf", 0, 0},
	{"slots", CLASSIC, set_capacity, "a whole number or inf", 0, 0},
	{"write", IN_BYTES, set_write, "a rate, such as 500M", 0, 0},
	{"write", CLASSIC, set_write, "seconds a state", 0, 0},
	{"read", IN_BYTES, set_read, "a rate, such as 500M", 0, 0},
	{"read", CLASSIC, set_read, "seconds a state", 0, 0},
	{"latency", IN_BYTES, set_latency, "a time", 0, 0},
	{"cpu", ANY, set_cpu, "a time a byte or for a size, such as 300ms/1G", 0, 0},
	{"cpu_fixed", ANY, set_cpu_fixed, "a time", 0, 0},
	{"sync", ANY, NULL, NULL, NEAP_TIER_SYNC, 0},
	{"async", ANY, NULL, NULL, 0, NEAP_TIER_SYNC},
	{"duplex", ANY, NULL, NULL, NEAP_TIER_DUPLEX, 0},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

static int set_key(struct tier_parsing *p, const char *word, char *value, const char *command)
{
	char known[160] = "";
	size_t n = 0;
	for (int i = 0; i < KEYS; i++) {
		if (!(keys[i].forms & (p->classic ? CLASSIC : IN_BYTES)))
			continue;
		n += (size_t)snprintf(known + n, sizeof known - n, "%s, ", keys[i].key);
		if (strcmp(keys[i].key, word) != 0 || (value && !keys[i].set))
			continue;
		if (keys[i].set && (!value || keys[i].set(p, value) < 0))
			return cli_usage(command, "--tier: %s='%s' is not %s", word,
				value ? value : "", keys[i].wants);
		p->tier->flags = (p->tier->flags & ~keys[i].unset) | keys[i].flag;
		return CLI_DONE;
	}
	return cli_usage(command, "--tier: unknown key '%s'; choose from %.*s", word,
		(int)n - (int)strlen(", "), known);
}

int cli_parse_tier(struct neap_tier_spec *tier, const char *text, int classic, const char *command)
{
	char copy[512], *rest = copy;
	struct tier_parsing p = {tier, classic};
	size_t n = strlen(text), name = strcspn(text, ":");

	*tier = (struct neap_tier_spec){
		.capacity = NEAP_INFINITE, .flags = classic ? NEAP_TIER_SYNC : 0};
	if (!text[name] && strchr(text, '/'))
		return cli_usage(command,
			"--tier: '%s' is a path, but plan takes the name and the rates of a tier, "
			"such as --tier disk:write=500M,read=2G. To measure a folder: neap "
			"calibrate DATA --slow %s --out chain.json, and then neap plan --chain "
			"chain.json --memory 64M",
			text, neap__quoted(text));
	if (!text[name] && name && !classic)
		return cli_usage(command,
			"--tier: '%s' has no rates, so its transfers would take no time. Add them: "
			"--tier %s:write=500M,read=2G",
			text, neap__word(text));
	if (n >= sizeof copy)
		return cli_usage(command,
			"--tier: the value is longer than the limit of %zu characters",
			sizeof copy - 1);
	if (name == 0 || name >= sizeof tier->name)
		return cli_usage(command,
			"--tier: '%s' needs a name of 1 to %zu characters before ':'", text,
			sizeof tier->name - 1);
	memcpy(copy, text, n + 1);
	copy[name] = '\0';
	memcpy(tier->name, copy, name + 1);
	rest = text[name] == ':' ? copy + name + 1 : NULL;
	while (rest && *rest) {
		char *word = rest, *end = strchr(rest, ',');
		rest = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		char *value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		int rc = set_key(&p, word, value, command);
		if (rc != CLI_DONE)
			return rc;
	}
	return CLI_DONE;
}
