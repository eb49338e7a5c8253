/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cell.c: matrices of cells, and their tables (linear_cell.h). */
#include "nn/linear_cell.h"
#include "nn/cellfile/cell_program.h"
#include "nn/core/cell.h"
#include "nn/time_unit.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POWERS = 1 << 10 }; /* of the table; longer ways are several of it */

static double decay_of(const struct neap_net_options *o, double step, double tau)
{
	return o->euler ? fmax(1 - step / tau, 0) : exp(-step / tau);
}

static void fill_matrix(struct neap__linear_cell *cell, const struct neap_net_options *o,
	const struct neap__layer *layer)
{
	int traits = layer->cell->traits;
	double beta = decay_of(o, cell->step, layer->tau);

	if (traits & NEAP__OSCILLATES) { /* u = k u - x v + dt s; v = x u + k v */
		double x = fmin(cell->step * layer->omega, 1);
		cell->m[0][0] = cell->m[1][1] = sqrt(1 - x * x) - cell->step * layer->b;
		cell->m[0][1] = -x;
		cell->m[1][0] = x;
		cell->b[0] = cell->step;
		return;
	}
	cell->m[0][0] = beta;
	cell->b[0] = 1;
	if (traits & NEAP__HAS_SYNAPSE) { /* I = alpha I + s; u = beta u + I */
		double alpha = decay_of(o, cell->step, layer->tau_syn);
		cell->m[0][1] = cell->m[1][1] = alpha;
		cell->b[1] = 1;
	} else if (traits &
		   NEAP__HAS_COUPLING) { /* w = rho w + a u; u = beta u + (1 - beta)(s - w) */
		double rho = decay_of(o, cell->step, layer->tau_adapt);
		double a = layer->a / neap__unit_leak(o, layer->tau_adapt);
		cell->m[1][0] = a;
		cell->m[1][1] = rho;
		cell->m[0][0] -= (1 - beta) * a;
		cell->m[0][1] = -(1 - beta) * rho;
		cell->b[0] = 1 - beta;
	} else if (traits & NEAP__HAS_SCALED_COUPLING) {
		/* u = beta u + (1 - beta)(s - w); w = rho w + (1 - rho) a u, of the new u */
		double rho = decay_of(o, cell->step, layer->tau_adapt), a = (1 - rho) * layer->a;
		cell->m[0][1] = beta - 1;
		cell->m[1][0] = a * beta;
		cell->m[1][1] = rho - a * (1 - beta);
		cell->b[0] = 1 - beta;
		cell->b[1] = a * (1 - beta);
	}
}

static void fill_tables(struct neap__linear_cell *cell)
{
	cell->power[0][0][0] = cell->power[0][1][1] = 1;
	for (int k = 1; k <= POWERS; k++) {
		double(*to)[2] = cell->power[k], (*from)[2] = cell->power[k - 1];
		for (int i = 0; i < 2; i++)
			for (int j = 0; j < 2; j++)
				to[i][j] = cell->m[i][0] * from[0][j] + cell->m[i][1] * from[1][j];
		cell->square[k][0] = cell->square[k - 1][0] + to[0][0] * to[0][0];
		cell->square[k][1] = cell->square[k - 1][1] + 2 * to[0][0] * to[0][1];
		cell->square[k][2] = cell->square[k - 1][2] + to[0][1] * to[0][1];
	}
}

int neap__linear_cell_make(
	struct neap__linear_cell *cell, const struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap_net_options *o = &net->options;

	const struct neap__cell_program *program = layer->program;

	*cell = (struct neap__linear_cell){
		.step = o->time_unit > 0 && !program ? o->time_unit : o->dt,
		.threshold = program ? program->linear.distance : layer->threshold};
	if (program ? !program->linear.is_known
		    : !(layer->cell->traits & (NEAP__HAS_LEAK | NEAP__OSCILLATES)) ||
				layer->cell->readout)
		return 0;
	cell->power = calloc(POWERS + 1, sizeof *cell->power);
	cell->square = calloc(POWERS + 1, sizeof *cell->square);
	if (!cell->power || !cell->square) {
		neap__linear_cell_free(cell);
		return neap__fail_errno(ENOMEM, "tables of %d steps", POWERS);
	}
	if (program) {
		memcpy(cell->m, program->linear.m, sizeof cell->m);
		memcpy(cell->b, program->linear.b, sizeof cell->b);
	} else {
		fill_matrix(cell, o, layer);
	}
	fill_tables(cell);
	return 1;
}

void neap__linear_cell_free(struct neap__linear_cell *cell)
{
	free(cell->power);
	free(cell->square);
}

double neap__linear_cell_move(const struct neap__linear_cell *cell, double x[2], double steps)
{
	double sum = 0;

	while (steps > 0 && (x[0] != 0 || x[1] != 0)) {
		int k = steps < POWERS ? (int)steps : POWERS;
		const double(*p)[2] = (const double(*)[2])cell->power[k], *s = cell->square[k];
		double u = x[0], w = x[1];
		sum += s[0] * u * u + s[1] * u * w + s[2] * w * w;
		x[0] = p[0][0] * u + p[0][1] * w;
		x[1] = p[1][0] * u + p[1][1] * w;
		/* What has died away is 0, and not a number that takes longer to compute with. */
		if (fabs(x[0]) + fabs(x[1]) < 1e-30)
			x[0] = x[1] = 0;
		steps -= k;
	}
	return sum;
}

double neap__linear_cell_mean_square(const struct neap__linear_cell *cell, double chance)
{
	double x[2] = {cell->b[0], cell->b[1]}, p = fmin(chance, 1), sum = 0;
	double squares = x[0] * x[0] + neap__linear_cell_move(cell, x, 64 * POWERS);

	x[0] = cell->b[0];
	x[1] = cell->b[1];
	for (int k = 0; k < POWERS; k++) {
		sum += x[0];
		neap__linear_cell_move(cell, x, 1);
	}
	return p * (1 - p) * squares + p * p * sum * sum;
}
