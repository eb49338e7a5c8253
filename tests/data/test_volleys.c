/* SPDX-License-Identifier: Apache-2.0 */
/* test_volleys.c: the volleys of `volleys` have the distance and the groups that the class names.
 */
#include "spikes.h"

enum { UNITS = 7 };

/* Steps and groups of the two volleys of a sample without noise; each channel spikes once in one.
 */
static void volleys(struct neap_dataset *set, int64_t i, double first[2], int group[2], int *label)
{
	struct neap_events e;
	int seen[2][2 * UNITS] = {0};

	ok(neap_dataset_read(set, i, &e));
	assert_int_equal(e.count, 2 * UNITS);
	*label = e.label;
	for (int k = 0; k < 2; k++) {
		group[k] = e.unit[k * UNITS] / UNITS;
		first[k] = 1e9;
		for (int j = k * UNITS; j < (k + 1) * UNITS; j++) {
			double step = floor(e.time[j] / 1e-3);
			assert_true(e.time[j] >= 0 && e.time[j] < e.duration);
			first[k] = fmin(first[k], step);
			assert_true(step < first[k] + 5);
			assert_int_equal(e.unit[j] / UNITS, group[k]);
			assert_int_equal(seen[k][e.unit[j]]++, 0);
		}
	}
	neap_events_free(&e);
}

static void classes(void **state)
{
	struct neap_dataset *set;
	int labels[5] = {0};

	(void)state;
	for (int lag = 0; lag < 2; lag++) {
		ok(neap_dataset_open(
			&set, lag ? "volleys:task=lag,gap=30,apart=12,classes=3,units=7,"
				    "noise=0,samples=300"
				  : "volleys:gap=30,units=7,noise=0,samples=300"));
		memset(labels, 0, sizeof labels);
		for (int64_t i = 0; i < 300; i++) {
			double first[2];
			int group[2], label;
			volleys(set, i, first, group, &label);
			labels[label]++;
			int gap = 30 + (lag ? 12 * label : 0);
			/* Of each volley the first spike has a jitter of 0 to 4 steps. */
			assert_true(fabs(first[1] - first[0] - gap) <= 4);
			assert_int_equal(group[0] ^ group[1], lag ? 1 : label);
			assert_true(!lag || group[0] == 0);
		}
		for (int c = 0; c < (lag ? 3 : 2); c++)
			assert_true(labels[c] > 70);
		assert_int_equal(labels[lag ? 3 : 2], 0);
		neap_dataset_close(set);
	}
}

static void seeds_parts_and_noise(void **state)
{
	static const char *const names[] = {"volleys", "volleys:first=3", "volleys:seed=1",
		"volleys:part=test", "volleys:noise=11"};
	struct neap_events e[5];

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct neap_dataset *set;
		ok(neap_dataset_open(&set, names[i]));
		ok(neap_dataset_read(set, i == 1 ? 2 : 5, &e[i]));
		assert_int_equal(e[i].count, 2 * 10 + (i == 4 ? 11 : 10));
		neap_dataset_close(set);
	}
	for (int i = 1; i < 4; i++)
		assert_int_equal(memcmp(e[0].time, e[i].time, 30 * sizeof(double)) == 0, i == 1);
	for (int i = 0; i < 5; i++)
		neap_events_free(&e[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes), cmocka_unit_test(seeds_parts_and_noise)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
