/* SPDX-License-Identifier: Apache-2.0 */
/* priority.h: threads that do little but should do it at once. */
#ifndef NEAP_SYS_PRIORITY_H
#define NEAP_SYS_PRIORITY_H

/*
 * Asks that the calling thread, which moves data and sleeps otherwise, runs as soon as
 * it wakes, where all processors compute: short turns, and a higher priority where the
 * system lets us (root, RLIMIT_NICE). What is refused is left.
 */
void neap__priority_raise(void);

#endif
