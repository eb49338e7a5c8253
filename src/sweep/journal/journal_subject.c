/* SPDX-License-Identifier: Apache-2.0 */
/* journal_subject.c: what journals of both executors share. */
#include "sweep/journal/journal_subject.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS 30.0 /* between commits, where the options say 0 */
#define SHARE                                                                                      \
	30.0 /* seconds between commits over those of the last one, at least: 3% of the time */

typedef unsigned long long ull;

int neap__journal_differs(
	const char *directory, const char *name, const char *what, uint64_t there, uint64_t here)
{
	return neap__fail(NEAP_EUSAGE,
		"the journal in '%s' is of another sweep: %s is %llu there, %llu here; give "
		"another directory, or remove %s to start over",
		directory, what, (ull)there, (ull)here, name);
}

int neap__journal_other_strategy(
	const char *directory, const char *name, const char *there, const char *here)
{
	return neap__fail(NEAP_EUSAGE,
		"the journal in '%s' is of a sweep under strategy %.31s, not %s; give "
		"another directory, or remove %s to start over",
		directory, there, here, name);
}

struct subject {
	char *at;
	size_t bytes;
	int64_t room;
};

static int add(void *user, const char *from, size_t bytes)
{
	struct subject *text = user;
	if (neap__grow(&text->at, &text->room, (int64_t)(text->bytes + bytes), 1) < 0)
		return neap__fail_errno(ENOMEM, "a journal");
	memcpy(text->at + text->bytes, from, bytes);
	text->bytes += bytes;
	return 0;
}

int neap__journal_write_subject(struct neap__journal *file, uint64_t number, void *identity,
	size_t bytes, uint64_t *plan_bytes, const struct neap_plan *plan,
	const struct neap_problem *problem, uint64_t most)
{
	struct subject text = {0};
	int rc = add(&text, identity, bytes);
	/* A plan that cannot be written is made anew, and compared action by action. */
	if (rc == 0 && plan && neap_plan_write(plan, problem, 0, add, &text) < 0)
		text.bytes = bytes;
	*plan_bytes = text.bytes - bytes;
	if (rc == 0)
		memcpy(text.at, identity, bytes);
	if (rc == 0)
		rc = neap__journal_begin(file, number, text.at, text.bytes, most);
	free(text.at);
	return rc;
}

double neap__journal_every(double option, double took)
{
	double every = option == 0 ? SECONDS : option;
	return every > 0 && every < SHARE * took ? SHARE * took : every;
}
