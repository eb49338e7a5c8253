/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of a time-stepping code: a chain of pendulums, coupled by springs,
 * 200,000 steps of semi-implicit Euler. The misfit is summed over all steps, as with a
 * seismic or tidal record. Its gradient with respect to the initial angles and the
 * friction is compared with finite differences. Checkpoints that do not fit in RAM are
 * written to a file:
 *
 *     ./02_pendulum [DIRECTORY [BYTES]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <neap/sweep.h>

#define LINKS 16
#define STEPS 200000

struct state {
	double angle[LINKS], speed[LINKS];
};

struct pendulum {
	double h, friction, spring;
	double misfit;	  /* sum over steps executed for the first time */
	double dfriction; /* gradient */
};

static double target(int64_t t)
{
	return 0.2 * cos(1e-4 * (double)t);
}

static double pull(const struct pendulum *p, const double *angle, int i)
{
	double left = i > 0 ? angle[i - 1] - angle[i] : 0;
	double right = i < LINKS - 1 ? angle[i + 1] - angle[i] : 0;
	return p->spring * (left + right) - sin(angle[i]);
}

static void step(const struct pendulum *p, struct state *s)
{
	double force[LINKS];
	for (int i = 0; i < LINKS; i++)
		force[i] = pull(p, s->angle, i) - p->friction * s->speed[i];
	for (int i = 0; i < LINKS; i++) {
		s->speed[i] += p->h * force[i];
		s->angle[i] += p->h * s->speed[i];
	}
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct pendulum *p = user;
	struct state *s = state;
	for (int64_t t = t0; t < t1; t++) {
		double off = s->angle[0] - target(t);
		if (first)
			p->misfit += 0.5 * p->h * off * off;
		step(p, s);
	}
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct state *row = tape;
	(void)room;
	for (int64_t t = t0; t < t1; t++) {
		row[t - t0] = *(struct state *)state;
		advance(user, state, t, t + 1, first);
	}
	*used = (size_t)(t1 - t0) * sizeof *row;
	*t_done = t1;
	return 0;
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	const struct pendulum *p = user;
	(void)state;
	memset(adjoint, 0, sizeof(struct state));
	*loss = p->misfit;
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct pendulum *p = user;
	struct state *d = adjoint;
	const struct state *row = tape;
	for (int64_t t = t1 - 1; t >= t0; t--) {
		const struct state *s = &row[t - t0];
		double dforce[LINKS];
		for (int i = 0; i < LINKS; i++) {
			d->speed[i] += p->h * d->angle[i];
			dforce[i] = p->h * d->speed[i];
			d->speed[i] -= p->friction * dforce[i];
			p->dfriction -= s->speed[i] * dforce[i];
		}
		for (int i = 0; i < LINKS; i++)
			d->angle[i] +=
				pull(p, dforce, i) + sin(dforce[i]) - cos(s->angle[i]) * dforce[i];
		d->angle[0] += p->h * (s->angle[0] - target(t));
	}
	return 0;
}

static void start(struct state *s)
{
	memset(s, 0, sizeof *s);
	for (int i = 0; i < LINKS; i++)
		s->angle[i] = 0.4 + 0.02 * i;
}

static double plain_run(struct pendulum p, struct state s)
{
	p.misfit = 0;
	advance(&p, &s, 0, STEPS, 1);
	return p.misfit;
}

static int agrees(const char *name, double gradient, double plus, double minus, double step_size)
{
	double difference = (plus - minus) / (2 * step_size);
	double error = fabs(gradient - difference) / (fabs(difference) + 1e-8);
	printf("%-12s gradient %+.10f, difference %+.10f, relative error %.1e\n", name, gradient,
		difference, error);
	return error < 1e-5;
}

/* Opens a file that bypasses the page cache; if the file system cannot, prints why and uses the
 * cache. */
static int open_disk(struct neap_tier **disk, const char *directory)
{
	const struct neap_file_options any = {.size = sizeof any, .page_cache = 1, .in_memory = 1};
	if (neap_tier_open_file(disk, directory, NULL) == 0)
		return 0;
	fprintf(stderr, "%s\n", neap_detail());
	return neap_tier_open_file(disk, directory, &any);
}

int main(int argc, char **argv)
{
	struct pendulum p = {.h = 1e-3, .friction = 0.02, .spring = 3};
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.state_bytes = sizeof(struct state),
		.adjoint_bytes = sizeof(struct state),
		.tape_bytes = sizeof(struct state)};
	struct neap_tier *disk;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct state x0, dx0;
	double loss;

	if (open_disk(&disk, argc > 1 ? argv[1] : "/var/tmp") < 0)
		goto failed;
	const struct neap_sweep_options options = {.size = sizeof options,
		.steps = STEPS,
		.memory = argc > 2 ? strtoull(argv[2], NULL, 10) : 256 << 10,
		.strategy = "double",
		.tiers = &disk,
		.ntiers = 1,
		.advance = 2e-7,
		.record = 2e-7,
		.backward = 4e-7};
	start(&x0);
	if (neap_sweep_create(&sweep, &ops, &p, &options) < 0 ||
		neap_sweep_run(sweep, &x0, &dx0, &loss, &stats) < 0)
		goto failed;
	printf("%s, %s: peak %llu bytes of memory, %llu bytes written, %llu read\n",
		neap_sweep_plan(sweep)->chosen, neap_tier_about(disk),
		(unsigned long long)stats.peak_measured, (unsigned long long)stats.written[0],
		(unsigned long long)stats.read[0]);
	printf("%.3f s, of which %.3f s waiting for the disk; storing everything needs %llu "
	       "bytes\n",
		stats.seconds, stats.stall, (unsigned long long)STEPS * sizeof(struct state));
	neap_sweep_free(sweep);
	neap_tier_close(disk);

	int good = 1;
	for (int i = 0; i < LINKS; i += 5) {
		struct state plus = x0, minus = x0;
		char name[16];
		snprintf(name, sizeof name, "angle %d", i);
		plus.angle[i] += 1e-5;
		minus.angle[i] -= 1e-5;
		good &= agrees(name, dx0.angle[i], plain_run(p, plus), plain_run(p, minus), 1e-5);
	}
	struct pendulum more = p, less = p;
	more.friction += 1e-6;
	less.friction -= 1e-6;
	good &= agrees("friction", p.dfriction, plain_run(more, x0), plain_run(less, x0), 1e-6);
	return good ? 0 : 1;
failed:
	fprintf(stderr, "%s\n", neap_detail());
	return 1;
}
