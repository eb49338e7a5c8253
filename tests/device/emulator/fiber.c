/* SPDX-License-Identifier: Apache-2.0 */
/* fiber.c: stacks, switches, and what AddressSanitizer needs to know about them (fiber.h). */
#include "fiber.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if !defined __x86_64__ || defined FIBER_UCONTEXT
#define SWITCHES_CONTEXTS 1
#include <ucontext.h>
#else
#define SWITCHES_CONTEXTS 0
#endif

#if defined __SANITIZE_ADDRESS__
#define HAS_ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum {
	STACK = 128 << 10, /* chosen: four times what a kernel takes with AddressSanitizer */
	SAVED_WORDS = 6	   /* registers that fiber_switch saves */
};

struct fiber {
	void *stack;
	void (*run)(void);
	void *fake; /* the sanitizer's */
#if SWITCHES_CONTEXTS
	ucontext_t context;
#else
	void *top; /* of the stack, while the fiber does not run */
#endif
};

/* Where fiber_enter was called, and the stack of the thread. */
static struct {
	void *fake;
	const void *stack;
	size_t bytes;
#if SWITCHES_CONTEXTS
	ucontext_t context;
#else
	void *top;
#endif
} thread;
static struct fiber *running;

#if !SWITCHES_CONTEXTS
/* Saves the preserved registers and the stack pointer in *from, and restores those of `to`. */
void fiber_switch(void **from, void *to);
__asm__(".text\n"
	".globl fiber_switch\n"
	".type fiber_switch, @function\n"
	"fiber_switch:\n"
	"push %rbp\n"
	"push %rbx\n"
	"push %r12\n"
	"push %r13\n"
	"push %r14\n"
	"push %r15\n"
	"mov %rsp, (%rdi)\n"
	"mov %rsi, %rsp\n"
	"pop %r15\n"
	"pop %r14\n"
	"pop %r13\n"
	"pop %r12\n"
	"pop %rbx\n"
	"pop %rbp\n"
	"ret\n"
	".size fiber_switch, . - fiber_switch\n");
#endif

static void before_switch(void **fake, const void *stack, size_t bytes)
{
#ifdef HAS_ASAN
	__sanitizer_start_switch_fiber(fake, stack, bytes);
#else
	(void)fake, (void)stack, (void)bytes;
#endif
}

static void after_switch(void *fake, const void **stack, size_t *bytes)
{
#ifdef HAS_ASAN
	__sanitizer_finish_switch_fiber(fake, stack, bytes);
#else
	(void)fake, (void)stack, (void)bytes;
#endif
}

/* The first function on a fiber's stack. */
static void begin(void)
{
	after_switch(NULL, &thread.stack, &thread.bytes);
	running->run();
	abort(); /* `run` ends in fiber_leave */
}

struct fiber *fiber_make(void)
{
	struct fiber *fiber = calloc(1, sizeof *fiber);

	if (!fiber)
		return NULL;
	fiber->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fiber->stack == MAP_FAILED) {
		free(fiber);
		return NULL;
	}
	return fiber;
}

void fiber_free(struct fiber *fiber)
{
	if (fiber)
		munmap(fiber->stack, STACK);
	free(fiber);
}

void fiber_start(struct fiber *fiber, void (*run)(void))
{
#ifdef HAS_ASAN
	/* A fiber that was abandoned leaves the marks of its frames. */
	__asan_unpoison_memory_region(fiber->stack, STACK);
#endif
	fiber->run = run;
	fiber->fake = NULL;
#if SWITCHES_CONTEXTS
	getcontext(&fiber->context);
	fiber->context.uc_stack.ss_sp = fiber->stack;
	fiber->context.uc_stack.ss_size = STACK;
	fiber->context.uc_link = NULL;
	makecontext(&fiber->context, begin, 0);
#else
	/* `begin` is "called": the stack pointer is 8 less than a multiple of 16. */
	void **top = (void **)(void *)((char *)fiber->stack + STACK - 64);
	*--top = NULL;
	*--top = (void *)begin;
	top -= SAVED_WORDS;
	memset(top, 0, SAVED_WORDS * sizeof *top);
	fiber->top = top;
#endif
}

void fiber_enter(struct fiber *fiber)
{
	running = fiber;
	before_switch(&thread.fake, fiber->stack, STACK);
#if SWITCHES_CONTEXTS
	swapcontext(&thread.context, &fiber->context);
#else
	fiber_switch(&thread.top, fiber->top);
#endif
	after_switch(thread.fake, NULL, NULL);
}

void fiber_leave(struct fiber *fiber, int ends)
{
	before_switch(ends ? NULL : &fiber->fake, thread.stack, thread.bytes);
#if SWITCHES_CONTEXTS
	swapcontext(&fiber->context, &thread.context);
#else
	fiber_switch(&fiber->top, thread.top);
#endif
	after_switch(fiber->fake, NULL, NULL);
}
