/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child_trial.h: tries a function in a child process. A program that must survive a library that
 * crashes on damaged files tries it so before it calls the library itself. For programs of one
 * thread, or whose other threads hold no lock that the function takes.
 */
#ifndef NEAP_SYS_CHILD_TRIAL_H
#define NEAP_SYS_CHILD_TRIAL_H

#include <neap/status.h>

/*
 * Runs fn(arg) in a child process; its effects on memory are lost. 0 when fn returned, or no child
 * process could be made, else the signal that ended the child. `slow` (may be NULL) is called
 * once where that takes longer than `seconds`; the trial goes on.
 */
int neap__child_trial(void (*fn)(void *arg), void *arg, double seconds, void (*slow)(void));

#endif
