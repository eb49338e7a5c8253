/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.h: the version of these headers, and of the library that a program runs with.
 *
 *     if (neap_version_number() < NEAP_VERSION_NUMBER)
 *             printf("libneap %s is older than its header\n", neap_version());
 *
 * The library checks this for its callers: a structure that is larger than the one that the library
 * was built with comes from a newer header, and the call returns NEAP_EUSAGE.
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

/* Returns the version of the library, as NEAP_VERSION. Thread-safe. */
NEAP_API const char *neap_version(void);
/* Returns the version of the library, as NEAP_VERSION_NUMBER. Thread-safe. */
NEAP_API int neap_version_number(void);

/*
 * Returns a hash of everything in the headers of libneap that programs depend on: sizes and offsets
 * of structs, constants, types of functions. For callers without a C compiler, such as bindings for
 * other languages, which were made for one version of the headers: they must not use a library that
 * returns a different number. Thread-safe.
 */
NEAP_API uint64_t neap_abi_hash(void);

#ifdef __cplusplus
}
#endif
#endif
