/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Journals of ranks: a rank is killed at a random call or agreement, and all start again until they
 * come to the end; between the starts journals and records are damaged or removed, and disks
 * refuse to write. The gradient is that of a sweep that was never killed, to the bit. And the
 * protocol of commits as a small model, of which every state is tried.
 *   test_agree_journal [JOBS]     NEAP_SEED
 */
#include "spreadmodel.h"

#include "store/journal_file.h"
#include "sweep/sweep.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

static uint64_t jobs = 12;
static char folder[64];
static int in_memory;

/* A job, which several starts do. */
struct job {
	uint64_t seed;
	int64_t steps;
	const char *strategy;
	uint64_t memory;
	size_t mean;
	int varies, unknown, file_tier, memory_tier, every_call;
	/* Of a start. */
	int mortal_rank;
	int64_t die_call, die_agreement, die_after, interrupt_call;
	int full_rank; /* its files cannot grow beyond so many bytes */
	uint64_t full_at;
};

struct outcome {
	int created, rc;
	char line[300], broken[200];
	uint64_t hash;
	struct spread_gradient gradient;
	struct neap_sweep_stats stats;
};

static struct {
	int64_t starts, killed, resumed, failed_commits, interrupted;
} totals;

static uint64_t drawn, draw_seed;

static uint64_t draw(uint64_t n)
{
	return neap__random_below(draw_seed, NEAP__STREAM_TEST, 91, drawn++, n);
}

static const char *file_of(const char *name, int rank)
{
	static char paths[4][128];
	static int next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s.%d", folder, name, rank);
	return path;
}

static void make_folder(void)
{
	struct statfs fs;
	in_memory = statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC;
	snprintf(
		folder, sizeof folder, "%s/neap-agree-XXXXXX", in_memory ? "/dev/shm" : "/var/tmp");
	assert_non_null(mkdtemp(folder));
}

static void empty_folder(void)
{
	for (int i = 0; i < RANKS_MOST; i++) {
		unlink(file_of("neap.journal", i));
		unlink(file_of("neap.slow", i));
	}
}

static void open_tiers(const struct job *x, int rank, struct neap_tier **tiers, int *count)
{
	char suffix[8];
	snprintf(suffix, sizeof suffix, ".%d", rank);
	struct neap_file_options o = {.size = sizeof o,
		.keep = 1,
		.page_cache = (uint32_t)in_memory,
		.in_memory = (uint32_t)in_memory,
		.suffix = suffix};
	*count = 0;
	if (x->memory_tier)
		RANK_NEEDS(neap_tier_open_memory(&tiers[(*count)++], 6000) == 0);
	if (x->file_tier)
		RANK_NEEDS(neap_tier_open_file(&tiers[(*count)++], folder, &o) == 0);
}

/* Files of this rank cannot grow beyond that from now on. */
static void limit_files(uint64_t bytes)
{
	const struct rlimit most = {bytes, bytes};
	signal(SIGXFSZ, SIG_IGN);
	RANK_NEEDS(setrlimit(RLIMIT_FSIZE, &most) == 0);
}

static void run_rank(struct rank *r, void *user)
{
	const struct job *x = user;
	struct outcome *out = (struct outcome *)(void *)r->world->results[r->rank];
	struct neap_tier *tiers[2];
	struct neap_sweep *sweep = NULL;
	struct spread m;
	char suffix[8];
	int ntiers;
	memset(out, 0, sizeof *out);
	snprintf(suffix, sizeof suffix, ".%d", r->rank);
	spread_init(&m, r, x->steps, x->seed);
	m.varies = x->varies;
	if (r->rank == x->mortal_rank) {
		m.die_at = x->die_call;
		m.interrupt_at = x->interrupt_call;
		r->die_at = x->die_agreement;
		r->die_after = x->die_after;
	}
	open_tiers(x, r->rank, tiers, &ntiers);
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = x->steps,
		.memory = x->memory,
		.strategy = x->unknown ? "online" : x->strategy,
		.params = {.effort = 10},
		.tiers = tiers,
		.ntiers = ntiers,
		.advance = 1e-6,
		.record = 1.5e-6,
		.backward = 2e-6,
		.journal = folder,
		.journal_seconds = x->every_call ? -1 : 1e-3,
		.journal_key = (uint64_t)(r->world->ranks * 100 + r->rank),
		.journal_in_memory = in_memory,
		.journal_suffix = suffix,
		.interrupted = spread_interrupted,
		.interrupted_user = &m};
	struct neap_step_ops ops = spread_ops(&m, x->mean);
	if (x->unknown)
		ops.ended = spread_ended;
	RANK_HOOK(r, &o);
	if (r->rank == x->full_rank)
		limit_files(x->full_at);
	out->created = neap_sweep_create(&sweep, &ops, &m, &o);
	if (out->created == 0)
		out->rc = spread_run(sweep, &m, &out->gradient, &out->stats);
	int rc = out->created < 0 ? out->created : out->rc;
	snprintf(out->line, sizeof out->line, "%s", rc < 0 ? neap_detail() : "");
	snprintf(out->broken, sizeof out->broken, "%s", m.broken);
	out->hash = m.hash;
	neap_sweep_free(sweep);
	while (ntiers > 0)
		neap_tier_close(tiers[--ntiers]);
	free(m.passed);
}

static const struct outcome *outcome_of(const struct world *w, int rank)
{
	return (const struct outcome *)(const void *)w->results[rank];
}

static const char *about(const struct job *x, int ranks)
{
	static char text[200];
	snprintf(text, sizeof text, "NEAP_SEED=%llu, %d ranks, T=%lld %s memory=%llu%s%s%s%s",
		(unsigned long long)x->seed, ranks, (long long)x->steps, x->strategy,
		(unsigned long long)x->memory, x->varies ? ", varies" : "",
		x->file_tier ? ", file" : "", x->memory_tier ? ", memory" : "",
		x->unknown ? ", unknown" : "");
	return text;
}

/* Flips bits of a file behind its header, or cuts it. */
static void damage(const char *path)
{
	struct stat st;
	unsigned char byte;
	int fd = open(path, O_RDWR);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 4096) {
		close(fd);
		return;
	}
	if (draw(3) == 0)
		assert_int_equal(ftruncate(fd, 4096 + (off_t)draw((uint64_t)st.st_size - 4096)), 0);
	for (int i = 0; i < 4; i++) {
		off_t at = 4096 + (off_t)draw((uint64_t)st.st_size - 4096);
		if (pread(fd, &byte, 1, at) != 1)
			continue;
		byte ^= (unsigned char)(1 << draw(8));
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
}

/* What may happen to the files of one rank while nobody runs. */
static void meddle(int ranks)
{
	int rank = (int)draw((uint64_t)ranks);
	switch (draw(12)) {
	case 0:
		unlink(file_of("neap.journal", rank));
		break;
	case 1:
		damage(file_of("neap.journal", rank));
		break;
	case 2:
		unlink(file_of("neap.slow", rank));
		break;
	case 3:
		damage(file_of("neap.slow", rank));
		break;
	default:
		break;
	}
}

/* How the next start ends; the last ones come to the end. */
static void draw_end(struct job *x, int ranks, int left)
{
	x->die_call = x->die_agreement = x->die_after = x->interrupt_call = 0;
	x->full_rank = x->mortal_rank = -1;
	if (draw(3) == 0) {
		x->full_rank = (int)draw((uint64_t)ranks);
		x->full_at = 16384 + draw(60000);
	}
	if (left == 0)
		return;
	x->mortal_rank = (int)draw((uint64_t)ranks);
	int64_t *const at[] = {&x->die_call, &x->die_agreement, &x->die_after, &x->interrupt_call};
	*at[draw(4)] = 1 + (int64_t)draw((uint64_t)x->steps / 2 + 5);
}

/* One start. 1: it came to the end. */
static int start(struct world *w, struct job *x, const struct spread_gradient *want)
{
	int how = start_ranks(w, run_rank, x), done = how == 0;
	totals.starts++;
	if (how && how != SIGKILL)
		fail_msg("%s: a rank ended with %d", about(x, w->ranks), how);
	totals.killed += how == SIGKILL;
	for (int i = 0; i < w->ranks && done; i++) {
		const struct outcome *o = outcome_of(w, i), *first = outcome_of(w, 0);
		if (o->broken[0] || o->created != first->created || o->rc != first->rc ||
			o->hash != first->hash || o->stats.commits != first->stats.commits)
			fail_msg("%s: rank %d: %d %d %s %s", about(x, w->ranks), i, o->created,
				o->rc, o->line, o->broken);
		if (o->created == NEAP_EINFEASIBLE)
			return 1;
		if (o->rc == NEAP_EINTERRUPTED || o->created == -EFBIG || o->rc == -EFBIG)
			done = 0;
		else if (o->created < 0 || o->rc < 0)
			fail_msg("%s: rank %d: %d %d %s", about(x, w->ranks), i, o->created, o->rc,
				o->line);
		else if (memcmp(&o->gradient, &want[i], sizeof want[i]) != 0)
			fail_msg("%s: rank %d: gradient, %lld spared", about(x, w->ranks), i,
				(long long)o->stats.spared);
		totals.failed_commits += o->stats.commits_failed;
		totals.interrupted += i == 0 && o->rc == NEAP_EINTERRUPTED;
		totals.resumed += i == 0 && o->stats.spared > 0;
	}
	return done;
}

static void one_job(uint64_t seed)
{
	static const char *const strategies[] = {
		"auto", "double", "async", "revolve", "mixed", "standard", "h-revolve"};
	struct spread_gradient want[RANKS_MOST];
	draw_seed = seed;
	drawn = 0;
	struct world *w = make_world(2 + (int)draw(RANKS_MOST - 1));
	struct job x = {.seed = seed,
		.steps = 20 + (int64_t)draw(180),
		.strategy = strategies[draw(6)],
		.memory = 6000 + draw(6000),
		.mean = 104 + 8 * draw(4),
		.varies = (int)draw(2),
		.unknown = draw(5) == 0,
		.file_tier = draw(4) != 0,
		.memory_tier = (int)draw(2),
		.every_call = draw(3) != 0};
	spread_reference(x.steps, x.seed, w->ranks, 0, want);
	int done = 0;
	for (int left = 2 + (int)draw(4); !done; left -= left > 0) {
		draw_end(&x, w->ranks, left);
		if (left == 0 && !done)
			x.full_rank = -1;
		done = start(w, &x, want);
		if (!done)
			meddle(w->ranks);
	}
	for (int i = 0; i < w->ranks; i++)
		if (access(file_of("neap.journal", i), F_OK) == 0 ||
			access(file_of("neap.slow", i), F_OK) == 0)
			fail_msg("%s: rank %d left files", about(&x, w->ranks), i);
	empty_folder();
	free_world(w);
}

static void interrupted_after_commits(struct world *w, struct job *x)
{
	x->mortal_rank = 1;
	x->interrupt_call = 12;
	assert_int_equal(start_ranks(w, run_rank, x), 0);
	for (int i = 0; i < w->ranks; i++) {
		char suffix[16];
		snprintf(suffix, sizeof suffix, ".%d", i);
		assert_int_equal(outcome_of(w, i)->rc, NEAP_EINTERRUPTED);
		assert_int_equal(neap_journal_there(folder, suffix, in_memory), 1);
	}
	x->mortal_rank = -1;
	assert_int_equal(neap_journal_there(folder, NULL, in_memory), 0);
	assert_int_equal(neap_journal_there(folder, ".9", in_memory), 0);
	assert_int_not_equal(access(file_of("neap.journal", 9), F_OK), 0);
}

/* Where a rank has no journal, or no commit in it, all say so, and start over to the same bits. */
static void a_rank_without_a_journal(void **state)
{
	struct spread_gradient want[RANKS_MOST];
	struct job x = {.seed = 3,
		.steps = 150,
		.strategy = "double",
		.memory = 8000,
		.mean = 104,
		.file_tier = 1,
		.every_call = 1,
		.full_rank = -1};
	struct world *w = make_world(3);
	(void)state;
	make_folder();
	spread_reference(x.steps, x.seed, w->ranks, 0, want);
	for (int what = 0; what < 3; what++) {
		interrupted_after_commits(w, &x);
		if (what == 1)
			assert_int_equal(unlink(file_of("neap.journal", 1)), 0);
		if (what == 2)
			assert_int_equal(truncate(file_of("neap.journal", 1), 4096), 0);
		assert_int_equal(start_ranks(w, run_rank, &x), 0);
		for (int i = 0; i < w->ranks; i++) {
			const struct outcome *o = outcome_of(w, i);
			assert_int_equal(o->rc, 0);
			assert_int_equal(o->stats.started_over, what > 0);
			assert_int_equal(o->stats.spared == 0, what > 0);
			assert_memory_equal(&o->gradient, &want[i], sizeof want[i]);
		}
	}
	empty_folder();
	assert_int_equal(rmdir(folder), 0);
	free_world(w);
}

static void killed_ranks_resume(void **state)
{
	uint64_t seed = test_seed(1);
	(void)state;
	make_folder();
	for (uint64_t i = 0; i < jobs; i++)
		one_job(seed + i);
	print_message(
		"# %lld starts, %lld killed, %lld interrupted, %lld resumed, %lld commits failed\n",
		(long long)totals.starts, (long long)totals.killed, (long long)totals.interrupted,
		(long long)totals.resumed, (long long)totals.failed_commits);
	assert_true(totals.killed > 0 && totals.resumed > 0);
	assert_true(jobs < 12 || totals.failed_commits > 0);
	assert_int_equal(rmdir(folder), 0);
}

/* Suffixes that are no part of a name. */
static void names(void **state)
{
	struct neap_tier *tier;
	struct rank alone = {0};
	struct spread m = {.rank = &alone, .steps = 3};
	struct neap_step_ops ops = spread_ops(&m, 0);
	(void)state;
	make_folder();
	static const char *const bad[] = {
		"/x", "a b", "\t", "1234567890123456789012345678901234567890"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct neap_file_options f = {.size = sizeof f,
			.keep = 1,
			.in_memory = 1,
			.page_cache = 1,
			.suffix = bad[i]};
		struct neap_sweep_options o = {.size = sizeof o,
			.steps = 3,
			.journal = folder,
			.journal_in_memory = 1,
			.journal_suffix = bad[i]};
		struct neap_sweep *sweep;
		assert_int_equal(neap_tier_open_file(&tier, folder, &f), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), "a suffix of neap.slow"));
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), "a suffix of neap.journal"));
	}
	assert_int_equal(rmdir(folder), 0);
}

/* Numbers of commits in a file: what failed is passed over in its area, and never used again. */
static void numbers(void **state)
{
	struct neap__journal *file;
	char bytes[3000] = "a commit";
	(void)state;
	make_folder();
	for (int last = 4; last < 8; last++) {
		assert_int_equal(neap__journal_open(&file, folder, ".0", in_memory), 0);
		assert_int_equal(neap__journal_begin(file, 77, "subject", 7, sizeof bytes), 0);
		assert_int_equal(neap__journal_number(file), 77);
		for (int i = 0; i < 3; i++) { /* 1 counts, 2 does not, 4 is written over it */
			assert_int_equal(neap__journal_commit_begin(file), 0);
			assert_int_equal(neap__journal_write(file, bytes, sizeof bytes), 0);
			assert_int_equal(neap__journal_commit_end(file), 0);
			neap__journal_settle(file, i != 1);
			assert_int_equal(neap__journal_newest(file, UINT64_MAX), i == 0	  ? 1
										 : i == 1 ? 2
											  : 4);
			assert_int_equal(neap__journal_newest(file, 1), 1);
		}
		assert_int_equal(neap__journal_last(file), 4);
		/* The others have numbers up to `last`; 1 is what all have. */
		neap__journal_take(file, 1, (uint64_t)last);
		assert_int_equal(neap__journal_read(file, bytes, sizeof bytes), 0);
		assert_int_equal(neap__journal_commit_begin(file), 0);
		assert_int_equal(neap__journal_commit_end(file), 0);
		assert_int_equal(neap__journal_last(file), last < 6 ? 6 : 8);
		assert_int_equal(neap__journal_newest(file, 1), 1);
		neap__journal_remove(file);
	}
	assert_int_equal(rmdir(folder), 0);
}

/*
 * The protocol. A rank has two areas; a commit m is written to area m % 2 and is whole, torn (what
 * was there is lost, too), or was refused before a byte was written. Then all agree, or all are
 * killed before. A kill may come at any time; all resume from one number.
 */
struct area {
	int number, attempt, whole;
};

struct protocol {
	int ranks, next, attempts;
	int counts, counts_attempt; /* the commit that counts: 0: none */
	struct area of[3][2];
};

static int64_t states_tried;

static int newest(const struct protocol *p, int rank, int most)
{
	int best = 0;
	for (int k = 0; k < 2; k++)
		if (p->of[rank][k].whole && p->of[rank][k].number <= most &&
			p->of[rank][k].number > best)
			best = p->of[rank][k].number;
	return best;
}

/* As neap__journal_resume_from and neap__journal_take have it; the marks of torn ones may be read.
 */
static void resume_protocol(struct protocol *p)
{
	int least = 1 << 20, most = 0, last = 0;
	while (least != most) {
		int below = least;
		least = 1 << 20, most = 0;
		for (int i = 0; i < p->ranks; i++) {
			int own = newest(p, i, below);
			least = own < least ? own : least;
			most = own > most ? own : most;
		}
	}
	for (int i = 0; i < p->ranks; i++)
		for (int k = 0; k < 2; k++)
			if (p->of[i][k].number > last)
				last = p->of[i][k].number;
	/* No commit that counted is lost, and all ranks load the same attempt. */
	if (least < p->counts)
		fail_msg("commit %d counted, %d is loaded", p->counts, least);
	for (int i = 0; i < p->ranks && least; i++)
		if (p->of[i][least % 2].attempt != p->of[0][least % 2].attempt)
			fail_msg("ranks load two attempts of commit %d", least);
	p->counts = least;
	p->next = least ? last + 1 + ((last + 1) % 2 == least % 2) : 1;
	if (least == 0) /* a run of another number begins */
		memset(p->of, 0, sizeof p->of);
}

static void try_all(const struct protocol *before, int depth)
{
	int ways = 1;
	for (int i = 0; i < before->ranks; i++)
		ways *= 4;
	for (int way = 0; way < ways; way++) {
		struct protocol p = *before;
		int good = 1, m = p.next;
		p.attempts++;
		for (int i = 0, rest = way; i < p.ranks; i++, rest /= 4) {
			struct area *a = &p.of[i][m % 2];
			if (rest % 4 == 0)
				*a = (struct area){m, p.attempts, 1};
			else if (rest % 4 == 1)
				a->whole = 0; /* torn, with the old mark */
			else if (rest % 4 == 2)
				*a = (struct area){m, p.attempts, 0}; /* torn, with the new mark */
			good = good && rest % 4 == 0;
		}
		states_tried++;
		struct protocol killed = p;
		resume_protocol(&killed);
		p.counts = good ? m : p.counts;
		p.next = good ? m + 1 : m + 2;
		if (depth == 0)
			continue;
		try_all(&killed, depth - 1);
		try_all(&p, depth - 1);
	}
}

static void protocol(void **state)
{
	(void)state;
	for (int ranks = 1; ranks <= 3; ranks++) {
		struct protocol p = {.ranks = ranks, .next = 1};
		try_all(&p, ranks == 3 ? 2 : 4);
	}
	print_message("# %lld states\n", (long long)states_tried);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protocol),
		cmocka_unit_test(names),
		cmocka_unit_test(numbers),
		cmocka_unit_test(a_rank_without_a_journal),
		cmocka_unit_test(killed_ranks_resume),
	};
	if (argc > 1)
		jobs = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests_name("agree_journal", tests, NULL, NULL);
}
