/* SPDX-License-Identifier: Apache-2.0 */
/* step_memory.c: memory of this process or of a device (step_memory.h). */
#include "nn/step_memory.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/memory.h"

#include <errno.h>
#include <string.h>

int neap__step_memory_map(const struct neap_memory_ops *ops, void **at, size_t bytes)
{
	if (!ops)
		return neap__map_pages(at, bytes);
	uint64_t pages = neap__round_up(bytes, 4096);

	*at = ops->map(ops->user, pages);
	if (!*at)
		return neap__fail_errno(ENOMEM, "%zu bytes of device memory", bytes);
	int rc = ops->fill(ops->user, *at, 0, pages);
	if (rc < 0)
		ops->unmap(ops->user, *at, pages);
	return rc;
}

void neap__step_memory_unmap(const struct neap_memory_ops *ops, void *at, size_t bytes)
{
	if (!ops)
		neap__unmap_pages(at, bytes);
	else if (at)
		ops->unmap(ops->user, at, neap__round_up(bytes, 4096));
}

int neap__step_memory_zero(const struct neap_memory_ops *ops, void *at, size_t bytes)
{
	if (ops)
		return ops->fill(ops->user, at, 0, bytes);
	memset(at, 0, bytes);
	return 0;
}

int neap__step_memory_move(
	const struct neap_memory_ops *ops, void *to, const void *from, size_t bytes)
{
	if (ops)
		return ops->move(ops->user, to, from, bytes);
	memcpy(to, from, bytes);
	return 0;
}
