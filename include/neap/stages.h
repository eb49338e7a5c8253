/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.h: sweeps over chains whose steps differ, such as the layers of a network. Stage i
 * computes x_{i+1} from x_i; each state, tape and temporary has its own size (struct neap_stages in
 * chain.h, which also specifies the memory that a stage needs while it runs).
 *
 *     struct neap_stage_ops ops = {.size = sizeof ops, .advance = advance,
 *             .record = record, .turn = turn, .backward = backward};
 *     struct neap_sweep_options o = {.size = sizeof o, .steps = L, .memory = 16 << 20};
 *     struct neap_stage_sweep *sweep;
 *     neap_stage_sweep_create(&sweep, &ops, model, &stages, &o);
 *     neap_stage_sweep_run(sweep, x0, dx0, &loss, NULL);     any number of times
 *     neap_stage_sweep_free(sweep);
 *
 * Every buffer has a place in the arena before the sweep starts. Pointers are aligned to 64 bytes
 * and valid for one call: a buffer may have moved at the next call, with the same contents. tmp is
 * NULL if the stage's temporary has 0 bytes; output buffers and tmp are uninitialized. Callbacks
 * return 0 or a negative code, which ends the sweep. `first` is 1 when a stage runs for the first
 * time in a sweep.
 */
#ifndef NEAP_STAGES_H
#define NEAP_STAGES_H

#include <neap/sweep.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The callbacks and sizes of a model whose steps are stages. */
struct neap_stage_ops {
	uint32_t size; /* sizeof(struct neap_stage_ops) */
	uint32_t reserved;

	/* Computes y = x_{i+1} from x = x_i. */
	int (*advance)(void *user, int64_t i, const void *x, void *y, void *tmp, int first);

	/*
	 * As advance, with a bit-identical y, and writes the tape. With
	 * NEAP_STAGES_TAPE_HOLDS_OUTPUT the tape begins with x_{i+1}: y == tape.
	 */
	int (*record)(
		void *user, int64_t i, const void *x, void *y, void *tape, void *tmp, int first);

	/* Computes the loss from x = x_L, and dx, the gradient with respect to x. */
	int (*turn)(void *user, const void *x, void *dx, void *tmp, double *loss);

	/*
	 * Computes dx, the gradient with respect to x_i, from dy, the gradient with respect to
	 * x_{i+1}. dx is overwritten; the model's own gradients are added to. dy may be
	 * overwritten. x is NULL unless NEAP_STAGES_BACKWARD_NEEDS_INPUT is set.
	 */
	int (*backward)(void *user, int64_t i, const void *x, const void *tape, void *dy, void *dx,
		void *tmp);

	size_t adjoint_bytes; /* size of the gradient of any state; 0: as the state */

	/* Optional: required for a journal [no journal]. As in struct neap_step_ops. */
	int (*grad_save)(void *user, int (*write)(void *, const void *, size_t), void *to);
	int (*grad_load)(void *user, int (*read)(void *, void *, size_t), void *from);
	size_t adjoint_real;		      /* as in struct neap_step_ops */
	const struct neap_memory_ops *memory; /* optional: as in struct neap_step_ops */
	/* Optional: as in struct neap_step_ops, for advance, record and backward. */
	int (*fence)(void *user);
};

struct neap_stage_sweep;

/*
 * Creates a sweep over stages: makes the plan and places every buffer, and every record on its
 * tier. Copies everything except user and tiers, which are borrowed. In the options, seconds are
 * ignored (stages has them); a saved plan must be for the problem of neap_stage_sweep_problem; a
 * journal is as for neap_sweep_create. Memory of the tables, in addition to the arena: 72 bytes per
 * stage, about 300 per call of a stage in the plan, 200 per transfer. NEAP_EINFEASIBLE: the detail
 * line shows a budget that works; so does any larger one. Collective.
 */
NEAP_API int neap_stage_sweep_create(struct neap_stage_sweep **sweep,
	const struct neap_stage_ops *ops, void *user, const struct neap_stages *stages,
	const struct neap_sweep_options *options);

/* Returns the current plan; owned by the sweep. */
NEAP_API const struct neap_plan *neap_stage_sweep_plan(const struct neap_stage_sweep *sweep);
/* Returns the problem of the current plan, its sizes rounded up to 64 bytes; owned by the sweep. */
NEAP_API const struct neap_problem *neap_stage_sweep_problem(const struct neap_stage_sweep *sweep);

/*
 * Runs one forward and backward pass, as neap_sweep_run; dx0 receives the gradient with respect to
 * x_0. A record that a tier rejects, loses or delays beyond `patience` is recomputed from the
 * nearest earlier state, in the free part of the arena. If that is too small, the plan is abandoned
 * and the remaining stages follow a plan without tiers, in `memory`. NEAP_EINFEASIBLE: `memory` is
 * too small for that. NEAP_EUSAGE (also while the sweep runs), NEAP_EDIVERGED: as there.
 * Collective.
 */
NEAP_API int neap_stage_sweep_run(struct neap_stage_sweep *sweep, const void *x0, void *dx0,
	double *loss, struct neap_sweep_stats *stats);
/* Frees a sweep; NULL is allowed. Does nothing while the sweep runs. */
NEAP_API void neap_stage_sweep_free(struct neap_stage_sweep *sweep);

/*
 * Joins: branches that end in one loss, such as the encoders of two inputs. Each branch is a chain
 * of stages; the loss is computed from the last states of all branches.
 *
 *     struct neap_branch branches[] = {{LA, &a}, {LB, &b}};
 *     neap_join_sweep_create(&sweep, &ops, model, branches, 2, &o);
 *     neap_join_sweep_run(sweep, (const void *[]){xa, xb}, (void *[]){dxa, dxb}, &loss, NULL);
 *     neap_join_sweep_free(sweep);
 */
#define NEAP_BRANCHES_MAX 8

/* One branch of a join. */
struct neap_branch {
	int64_t steps;			  /* number of stages; may be 0 */
	const struct neap_stages *stages; /* all branches must have the same flags */
};

/* The callbacks of joins, as struct neap_stage_ops; branch is an index into the branches. */
struct neap_join_ops {
	uint32_t size; /* sizeof(struct neap_join_ops) */
	uint32_t reserved;
	int (*advance)(
		void *user, int branch, int64_t i, const void *x, void *y, void *tmp, int first);
	int (*record)(void *user, int branch, int64_t i, const void *x, void *y, void *tape,
		void *tmp, int first);
	/* Computes the loss from the last states x[branch], and its gradients dx[branch]. */
	int (*turn)(void *user, const void *const *x, void *const *dx, void *tmp, double *loss);
	int (*backward)(void *user, int branch, int64_t i, const void *x, const void *tape,
		void *dy, void *dx, void *tmp);
	size_t adjoint_bytes; /* size of the gradient of any state; 0: as the state */
	int (*grad_save)(void *user, int (*write)(void *, const void *, size_t), void *to);
	int (*grad_load)(void *user, int (*read)(void *, void *, size_t), void *from);
	size_t adjoint_real;		      /* as in struct neap_step_ops */
	const struct neap_memory_ops *memory; /* optional: as in struct neap_step_ops */
	/* Optional: as in struct neap_step_ops, for advance, record and backward. */
	int (*fence)(void *user);
};

struct neap_join_sweep;

/*
 * Creates a sweep over branches, as neap_stage_sweep_create; options.steps is ignored. The seconds
 * and the temporary of the loss are those of the first branch. Branches can run in two orders. One
 * after the other, with any strategy for stages and with tiers: the last branch is reversed first;
 * the plan is for all stages in sequence, with a stage of zero time between two branches. Or two
 * branches alternately, with the strategy `join`, in fast memory only: it counts slots for states,
 * options.params.checkpoints of them; 0: as many as fit. "auto" (NULL) picks the alternative and
 * the order with the fastest plan. options.saved is not supported by "join". Collective.
 */
NEAP_API int neap_join_sweep_create(struct neap_join_sweep **sweep, const struct neap_join_ops *ops,
	void *user, const struct neap_branch *branches, int count,
	const struct neap_sweep_options *options);

/* Returns the current plan; owned by the sweep. For "join" the plan counts slots. */
NEAP_API const struct neap_plan *neap_join_sweep_plan(const struct neap_join_sweep *sweep);
/* Returns the problem that the current plan solves; owned by the sweep. */
NEAP_API const struct neap_problem *neap_join_sweep_problem(const struct neap_join_sweep *sweep);

/*
 * Runs as neap_stage_sweep_run. x0[branch] (NULL: all zero bytes) is borrowed and must not change;
 * dx0[branch] receives its gradient as soon as it is known (NULL: not returned). Collective.
 */
NEAP_API int neap_join_sweep_run(struct neap_join_sweep *sweep, const void *const *x0,
	void *const *dx0, double *loss, struct neap_sweep_stats *stats);
/* Frees a sweep; NULL is allowed. Does nothing while the sweep runs. */
NEAP_API void neap_join_sweep_free(struct neap_join_sweep *sweep);

#ifdef __cplusplus
}
#endif
#endif
