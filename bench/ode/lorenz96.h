/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lorenz96.h: the Lorenz-96 model on a ring of VARIABLES, x_i' = (x_{i+1} - x_{i-2}) x_{i-1} - x_i
 * + 8, and the transpose of its Jacobian. Both programs of this folder call these functions.
 */
#ifndef NEAP_BENCH_LORENZ96_H
#define NEAP_BENCH_LORENZ96_H

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define VARIABLES 65536
#define STEP 0.002
#define FORCE 8.0

static inline void lorenz_field(const double *x, double *f)
{
	const int n = VARIABLES;
	f[0] = (x[1] - x[n - 2]) * x[n - 1] - x[0] + FORCE;
	f[1] = (x[2] - x[n - 1]) * x[0] - x[1] + FORCE;
	for (int i = 2; i < n - 1; i++)
		f[i] = (x[i + 1] - x[i - 2]) * x[i - 1] - x[i] + FORCE;
	f[n - 1] = (x[0] - x[n - 3]) * x[n - 2] - x[n - 1] + FORCE;
}

/* g = J(x)^T l; x_j occurs in the equations j - 1, j, j + 1 and j + 2. */
static inline void lorenz_back(const double *x, const double *l, double *g)
{
	const int n = VARIABLES;
	for (int j = 2; j < n - 2; j++)
		g[j] = l[j - 1] * x[j - 2] + l[j + 1] * (x[j + 2] - x[j - 1]) -
		       l[j + 2] * x[j + 1] - l[j];
	for (int i = n - 2; i < n + 2; i++) {
		int j = i % n, a = (i - 2) % n, b = (i - 1) % n, c = (i + 1) % n, d = (i + 2) % n;
		g[j] = l[b] * x[a] + l[c] * (x[d] - x[b]) - l[d] * x[c] - l[j];
	}
}

static inline void lorenz_start(double *x)
{
	for (int i = 0; i < VARIABLES; i++)
		x[i] = FORCE + sin(0.7 * i);
}

static inline double lorenz_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Peak resident memory (VmHWM), MB. */
static inline double lorenz_peak(void)
{
	char line[200];
	double kb = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		(void)sscanf(line, "VmHWM: %lf", &kb);
	if (f)
		fclose(f);
	return kb / 1e3;
}

/* Prints one line of CSV: name, seconds, peak, and norm and first components of the gradient. */
static inline void lorenz_report(const char *what, double seconds, const double *gradient)
{
	double sum = 0;
	for (int i = 0; i < VARIABLES; i++)
		sum += gradient[i] * gradient[i];
	printf("%s,%.2f,%.0f,%.12g,%.12g,%.12g\n", what, seconds, lorenz_peak(), sqrt(sum),
		gradient[0], gradient[1]);
}

#endif
