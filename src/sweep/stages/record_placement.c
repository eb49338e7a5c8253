/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_placement.c: where the records of a tier lie, whose lifetimes are all known. Records are
 * placed in the order of their PUTs, each in the lowest room that no record takes during its life.
 * What is put last is read first, so that few gaps are left.
 */
#include "sweep/stages/stage_program.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Records that are there now, by place. */
struct lying_record {
	int64_t place, units, to;
};

/* Puts a record into the lowest gap; returns the end of it. */
static int64_t insert(struct lying_record *lying, int64_t *n, struct lying_record one)
{
	int64_t k = 0, at = 0;
	for (; k < *n && lying[k].place - at < one.units; k++)
		at = lying[k].place + lying[k].units;
	memmove(lying + k + 1, lying + k, (size_t)(*n - k) * sizeof *lying);
	one.place = at;
	lying[k] = one;
	++*n;
	return at;
}

int64_t neap__stage_place_records(struct neap__stage_program *p, int tier,
	uint64_t (*units_of)(void *user, uint64_t bytes), void *user)
{
	int64_t n = 0, most = 0;
	struct lying_record *lying = malloc(((size_t)p->nrecords + 1) * sizeof *lying);
	if (!lying)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	for (int64_t i = 0; i < p->nrecords; i++) {
		struct neap__stage_record *r = &p->records[i];
		int64_t kept = 0, units = (int64_t)units_of(user, r->bytes);
		if (r->tier != tier)
			continue;
		for (int64_t k = 0; k < n; k++)
			if (lying[k].to >= r->from)
				lying[kept++] = lying[k];
		n = kept;
		r->place = insert(lying, &n, (struct lying_record){.units = units, .to = r->to});
		most = r->place + units > most ? r->place + units : most;
	}
	free(lying);
	return most;
}
