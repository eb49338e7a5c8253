/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forks.h: tells a process from the one that it was forked from. Threads do not survive a fork:
 * what has one remembers neap__forks() when it is made, and is dead where the number is another.
 */
#ifndef NEAP_STORE_FORKS_H
#define NEAP_STORE_FORKS_H

/* Forks between the process that called this first and the calling one. From any thread. */
int neap__forks(void);

#endif
