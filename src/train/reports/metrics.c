/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c: writes metrics.csv, one row an epoch, which is on the disk before the snapshot. */
#include "train/trainer.h"
#include "train/evaluate.h"
#include "base/fail.h"
#include "base/text.h"
#include "sys/clock.h"
#include "sys/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char header[] =
	"epoch,updates,learning_rate,train_loss,train_penalty,train_accuracy,validation_loss,"
	"validation_accuracy,spikes,support,peak_planned,peak_measured,overflows,recoveries,"
	"seconds\n";

int neap__metrics_start(const char *path, int64_t epochs)
{
	struct neap__text kept = {0};
	char *data = NULL;
	size_t bytes = 0;

	neap__text_add(&kept, "%s", header);
	if (epochs > 0 && access(path, F_OK) == 0)
		NEAP_TRY(neap__read_file(&data, &bytes, path, (size_t)1 << 30));
	/* Takes whole rows that begin with the number of an epoch that the snapshot has. */
	for (char *line = data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		char *comma;
		int64_t epoch = strtoll(line, &comma, 10);
		*end = '\0';
		/* A number that strtoll finds behind blanks may stand in the next line. */
		int is_row = *line >= '1' && *line <= '9' && *comma == ',';
		if (is_row && epoch <= epochs)
			neap__text_add(&kept, "%s\n", line);
	}
	int rc = kept.error < 0 ? neap__fail_errno(ENOMEM, "cannot write '%s'", path)
				: neap__write_file(path, kept.data, kept.length);
	neap__text_free(&kept);
	free(data);
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

int neap__metrics_add(
	const struct neap__trainer *trainer, double rate, const struct neap_eval_result *validation)
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
		neap__text_add(&row, "%.6g,%.6g", c->spikes / n, c->support / n);
	else
		neap__text_add(&row, ",");
	neap__text_add(&row, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.3f\n",
		c->peak_planned, c->peak_measured, c->overflows, c->recoveries,
		trainer->session + neap__seconds() - trainer->started);
	int rc = row.error < 0 ? neap__fail_errno(ENOMEM, "metrics")
			       : append(trainer->metrics, &row);
	neap__text_free(&row);
	return rc;
}
