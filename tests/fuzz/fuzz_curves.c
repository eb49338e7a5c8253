/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_curves.c: metrics.csv as `neap plot` reads it, and the figure of its numbers. */
#include "fuzz.h"
#include "metrics_file.h"
#include "svg_panels.h"
#include "cli.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cli_metrics m;
	struct cli_series series[CLI_METRICS];
	struct neap__text out = {0};
	char *text = fuzz_text(data, size);
	int rc = cli_metrics_parse(&m, text, "metrics.csv", "plot");

	fuzz_refused(rc);
	for (int i = 0; rc == CLI_DONE && i < CLI_METRICS; i++)
		series[i] = (struct cli_series){.name = "s",
			.x = m.column[CLI_METRIC_epoch],
			.y = m.column[i],
			.count = m.rows};
	if (rc == CLI_DONE) {
		const struct cli_panel panels[] = {
			{.title = "a", .log = 1, .series = series, .count = CLI_METRICS},
			{.title = "b", .series = series, .count = CLI_METRICS},
			{.title = "c", .zero = 1, .series = series, .count = CLI_METRICS}};
		FUZZ_CHECK(
			cli_svg_panels(&out, "t", "x", panels, 3, NULL, 0) == 0, "%d", out.error);
		FUZZ_CHECK(!strstr(out.data, "nan") && !strstr(out.data, "inf"), "%s", out.data);
	}
	neap__text_free(&out);
	cli_metrics_free(&m);
	free(text);
	return 0;
}
