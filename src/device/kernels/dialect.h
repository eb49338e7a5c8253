/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dialect.h: the macros in which the kernels are written, so that one text compiles as CUDA (nvcc),
 * HIP (hipcc), OpenCL C 2.0, and C for the emulator of tests/device/emulator, which runs every GPU
 * thread as a fiber on the CPU.
 *
 * Rules of a kernel text:
 * - It is C99 without function pointers, allocation and recursion.
 * - A product is fused with a sum only by FUSED(). Compilers get -fmad=false (-ffp-contract=off),
 *   and subnormal floats are flushed to 0 (-ftz=true), as the CPU code of neap does.
 * - SYNC() is reached by all threads of a block. The threads of a block form one dimension; their
 *   number is a multiple of 32.
 * - Threads exchange values by shared or device memory and SYNC(), except in VOTE() and SUM16(), or
 *   by device memory alone and SYNC_MEMORY().
 * - An array of a thread has constant indices in loops that UNROLL unrolls, so that it is in
 *   registers. ROLLED before a loop keeps a compiler from unrolling it, which needs registers.
 * - There are no atomic additions of floating-point numbers: every sum has a fixed order.
 *
 * Where HAS_CLUSTERS is 1, blocks of a kernel that was launched in clusters see each other's shared
 * memory (NVIDIA, compute capability 9.0 or more). CLUSTER_RANK is the number of the block in its
 * cluster, and REMOTE(at, rank) where block `rank` has what this block has at `at`. CLUSTER_SYNC()
 * is reached by all threads of all blocks of a cluster, which then see what the others wrote to
 * shared memory. BALLOT(p) has a bit for each thread of a warp, all of which call it. No block of a
 * cluster writes to another one before the first or after the last barrier, since that block may
 * not have begun, or have ended. Elsewhere, kernels of clusters are empty and never launched.
 *
 * Where HAS_MMA is 1 (NVIDIA, compute capability 8.0 or more), warps multiply small matrices on
 * tensor cores, with the registers of the PTX manual: MMA_BF16(d, a, b) is mma.m16n8k16 of
 * bfloat16 and MMA_TF32(d, a, b) is mma.m16n8k8 of TF32, d[4] += a[4] b[2] in float.
 * BF16_PAIR(low, high) rounds two floats to nearest, ties to even, and TF32_OF(x) one to nearest,
 * ties away from zero, which sm_80 has as well. Order and rounding of the additions inside an
 * instruction are those of the device. ASYNC_COPY(to, from, is_there) begins to copy a number to
 * shared memory, or 0 if it is not there; ASYNC_COMMIT() ends a group of copies, and ASYNC_WAIT(n)
 * waits until all groups of the thread but the last n, a constant, are there; others see them after
 * SYNC(). Elsewhere, kernels of products on tensor cores do nothing and are never launched.
 *
 * A kernel is a function with one argument, a structure that kernels.h defines:
 *     KERNEL(name)
 *     {
 *             SHARED_BEGIN();
 *             SHARED(float, row, count);
 *             ... arg.field ...
 *     }
 * The sizes of the arrays in shared memory may depend on the argument. The caller passes their sum.
 */
#ifndef NEAP_DEVICE_KERNELS_DIALECT_H
#define NEAP_DEVICE_KERNELS_DIALECT_H

/* Each array in shared memory begins at a multiple of 16 bytes, as kernels.h computes their sum. */
#define SHARED_ROUND(bytes) (((bytes) + 15) & ~15u)

#if defined(__OPENCL_VERSION__)

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define KERNEL(name)                                                                               \
	kernel void name(const struct name##_arguments arg, local unsigned char *shared_memory)
#define KERNEL_TWO(name) KERNEL(name)
#define G global
#define L local
#define THREAD ((int)get_local_id(0))
#define BLOCK ((int)get_group_id(0))
#define THREADS ((int)get_local_size(0))
#define SYNC() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define SYNC_MEMORY() barrier(CLK_GLOBAL_MEM_FENCE)
#define SHARED_BEGIN() unsigned shared_used = 0
#define SHARED(type, name, count)                                                                  \
	L type *const name = (L type *)(shared_memory + shared_used);                              \
	shared_used += SHARED_ROUND((unsigned)(count) * (unsigned)sizeof(type))
#define FUSED(a, b, c) fma(a, b, c)
#define POPULATION(x) ((int)popcount((u32)(x)))
#define LOWEST(x) (31 - (int)clz((u32)(x) & -(u32)(x)))
#define OR_SHARED(at, bits) atomic_or((volatile local u32 *)(at), bits)
#define OR_GLOBAL(at, bits) atomic_or((volatile global u32 *)(at), bits)
#define ADD_GLOBAL(at, count) atomic_add((volatile global u32 *)(at), count)
#define LOAD4(to, from)                                                                            \
	do {                                                                                       \
		float4 four_ = vload4(0, from);                                                    \
		(to)[0] = four_.x;                                                                 \
		(to)[1] = four_.y;                                                                 \
		(to)[2] = four_.z;                                                                 \
		(to)[3] = four_.w;                                                                 \
	} while (0)
#define HAS_MMA 0
#define BITS_OF(x) as_uint(x)
#define FLOAT_OF(bits) as_float(bits)
#define BITS64_OF(x) as_ulong(x)
#define DOUBLE_OF(bits) as_double(bits)
#define KERNEL_TILE(name) KERNEL(name)
#define KERNEL_CLUSTER(name) KERNEL(name)
#define HAS_CLUSTERS 0
#define INLINE static inline
#define UNROLL
#define ROLLED

#elif defined(__CUDACC__) || defined(__HIPCC__)

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#endif
extern __shared__ unsigned char shared_memory[];
/*
 * With blocks of up to 1,024 threads a kernel may use 64 registers, which is just enough. Without
 * the 1, nvcc keeps to 32 for sm_80, so that two such blocks fit, and uses memory instead.
 */
#define KERNEL(name)                                                                               \
	extern "C" __global__ void __launch_bounds__(1024, 1)                                      \
		name(const struct name##_arguments arg)
/*
 * A kernel with a second function, NAME_two, for blocks of at most DEVICE_TWO_THREADS threads: it
 * uses so few registers that a multiprocessor runs two such blocks at a time.
 */
#if defined(__HIPCC__)
#define KERNEL_TWO(name) KERNEL(name)
#else
#define KERNEL_TWO(name)                                                                           \
	INLINE void name##_body(const struct name##_arguments &arg);                               \
	KERNEL(name)                                                                               \
	{                                                                                          \
		name##_body(arg);                                                                  \
	}                                                                                          \
	extern "C" __global__ void __launch_bounds__(DEVICE_TWO_THREADS, 2)                        \
		name##_two(const struct name##_arguments arg)                                      \
	{                                                                                          \
		name##_body(arg);                                                                  \
	}                                                                                          \
	INLINE void name##_body(const struct name##_arguments &arg)
#endif
#define G
#define L
#define THREAD ((int)threadIdx.x)
#define BLOCK ((int)blockIdx.x)
#define THREADS ((int)blockDim.x)
#define SYNC() __syncthreads()
#define SYNC_MEMORY() __syncthreads()
#define SHARED_BEGIN() unsigned shared_used = 0
#define SHARED(type, name, count)                                                                  \
	type *const name = (type *)(shared_memory + shared_used);                                  \
	shared_used += SHARED_ROUND((unsigned)(count) * (unsigned)sizeof(type))
#define FUSED(a, b, c) __fmaf_rn(a, b, c)
#define POPULATION(x) __popc(x)
#define LOWEST(x) (__ffs((int)(x)) - 1)
#define OR_SHARED(at, bits) atomicOr(at, bits)
#define OR_GLOBAL(at, bits) atomicOr(at, bits)
/* Adds a whole number: any order gives the same sum. */
#define ADD_GLOBAL(at, count) atomicAdd(at, count)
/* to[0..3] = from[0..3] of shared memory, a multiple of 16 bytes from its start. */
#define LOAD4(to, from)                                                                            \
	do {                                                                                       \
		float4 four_ = *(const float4 *)(from);                                            \
		(to)[0] = four_.x;                                                                 \
		(to)[1] = four_.y;                                                                 \
		(to)[2] = four_.z;                                                                 \
		(to)[3] = four_.w;                                                                 \
	} while (0)
#define BITS_OF(x) __float_as_uint(x)
#define FLOAT_OF(bits) __uint_as_float(bits)
#define BITS64_OF(x) ((u64)__double_as_longlong(x))
#define DOUBLE_OF(bits) __longlong_as_double((long long)(bits))
/* A kernel of blocks of DEVICE_TILE_THREADS threads, which may use more registers each. */
#define KERNEL_TILE(name)                                                                          \
	extern "C" __global__ void __launch_bounds__(DEVICE_TILE_THREADS)                          \
		name(const struct name##_arguments arg)
/* A kernel of blocks of at most DEVICE_CLUSTER_THREADS threads that form clusters. */
#define KERNEL_CLUSTER(name)                                                                       \
	extern "C" __global__ void __launch_bounds__(DEVICE_CLUSTER_THREADS, 1)                    \
		name(const struct name##_arguments arg)
#if defined(__CUDA_ARCH__) && !defined(__HIPCC__) && __CUDA_ARCH__ >= 900
#define HAS_CLUSTERS 1
#define CLUSTER_RANK ((int)__clusterRelativeBlockIdx().x)
#define CLUSTER_SYNC()                                                                             \
	asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::         \
			     : "memory")
#define REMOTE(at, rank)                                                                           \
	((decltype(&*(at)))__cluster_map_shared_rank((const void *)(at), (unsigned)(rank)))
#define BALLOT(p) __ballot_sync(0xffffffffu, (p))
#else
#define HAS_CLUSTERS 0
#endif
#if defined(__CUDA_ARCH__) && !defined(__HIPCC__) && __CUDA_ARCH__ >= 800
#define HAS_MMA 1
#define BF16_PAIR(low, high) cuda_bf16_pair(low, high)
#define TF32_OF(x) cuda_tf32(x)
static __device__ __forceinline__ unsigned cuda_bf16_pair(float low, float high)
{
	unsigned pair;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
	return pair;
}
static __device__ __forceinline__ unsigned cuda_tf32(float x)
{
	unsigned bits;
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
	return bits;
}
#define ASYNC_COPY(to, from, is_there)                                                             \
	asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(                         \
			     (unsigned)__cvta_generic_to_shared(to)),                              \
		     "l"(__cvta_generic_to_global(from)), "r"((is_there) ? 4 : 0)                  \
		     : "memory")
#define ASYNC_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define ASYNC_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define CUDA_MMA(shape_and_types, d, a, b)                                                         \
	asm volatile(                                                                              \
		"mma.sync.aligned." shape_and_types                                                \
		" {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                 \
		: "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3])                           \
		: "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))
#define MMA_BF16(d, a, b) CUDA_MMA("m16n8k16.row.col.f32.bf16.bf16.f32", d, a, b)
#define MMA_TF32(d, a, b) CUDA_MMA("m16n8k8.row.col.f32.tf32.tf32.f32", d, a, b)
#else
#define HAS_MMA 0
#endif
#define INLINE static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")

#else

#include "emulator.h"
#include <math.h>
#define KERNEL(name) static void name(const struct name##_arguments arg)
#define KERNEL_TWO(name) KERNEL(name)
#define G
#define L
#define THREAD emulator_thread.thread
#define BLOCK emulator_thread.block
#define THREADS emulator_thread.threads
#define SYNC() emulator_sync(__FILE__, __LINE__)
#define SYNC_MEMORY() SYNC()
#define SHARED_BEGIN() struct emulated_shared shared_used = {0, 0}
#define SHARED(type, name, count)                                                                  \
	type *const name = (type *)emulator_shared(&shared_used,                                   \
		SHARED_ROUND((unsigned)(count) * (unsigned)sizeof(type)),                          \
		(unsigned)(count) * (unsigned)sizeof(type))
#define FUSED(a, b, c) __builtin_fmaf(a, b, c)
#define POPULATION(x) __builtin_popcount(x)
#define LOWEST(x) __builtin_ctz(x)
#define OR_SHARED(at, bits) (*(at) |= (bits))
#define OR_GLOBAL(at, bits) (*(at) |= (bits))
#define ADD_GLOBAL(at, count) (*(at) += (count))
#define LOAD4(to, from)                                                                            \
	do {                                                                                       \
		for (int i_ = 0; i_ < 4; i_++)                                                     \
			(to)[i_] = (from)[i_];                                                     \
	} while (0)
#define BITS_OF(x) neap__float_bits(x)
#define FLOAT_OF(bits) neap__bits_float(bits)
#define BITS64_OF(x) neap__double_bits(x)
#define DOUBLE_OF(bits) neap__bits_double(bits)
#define KERNEL_TILE(name) KERNEL(name)
#define KERNEL_CLUSTER(name) KERNEL(name)
#define HAS_CLUSTERS 1
#define CLUSTER_RANK emulator_thread.rank
#define CLUSTER_SYNC() emulator_cluster_sync(__FILE__, __LINE__)
#define REMOTE(at, rank) ((__typeof__(&*(at)))emulator_remote(at, rank))
#define BALLOT(p) emulator_ballot(p)
#define HAS_MMA 1
#define BF16_PAIR(low, high) mma_bf16_pair(low, high)
#define TF32_OF(x) mma_tf32(x)
#define ASYNC_COPY(to, from, is_there) emulator_copy(to, (is_there) ? (from) : NULL)
#define ASYNC_COMMIT() emulator_copies_end()
#define ASYNC_WAIT(n) emulator_copies_wait(n)
#define MMA_BF16(d, a, b) emulator_mma(MMA_KIND_BF16, d, a, b)
#define MMA_TF32(d, a, b) emulator_mma(MMA_KIND_TF32, d, a, b)
#define INLINE static inline
#define UNROLL
#define ROLLED

#endif

/*
 * VOTE(words, i, p): sets bit i of the bitmap `words` in shared memory if p. i is the number of the
 * thread plus a multiple of 32 that is equal in its warp, and all threads of the warp vote. The
 * words are 0 before; the bits are there after the next SYNC(). A warp of NVIDIA has 32 threads;
 * waves of AMD may have 64, so that other compilers set bits by atomic operations.
 */
#if defined(__CUDACC__) && !defined(__HIPCC__)
#define VOTE(words, i, p)                                                                          \
	do {                                                                                       \
		u32 ballot_ = __ballot_sync(0xffffffffu, (p));                                     \
		if (((i)&31) == 0)                                                                 \
			(words)[(i) >> 5] = ballot_;                                               \
	} while (0)
#else
#define VOTE(words, i, p)                                                                          \
	do {                                                                                       \
		if (p)                                                                             \
			OR_SHARED(&(words)[(i) >> 5], 1u << ((i)&31));                             \
	} while (0)
#endif

/*
 * SUM16(x, room): x becomes the sum of the x of 16 neighbouring threads, whose first number is a
 * multiple of 16, in the order in which the AVX-512 kernels of neap add up the lanes of a vector:
 * halves are added until one is left. All threads of the block take part. `room` has SUM16_ROOM
 * floats in shared memory.
 */
#if defined(__HIPCC__)
#define SUM16_ROOM(threads) 0
#define SUM16(x, room)                                                                             \
	do {                                                                                       \
		for (int by_ = 8; by_; by_ >>= 1)                                                  \
			x += __shfl_xor(x, by_, 16);                                               \
	} while (0)
#elif defined(__CUDACC__)
#define SUM16_ROOM(threads) 0
#define SUM16(x, room)                                                                             \
	do {                                                                                       \
		for (int by_ = 8; by_; by_ >>= 1)                                                  \
			x += __shfl_xor_sync(0xffffffffu, x, by_, 16);                             \
	} while (0)
#elif defined(__OPENCL_VERSION__)
#define SUM16_ROOM(threads) (threads)
#define SUM16(x, room)                                                                             \
	do {                                                                                       \
		for (int by_ = 8; by_; by_ >>= 1) {                                                \
			(room)[THREAD] = x;                                                        \
			SYNC();                                                                    \
			x += (room)[THREAD ^ by_];                                                 \
			SYNC();                                                                    \
		}                                                                                  \
	} while (0)
#else
#define SUM16_ROOM(threads) 0
#define SUM16(x, room) (x = emulator_sum16(x))
#endif

#endif
