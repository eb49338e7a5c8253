/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_file.c: reads metrics.csv by the names in its first line (metrics_file.h). */
#include "metrics_file.h"
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MOST 256
#define EPOCHS_MOST 1e9

#define CLI_X(name) #name,
static const char *const names[] = {CLI_METRICS_TABLE(CLI_X)};
#undef CLI_X

void cli_metrics_free(struct cli_metrics *metrics)
{
	for (int i = 0; i < CLI_METRICS; i++)
		free(metrics->column[i]);
	*metrics = (struct cli_metrics){0};
}

/* Cuts the next field off; NULL behind the last one. */
static char *next_field(char **at)
{
	char *field = *at;
	if (!field)
		return NULL;
	char *comma = strchr(field, ',');
	*at = comma ? comma + 1 : NULL;
	if (comma)
		*comma = '\0';
	return field;
}

/* which[i]: the column of the table that field i is, or -1. Their number, or -1. */
static int read_header(int which[COLUMNS_MOST], char *line)
{
	int fields = 0, epoch = 0;
	char *field;

	while ((field = next_field(&line))) {
		if (fields == COLUMNS_MOST)
			return -1;
		which[fields] = -1;
		for (int i = 0; i < CLI_METRICS; i++)
			if (strcmp(field, names[i]) == 0)
				which[fields] = i;
		epoch |= which[fields] == CLI_METRIC_epoch;
		fields++;
	}
	return epoch ? fields : -1;
}

/* A loss may be nan or infinite, where training diverged. */
static int read_field(double *value, const char *field)
{
	const char *word = field + (*field == '-');

	*value = NAN;
	if (*field == '\0' || strcmp(word, "nan") == 0 || strcmp(word, "inf") == 0)
		return 0;
	return neap__units_number(value, field);
}

static int read_row(struct cli_metrics *m, const int *which, int fields, char *line)
{
	char *field;
	int i = 0;

	for (; (field = next_field(&line)); i++) {
		double value;
		if (i == fields)
			return -1;
		if (which[i] < 0)
			continue;
		if (read_field(&value, field) < 0)
			return -1;
		m->column[which[i]][m->rows] = value;
	}
	double epoch = m->column[CLI_METRIC_epoch][m->rows];
	return i == fields && epoch >= 0 && epoch <= EPOCHS_MOST ? 0 : -1;
}

int cli_metrics_parse(
	struct cli_metrics *metrics, char *text, const char *path, const char *command)
{
	int which[COLUMNS_MOST], fields = -1;
	size_t lines = 0, line = 1;
	char *end = strchr(text, '\n');

	*metrics = (struct cli_metrics){0};
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	if (end) {
		*end = '\0';
		fields = read_header(which, text);
	}
	if (fields < 0)
		return cli_usage(command,
			"%s: line 1 does not have the columns of a metrics.csv (epoch, train_loss, "
			"...). Pass a run, or its metrics.csv",
			path);
	for (int i = 0; i < CLI_METRICS; i++) {
		metrics->column[i] = malloc(lines * sizeof(double));
		if (!metrics->column[i])
			return cli_usage(
				command, "%s: not enough memory for %zu lines", path, lines);
		for (size_t k = 0; k < lines; k++)
			metrics->column[i][k] = NAN;
	}
	for (char *at = end + 1; (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		line++;
		if (read_row(metrics, which, fields, at) < 0)
			return cli_usage(command,
				"%s: line %zu must have %d numbers, the first an epoch between 0 "
				"and 10^9. The file may be damaged",
				path, line, fields);
		metrics->rows++;
	}
	return CLI_DONE;
}
