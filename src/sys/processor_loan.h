/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor_loan.h: processors that pools of compute threads (pool.h) leave to another thread of
 * the process while it works, such as one that reads inputs. If all threads of a pool compete with
 * that thread instead, the one that shares its processor falls behind and the others wait for it at
 * the end of every job: the pool then loses the time of the other thread on all processors.
 */
#ifndef NEAP_SYS_PROCESSOR_LOAN_H
#define NEAP_SYS_PROCESSOR_LOAN_H

/* What a thread borrows a processor with; all zero at first. One thread uses it at a time. */
struct neap__processor_loan {
	double wall, processor; /* seconds, of the work so far */
	double wall_begun, processor_begun;
	int counts; /* 1: pools leave a processor to the work in progress */
};

/*
 * Before and after work of the calling thread. Work that mostly waited so far, for example for a
 * disk, takes no processor from the pools.
 */
void neap__processor_loan_begin(struct neap__processor_loan *loan);
void neap__processor_loan_end(struct neap__processor_loan *loan);

/* Processors that are on loan now, in the whole process. */
int neap__processors_on_loan(void);

#endif
