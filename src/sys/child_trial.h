/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child_trial.h: tries a function in a child process. A library that may crash on a damaged file
 * is tried so before it is called in this process.
 */
#ifndef NEAP_SYS_CHILD_TRIAL_H
#define NEAP_SYS_CHILD_TRIAL_H

#include <neap/status.h>

/*
 * Runs fn(arg) in a child process for at most `seconds`; its effects on memory are lost. 0 when fn
 * returned, or no child process could be made, else the signal that ended the child.
 */
int neap__child_trial(void (*fn)(void *arg), void *arg, unsigned seconds);

#endif
