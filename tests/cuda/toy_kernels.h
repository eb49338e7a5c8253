/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toy_kernels.h: a chain of `n` numbers with weights, as functions that run on the host, for the
 * reference, and as kernels of the fake driver. A tape is the state before the step.
 */
#ifndef NEAP_TEST_TOY_KERNELS_H
#define NEAP_TEST_TOY_KERNELS_H

#include <stdint.h>
#include <string.h>

static inline float toy_force(int64_t t, int i)
{
	return (float)((t * 7919 + i * 104729) % 1009 - 504) / 2018;
}

/* Steps [t0, t1); tape NULL: nothing is recorded. */
static inline void toy_forward(float *x, float *tape, const float *w, int n, int64_t t0, int64_t t1)
{
	for (int64_t t = t0; t < t1; t++) {
		float first = x[0];
		if (tape)
			memcpy(tape + (t - t0) * n, x, (size_t)n * sizeof *x);
		for (int i = 0; i < n; i++) {
			float next = i + 1 < n ? x[i + 1] : first;
			x[i] = 0.9f * x[i] + 0.1f * w[i] * next / (1 + x[i] * x[i]) +
			       toy_force(t, i);
		}
	}
}

static inline void toy_backward(
	float *dx, const float *tape, const float *w, double *dw, int n, int64_t t1, int64_t t0)
{
	for (int64_t t = t1 - 1; t >= t0; t--) {
		const float *x = tape + (t - t0) * n;
		float carry = 0;
		for (int i = 0; i < n; i++) {
			float next = x[(i + 1) % n], q = 1 + x[i] * x[i], d = dx[i];
			dw[i] += 0.1f * d * next / q;
			dx[i] = d * (0.9f - 0.1f * w[i] * next * 2 * x[i] / (q * q)) + carry;
			carry = 0.1f * d * w[i] / q;
		}
		dx[0] += carry;
	}
}

static inline void toy_turn(const float *x, float *dx, double *loss, int n)
{
	*loss = 0;
	for (int i = 0; i < n; i++) {
		*loss += 0.5 * x[i] * x[i] * (i + 1);
		dx[i] = x[i] * (float)(i + 1);
	}
}

#endif
