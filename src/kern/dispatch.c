/* SPDX-License-Identifier: Apache-2.0 */
#include "kern/kern.h"

const struct neap__kernels *neap__kernels_get(void)
{
	return &neap__kernels_reference;
}
