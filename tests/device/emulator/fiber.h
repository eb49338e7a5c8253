/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fiber.h: functions that run on stacks of their own and are switched by hand. On x86-64 a switch
 * saves the registers that a function must preserve, which takes some 10 ns; elsewhere it is that
 * of ucontext.h, which also saves the signal mask by a system call.
 */
#ifndef NEAP_FIBER_H
#define NEAP_FIBER_H

#include <stddef.h>

struct fiber;

/* Returns a fiber with a stack, which fiber_free frees; NULL: no memory. */
struct fiber *fiber_make(void);
void fiber_free(struct fiber *fiber);
/* Sets the fiber up to call `run`, which does not return, at the next switch to it. */
void fiber_start(struct fiber *fiber, void (*run)(void));
/* From the thread's own stack: runs the fiber until it calls fiber_leave. */
void fiber_enter(struct fiber *fiber);
/* In a fiber: returns to fiber_enter. ends: the fiber will not be entered again. */
void fiber_leave(struct fiber *fiber, int ends);

#endif
