/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lorenz96_petsc.c: the same gradient with PETSc's TSAdjoint. PETSc's options select what is
 * stored:
 *
 *     lorenz96_petsc NAME -ts_trajectory_type memory|basic [-ts_trajectory_solution_only]
 *         [-ts_trajectory_max_cps_ram N] [-ts_trajectory_dirname FOLDER]
 */
#include <petscts.h>
#include "lorenz96.h"

static double here[VARIABLES]; /* the point at which the derivative is evaluated */

static PetscErrorCode field(TS ts, PetscReal t, Vec x, Vec f, void *user)
{
	const PetscScalar *from;
	PetscScalar *to;
	(void)ts, (void)t, (void)user;
	PetscCall(VecGetArrayRead(x, &from));
	PetscCall(VecGetArray(f, &to));
	lorenz_field(from, to);
	PetscCall(VecRestoreArray(f, &to));
	PetscCall(VecRestoreArrayRead(x, &from));
	return 0;
}

static PetscErrorCode derivative(TS ts, PetscReal t, Vec x, Mat a, Mat b, void *user)
{
	const PetscScalar *from;
	(void)ts, (void)t, (void)a, (void)b, (void)user;
	PetscCall(VecGetArrayRead(x, &from));
	memcpy(here, from, sizeof here);
	PetscCall(VecRestoreArrayRead(x, &from));
	return 0;
}

static PetscErrorCode transpose(Mat a, Vec l, Vec g)
{
	const PetscScalar *from;
	PetscScalar *to;
	(void)a;
	PetscCall(VecGetArrayRead(l, &from));
	PetscCall(VecGetArray(g, &to));
	lorenz_back(here, from, to);
	PetscCall(VecRestoreArray(g, &to));
	PetscCall(VecRestoreArrayRead(l, &from));
	return 0;
}

int main(int argc, char **argv)
{
	TS ts;
	Vec x, l;
	Mat j;
	PetscScalar *values;
	const char *name = argc > 1 ? argv[1] : "petsc";
	PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
	PetscCall(VecCreateSeq(PETSC_COMM_SELF, VARIABLES, &x));
	PetscCall(VecDuplicate(x, &l));
	PetscCall(MatCreateShell(
		PETSC_COMM_SELF, VARIABLES, VARIABLES, VARIABLES, VARIABLES, NULL, &j));
	PetscCall(MatShellSetOperation(j, MATOP_MULT_TRANSPOSE, (void (*)(void))transpose));
	PetscCall(TSCreate(PETSC_COMM_SELF, &ts));
	PetscCall(TSSetProblemType(ts, TS_NONLINEAR));
	PetscCall(TSSetType(ts, TSRK));
	PetscCall(TSRKSetType(ts, TSRK4));
	PetscCall(TSSetRHSFunction(ts, NULL, field, NULL));
	PetscCall(TSSetRHSJacobian(ts, j, j, derivative, NULL));
	PetscCall(TSSetTimeStep(ts, STEP));
	PetscCall(TSSetMaxSteps(ts, 1000));
	PetscCall(TSSetMaxTime(ts, 1e9));
	PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
	PetscCall(TSSetSaveTrajectory(ts));
	PetscCall(TSSetFromOptions(ts));
	TSAdapt adapt;
	PetscCall(TSGetAdapt(ts, &adapt));
	PetscCall(TSAdaptSetType(adapt, TSADAPTNONE));
	PetscCall(VecGetArray(x, &values));
	lorenz_start(values);
	PetscCall(VecRestoreArray(x, &values));
	double start = lorenz_seconds();
	PetscCall(TSSolve(ts, x));
	PetscCall(VecCopy(x, l));
	PetscCall(TSSetCostGradients(ts, 1, &l, NULL));
	PetscCall(TSAdjointSolve(ts));
	double seconds = lorenz_seconds() - start;
	PetscCall(VecGetArray(l, &values));
	lorenz_report(name, seconds, values);
	PetscCall(VecRestoreArray(l, &values));
	PetscCall(TSDestroy(&ts));
	PetscCall(VecDestroy(&x));
	PetscCall(VecDestroy(&l));
	PetscCall(MatDestroy(&j));
	PetscCall(PetscFinalize());
	return 0;
}
