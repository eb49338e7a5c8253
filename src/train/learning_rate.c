/* SPDX-License-Identifier: Apache-2.0 */
#include "train/learning_rate.h"
#include "base/fail.h"

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

static const struct neap__learning_rate schedules[] = {{"cosine", cosine}, {"constant", constant}};

const struct neap__learning_rate *neap__learning_rate_find(const char *name)
{
	for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++)
		if (strcmp(schedules[i].name, name) == 0)
			return &schedules[i];
	neap__fail(NEAP_EUSAGE, "unknown schedule '%s'; cosine and constant are known", name);
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
