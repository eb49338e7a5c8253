/* SPDX-License-Identifier: Apache-2.0 */
/* learning_rate.c: the table of schedules, one function each, and the linear warm-up. */
#include "train/learning_rate.h"
#include <neap/train.h>
#include "base/fail.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

static double cosine(double done)
{
	return 0.5 * (1 + cos(3.141592653589793 * done));
}

static double constant(double done)
{
	(void)done;
	return 1;
}

/* The share from which the rate falls: measured next to cosine and constant in docs/learning.md. */
#define HELD 0.6

static double cooldown(double done)
{
	return done < HELD ? 1 : (1 - done) / (1 - HELD);
}

static const struct neap__learning_rate schedules[] = {
	{"cosine", cosine}, {"cooldown", cooldown}, {"constant", constant}};

enum { SCHEDULES = sizeof schedules / sizeof schedules[0] };

const char *neap_learning_rate_name(int index)
{
	return index >= 0 && index < SCHEDULES ? schedules[index].name : NULL;
}

const struct neap__learning_rate *neap__learning_rate_find(const char *name)
{
	char known[NEAP__NAMES_TEXT];
	for (int i = 0; i < SCHEDULES; i++)
		if (strcmp(schedules[i].name, name) == 0)
			return &schedules[i];
	neap__fail(NEAP_EUSAGE, "--schedule: unknown schedule '%s'; choose one of %s", name,
		neap__names_text(known, neap_learning_rate_name));
	return NULL;
}

double neap__learning_rate_at(const struct neap__learning_rate *schedule, double base,
	int64_t warmup, int64_t update, int64_t total)
{
	if (update < warmup)
		return base * ((double)update + 1) / (double)warmup;
	if (update >= total)
		return base * schedule->share(1);
	return base * schedule->share((double)(update - warmup) / (double)(total - warmup));
}
