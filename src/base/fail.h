/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail.h: reports a failure from inside neap: a code, and one line of detail that names the file,
 * the value and what would be accepted. All functions set the calling thread's line.
 */
#ifndef NEAP_BASE_FAIL_H
#define NEAP_BASE_FAIL_H

#include <neap/status.h>

/* Of a detail line, its end included; the rest is cut off. Chosen: a long path, what is wrong, and
 * a command with such paths (quote.h). */
#define NEAP__DETAIL_BYTES 2048

/* Sets the thread's detail line and returns `code`. */
int neap__fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for -errno: the line ends in the system's text. */
int neap__fail_errno(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts a prefix ("train.h5: ") before the present detail line; returns code. */
int neap__fail_in(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* 0, or NEAP_EUSAGE naming the first of `count` pointers that is NULL; `names` as NEAP_NEED has it.
 */
int neap__need(const char *function, const char *names, const void *const *pointers, int count);

/* Refuses NULL in arguments of a public function that returns a code: NEAP_NEED(sweep, ops). */
#define NEAP_NEED(...)                                                                             \
	do {                                                                                       \
		const void *const neap_given_[] = {__VA_ARGS__};                                   \
		int neap_need_ = neap__need(__func__, #__VA_ARGS__, neap_given_,                   \
			(int)(sizeof neap_given_ / sizeof *neap_given_));                          \
		if (neap_need_ < 0)                                                                \
			return neap_need_;                                                         \
	} while (0)

/* Forwards a negative answer. */
#define NEAP_TRY(expression)                                                                       \
	do {                                                                                       \
		int neap_try_ = (expression);                                                      \
		if (neap_try_ < 0)                                                                 \
			return neap_try_;                                                          \
	} while (0)

#endif
