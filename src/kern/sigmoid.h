/* SPDX-License-Identifier: Apache-2.0 */
/* sigmoid.h: the logistic function and the hyperbolic tangent of n numbers, in place. */
#ifndef NEAP_KERN_SIGMOID_H
#define NEAP_KERN_SIGMOID_H

#include "kern/kern.h"

#define neap__sigmoids NEAP_R(neap__sigmoids)
#define neap__tanhs NEAP_R(neap__tanhs)

/* x = 1 / (1 + exp(-x)) */
void neap__sigmoids(real *x, int n);
/* x = tanh x */
void neap__tanhs(real *x, int n);

#endif
