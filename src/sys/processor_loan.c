/* SPDX-License-Identifier: Apache-2.0 */
/* processor_loan.c: one counter of the process, and the seconds that tell work from waiting. */
#include "sys/processor_loan.h"
#include "sys/clock.h"

#include <stdatomic.h>

/*
 * Share of its time that work must have computed in to get a processor. Chosen: a thread that
 * competes for one processor with a single other thread computes for half of its time.
 */
#define SHARE_LEAST 0.25

static atomic_int on_loan;

void neap__processor_loan_begin(struct neap__processor_loan *loan)
{
	loan->wall_begun = neap__seconds();
	loan->processor_begun = neap__thread_seconds();
	loan->counts = loan->processor >= SHARE_LEAST * loan->wall;
	if (loan->counts)
		atomic_fetch_add(&on_loan, 1);
}

void neap__processor_loan_end(struct neap__processor_loan *loan)
{
	loan->wall += neap__seconds() - loan->wall_begun;
	loan->processor += neap__thread_seconds() - loan->processor_begun;
	if (loan->counts)
		atomic_fetch_sub(&on_loan, 1);
	loan->counts = 0;
}

int neap__processors_on_loan(void)
{
	return atomic_load_explicit(&on_loan, memory_order_relaxed);
}
