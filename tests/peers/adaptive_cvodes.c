/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adaptive_cvodes.c: the gradient of examples/08_adaptive.c by SUNDIALS' CVODES: the adjoint of
 * the differential equation, solved backwards by a method of its own (Adams). Prints the slope by
 * the damping and that by every first value, one a line.
 *
 *     adaptive_cvodes UNTIL TOLERANCE
 */
#include <cvodes/cvodes.h>
#include <nvector/nvector_serial.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define RING 64
#define DAMPING 2.0
#define COUPLING 0.5

static void must(int rc, const char *what)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %d\n", what, rc);
		exit(1);
	}
}

static int right(realtype t, N_Vector y, N_Vector f, void *user)
{
	const realtype *u = N_VGetArrayPointer(y), *v = u + RING;
	realtype *du = N_VGetArrayPointer(f), *dv = du + RING;
	(void)t, (void)user;
	for (int i = 0; i < RING; i++) {
		realtype spring = u[(i + 1) % RING] + u[(i + RING - 1) % RING] - 2 * u[i];
		du[i] = v[i];
		dv[i] = DAMPING * (1 - u[i] * u[i]) * v[i] - u[i] + COUPLING * spring;
	}
	return 0;
}

/* l' = - (df/dy)^T l */
static int adjoint(realtype t, N_Vector y, N_Vector l, N_Vector f, void *user)
{
	const realtype *u = N_VGetArrayPointer(y), *v = u + RING;
	const realtype *lu = N_VGetArrayPointer(l), *lv = lu + RING;
	realtype *du = N_VGetArrayPointer(f), *dv = du + RING;
	(void)t, (void)user;
	for (int i = 0; i < RING; i++) {
		realtype spring = lv[(i + 1) % RING] + lv[(i + RING - 1) % RING] - 2 * lv[i];
		du[i] = lv[i] * (1 + 2 * DAMPING * u[i] * v[i]) - COUPLING * spring;
		dv[i] = -lu[i] - lv[i] * DAMPING * (1 - u[i] * u[i]);
	}
	return 0;
}

/* The integral over time of l^T df/d(damping), backwards. */
static int damping(realtype t, N_Vector y, N_Vector l, N_Vector q, void *user)
{
	const realtype *u = N_VGetArrayPointer(y), *v = u + RING;
	const realtype *lv = N_VGetArrayPointer(l) + RING;
	realtype sum = 0;
	(void)t, (void)user;
	for (int i = 0; i < RING; i++)
		sum -= lv[i] * (1 - u[i] * u[i]) * v[i];
	N_VGetArrayPointer(q)[0] = sum;
	return 0;
}

int main(int argc, char **argv)
{
	double until = argc > 1 ? strtod(argv[1], NULL) : 40;
	double tolerance = argc > 2 ? strtod(argv[2], NULL) : 1e-11;
	SUNContext context;
	realtype t;
	int checkpoints, which;
	must(SUNContext_Create(NULL, &context), "SUNContext_Create");
	N_Vector y = N_VNew_Serial(2 * RING, context), l = N_VNew_Serial(2 * RING, context);
	N_Vector q = N_VNew_Serial(1, context);
	realtype *u = N_VGetArrayPointer(y);
	for (int i = 0; i < RING; i++) {
		u[i] = 1.5 * cos(0.2 * i * i);
		u[RING + i] = 0.5 * sin(1.7 * i);
	}
	void *solver = CVodeCreate(CV_ADAMS, context);
	SUNNonlinearSolver forward = SUNNonlinSol_FixedPoint(y, 0, context);
	SUNNonlinearSolver back = SUNNonlinSol_FixedPoint(l, 0, context);
	must(CVodeInit(solver, right, 0, y), "CVodeInit");
	must(CVodeSStolerances(solver, tolerance, tolerance), "CVodeSStolerances");
	must(CVodeSetNonlinearSolver(solver, forward), "CVodeSetNonlinearSolver");
	must(CVodeSetMaxNumSteps(solver, 10000000), "CVodeSetMaxNumSteps");
	must(CVodeAdjInit(solver, 200, CV_POLYNOMIAL), "CVodeAdjInit");
	must(CVodeF(solver, until, y, &t, CV_NORMAL, &checkpoints), "CVodeF");
	N_VConst(0, l);
	N_VConst(0, q);
	for (int i = 0; i < RING; i++)
		N_VGetArrayPointer(l)[i] = u[i] - sin(0.3 * i);
	must(CVodeCreateB(solver, CV_ADAMS, &which), "CVodeCreateB");
	must(CVodeInitB(solver, which, adjoint, until, l), "CVodeInitB");
	must(CVodeSStolerancesB(solver, which, tolerance, tolerance), "CVodeSStolerancesB");
	must(CVodeSetNonlinearSolverB(solver, which, back), "CVodeSetNonlinearSolverB");
	must(CVodeSetMaxNumStepsB(solver, which, 10000000), "CVodeSetMaxNumStepsB");
	must(CVodeQuadInitB(solver, which, damping, q), "CVodeQuadInitB");
	must(CVodeSetQuadErrConB(solver, which, 1), "CVodeSetQuadErrConB");
	must(CVodeQuadSStolerancesB(solver, which, tolerance, tolerance), "CVodeQuadSStolerancesB");
	must(CVodeB(solver, 0, CV_NORMAL), "CVodeB");
	must(CVodeGetB(solver, which, &t, l), "CVodeGetB");
	must(CVodeGetQuadB(solver, which, &t, q), "CVodeGetQuadB");
	printf("%.17g\n", N_VGetArrayPointer(q)[0]);
	for (int i = 0; i < 2 * RING; i++)
		printf("%.17g\n", N_VGetArrayPointer(l)[i]);
	return 0;
}
