/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child_trial.h: a library that may crash on a damaged file is tried in a process of
 * its own first.
 */
#ifndef NEAP_SYS_CHILD_TRIAL_H
#define NEAP_SYS_CHILD_TRIAL_H

#include <neap/status.h>

/*
 * Runs fn(arg) in a child, for at most `seconds`, and forgets what it did. 0 when it came
 * back (or no child could be had), else the signal that ended it.
 */
NEAP_API int neap__child_trial(void (*fn)(void *arg), void *arg, unsigned seconds);

#endif
