/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_file.h: the table of numbers that training writes, metrics.csv, a row an epoch. */
#ifndef NEAP_CLI_METRICS_FILE_H
#define NEAP_CLI_METRICS_FILE_H

#include <stddef.h>

/* Columns that are read; those behind `epoch` may be absent or empty. */
#define CLI_METRICS_TABLE(X)                                                                       \
	X(epoch)                                                                                   \
	X(train_loss)                                                                              \
	X(validation_loss)                                                                         \
	X(train_accuracy)                                                                          \
	X(validation_accuracy)                                                                     \
	X(spikes)

#define CLI_X(name) CLI_METRIC_##name,
enum cli_metric { CLI_METRICS_TABLE(CLI_X) CLI_METRICS };
#undef CLI_X

struct cli_metrics {
	size_t rows;
	double *column[CLI_METRICS]; /* `rows` numbers each; NAN where there is none */
};

/*
 * Reads a table from text, which it changes; a last line without an end, of a run that was killed
 * while it wrote, is left out. `path` stands in the line about a mistake. The caller frees
 * *metrics in every case. CLI_DONE or one line.
 */
int cli_metrics_parse(
	struct cli_metrics *metrics, char *text, const char *path, const char *command);
/* The same of a file, RUN/metrics.csv or one that is named itself. */
int cli_metrics_read(struct cli_metrics *metrics, const char *run, const char *command);
void cli_metrics_free(struct cli_metrics *metrics);

#endif
