/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coordinate_search.h: coordinate descent over plans of blocks, for the searches of this folder.
 * The neighbours of a plan differ from it in one number, times a factor, or by a rule of the
 * search.
 */
#ifndef NEAP_PLAN_BLOCKS_COORDINATE_SEARCH_H
#define NEAP_PLAN_BLOCKS_COORDINATE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* How a search changes and compares its plans. */
struct neap__coordinates {
	void *search, *trial;  /* the state of the search, and a plan to change */
	size_t bytes;	       /* of a plan */
	const size_t *numbers; /* offsets of the int64_t of a plan that are scaled, by all factors
				  in turn */
	int nnumbers;
	const double *factors;
	int nfactors;
	/* Changes a plan to its n-th neighbour behind those that are scaled; 0: there is none. */
	int (*change)(const void *search, void *plan, int n);
	/*
	 * Sets *score to the score of a plan, which it may normalise; to any that is not below
	 * `below` if it is not. Returns 0 or a negative code.
	 */
	int (*score)(void *search, void *plan, double below, double *score);
};

/* Sets *to to the n-th neighbour of *from, from 0. Returns 0 beyond the last one. */
int neap__coordinate_neighbour(
	const struct neap__coordinates *c, const void *from, int n, void *to);
/* One round over all neighbours; each that has a lower score replaces *plan at once. */
int neap__coordinate_round(const struct neap__coordinates *c, void *plan, double *score);
/* Rounds until one lowers the score by less than the share `gain`, or *effort is used up. */
int neap__coordinate_descend(const struct neap__coordinates *c, void *plan, double *score,
	double gain, const int64_t *effort);
/* Multiplies a number, and changes it by at least 1. */
void neap__coordinate_scale(int64_t *number, double factor);

#endif
