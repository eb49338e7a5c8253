/* SPDX-License-Identifier: Apache-2.0 */
/* confusion.c: the table of labels and predictions, whole or as lists. */
#include "confusion.h"
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 80
#define NAME 20			   /* columns of a name at most */
#define NUMBER 5		   /* columns of a class's number */
#define NAME_ROOM NEAP__PLAIN_TEXT /* bytes: NAME characters of UTF-8 */

int64_t cli_confusion_samples(const struct neap_eval_result *r, int label)
{
	int64_t sum = 0;
	for (int j = 0; j < r->classes; j++)
		sum += r->confusion[label * (int64_t)r->classes + j];
	return sum;
}

/* A class's name in at most NAME characters, "" where it is none but its number; its columns. */
static int name_of(char room[NAME_ROOM], const struct neap_eval_result *r, int label)
{
	const char *name = r->class_name ? r->class_name[label] : NULL;
	int columns = 0;
	char *at = room;

	snprintf(room, NAME_ROOM, "%d", label);
	neap__escaped_text(room, name && strcmp(name, room) != 0 ? name : "");
	for (int bytes; *at && columns < NAME; columns++, at += bytes)
		bytes = neap__utf8_bytes(at) ? neap__utf8_bytes(at) : 1;
	*at = '\0';
	return columns;
}

/* The longest name, in columns. */
static int widest_name(const struct neap_eval_result *r)
{
	char room[NAME_ROOM];
	int most = 0;
	for (int i = 0; i < r->classes; i++) {
		int columns = name_of(room, r, i);
		most = columns > most ? columns : most;
	}
	return most;
}

static int digits(int64_t n)
{
	int count = 1;
	while (n >= 10) {
		n /= 10;
		count++;
	}
	return count;
}

/* Columns of a cell: a blank, and the largest count or the largest number of a class. */
static int cell_columns(const struct neap_eval_result *r)
{
	int64_t most = r->classes - 1, cells = (int64_t)r->classes * r->classes;
	for (int64_t i = 0; i < cells; i++)
		most = r->confusion[i] > most ? r->confusion[i] : most;
	return 1 + digits(most);
}

/* "    7 seven  ", with `width` columns for the name. */
static void show_label(const struct neap_eval_result *r, int label, int width)
{
	char room[NAME_ROOM];
	int columns = name_of(room, r, label);
	printf("%*d %s%*s", NUMBER, label, room, width - columns, "");
}

/* "  96.7%", or "      -" where there are no samples. */
static void show_right(const struct neap_eval_result *r, int label)
{
	int64_t samples = cli_confusion_samples(r, label);
	int64_t right = r->confusion[label * (int64_t)r->classes + label];
	if (samples)
		printf(" %6.1f%%", 100 * (double)right / (double)samples);
	else
		printf(" %7s", "-");
}

static void show_table(const struct neap_eval_result *r, int width, int cell)
{
	printf("%*s%*s   right", -NUMBER, "label", width + 1, "");
	for (int j = 0; j < r->classes; j++)
		printf("%*d", cell, j);
	printf("\n");
	for (int i = 0; i < r->classes; i++) {
		show_label(r, i, width);
		show_right(r, i);
		for (int j = 0; j < r->classes; j++) {
			int64_t n = r->confusion[i * (int64_t)r->classes + j];
			if (n)
				printf("%*" PRId64, cell, n);
			else
				printf("%*s", cell, ".");
		}
		printf("\n");
	}
}

/* The class that a label was taken for most often after one with `last` samples, class `from`. */
static int next_wrong(const struct neap_eval_result *r, int label, int64_t last, int from)
{
	const int64_t *row = &r->confusion[label * (int64_t)r->classes];
	int best = -1;
	for (int j = 0; j < r->classes; j++) {
		int later = row[j] < last || (row[j] == last && j > from);
		if (j != label && row[j] && later && (best < 0 || row[j] > row[best]))
			best = j;
	}
	return best;
}

/* "  nine (2), one (1)", in the columns that are left of the line. */
static void show_wrong(const struct neap_eval_result *r, int label, int left)
{
	const int64_t *row = &r->confusion[label * (int64_t)r->classes];
	const char *between = "  ";
	int j = -1;
	for (int64_t last = INT64_MAX; (j = next_wrong(r, label, last, j)) >= 0; last = row[j]) {
		char room[NAME_ROOM];
		int columns = name_of(room, r, j);
		if (columns == 0)
			columns = snprintf(room, sizeof room, "%d", j);
		columns += 5 + digits(row[j]);
		if (columns + 5 > left) {
			printf("%s...", between);
			return;
		}
		printf("%s%s (%" PRId64 ")", between, room, row[j]);
		left -= columns;
		between = ", ";
	}
}

/* The classes with the most samples, `most` of them, as flags; NULL: all are shown. Freed by the
 * caller. */
static char *most_frequent(const struct neap_eval_result *r, int most)
{
	int64_t *samples = most < r->classes ? calloc((size_t)r->classes, sizeof *samples) : NULL;
	char *shown = samples ? calloc((size_t)r->classes, 1) : NULL;

	for (int i = 0; shown && i < r->classes; i++)
		samples[i] = cli_confusion_samples(r, i);
	for (int k = 0; shown && k < most; k++) {
		int best = -1;
		for (int i = 0; i < r->classes; i++)
			if (!shown[i] && (best < 0 || samples[i] > samples[best]))
				best = i;
		shown[best] = 1;
	}
	free(samples);
	return shown;
}

static void show_lists(const struct neap_eval_result *r, int width, int most)
{
	char *shown = most_frequent(r, most);
	printf("%*s%*s %7s   right  taken for\n", -NUMBER, "label", width + 1, "",
		r->target == NEAP_TARGET_LABELS ? "steps" : "samples");
	for (int i = 0; i < r->classes; i++) {
		if (shown && !shown[i])
			continue;
		show_label(r, i, width);
		printf(" %7" PRId64, cli_confusion_samples(r, i));
		show_right(r, i);
		show_wrong(r, i, COLUMNS - NUMBER - 1 - width - 16);
		printf("\n");
	}
	if (shown)
		printf("and %d less frequent classes; --json has all\n", r->classes - most);
	free(shown);
}

void cli_show_confusion(const struct neap_eval_result *r, int most)
{
	int width = widest_name(r), cell = cell_columns(r);
	if (NUMBER + 1 + width + 8 + (int64_t)r->classes * cell <= COLUMNS)
		show_table(r, width, cell);
	else
		show_lists(r, width, most);
}

const char *cli_show_loss(char room[48], double loss)
{
	double size = fabs(loss);
	int decimals = size > 0 && isfinite(loss) ? 5 - (int)floor(log10(size)) : 1;

	if (!(size < 1e15) || decimals > 15) /* beyond what anybody reads as digits */
		snprintf(room, 48, "%.6g", loss);
	else
		snprintf(room, 48, "%.*f", decimals > 0 ? decimals : 0, loss);
	return room;
}

void cli_show_accuracy(const struct neap_eval_result *r)
{
	const char *one = r->samples == 1 ? "" : "s";
	char loss[48], root[48];

	if (r->target == NEAP_TARGET_NUMBERS || r->target == NEAP_TARGET_SERIES) {
		printf("loss %s, its root %s, of %" PRId64 " sample%s",
			cli_show_loss(loss, r->loss), cli_show_loss(root, sqrt(r->loss)),
			r->samples, one);
		if (r->target_deviation > 0)
			printf("; standard deviation of the training targets %s",
				cli_show_loss(loss, r->target_deviation));
		printf("\n");
		return;
	}
	printf("%.1f%%  (95%% interval %.1f to %.1f%%) of %" PRId64 " %s%s", 100 * r->accuracy,
		100 * r->low, 100 * r->high, r->judged,
		r->target == NEAP_TARGET_LABELS ? "step" : "sample", r->judged == 1 ? "" : "s");
	if (r->target == NEAP_TARGET_LABELS)
		printf(" in %" PRId64 " sample%s", r->samples, one);
	printf(", loss %.4f\n", r->loss);
}
