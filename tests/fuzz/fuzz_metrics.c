/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_metrics.c: metrics.csv and costs.csv of a run that is resumed: whole rows of its epochs
 * stay, in order.
 */
#include "fuzz_files.h"
#include "train/trainer.h"

#include <stdlib.h>
#include <string.h>

/* Both files as they are, one behind the other. */
static uint8_t *read_both(const char *metrics, const char *costs, size_t *bytes)
{
	size_t first, second;
	uint8_t *a = fuzz_read(metrics, &first), *b = fuzz_read(costs, &second);

	FUZZ_CHECK(first > 0 && a[first - 1] == '\n', "no whole line at the end");
	FUZZ_CHECK(second > 0 && b[second - 1] == '\n', "no whole line at the end");
	a = realloc(a, first + second);
	FUZZ_CHECK(a != NULL, "out of memory");
	memcpy(a + first, b, second);
	free(b);
	*bytes = first + second;
	return a;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *metrics = fuzz_path("metrics.csv"), *costs = fuzz_path("costs.csv");
	const struct neap__trainer trainer = {.metrics = (char *)(uintptr_t)metrics,
		.costs = (char *)(uintptr_t)costs,
		.counters = {.epoch = (int64_t)(fuzz_seed(data, size) % 5)}};
	size_t kept, again, half = size / 2;

	fuzz_write(metrics, data, size);
	fuzz_write(costs, data + half, size - half);
	int rc = neap__metrics_start(&trainer);
	fuzz_line(rc);
	FUZZ_CHECK(rc == 0, "%d", rc);
	uint8_t *text = read_both(metrics, costs, &kept);
	/* Reading what was kept changes nothing. */
	rc = neap__metrics_start(&trainer);
	FUZZ_CHECK(rc == 0, "%d", rc);
	uint8_t *second = read_both(metrics, costs, &again);
	FUZZ_CHECK(
		again == kept && memcmp(text, second, kept) == 0, "%zu and %zu bytes", kept, again);
	free(second);
	free(text);
	return 0;
}
