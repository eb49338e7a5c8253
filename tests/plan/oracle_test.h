/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_test.h: chains whose steps differ, from the oracle tables and at random. */
#ifndef NEAP_ORACLE_TEST_H
#define NEAP_ORACLE_TEST_H

#include <cjson/cJSON.h>
#include "chain_test.h"

static inline void fill(double *times, uint64_t *bytes, const cJSON *list, int skip)
{
	const cJSON *item;
	int i = 0;
	cJSON_ArrayForEach(item, list)
	{
		if (i >= skip && times)
			times[i - skip] = item->valuedouble;
		else if (i >= skip)
			bytes[i - skip] = (uint64_t)item->valuedouble;
		i++;
	}
}

static inline cJSON *load(const char *name)
{
	char path[4200];
	snprintf(path, sizeof path, "%s/oracles/%s", test_data(), name);
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("%s: cannot be read", path);
	char *text = calloc(1, 1 << 22);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 22) - 1, f) > 0);
	fclose(f);
	cJSON *root = cJSON_Parse(text);
	free(text);
	assert_non_null(root);
	return root;
}

/* A chain of chains.json or chains_async.json. */
static inline void oracle_chain(struct chain *c, const cJSON *k, int64_t steps)
{
	memset(c, 0, sizeof *c);
	wire(c, steps);
	fill(c->advance, NULL, cJSON_GetObjectItem(k, "fw"), 0);
	fill(c->backward, NULL, cJSON_GetObjectItem(k, "bw"), 0);
	fill(NULL, c->state, cJSON_GetObjectItem(k, "a"), 0);
	fill(NULL, c->tape, cJSON_GetObjectItem(k, "ab"), 1);
	fill(NULL, c->advance_tmp, cJSON_GetObjectItem(k, "fwd_tmp"), 0);
	fill(NULL, c->backward_tmp, cJSON_GetObjectItem(k, "bwd_tmp"), 0);
}

static inline struct chain random_chain(struct random *r, int64_t steps, int64_t size)
{
	struct chain c = {0};
	for (int64_t i = 0; i <= steps; i++) {
		c.backward[i] = (double)below(r, 6);
		c.state[i] = (uint64_t)below(r, size + 1);
		c.backward_tmp[i] = (uint64_t)maybe(r, 0.2, (double)below(r, size));
	}
	for (int64_t i = 0; i < steps; i++) {
		c.advance[i] = (double)(1 + below(r, 4));
		c.record[i] = c.advance[i] + (double)below(r, 2);
		c.tape[i] = c.state[i + 1] + (uint64_t)below(r, 2 * size);
		c.advance_tmp[i] = (uint64_t)maybe(r, 0.2, (double)below(r, size));
		c.record_tmp[i] = (uint64_t)maybe(r, 0.3, (double)below(r, size));
	}
	c.p.chain.adjoint = uniform(r) < 0.3 ? (uint64_t)(1 + below(r, size)) : 0;
	return c;
}

static inline void vary(struct random *r, struct chain *c, int64_t steps)
{
	wire(c, steps);
	c->stages.record = uniform(r) < 0.5 ? c->record : NULL;
	c->stages.record_tmp = uniform(r) < 0.5 ? c->record_tmp : NULL;
	c->stages.flags = uniform(r) < 0.5 ? 3 : (uint32_t)below(r, 4);
	for (int64_t i = 0; i < steps && !(c->stages.flags & 1); i++)
		c->tape[i] /= 2; /* a tape may be smaller than a state */
}

#endif
