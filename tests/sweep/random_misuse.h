/* SPDX-License-Identifier: Apache-2.0 */
/* random_misuse.h: random calls of everything in a round, for test_misuse.c. */
#ifndef NEAP_TEST_RANDOM_MISUSE_H
#define NEAP_TEST_RANDOM_MISUSE_H

#define SWEEPS 3
#define TIERS 2
#define DEPTH 2 /* of runs within runs */

struct misuse_round {
	uint64_t seed;
	struct neap_tier *tiers[TIERS];
	struct small models[SWEEPS];
	struct small_sweep sweeps[SWEEPS];
	int ntiers[SWEEPS];
	struct neap_schedule *schedule;
	struct neap_online *online;
	struct neap_problem problem;
	struct neap_plan plan;
	char folder[64]; /* of a journal, or "" */
};

static struct misuse_round *now;
static _Thread_local uint64_t draws;
static _Thread_local uint32_t stream = 80;
static _Thread_local int depth;
static _Atomic int64_t count_right, count_refused;

static uint64_t draw(uint64_t n)
{
	return neap__random_below(now->seed, NEAP__STREAM_TEST, stream, draws++, n);
}

/* Success, or a code with a line. */
static int judge(const char *what, int rc)
{
	if (rc < 0 && !neap_detail()[0])
		fail_msg("NEAP_SEED=%llu: %s: %d without a line", (unsigned long long)now->seed,
			what, rc);
	count_refused += rc == NEAP_EUSAGE;
	return rc;
}

static void run_one(int k)
{
	double dx[2 * NUMBERS], loss;
	if (depth >= DEPTH)
		return;
	depth++;
	int rc = judge("run", small_run(&now->sweeps[k], dx, &loss));
	if (rc < 0 && rc != NEAP_EUSAGE)
		fail_msg("NEAP_SEED=%llu: run: %d %s", (unsigned long long)now->seed, rc,
			neap_detail());
	if (rc == 0 && !small_right(&now->sweeps[k], dx))
		fail_msg("NEAP_SEED=%llu: a wrong gradient", (unsigned long long)now->seed);
	count_right += rc == 0;
	depth--;
}

static void call_sweep(int k)
{
	struct neap_sweep *s = now->sweeps[k].steps;
	switch (draw(9)) {
	case 0:
		run_one(k);
		break;
	case 1:
		if (s)
			judge("replan", replan(&now->sweeps[k], &now->models[k], now->tiers,
						now->ntiers[k]));
		break;
	case 2:
		if (s)
			judge("touch", neap_sweep_touch(s));
		break;
	case 3:
		neap_sweep_release(s);
		break;
	case 4:
		neap_sweep_watch(s, (int)draw(2));
		break;
	case 5:
		(void)neap_sweep_mapped(s);
		(void)neap_sweep_spared(s);
		(void)neap_sweep_foreseen(s);
		break;
	case 6:
		(void)neap_stage_sweep_plan(now->sweeps[k].chain);
		(void)neap_join_sweep_problem(now->sweeps[k].join);
		break;
	case 7:
		if (now->folder[0] && draw(8) == 0) /* waits for the lock */
			judge("journal_there", neap_journal_there(now->folder, NULL, 1));
		break;
	default:
		if (s && draw(60) == 0) {
			struct neap_step_ops ops = small_ops();
			struct neap_sweep_options o = options(NULL, 0, SMALL_STEPS);
			struct small quiet;
			small_init(&quiet);
			o.steps = SMALL_STAGES;
			judge("calibrate", neap_sweep_calibrate(&o, &ops, &quiet, NULL, 1e-3));
		}
	}
}

static void call_tier(struct neap_tier *tier)
{
	static const struct neap_span none = {NULL, 0};
	struct neap_tier_spec spec;
	char bytes[STATE] = "";
	struct neap_span span = {bytes, STATE};
	int64_t place = (int64_t)draw(6) - 1, ticket = (int64_t)draw(1 << 20) - 9;
	const uint64_t size = draw(2 * STATE);
	int rc = NEAP_EUSAGE;
	switch (draw(12)) {
	case 0:
		judge("format", neap_tier_format(tier, size, place, NULL));
		break;
	case 1:
		judge("format_tapes", neap_tier_format_tapes(tier, size, place, 0));
		break;
	case 2:
		rc = neap_tier_put(tier, place, 1, bytes, draw(STATE + 1), &ticket);
		break;
	case 3:
		rc = neap_tier_get(tier, place, draw(2), bytes, draw(STATE + 1), &ticket);
		break;
	case 4:
		rc = neap_tier_put_tapes(tier, place, 1, draw(4) ? &span : &none, 1, &ticket);
		break;
	case 5:
		rc = neap_tier_get_spans(tier, place, 1, &span, (int)draw(2), &ticket);
		break;
	case 6:
		judge("forget", neap_tier_forget(tier, place));
		break;
	case 7:
		judge("done", neap_tier_done(tier, ticket));
		break;
	case 8:
		neap_tier_describe(tier, size, &spec);
		neap_tier_set_rates(tier, 1e9, 1e9, 0);
		neap_tier_set_cpu(tier, 0, 0);
		break;
	case 9:
		neap_tier_lend(tier, 4096 * draw(3));
		judge("holds_staging", neap_tier_holds_staging(tier));
		break;
	case 10:
		if (draw(10) == 0)
			judge("measure", neap_tier_measure(tier, size, 1e-5));
		break;
	default:
		judge("wait_for", neap_tier_wait_for(tier, ticket, draw(2) ? 1e-4 : NAN));
	}
	/* Memory is lent until the wait. Another thread may have the tier when it is due. */
	double end = neap__seconds() + 30;
	while (rc == 0 && (judge("wait", neap_tier_wait(tier, ticket)) == NEAP_EUSAGE) &&
		strstr(neap_detail(), "in use by")) {
		if (neap__seconds() > end)
			fail_msg("NEAP_SEED=%llu: a tier stays in use: %s",
				(unsigned long long)now->seed, neap_detail());
		neap__sleep(1e-5);
	}
}

static void call_plan(void)
{
	struct neap_verdict verdict = {.size = sizeof verdict};
	struct neap_action action;
	struct neap_plan *copy;
	switch (draw(5)) {
	case 0:
		for (uint64_t n = draw(8); n > 0; n--)
			judge("next", neap_schedule_next(now->schedule, &action));
		break;
	case 1:
		for (uint64_t n = draw(8); n > 0; n--)
			judge("online_next", neap_online_next(now->online, &action));
		break;
	case 2:
		judge("finish", neap_online_finish(
					now->online, (int64_t)draw(60) - 5, (int64_t)draw(60) - 5));
		break;
	case 3:
		judge("verify", neap_verify(&verdict, &now->problem, now->schedule));
		break;
	default:
		if (judge("copy", neap_plan_copy(&copy, &now->plan)) == 0)
			neap_plan_free(copy);
	}
}

static void call_any(void)
{
	uint64_t which = draw(4);
	if (which == 0)
		call_plan();
	else if (which == 1)
		call_tier(now->tiers[draw(TIERS)]);
	else
		call_sweep((int)draw(SWEEPS));
}

/* In callbacks: all that is called elsewhere, and what only a run in progress may refuse. */
static void call_inside(struct small *m)
{
	int k = (int)(m - now->models);
	if (draw(8))
		return;
	if (draw(6) == 0)
		small_free(&now->sweeps[k]);
	call_any();
}

static void *call_many(void *user)
{
	stream = 81 + (uint32_t)(uintptr_t)user;
	draws = 0;
	for (int i = 0; i < 40; i++)
		call_any();
	return NULL;
}

static void make_sweep(int k)
{
	struct misuse_round *r = now;
	int kind = (int)draw(SMALL_KINDS), n = (int)draw(TIERS + 1);
	struct neap_sweep_options o = options(r->tiers, n, kind);
	small_init(&r->models[k]);
	o.check = (int)draw(2);
	int rc = small_create(&r->sweeps[k], kind, &r->models[k], &o);
	if (rc == NEAP_EINFEASIBLE || rc == NEAP_EUSAGE) { /* as tiers that are too small */
		n = 0;
		o = options(NULL, 0, kind);
		rc = small_create(&r->sweeps[k], kind, &r->models[k], &o);
	}
	if (rc < 0)
		fail_msg("NEAP_SEED=%llu: create: %s", (unsigned long long)r->seed, neap_detail());
	r->ntiers[k] = n;
	r->models[k].inside = call_inside;
}

/* The first sweep gets a journal: others in the same folder are refused. */
static void add_journal(void)
{
	struct misuse_round *r = now;
	struct neap_step_ops ops = small_ops();
	struct neap_sweep_options o = options(NULL, 0, SMALL_STEPS);
	struct neap_sweep *with = NULL, *second = NULL;
	ops.grad_save = save_nothing;
	ops.grad_load = load_nothing;
	snprintf(r->folder, sizeof r->folder, "/dev/shm/neap-misuse-XXXXXX");
	assert_non_null(mkdtemp(r->folder));
	o.steps = SMALL_STAGES;
	o.journal = r->folder;
	o.journal_in_memory = 1;
	o.journal_seconds = -1;
	if (judge("create", neap_sweep_create(&with, &ops, &r->models[0], &o)) < 0)
		return;
	assert_true(judge("second", neap_sweep_create(&second, &ops, &r->models[0], &o)) < 0);
	assert_int_equal(r->sweeps[0].kind, SMALL_STEPS);
	neap_sweep_free(r->sweeps[0].steps);
	r->sweeps[0].steps = with;
	r->ntiers[0] = 0;
}

static void begin_round(struct misuse_round *r)
{
	struct neap_problem *p = &r->problem;
	now = r;
	draws = 0;
	for (int i = 0; i < TIERS; i++) {
		int rc = draw(6) ? neap_tier_open_memory(&r->tiers[i], draw(2) ? 1 << 20 : 1 << 12)
				 : neap_tier_open_file(&r->tiers[i], "/var/tmp", NULL);
		assert_int_equal(rc, 0);
		neap_tier_set_rates(r->tiers[i], 1e9, 1e9, 0);
	}
	for (int k = 0; k < SWEEPS; k++)
		make_sweep(k);
	if (r->sweeps[0].kind == SMALL_STEPS && draw(8) == 0)
		add_journal();
	*p = (struct neap_problem)NEAP_PROBLEM_INIT;
	p->chain.steps = SMALL_STAGES;
	p->chain.state = p->chain.tape = p->chain.adjoint = 64;
	p->memory = 1024;
	r->plan.size = sizeof r->plan;
	assert_int_equal(neap_plan_make(&r->plan, p, "auto", NULL), 0);
	assert_int_equal(neap_schedule_open(&r->schedule, p, &r->plan), 0);
	assert_int_equal(neap_online_create(&r->online, p), 0);
}

/* 1 while a sweep keeps the tier, so that its owner may close it and call it all the same. */
static int is_kept(int tier)
{
	int kept = 0;
	for (int k = 0; k < SWEEPS; k++)
		kept = kept || now->ntiers[k] > tier;
	return kept;
}

static void end_round(struct misuse_round *r)
{
	int early = (int)draw(2); /* tiers before the sweeps that keep them, twice */
	for (int i = 0; i < TIERS && early; i++)
		for (int twice = 0; twice < 2 && is_kept(i); twice++)
			neap_tier_close(r->tiers[i]);
	for (int i = 0; i < 5 && early; i++)
		run_one((int)draw(SWEEPS));
	for (int k = 0; k < SWEEPS; k++)
		small_free(&r->sweeps[k]);
	for (int i = 0; i < TIERS; i++)
		if (!early || !is_kept(i))
			neap_tier_close(r->tiers[i]);
	neap_schedule_close(r->schedule);
	neap_online_free(r->online);
	if (r->folder[0]) {
		char name[128];
		snprintf(name, sizeof name, "%s/neap.journal", r->folder);
		(void)unlink(name);
		assert_int_equal(rmdir(r->folder), 0);
	}
}

static void one_round(uint64_t seed)
{
	struct misuse_round r = {.seed = seed};
	pthread_t threads[2];
	begin_round(&r);
	for (int i = 0; i < 30; i++)
		call_any();
	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_many, (void *)(i + 1)), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	end_round(&r);
}

static void random_calls(void **state)
{
	uint64_t first = test_seed(1), seed = first;
	(void)state;
	while (seed - first < rounds)
		one_round(seed++);
	print_message("# %llu rounds, %lld runs were right, %lld calls refused\n",
		(unsigned long long)(seed - first), (long long)count_right,
		(long long)count_refused);
	assert_true(count_right > 0 && count_refused > 0);
}

#endif
