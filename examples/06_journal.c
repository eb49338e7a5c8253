/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long computation that can be killed at any moment: run it, kill -9 it, run it a second
 * time, and it resumes. The model is the Lorenz system with Heun's method; the program
 * computes the gradient of the time average of z with respect to sigma, rho and beta.
 *
 *     cc -O2 06_journal.c $(pkg-config --cflags --libs neap) -lm
 *     ./a.out [--steps N] [--journal DIRECTORY] [--every SECONDS]
 *
 * For a journal, a model needs two additional functions: one writes the sums that its
 * callbacks have accumulated so far, the other reads them. The sweep itself saves states,
 * adjoint and tapes. The file for checkpoints and the journal stay in the directory until the
 * sweep has finished.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <neap/sweep.h>

#define STEP 1e-6
#define MEMORY (32 << 10) /* bytes; storing all tapes takes 1.3 GB, 64 bytes per step */

struct state {
	double x, y, z;
};

struct lorenz {
	double p[3];	    /* sigma, rho, beta */
	double sum;	    /* of z, over steps executed for the first time */
	double gradient[3]; /* with respect to p */
	int64_t steps;
};

static struct state slope(const double *p, struct state s)
{
	return (struct state){p[0] * (s.y - s.x), s.x * (p[1] - s.z) - s.y, s.x * s.y - p[2] * s.z};
}

/* s + h a */
static struct state along(struct state s, double h, struct state a)
{
	return (struct state){s.x + h * a.x, s.y + h * a.y, s.z + h * a.z};
}

static struct state heun(const double *p, struct state s)
{
	struct state k = slope(p, s), q = slope(p, along(s, STEP, k));
	return along(along(s, STEP / 2, k), STEP / 2, q);
}

/* Given the gradient d with respect to slope(p, s), returns the one of s and adds the one of p to
 * dp. */
static struct state slope_back(double *dp, const double *p, struct state s, struct state d)
{
	dp[0] += d.x * (s.y - s.x);
	dp[1] += d.y * s.x;
	dp[2] -= d.z * s.z;
	return (struct state){-p[0] * d.x + (p[1] - s.z) * d.y + s.y * d.z,
		p[0] * d.x - d.y + s.x * d.z, -s.x * d.y - p[2] * d.z};
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct lorenz *m = user;
	struct state *s = state;
	for (int64_t t = t0; t < t1; t++) {
		if (first)
			m->sum += s->z;
		*s = heun(m->p, *s);
	}
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct state *row = tape;
	(void)room;
	for (int64_t t = t0; t < t1; t++) {
		*row++ = *(struct state *)state;
		advance(user, state, t, t + 1, first);
	}
	*used = (size_t)(t1 - t0) * sizeof *row;
	*t_done = t1;
	return 0;
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	const struct lorenz *m = user;
	(void)state;
	memset(adjoint, 0, sizeof(struct state));
	*loss = m->sum / (double)m->steps;
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct lorenz *m = user;
	struct state *d = adjoint;
	for (int64_t t = t1 - 1; t >= t0; t--) {
		struct state s = ((const struct state *)tape)[t - t0];
		struct state half = {STEP / 2 * d->x, STEP / 2 * d->y, STEP / 2 * d->z};
		struct state end = along(s, STEP, slope(m->p, s));
		struct state dend = slope_back(m->gradient, m->p, end, half);
		*d = along(*d, 1, dend);
		half = along(half, STEP, dend);
		*d = along(*d, 1, slope_back(m->gradient, m->p, s, half));
		d->z += 1 / (double)m->steps;
	}
	return 0;
}

/* For the journal: everything that the callbacks accumulate, always the same number of bytes. */
static int grad_save(void *user, int (*write)(void *to, const void *from, size_t bytes), void *to)
{
	struct lorenz *m = user;
	int rc = write(to, &m->sum, sizeof m->sum);
	return rc < 0 ? rc : write(to, m->gradient, sizeof m->gradient);
}

static int grad_load(void *user, int (*read)(void *from, void *to, size_t bytes), void *from)
{
	struct lorenz *m = user;
	int rc = read(from, &m->sum, sizeof m->sum);
	return rc < 0 ? rc : read(from, m->gradient, sizeof m->gradient);
}

/* A hash that identifies the parameters, so that a journal of other parameters is rejected. */
static uint64_t key_of(const double *p)
{
	uint64_t key = 14695981039346656037u;
	for (size_t i = 0; i < 3 * sizeof *p; i++)
		key = (key ^ ((const unsigned char *)p)[i]) * 1099511628211u;
	return key;
}

static int fail(void)
{
	fprintf(stderr, "06_journal: %s\n", neap_detail());
	return 1;
}

static int run(int64_t steps, const char *directory, double every)
{
	struct lorenz m = {.p = {10, 28, 8.0 / 3}, .steps = steps};
	const struct state start = {1, 1, 20};
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.grad_save = grad_save,
		.grad_load = grad_load,
		.state_bytes = sizeof(struct state),
		.adjoint_bytes = sizeof(struct state),
		.tape_bytes = sizeof(struct state)};
	/* Without O_DIRECT, so that the example runs on every file system. */
	const struct neap_file_options kept = {.size = sizeof kept, .page_cache = 1, .keep = 1};
	struct neap_sweep_options options = {.size = sizeof options,
		.steps = steps,
		.memory = MEMORY,
		.advance = 3e-8,
		.record = 3e-8,
		.backward = 6e-8,
		.journal = directory,
		.journal_seconds = every,
		.journal_key = key_of(m.p)};
	struct neap_tier *disk = NULL;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	double mean;

	if (directory) {
		if (neap_tier_open_file(&disk, directory, &kept) < 0)
			return fail();
		options.tiers = &disk;
		options.ntiers = 1;
	}
	int rc = neap_sweep_create(&sweep, &ops, &m, &options);
	if (rc == 0) {
		rc = neap_sweep_run(sweep, &start, NULL, &mean, &stats);
		if (rc == 0) {
			printf("mean of z %.15g; its gradient: sigma %.15g, rho %.15g, beta "
			       "%.15g\n",
				mean, m.gradient[0], m.gradient[1], m.gradient[2]);
			fprintf(stderr,
				"%s: %lld of %lld steps were done in earlier runs, %lld commits\n",
				neap_sweep_plan(sweep)->chosen, (long long)stats.spared,
				(long long)(stats.advance_steps + stats.record_steps +
					    stats.backward_steps),
				(long long)stats.commits);
		}
		neap_sweep_free(sweep); /* also removes the journal of a finished sweep */
	}
	if (rc < 0)
		rc = -fail();
	neap_tier_close(disk);
	return -rc;
}

int main(int argc, char **argv)
{
	const char *directory = NULL;
	int64_t steps = 20000000;
	double every = 0; /* chosen by the sweep */
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
			steps = strtoll(argv[i + 1], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--journal") == 0)
			directory = argv[i + 1];
		else if (i + 1 < argc && strcmp(argv[i], "--every") == 0)
			every = strtod(argv[i + 1], NULL);
		else
			steps = 0;
	}
	if (steps < 1 || steps > INT64_C(1000000000000) || every < 0) {
		fprintf(stderr, "usage: 06_journal [--steps N] [--journal DIRECTORY] [--every "
				"SECONDS]\n");
		return 2;
	}
	return run(steps, directory, every);
}
