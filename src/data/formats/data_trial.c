/* SPDX-License-Identifier: Apache-2.0 */
/* data_trial.c: calls that could crash the process are made as the caller wants (dataset.h). */
#include "data/dataset.h"

#include <stdatomic.h>
#include <stddef.h>

/* The program's, if it has set one. */
static neap_data_trial *_Atomic the_trial;

void neap_data_set_trial(neap_data_trial *trial)
{
	atomic_store(&the_trial, trial);
}

int neap__data_try(void (*fn)(void *arg), void *arg)
{
	neap_data_trial *trial = atomic_load(&the_trial);
	return trial ? trial(fn, arg) : 0;
}
