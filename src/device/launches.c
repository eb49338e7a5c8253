/* SPDX-License-Identifier: Apache-2.0 */
/* launches.c: the shape of a launch of each kernel (launches.h). */
#include "device/launches.h"

/* clang-format off */
#define NEAP_X(name, blocks, threads, shared) #name,
/* clang-format on */
static const char *const names[] = {NEAP__DEVICE_KERNELS(NEAP_X)};
#undef NEAP_X

const char *neap__device_kernel_name(enum neap__device_kernel kernel)
{
	return names[kernel];
}

/* Blocks of a cluster, by the arguments of the kernel. */
static int cluster_of(enum neap__device_kernel kernel, const void *arguments)
{
	if (kernel == NEAP__KERNEL_lif_forward_cluster)
		return ((const struct lif_forward_cluster_arguments *)arguments)->shape.blocks;
	if (kernel == NEAP__KERNEL_lif_backward_cluster)
		return ((const struct lif_backward_cluster_arguments *)arguments)->shape.blocks;
	return 0;
}

#define NEAP_X(name, block_count, thread_count, shared)                                            \
	int neap__launch_##name(                                                                   \
		const struct neap__device_launcher *on, const struct name##_arguments *a)          \
	{                                                                                          \
		_Static_assert(sizeof(struct name##_arguments) <= 4096, "what CUDA takes");        \
		struct neap__device_launch launch = {.kernel = NEAP__KERNEL_##name,                \
			.blocks = block_count,                                                     \
			.threads = thread_count,                                                   \
			.cluster = cluster_of(NEAP__KERNEL_##name, a),                             \
			.shared_bytes = shared,                                                    \
			.arguments = a,                                                            \
			.argument_bytes = sizeof *a};                                              \
		return on->launch(on->user, &launch);                                              \
	}
NEAP__DEVICE_KERNELS(NEAP_X)
#undef NEAP_X
