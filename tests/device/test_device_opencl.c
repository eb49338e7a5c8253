/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_opencl.c: the text of the kernels as OpenCL C, compiled and run by PoCL on the CPU: a
 * second compiler, and a second implementation of barriers. PoCL's device is the CPU, so that
 * kernels can use any address of the process. Skipped where OpenCL or a CPU device is not
 * installed.
 */
#include "emulated_net.h"

#ifdef HAS_OPENCL
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>

static struct {
	cl_context context;
	cl_command_queue queue;
	cl_device_id device;
	cl_program program;
	cl_kernel kernel[NEAP__DEVICE_KERNEL_COUNT];
} opencl;

/* Finds a CPU; returns 0 if there is none. */
static int find_device(void)
{
	cl_platform_id platforms[8];
	cl_uint count = 0;

	if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS)
		return 0;
	for (cl_uint i = 0; i < count && i < 8; i++)
		if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &opencl.device, NULL) ==
			CL_SUCCESS)
			return 1;
	return 0;
}

static void print_log(void)
{
	static char log[20000];

	clGetProgramBuildInfo(
		opencl.program, opencl.device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
	fprintf(stderr, "# %s\n", log);
}

static void build(void)
{
	const char *folder = getenv("NEAP_SOURCE"), *text = "#include \"kernels.k\"\n";
	char options[4200];
	/* With optimisation, PoCL 3.1 drops the bound of the loop over units after the last
	 * barrier. */
	cl_int rc;

	snprintf(options, sizeof options,
		"-cl-opt-disable -cl-std=CL2.0 -cl-denorms-are-zero -I%s/src/device/kernels",
		folder ? folder : ".");
	opencl.context = clCreateContext(NULL, 1, &opencl.device, NULL, NULL, &rc);
	assert_int_equal(rc, CL_SUCCESS);
	opencl.queue = clCreateCommandQueueWithProperties(opencl.context, opencl.device, NULL, &rc);
	assert_int_equal(rc, CL_SUCCESS);
	opencl.program = clCreateProgramWithSource(opencl.context, 1, &text, NULL, &rc);
	assert_int_equal(rc, CL_SUCCESS);
	rc = clBuildProgram(opencl.program, 1, &opencl.device, options, NULL, NULL);
	if (rc != CL_SUCCESS)
		print_log();
	assert_int_equal(rc, CL_SUCCESS);
	for (int i = 0; i < NEAP__DEVICE_KERNEL_COUNT; i++) {
		opencl.kernel[i] = clCreateKernel(
			opencl.program, neap__device_kernel_name((enum neap__device_kernel)i), &rc);
		assert_int_equal(rc, CL_SUCCESS);
	}
}

static int launch(void *user, const struct neap__device_launch *l)
{
	size_t threads = (size_t)l->threads, all = threads * (size_t)l->blocks;
	/* OpenCL has SUM16 in shared memory, a number per thread. */
	size_t shared = l->shared_bytes + threads * sizeof(float) + 16;
	cl_kernel kernel = opencl.kernel[l->kernel];

	(void)user;
	if (clSetKernelArg(kernel, 0, l->argument_bytes, l->arguments) ||
		clSetKernelArg(kernel, 1, shared, NULL) ||
		clEnqueueNDRangeKernel(
			opencl.queue, kernel, 1, NULL, &all, &threads, 0, NULL, NULL) ||
		clFinish(opencl.queue))
		return -1;
	return 0;
}

static void same_bits(void **arg)
{
	static const char *const specs[] = {"lif:40r:reset=subtract,li",
		"lif:40r:reset=zero,lif:33r:reset=soft,li", "lif:40r:reset=hard:width=4,li",
		"cubalif:33r:reset=soft,alif:20,adlif:9r,li"};

	(void)arg;
	if (!find_device()) {
		printf("# SKIP OpenCL has no CPU device here\n");
		skip();
	}
	build();
	for (int i = 0; i < 4; i++) {
		struct emulated_case c = emulated_case_make(specs[i], 5, 70, 0.2);
		c.launch = launch;
		emulated_case_run(&c);
		const char *wrong = emulated_case_compare(&c, 1);
		if (wrong)
			fprintf(stderr, "# %s: %s\n", specs[i], wrong);
		assert_null(wrong);
		emulated_case_free(&c);
	}
	for (int i = 0; i < NEAP__DEVICE_KERNEL_COUNT; i++)
		clReleaseKernel(opencl.kernel[i]);
	clReleaseProgram(opencl.program);
	clReleaseCommandQueue(opencl.queue);
	clReleaseContext(opencl.context);
}
#else
static void same_bits(void **arg)
{
	(void)arg;
	printf("# SKIP OpenCL is not installed\n");
	skip();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
