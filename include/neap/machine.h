/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h: describes the machine of a measurement, and has clocks to measure with.
 *
 *     struct neap_machine machine = {.size = sizeof machine};
 *     neap_machine_describe(&machine);
 *     double start = neap_clock();
 *     work();
 *     printf("%s: %g s\n", machine.cpu, neap_clock() - start);
 */
#ifndef NEAP_MACHINE_H
#define NEAP_MACHINE_H

#include <stdint.h>
#include <neap/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The processor, the operating system and the memory of this machine. */
struct neap_machine {
	uint32_t size; /* sizeof(struct neap_machine) */
	char cpu[96];  /* model name */
	char isa[24];  /* of the kernels: "plain", "avx2", "avx512", "lowered"; NEAP_ISA selects; or
			  "none" */
	char os[96];   /* system and release */
	int processors;			    /* number that this process may run on */
	uint64_t memory_total, memory_free; /* bytes, of the machine or of its control group */
};
/* Fills in `machine`. Returns 0, or NEAP_EUSAGE if its size is wrong. */
NEAP_API int neap_machine_describe(struct neap_machine *machine);

/* Returns the time of a monotonic clock in seconds. */
NEAP_API double neap_clock(void);

/* Returns the CPU time of this process in seconds, over all threads. */
NEAP_API double neap_cpu_clock(void);

/* Returns the high-water mark of resident memory in bytes (VmHWM). */
NEAP_API uint64_t neap_resident_peak(void);
/* Resets the high-water mark of resident memory. Returns 0 or -errno. */
NEAP_API int neap_resident_reset(void);

#ifdef __cplusplus
}
#endif
#endif
