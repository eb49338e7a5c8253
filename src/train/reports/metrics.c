/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c: writes metrics.csv, what was learned, and costs.csv, what it took: a row an epoch,
 * which is on the disk before the snapshot. What depends on plans, clocks and the number of ranks
 * stands in the second alone.
 */
#include "train/trainer.h"
#include "train/evaluate.h"
#include "nn/core/cell.h"
#include "base/fail.h"
#include "base/text.h"
#include "sys/clock.h"
#include "sys/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char metrics_header[] =
	"epoch,updates,learning_rate,train_loss,train_penalty,train_accuracy,validation_loss,"
	"validation_accuracy,spikes\n";
static const char costs_header[] =
	"epoch,support,peak_planned,peak_measured,overflows,recoveries,seconds,exchanged,waited,"
	"sent,joules\n";

enum {
	METRICS = 9,
	COSTS = 11,	   /* 10 of an earlier neap, without joules */
	BOTH = METRICS + 6 /* of a row of neap before 0.2, which had both in metrics.csv */
};

static int fields_of(const char *line)
{
	int fields = 1;
	for (; *line; line++)
		fields += *line == ',';
	return fields;
}

/* Cuts a line behind so many fields, and returns the rest. */
static char *cut_behind(char *line, int fields)
{
	for (; fields > 0; line++)
		fields -= *line == ',';
	line[-1] = '\0';
	return line;
}

/* The epoch of a row, or 0: a number that strtoll finds behind blanks may stand in the next line.
 */
static int64_t epoch_of(const char *line)
{
	char *comma;
	int64_t epoch = strtoll(line, &comma, 10);

	return *line >= '1' && *line <= '9' && *comma == ',' ? epoch : 0;
}

/* The next whole line of a text, without its end, and *at behind it; NULL: there is none. */
static char *next_line(char **at)
{
	char *line = *at, *end = line ? strchr(line, '\n') : NULL;

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return line;
}

static int read_if_there(char **data, const char *path)
{
	size_t bytes;
	return access(path, F_OK) == 0 ? neap__read_file(data, &bytes, path, (size_t)1 << 30) : 0;
}

/*
 * Takes rows of the first `epochs` epochs, *missing: of which there is none; those of older
 * versions are cut in two. The last epoch of these, or 0.
 */
static int64_t take_metrics(struct neap__text *metrics, struct neap__text *costs, char *data,
	int64_t epochs, int64_t *missing)
{
	int64_t split = 0;
	char *line;

	*missing = epochs;
	while ((line = next_line(&data))) {
		int64_t epoch = epoch_of(line);
		int fields = fields_of(line);
		if (epoch < 1 || epoch > epochs || (fields != METRICS && fields != BOTH))
			continue;
		if (fields == BOTH) {
			neap__text_add(
				costs, "%" PRId64 ",%s,,,,\n", epoch, cut_behind(line, METRICS));
			split = epoch;
		}
		neap__text_add(metrics, "%s\n", line);
		--*missing;
	}
	return split;
}

/* Keeps a copy of the metrics, which lose lines, and tells of it. */
static int keep_damaged(const struct neap__trainer *trainer, int64_t missing)
{
	char *data, *old = NULL;
	size_t bytes;

	NEAP_TRY(neap__read_file(&data, &bytes, trainer->metrics, (size_t)1 << 30));
	int rc = asprintf(&old, "%s.old", trainer->metrics) < 0
			 ? neap__fail_errno(ENOMEM, "'%s'", trainer->metrics)
			 : neap__write_file(old, data, bytes);
	if (rc == 0)
		neap__trainer_say(trainer,
			"warning: '%s' has no valid rows for %" PRId64 " of the %" PRId64
			" epochs so far, and continues without them. The file as it was is in '%s'",
			trainer->metrics, missing, trainer->counters.epoch, old);
	free(old);
	free(data);
	return rc;
}

int neap__metrics_start(const struct neap__trainer *trainer)
{
	const char *metrics = trainer->metrics, *costs = trainer->costs;
	int64_t epochs = trainer->counters.epoch, missing;
	struct neap__text told = {0}, spent = {0};
	char *data[2] = {NULL}, *line;
	int rc = epochs > 0 ? read_if_there(&data[0], metrics) : 0;

	if (rc == 0 && epochs > 0)
		rc = read_if_there(&data[1], costs);
	if (rc < 0) {
		free(data[0]);
		return rc;
	}
	neap__text_add(&told, "%s", metrics_header);
	neap__text_add(&spent, "%s", costs_header);
	int64_t split = take_metrics(&told, &spent, data[0], epochs, &missing);
	/* A run that was killed between the two files has rows that were cut in both. */
	for (char *at = data[1]; (line = next_line(&at));) {
		int fields = fields_of(line);
		if (epoch_of(line) > split && epoch_of(line) <= epochs &&
			(fields == COSTS || fields == COSTS - 1))
			neap__text_add(&spent, "%s%s\n", line, fields < COSTS ? "," : "");
	}
	if (told.error < 0 || spent.error < 0)
		rc = neap__fail_errno(ENOMEM, "cannot write '%s'", metrics);
	if (rc == 0 && missing > 0 && data[0])
		rc = keep_damaged(trainer, missing);
	if (rc == 0)
		rc = neap__write_file(costs, spent.data, spent.length);
	if (rc == 0)
		rc = neap__write_file(metrics, told.data, told.length);
	neap__text_free(&told);
	neap__text_free(&spent);
	free(data[0]);
	free(data[1]);
	return rc;
}

static int append(const char *path, const struct neap__text *row)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return neap__fail_errno(errno, "cannot write '%s'", path);
	ssize_t n = write(fd, row->data, row->length);
	int err = n < 0 ? errno : (size_t)n < row->length ? ENOSPC : 0;
	if (!err && fsync(fd) < 0)
		err = errno;
	close(fd);
	return err ? neap__fail_errno(err, "cannot write '%s'", path) : 0;
}

/* A row of costs.csv. */
static int add_costs(const struct neap__trainer *trainer, double joules)
{
	const struct neap__counters *c = &trainer->counters;
	struct neap__text row = {0};

	neap__text_add(&row, "%" PRId64 ",", c->epoch);
	if (neap__net_spikes(trainer->net))
		neap__text_add(&row, "%.6g", c->support / (c->seen > 0 ? (double)c->seen : 1));
	neap__text_add(&row,
		",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.3f,%.6f,%.6f,%" PRId64 ",",
		c->peak_planned, c->peak_measured, c->overflows, c->recoveries,
		trainer->session + neap__seconds() - trainer->started, c->exchanged, c->waited,
		c->sent);
	if (joules > 0)
		neap__text_add(&row, "%.3f", joules);
	neap__text_add(&row, "\n");
	int rc = row.error < 0 ? neap__fail_errno(ENOMEM, "costs") : append(trainer->costs, &row);
	neap__text_free(&row);
	return rc;
}

int neap__metrics_add(const struct neap__trainer *trainer, double rate,
	const struct neap_eval_result *validation, double joules)
{
	const struct neap__counters *c = &trainer->counters;
	double n = c->seen > 0 ? (double)c->seen : 1;
	struct neap__text row = {0};

	neap__text_add(&row, "%" PRId64 ",%" PRId64 ",%.9g,%.9g,%.9g,", c->epoch, c->update, rate,
		c->loss / n, c->penalty / n);
	if (c->judged > 0) /* no labels, no accuracy */
		neap__text_add(&row, "%.9g", neap__accuracy(c->correct, c->judged));
	neap__text_add(&row, ",");
	if (validation->samples > 0)
		neap__text_add(&row, "%.9g", validation->loss);
	neap__text_add(&row, ",");
	if (validation->judged > 0)
		neap__text_add(&row, "%.9g", validation->accuracy);
	neap__text_add(&row, ",");
	if (neap__net_spikes(trainer->net))
		neap__text_add(&row, "%.6g", c->spikes / n);
	neap__text_add(&row, "\n");
	int rc = row.error < 0 ? neap__fail_errno(ENOMEM, "metrics")
			       : append(trainer->metrics, &row);
	neap__text_free(&row);
	return rc < 0 ? rc : add_costs(trainer, joules);
}
