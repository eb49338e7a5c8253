/* SPDX-License-Identifier: Apache-2.0 */
/* model_checks.c: checks losses, adjoints, recomputed states and the bytes that callbacks wrote. */
#include "sweep/steps/model_checks.h"
#include "sweep/agree.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST (INT64_C(1) << 20)	/* of hashes: 16 MiB */
#define ROWS_UNKNOWN (INT64_C(1) << 16) /* where the length is not known */
#define FILL 0x5C			/* a byte that few tapes consist of */

int neap__check_real(const char *name, size_t real, size_t adjoint_bytes)
{
	if (real == 0 || ((real == 4 || real == 8) && adjoint_bytes % real == 0))
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"%s: adjoint_real is %zu with an adjoint of %zu bytes. Set it to 4 (float) or 8 "
		"(double), or to 0 if the adjoint has other contents",
		name, real, adjoint_bytes);
}

int neap__check_loss(double loss, int64_t steps)
{
	if (isfinite(loss))
		return 0;
	return neap__fail(NEAP_EDIVERGED,
		"turn returned the loss %g after %lld steps. A forward step, or the loss itself, "
		"overflowed or divided by zero. Look for the first state that is not finite; "
		"reduce the step size or the inputs",
		loss, (long long)steps);
}

struct adjoint_look {
	size_t real, bad; /* bytes of a number; the first that is not finite */
	double value;
};

static int look_finite(void *user, const unsigned char *bytes, uint64_t from, uint64_t count)
{
	struct adjoint_look *x = user;
	for (size_t i = 0; i < count / x->real; i++) {
		float narrow;
		if (x->real == sizeof narrow) {
			memcpy(&narrow, bytes + i * x->real, sizeof narrow);
			x->value = narrow;
		} else {
			memcpy(&x->value, bytes + i * x->real, sizeof x->value);
		}
		if (!isfinite(x->value)) {
			x->bad = (size_t)from / x->real + i;
			return 1;
		}
	}
	return 0;
}

int neap__check_adjoint(struct neap__memory *memory, const void *adjoint, size_t bytes, size_t real,
	const char *function, int64_t t)
{
	struct adjoint_look x = {.real = real};
	int found = real ? neap__memory_show(memory, adjoint, bytes, look_finite, &x) : 0;
	if (found <= 0)
		return found;
	return neap__fail(NEAP_EDIVERGED,
		"the adjoint at step %lld, which %s wrote, is not finite: its number %zu is %g. "
		"With neap_sweep_options.check the sweep stops at the first such step; scale the "
		"loss, or limit the gradient",
		(long long)t, function, x.bad, x.value);
}

void neap__check_fill(struct neap__memory *memory, void *at, size_t bytes)
{
	neap__memory_fill(memory, at, FILL, bytes);
}

/* The end of the bytes that are not FILL. */
static int look_written(void *user, const unsigned char *bytes, uint64_t from, uint64_t count)
{
	uint64_t *end = user;
	for (uint64_t i = count; i > 0; i--)
		if (bytes[i - 1] != FILL) {
			*end = from + i;
			break;
		}
	return 0;
}

int neap__check_used(struct neap__memory *memory, const void *at, size_t used, size_t bytes,
	const char *function, int64_t t0, int64_t t1)
{
	uint64_t end = 0;
	if (used >= bytes)
		return 0;
	NEAP_TRY(neap__memory_show(
		memory, (const unsigned char *)at + used, bytes - used, look_written, &end));
	if (end == 0)
		return 0;
	return neap__fail(NEAP_EMODEL,
		"%s of steps %lld to %lld reports %zu bytes in *used, but wrote byte %llu. Set "
		"*used to the number of all bytes written",
		function, (long long)t0, (long long)t1, used, (unsigned long long)(used + end - 1));
}

int neap__state_hashes_init(struct neap__state_hashes *hashes, int64_t steps)
{
	hashes->count = steps == 0 ? ROWS_UNKNOWN : steps < ROWS_MOST ? steps + 1 : ROWS_MOST;
	hashes->rows = calloc((size_t)hashes->count, sizeof *hashes->rows);
	return hashes->rows ? 0 : neap__fail_errno(ENOMEM, "hashes of states");
}

void neap__state_hashes_reset(struct neap__state_hashes *hashes)
{
	if (hashes->rows)
		memset(hashes->rows, 0, (size_t)hashes->count * sizeof *hashes->rows);
}

void neap__state_hashes_free(struct neap__state_hashes *hashes)
{
	free(hashes->rows);
	hashes->rows = NULL;
}

static int look_hash(void *user, const unsigned char *bytes, uint64_t from, uint64_t count)
{
	uint64_t *hash = user;
	*hash = (*hash + from) * 31 + neap__agree_hash(bytes, (size_t)count);
	return 0;
}

int neap__check_state(struct neap__state_hashes *hashes, struct neap__memory *memory,
	const void *state, size_t bytes, const char *function, int64_t number, int64_t t)
{
	if (!hashes->rows)
		return 0;
	struct neap__state_hash *row = &hashes->rows[number % hashes->count];
	uint64_t hash = 0;
	NEAP_TRY(neap__memory_show(memory, state, bytes, look_hash, &hash));
	if (row->after == number + 1 && row->hash != hash)
		return neap__fail(NEAP_EMODEL,
			"%s computed a state at step %lld that differs from the one computed "
			"before. Steps are recomputed: make them depend on state and step alone, "
			"and let advance and record do the same arithmetic",
			function, (long long)t);
	*row = (struct neap__state_hash){number + 1, hash};
	return 0;
}
