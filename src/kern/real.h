/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real.h: numeric code is written once with `real` and compiled twice: for float, and with
 * -DNEAP_REAL_DOUBLE for double. NEAP_R(name) is the name that a function carries in either build.
 */
#ifndef NEAP_KERN_REAL_H
#define NEAP_KERN_REAL_H

#ifdef NEAP_REAL_DOUBLE
typedef double real;
#define NEAP_R(name) name##_double
#else
typedef float real;
#define NEAP_R(name) name##_float
#endif

#endif
