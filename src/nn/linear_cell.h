/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_cell.h: the membrane that spikes of one unit below make through a weight of 1, as if there
 * were no threshold. A cell is linear then: x = M x + s B, u = x[0], where s counts the spikes of a
 * step; x[1] is the synapse's or the adaptation's number. Steps are those of a time_unit, for which
 * units of weights are 1 (nn/time_unit.h), or of dt where none is said.
 *
 * Between two spikes nothing comes in, so that powers of M, and sums of u^2 over so many steps,
 * come from tables: the time taken depends on the number of spikes alone.
 */
#ifndef NEAP_NN_LINEAR_CELL_H
#define NEAP_NN_LINEAR_CELL_H

struct neap_net;
struct neap__layer;

struct neap__linear_cell {
	double step;	  /* seconds */
	double threshold; /* of u */
	double m[2][2], b[2];
	double (*power)[2][2]; /* M^k, k up to a limit */
	double (*square)[3];   /* sum over steps 1 to k of u^2, a form in x: x0^2, x0 x1, x1^2 */
};

/* 1 where the layer's cell has a membrane, 0 where not (nothing to free), or -ENOMEM. */
int neap__linear_cell_make(struct neap__linear_cell *cell, const struct neap_net *net,
	const struct neap__layer *layer);
void neap__linear_cell_free(struct neap__linear_cell *cell);

/* Moves x so many whole steps on without spikes; returns the sum of u^2 over them. */
double neap__linear_cell_move(const struct neap__linear_cell *cell, double x[2], double steps);

/* The mean of u^2 where a step has a spike with this chance. */
double neap__linear_cell_mean_square(const struct neap__linear_cell *cell, double chance);

#endif
