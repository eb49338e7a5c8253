/* SPDX-License-Identifier: Apache-2.0 */
/* filter_reference.h: plain products with shared weights (struct neap__filter), of the reference
 * table.
 */
#ifndef NEAP_KERN_FILTER_REFERENCE_H
#define NEAP_KERN_FILTER_REFERENCE_H

#include "kern/kern.h"

#define neap__filter_add NEAP_R(neap__filter_add)
#define neap__filter_dot NEAP_R(neap__filter_dot)
#define neap__filter_grad NEAP_R(neap__filter_grad)

/* As the functions of struct neap__row_ops. */
void neap__filter_add(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);
void neap__filter_dot(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);
void neap__filter_grad(
	real *g, const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);

#endif
