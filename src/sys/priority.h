/* SPDX-License-Identifier: Apache-2.0 */
/* priority.h: raises the priority of threads that move data. */
#ifndef NEAP_SYS_PRIORITY_H
#define NEAP_SYS_PRIORITY_H

/*
 * Asks the system to run the calling thread as soon as it wakes, though all processors compute:
 * with short time slices, and a higher priority where the system allows that (root, RLIMIT_NICE).
 * For threads that move data and sleep otherwise. A refusal changes nothing and is no error.
 */
void neap__priority_raise(void);

#endif
