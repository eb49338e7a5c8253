/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_branches.c: what happens at the ends of branches: x_0 comes from the caller and dx_0 goes
 * there, links lay ends aside, and the turn meets all branches. A plain chain is one branch.
 */
#include "sweep/stages/join_sweep.h"
#include "base/fail.h"

/* Where a buffer of the program lies now. */
static unsigned char *lies(const struct stage_run *r, int64_t buffer)
{
	return r->base + r->now[buffer];
}

void neap__stage_origin(const struct stage_run *r, int branch, void *to)
{
	const struct neap_stage_sweep *s = r->s;
	if (s->x0[branch])
		neap__memory_write(&r->s->memory, to, s->x0[branch], s->x0_bytes[branch]);
	else
		neap__memory_fill(&r->s->memory, to, 0, s->x0_bytes[branch]);
}

void neap__stage_link(const struct stage_run *r, int kind, int64_t i, void *const at[NEAP__ROLES])
{
	if (kind != NEAP_BACKWARD)
		neap__stage_origin(r, neap__layout_branch(r->layout, i) + 1, at[NEAP__Y]);
}

int neap__stage_say_branch(const struct stage_run *r, int branch, int rc)
{
	return rc < 0 && r->s->join ? neap__fail_in(rc, "branch %d: ", r->layout->order[branch])
				    : rc;
}

/* Whether the gradient of x_i, which `function` wrote, is finite; bytes beyond it are not its. */
static int check_gradient(
	const struct stage_run *r, int64_t i, const void *gradient, const char *function)
{
	const struct neap_stage_ops *ops = &r->s->ops;
	size_t bytes = ops->adjoint_bytes ? ops->adjoint_bytes : r->s->exact[i];
	int branch = neap__layout_branch(r->layout, i);
	int64_t t = i - r->layout->start[branch];
	return neap__stage_say_branch(r, branch,
		neap__check_adjoint(
			&r->s->memory, gradient, bytes, ops->adjoint_real, function, t));
}

/* Bytes of the gradient of a branch's end. */
static size_t end_gradient(const struct stage_run *r, int branch)
{
	return (size_t)neap__stage_gradient(
		&r->s->problem.chain, neap__layout_end(r->layout, branch));
}

int neap__stage_turn(struct stage_run *r, void *const at[NEAP__ROLES], double *loss)
{
	struct neap_stage_sweep *s = r->s;
	const struct neap__stage_program *p = r->program;
	const void *x[NEAP_BRANCHES_MAX] = {NULL};
	void *dx[NEAP_BRANCHES_MAX] = {NULL};
	const unsigned char *given = r->given;
	int last = r->layout->branches - 1;
	for (int k = 0; k <= last; k++) {
		x[k] = k < last ? lies(r, p->end_state[k]) : at[NEAP__X];
		dx[k] = k < last ? lies(r, p->end_gradient[k]) : at[NEAP__DX];
		if (given) {
			neap__memory_write(&s->memory, dx[k], given, end_gradient(r, k));
			given += end_gradient(r, k);
		}
	}
	if (given)
		return 0;
	int rc = s->join ? neap__join_turn(s, x, dx, at[NEAP__TMP], loss)
			 : s->ops.turn(s->user, x[0], dx[0], at[NEAP__TMP], loss);
	if (rc == 0)
		rc = neap__check_loss(*loss, s->problem.chain.steps - last);
	for (int k = 0; k <= last && rc == 0; k++)
		rc = check_gradient(r, neap__layout_end(r->layout, k), dx[k], "turn");
	return rc;
}

/* The gradient of x_0 of a branch is there. */
static void finish(struct stage_run *r, int branch, const void *gradient)
{
	const struct neap_stage_sweep *s = r->s;
	if (s->dx0[branch])
		neap__memory_read(&r->s->memory, s->dx0[branch], gradient, s->dx0_bytes[branch]);
	r->finished |= UINT64_C(1) << branch;
}

int neap__stage_branch_done(struct stage_run *r, const struct neap__stage_call *call)
{
	const struct neap__stage_layout *layout = r->layout;
	int k = neap__layout_branch(layout, call->i), last = layout->branches - 1;
	int ends = call->i == layout->start[k], link = neap__layout_link(layout, call->i);
	if (call->kind == NEAP_BACKWARD && !link && (ends || r->s->options.check))
		NEAP_TRY(check_gradient(r, call->i, r->base + call->at[NEAP__DX], "backward"));
	if (call->kind == NEAP_TURN) {
		for (k = 0; k <= last; k++)
			if (layout->start[k] == neap__layout_end(layout, k))
				finish(r, k,
					k < last ? lies(r, r->program->end_gradient[k])
						 : r->base + call->at[NEAP__DX]);
	} else if (call->kind == NEAP_BACKWARD) {
		if (ends && !link)
			finish(r, k, r->base + call->at[NEAP__DX]);
	} else if (call->first && link) {
		neap__memory_move(&r->s->memory, lies(r, r->program->end_state[k]),
			r->base + call->at[NEAP__X], (size_t)r->s->stages.state[call->i]);
	}
	return 0;
}

int neap__join_turn(const struct neap_stage_sweep *s, const void *const *x, void *const *dx,
	void *tmp, double *loss)
{
	const struct neap_join_sweep *j = s->join;
	const void *ends[NEAP_BRANCHES_MAX] = {NULL};
	void *gradients[NEAP_BRANCHES_MAX] = {NULL};
	for (int k = 0; k < s->layout.branches; k++) {
		ends[s->layout.order[k]] = x[k];
		gradients[s->layout.order[k]] = dx[k];
	}
	return j->ops.turn(j->user, ends, gradients, tmp, loss);
}
