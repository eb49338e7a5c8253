/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h: what the fuzz targets share. A target reads text from outside as the
 * tool does, and does with what it holds what the tool would do: check, plan,
 * verify, simulate. libFuzzer drives it (-Dfuzz=true, tools/fuzz.sh), and corpus_main.c
 * wherever there is a compiler.
 */
#ifndef NEAP_TEST_FUZZ_H
#define NEAP_TEST_FUZZ_H

#include <neap/plan.h>
#include <stdio.h>
#include <stdlib.h>

/* The target. Always 0; a finding ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A finding, unless the condition holds. */
#define FUZZ_CHECK(condition, ...)                                                                 \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);            \
			fprintf(stderr, __VA_ARGS__);                                              \
			fputc('\n', stderr);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* A number that follows from the input alone: which strategy, which budget. */
uint64_t fuzz_seed(const uint8_t *data, size_t size);

/* The input as text, up to its first zero byte; free it. */
char *fuzz_text(const uint8_t *data, size_t size);

/* A refusal came with one clean line (fuzz_lines.c counts them since the last call). */
void fuzz_refused(int code);

/* One strategy's plan of a problem, checked by every consumer. */
void fuzz_plan(const struct neap_problem *problem, const struct neap_params *params, uint64_t seed);

/* What is true of every feasible plan whose chain is short enough to walk. */
void fuzz_schedule(const struct neap_problem *problem, const struct neap_plan *plan);

#endif
