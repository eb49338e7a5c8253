/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_test.h: chains whose steps differ, from the oracle tables and at random. */
#ifndef NEAP_ORACLE_TEST_H
#define NEAP_ORACLE_TEST_H

#include <jansson.h>
#include "chain_test.h"

static inline void fill(double *times, uint64_t *bytes, const json_t *list, int skip)
{
	for (int i = skip; i < (int)json_array_size(list); i++) {
		double value = json_number_value(json_array_get(list, (size_t)i));
		if (times)
			times[i - skip] = value;
		else
			bytes[i - skip] = (uint64_t)value;
	}
}

static inline json_t *load(const char *name)
{
	char path[4200];
	snprintf(path, sizeof path, "%s/%s", test_oracles(), name);
	json_error_t error;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		fail_msg("%s:%d: %s", path, error.line, error.text);
	return root;
}

/* A chain of chains.json or chains_async.json. */
static inline void oracle_chain(struct chain *c, const json_t *k, int64_t steps)
{
	memset(c, 0, sizeof *c);
	wire(c, steps);
	fill(c->advance, NULL, json_object_get(k, "fw"), 0);
	fill(c->backward, NULL, json_object_get(k, "bw"), 0);
	fill(NULL, c->state, json_object_get(k, "a"), 0);
	fill(NULL, c->tape, json_object_get(k, "ab"), 1);
	fill(NULL, c->advance_tmp, json_object_get(k, "fwd_tmp"), 0);
	fill(NULL, c->backward_tmp, json_object_get(k, "bwd_tmp"), 0);
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
