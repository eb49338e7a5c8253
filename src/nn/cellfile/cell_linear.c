/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_linear.c: the linear system that the step of a cell file is near its initial states while no
 * unit spikes (cell_program.h), by central differences. The first number of the system is the spike
 * condition c. With one state x, the system is (c, x). With two, c = p x after the step, and one of
 * the states is the second number.
 */
#include "nn/cellfile/cell_program.h"

#include <math.h>
#include <string.h>

enum { MOST = 2, RESULTS = MOST + 1 }; /* states, and the spike condition behind them */

/* The states and the spike condition after a step from `input`: states, then `in`. */
static void step(double result[RESULTS], const struct neap__cell_source *s, const double *input)
{
	static _Thread_local double value[NEAP__CELL_NODES];

	for (int i = 0; i < s->graph.count; i++) {
		const struct neap__cell_node *n = &s->graph.node[i];
		if (n->op == NEAP__CELL_CONST)
			value[i] = n->value;
		else if (n->op == NEAP__CELL_STATE)
			value[i] = input[n->a];
		else if (n->op == NEAP__CELL_IN)
			value[i] = input[s->nstates];
		else if (n->op <= NEAP__CELL_RESET_NOW) /* no spikes, no gradients */
			value[i] = 0;
		else
			value[i] = neap__cell_value(n->op, value[n->a], value[n->b], value[n->c]);
	}
	for (int k = 0; k < s->nstates; k++)
		result[k] = value[s->state[k].next];
	result[s->nstates] = value[s->condition];
}

/* slope[i][j]: derivative of result i by input j. */
static void differentiate(double slope[RESULTS][RESULTS], const struct neap__cell_source *s)
{
	double input[RESULTS] = {0}, up[RESULTS], down[RESULTS], h = 1e-5;

	for (int j = 0; j <= s->nstates; j++) {
		input[j] = h;
		step(up, s, input);
		input[j] = -h;
		step(down, s, input);
		input[j] = 0;
		for (int i = 0; i <= s->nstates; i++)
			slope[i][j] = (up[i] - down[i]) / (2 * h);
	}
}

/* The system of two states x with c = p x after the step; 0: there is no such p. */
static int change_basis(struct neap__cell_linear *linear, double s[RESULTS][RESULTS])
{
	double determinant = s[0][0] * s[1][1] - s[0][1] * s[1][0];
	double p[MOST] = {(s[2][0] * s[1][1] - s[2][1] * s[1][0]) / determinant,
		(s[2][1] * s[0][0] - s[2][0] * s[0][1]) / determinant};
	double input = p[0] * s[0][2] + p[1] * s[1][2];
	int kept = fabs(p[0]) >= fabs(p[1]), replaced = !kept;

	if (!(fabs(determinant) > 1e-9) || !(fabs(p[replaced]) > 0) ||
		fabs(input - s[2][2]) > 1e-4 * (fabs(input) + fabs(s[2][2])))
		return 0;
	for (int j = 0; j < MOST; j++) {
		/* x[replaced] = (c - p[kept] x[kept]) / p[replaced] */
		double with[MOST] = {1 / p[replaced], -p[kept] / p[replaced]};
		double x[MOST];
		x[replaced] = with[j];
		x[kept] = j;
		double next[MOST] = {
			s[0][0] * x[0] + s[0][1] * x[1], s[1][0] * x[0] + s[1][1] * x[1]};
		linear->m[0][j] = p[0] * next[0] + p[1] * next[1];
		linear->m[1][j] = next[kept];
	}
	linear->b[0] = input;
	linear->b[1] = s[kept][2];
	return 1;
}

void neap__cell_linearise(struct neap__cell_linear *linear, const struct neap__cell_source *source)
{
	double slope[RESULTS][RESULTS], rest[RESULTS], zero[RESULTS] = {0};

	*linear = (struct neap__cell_linear){0};
	if (source->nstates > MOST)
		return;
	differentiate(slope, source);
	step(rest, source, zero);
	linear->distance = source->threshold - rest[source->nstates];
	if (source->nstates == 1) {
		linear->m[0][1] = slope[1][0];
		linear->m[1][1] = slope[0][0];
		linear->b[0] = slope[1][1];
		linear->b[1] = slope[0][1];
		linear->is_known = 1;
	} else {
		linear->is_known = change_basis(linear, slope);
	}
	/* A step that grows without spikes has no deviation to scale by. */
	double trace = linear->m[0][0] + linear->m[1][1];
	double determinant = linear->m[0][0] * linear->m[1][1] - linear->m[0][1] * linear->m[1][0];
	int is_stable = fabs(determinant) < 1 && fabs(trace) < 1 + determinant;
	linear->is_known &= is_stable && linear->distance > 0;
}
