/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.h: the version of these headers, and of the library that a program runs with.
 *
 *     if (neap_version_number() < NEAP_VERSION_NUMBER)
 *             printf("libneap %s is older than its header\n", neap_version());
 *
 * The library asks the same question for its callers: a structure that is larger than
 * the one it was built with comes from a newer header, and the call answers NEAP_EUSAGE.
 */
#ifndef NEAP_VERSION_H
#define NEAP_VERSION_H

#include <stdint.h>
#include <neap/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NEAP_VERSION "0.2.0"
#define NEAP_VERSION_NUMBER 200 /* 10000 major + 100 minor + patch */

/* The library's, as NEAP_VERSION and NEAP_VERSION_NUMBER. From any thread. */
NEAP_API const char *neap_version(void);
/* Version of the library as NEAP_VERSION_NUMBER. */
NEAP_API int neap_version_number(void);

/*
 * A hash of all that programs depend on in the headers of libneap: sizes and offsets of structs,
 * constants, types of functions. For callers without a C compiler, such as bindings of another
 * language, that were made from one state of the headers: where the library they load answers
 * another number, they must not call it. From any thread.
 */
NEAP_API uint64_t neap_abi_hash(void);

#ifdef __cplusplus
}
#endif
#endif
