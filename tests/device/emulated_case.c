/* SPDX-License-Identifier: Apache-2.0 */
/* emulated_case.c: a case, and what the CPU computes with it (emulated_net.h). */
#include "emulated_net.h"
#include "random_device_net.h"
#include "nn/core/cell.h"
#include "nn/batch/group_sums.h"

#include <fcntl.h>
#include <sys/wait.h>

enum { INPUTS = 37, CLASSES = 5 };

struct emulated_case emulated_case_make(const char *spec, int samples, int steps, double rate)
{
	struct emulated_case c = {.options = net_options(spec)};
	int64_t *lengths = calloc((size_t)samples, sizeof *lengths);

	c.options.precision = NEAP_FLOAT;
	c.options.inputs = INPUTS;
	c.options.classes = CLASSES;
	c.options.group = 4;
	c.objective = (struct neap_objective){
		.size = sizeof c.objective, .loss = neap_loss_find("cross-entropy")};
	for (int s = 0; s < samples; s++)
		lengths[s] = s == 1 && samples > 2	       ? 1
			     : s % 3 == 2 && steps > 5 + 7 * s ? steps - 5 - 7 * s
							       : steps;
	batch_make(&c.batch, 7, samples, INPUTS, steps, CLASSES, rate, lengths);
	free(lengths);
	return c;
}

static void run_forward(struct emulated_case *c)
{
	unsigned char *state = room_for(c->sizes.state);
	size_t room = c->sizes.tape_max * (BLOCK + 1), used;
	int64_t done;

	memset(state, 0, c->sizes.state);
	for (int b = 0; b < c->blocks; b++) {
		c->tape[b] = room_for(room);
		assert_int_equal(neap_net_record(c->net, state, b * BLOCK, block_end(c, b), 1,
					 c->tape[b], room, &used, &done),
			0);
		assert_int_equal(done, block_end(c, b));
		c->state[b] = copy_of(state, c->sizes.state);
	}
	c->turned = room_for(c->sizes.adjoint);
	assert_int_equal(neap_net_turn(c->net, state, c->turned, &c->loss), 0);
	free(state);
}

static void run_backward(struct emulated_case *c)
{
	unsigned char *adjoint = copy_of(c->turned, c->sizes.adjoint);

	for (int b = c->blocks - 1; b >= 0; b--) {
		assert_int_equal(
			neap_net_backward(c->net, adjoint, block_end(c, b), b * BLOCK, c->tape[b]),
			0);
		c->adjoint[b] = copy_of(adjoint, c->sizes.adjoint);
	}
	free(adjoint);
}

static void count_units(struct emulated_case *c)
{
	c->count = calloc((size_t)c->net->hidden, sizeof *c->count);
	for (int i = 0; i < c->net->hidden; i++)
		c->count[i] = neap__unit_sum(c->net, i, 0, c->net->ngrads);
	c->near = 0;
	for (int g = 0; g < c->net->ngroups; g++)
		c->near += c->net->groups[g].support;
}

/* The weights of another net with the same tensors, of floats. */
static void take_weights(struct emulated_case *c)
{
	struct neap_param from, to;

	for (int i = 0; c->weights && i < neap_net_params(c->net); i++) {
		assert_int_equal(
			neap_net_param((struct neap_net *)(uintptr_t)c->weights, i, &from), 0);
		assert_int_equal(neap_net_param(c->net, i, &to), 0);
		for (int64_t k = 0; k < to.count; k++)
			if (to.precision == NEAP_DOUBLE)
				((double *)to.data)[k] = (double)((float *)from.data)[k];
			else
				((float *)to.data)[k] = ((float *)from.data)[k];
	}
}

void emulated_case_run(struct emulated_case *c)
{
	struct neap_net_result result = {.size = sizeof result};
	const char *kept = getenv("NEAP_ISA");
	char *old = kept ? strdup(kept) : NULL;

	setenv("NEAP_ISA", neap__isa_works(NEAP__ISA_AVX512) ? "avx512" : "lowered", 1);
	c->net = net_make(&c->options);
	if (old)
		setenv("NEAP_ISA", old, 1);
	else
		unsetenv("NEAP_ISA");
	free(old);
	take_weights(c);
	assert_int_equal(neap_net_begin(c->net, &c->batch.batch, &c->objective), 0);
	c->sizes.size = sizeof c->sizes;
	neap_net_get_sizes(c->net, &c->sizes);
	c->blocks = (int)(c->batch.batch.steps + BLOCK - 1) / BLOCK;
	c->state = calloc((size_t)c->blocks, sizeof *c->state);
	c->tape = calloc((size_t)c->blocks, sizeof *c->tape);
	c->adjoint = calloc((size_t)c->blocks, sizeof *c->adjoint);
	run_forward(c);
	count_units(c);
	neap_net_get_result(c->net, &result);
	c->spikes = result.spikes;
	c->support = result.support;
	run_backward(c);
	neap__gradient_sums(c->net); /* neap_net_end does this and forgets the batch */
}

void emulated_case_free(struct emulated_case *c)
{
	for (int b = 0; b < c->blocks; b++) {
		free(c->state[b]);
		free(c->tape[b]);
		free(c->adjoint[b]);
	}
	free(c->state);
	free(c->tape);
	free(c->adjoint);
	free(c->turned);
	free(c->count);
	neap_net_free(c->net);
	batch_free(&c->batch);
}

void emulated_case_assert(struct emulated_case *c)
{
	emulated_case_run(c);
	const char *wrong = emulated_case_compare(c, 1);
	if (wrong || getenv("NEAP_VERBOSE"))
		fprintf(stderr, "# %s: spikes %.3f, support %.3f, loss %g: %s\n", c->options.spec,
			c->spikes, c->support, c->loss, wrong ? wrong : "the same bits");
	assert_null(wrong);
	emulated_case_free(c);
}

void emulated_case_draw_calls(struct emulated_case *c, uint32_t *state)
{
	c->cut = (int)draw_below(state, 70);
	c->share_steps = draw_below(state, 2) ? 0 : 1 + (int)draw_below(state, 30);
	c->window = (int)draw_below(state, 2);
	c->pack = (int)draw_below(state, 2);
}

void emulated_case_agree(struct emulated_case *c, uint32_t seed)
{
	const char *wrong = emulated_case_compare(c, seed % 3 * 7919 + seed);

	if (wrong)
		fail_msg("seed %u: %s: %s", (unsigned)seed, c->options.spec, wrong);
}

void emulated_case_keep(struct emulated_case *c, enum neap_math math)
{
	c->net->options.math = math;
	c->keeps = 1;
	const char *wrong = emulated_case_compare(c, 0);
	c->keeps = 0;
	if (wrong)
		fail_msg("%s: %s", c->options.spec, wrong);
}

int emulated_case_succeeds(struct emulated_case *c, uint32_t seed)
{
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, STDERR_FILENO);
		dup2(null, STDOUT_FILENO);
		_exit(emulated_case_compare(c, seed) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
