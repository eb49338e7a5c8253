/* SPDX-License-Identifier: Apache-2.0 */
/* coding.c: the table of codings, and how they are written (coding.h). */
#include "data/coding/coding.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/print.h"
#include "base/text.h"
#include "base/units.h"

#include <neap/data.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct neap__coding_kind *const kinds[] = {
	&neap__coding_delta,
	&neap__coding_latency,
	&neap__coding_rate,
	&neap__coding_threshold,
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

const char *neap_coding_name(int index)
{
	return index >= 0 && index < KINDS ? kinds[index]->name : NULL;
}

static double *value_at(struct neap__coding_values *values, const struct neap__coding_key *key)
{
	return (double *)(void *)((char *)values + key->offset);
}

static int find_kind(struct neap__coding *coding, const char *name)
{
	char known[NEAP__NAMES_TEXT];

	for (int i = 0; i < KINDS; i++)
		if (strcmp(kinds[i]->name, name) == 0)
			coding->kind = kinds[i];
	if (!coding->kind)
		return neap__fail(NEAP_EUSAGE, "--encode: '%.60s' is not one of %s", name,
			neap__names_text(known, neap_coding_name));
	for (const struct neap__coding_key *key = coding->kind->keys; key->name; key++)
		*value_at(&coding->values, key) = key->usual;
	return 0;
}

/* Sets one key; *given has a bit for each that is set already. */
static int set_key(struct neap__coding *coding, unsigned *given, const char *name, const char *text)
{
	const struct neap__coding_key *keys = coding->kind->keys, *key = keys;
	char known[NEAP__NAMES_TEXT] = "";
	double value = 0;

	for (; key->name && strcmp(key->name, name) != 0; key++) {
		size_t n = strlen(known);
		neap__print(known + n, sizeof known - n, "%s%s", key > keys ? ", " : "", key->name);
	}
	if (!key->name)
		return neap__fail(NEAP_EUSAGE, "--encode: %s has no key '%.60s'; its keys are %s",
			coding->kind->name, name, known);
	if (neap__units_within(&value, text, key->whole, key->least, key->most) < 0)
		return neap__fail(NEAP_EUSAGE,
			"--encode: %s=%.40s is not valid; it must be %s between %.15g and %.15g",
			name, text, key->whole ? "a whole number" : "a number", key->least,
			key->most);
	if (*given & 1u << (key - keys))
		return neap__fail(NEAP_EUSAGE, "--encode: %s is given twice", name);
	*given |= 1u << (key - keys);
	*value_at(&coding->values, key) = value;
	return 0;
}

/* `text` is taken apart. */
static int parse(struct neap__coding *coding, char *text)
{
	char *rest = text, *name = strsep(&rest, ":"), *pair;
	unsigned given = 0;

	NEAP_TRY(find_kind(coding, name));
	while ((pair = strsep(&rest, ",")) != NULL) {
		char *value = strchr(pair, '=');
		if (!value)
			return neap__fail(NEAP_EUSAGE,
				"--encode: '%.60s' after %s is not valid; expected KEY=VALUE,...",
				pair, name);
		*value = '\0';
		NEAP_TRY(set_key(coding, &given, pair, value + 1));
	}
	return coding->kind->check ? coding->kind->check(&coding->values) : 0;
}

int neap__coding_parse(struct neap__coding *coding, const char *text)
{
	*coding = (struct neap__coding){.values = {.repeat = 1}};
	if (!text || !*text || strcmp(text, "none") == 0)
		return 0;
	char *copy = strdup(text);
	int rc = copy ? parse(coding, copy) : neap__fail_errno(ENOMEM, "--encode");
	free(copy);
	return rc;
}

const char *neap__coding_text(char room[NEAP__CODING_TEXT], const struct neap__coding *coding)
{
	struct neap__coding_values values = coding->values;
	const char *between = ":";
	size_t n = 0;

	room[0] = '\0';
	if (!coding->kind)
		return room;
	n += (size_t)neap__print(room, NEAP__CODING_TEXT, "%s", coding->kind->name);
	for (const struct neap__coding_key *key = coding->kind->keys; key->name; key++) {
		char number[40];
		double value = *value_at(&values, key);
		if (value < key->least) /* the run's seed */
			continue;
		neap__json_exact(number, value);
		n += (size_t)neap__print(
			room + n, NEAP__CODING_TEXT - n, "%s%s=%s", between, key->name, number);
		between = ",";
	}
	return room;
}

void neap__coding_seed(struct neap__coding *coding, uint64_t seed)
{
	if (coding->values.seed < 0)
		coding->values.seed = (double)(seed & ((UINT64_C(1) << 53) - 1));
}

int neap__coding_channels(const struct neap__coding *coding)
{
	return coding->values.off > 0 ? 2 : 1;
}
