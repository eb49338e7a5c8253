/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_table.c: tables of text to one file of arrays. The rows are read twice: once to count
 * steps and to see what the targets are, once to write them; so memory holds no more than a row, a
 * chunk of the file, and the names and lengths of samples.
 */
#include "data/dataset.h"
#include "data/bins.h"
#include "data/data_doubts.h"
#include "data/formats/array_out.h"
#include "data/missing_file.h"
#include "data/recordings.h"
#include "data/tables/label_table.h"
#include "data/tables/left_rows.h"
#include "data/tables/odd_cells.h"
#include "data/tables/row_times.h"
#include "data/tables/sample_ids.h"
#include "data/tables/table.h"
#include "data/tables/table_targets.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"
#include "base/struct_size.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS_A_REPORT = 4096 };

/* Samples without a target in any row. */
struct unanswered {
	int64_t count;
	const char *path; /* the first of them begins here; borrowed */
	int64_t line;
	const char *here; /* the same of the sample that is read */
	int64_t here_line;
	int filled, empty; /* 1: rows of the sample that is read have a target, or none */
	int mixed;	   /* 1: a sample has both */
	int64_t gaps;	   /* rows without a target */
	int elsewhere;	   /* 1: not each first row of a sample has a target, or another one has */
};

struct table_work {
	const struct neap_table_options *options;
	struct neap_table_report *report;
	struct neap__table table;
	struct neap__label_table labels;
	const char *columns;		     /* of the table of labels, by --target; NULL: all */
	const struct neap__label_row *label; /* of the sample that is read */
	struct neap__table_targets targets;
	struct neap__odd_cells odd;
	struct neap__class_runs runs;
	struct unanswered unanswered;
	struct neap__left_rows left;
	struct neap__row_times times;
	double *number;	      /* [width] targets of a row */
	const char **feature; /* [features] names */
	const char **output;  /* [targets] names */
	int64_t rows;	      /* of this reading */
	int64_t steps;	      /* of the sample that is read */
	void *seen;	      /* names of samples of the file that is read */
	int64_t file;	      /* number of that file */
	struct neap__array_out *out;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void forget(struct table_work *w)
{
	tdestroy(w->seen, free);
	w->seen = NULL;
	w->file = -1;
}

static int see_sample(struct table_work *w)
{
	if (!w->options->sample_column)
		return 0;
	if (w->file != w->table.file)
		forget(w);
	w->file = w->table.file;
	return neap__sample_ids_see(&w->table, &w->seen);
}

/* Counts the row, and tells how far the reading is. */
static int count_row(struct table_work *w)
{
	const struct neap_table_options *o = w->options;
	w->steps = w->table.begins ? 1 : w->steps + 1;
	if (w->steps > NEAP__MOST_STEPS)
		return neap__table_wrong(
			&w->table, "the sample has more than 400000000 steps. Split it");
	if (w->rows++ % ROWS_A_REPORT == 0 && o->progress &&
		o->progress(o->user, w->rows - 1, w->report->steps))
		return neap__fail(NEAP_EINTERRUPTED, "interrupted");
	if (!w->table.begins || !o->labels)
		return 0;
	w->label = neap__label_table_find(&w->labels, w->table.sample);
	const char *file = neap__recordings_below(w->table.csv.path, w->table.dir);
	if (!w->label && o->sample_column && neap__label_table_find(&w->labels, file))
		return neap__table_wrong(&w->table,
			"sample '%.100s' has no row in '%.100s', which lists files: each is one "
			"sample. Pass --drop %s instead of --sample-column",
			w->table.sample, o->labels, neap__table_drop(&w->table, o->sample_column));
	return w->label
		       ? 0
		       : neap__table_wrong(&w->table,
				 "sample '%.100s' has no row in '%.100s', which lists '%.100s' and "
				 "so on. Add its target there, pass another table of labels, or "
				 "remove its rows",
				 w->table.sample, o->labels, neap__label_table_example(&w->labels));
}

/* The fields of the row's targets and where they stand; NULL: it brings none. */
static const char *const *fields_of(const struct table_work *w, const char **path, int64_t *line)
{
	if (w->options->labels) {
		*path = w->options->labels;
		*line = w->label->line;
		return w->table.begins ? w->label->target : NULL;
	}
	*path = w->table.csv.path;
	*line = w->table.csv.line;
	return w->table.targets ? w->table.target : NULL;
}

/* Behind the last row of a sample. */
static void end_sample(struct unanswered *u)
{
	if (u->empty && !u->filled && u->count++ == 0) {
		u->path = u->here;
		u->line = u->here_line;
	}
	u->mixed |= u->empty && u->filled;
	u->empty = u->filled = 0;
}

static void see_answer(
	struct unanswered *u, const char *field, int begins, const char *path, int64_t line)
{
	if (begins) {
		end_sample(u);
		u->here = path;
		u->here_line = line;
	}
	int missing = neap__target_missing(field);
	u->gaps += missing;
	u->elsewhere |= missing == begins;
	*(missing ? &u->empty : &u->filled) = 1;
}

/* 1: only the first rows of several samples have a target, as spreadsheets are filled in. */
static int is_on_top(const struct table_work *w)
{
	const struct unanswered *u = &w->unanswered;
	return u->gaps > 0 && !u->elsewhere && w->report->samples > 1;
}

static int leave_row(void *work, const char *sample)
{
	struct table_work *w = work;
	return neap__left_rows_leave(&w->left, &w->table, sample, w->table.target[0]);
}

static int scan_row(struct table_work *w)
{
	const char *path;
	int64_t line;
	struct neap_table_report *r = w->report;
	NEAP_TRY(count_row(w));
	neap__row_times_see(&w->times, &w->table);
	if (w->table.begins) {
		r->samples++;
		NEAP_TRY(see_sample(w));
	}
	r->longest = w->steps > r->longest ? w->steps : r->longest;
	const char *const *field = fields_of(w, &path, &line);
	if (field)
		NEAP_TRY(neap__targets_see(&w->targets, field, w->table.begins, path, line));
	if (field && w->table.targets) {
		see_answer(&w->unanswered, field[0], w->table.begins, path, line);
		NEAP_TRY(neap__left_rows_keep(&w->left, &w->table, field[0]));
	}
	if (w->table.targets == 1 &&
		neap__odd_cells_see(&w->odd, neap__target_missing(field[0]) ? "" : field[0],
			w->table.begins, path, line) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	if (w->table.targets == 1 && w->options->sample_column &&
		neap__class_runs_see(
			&w->runs, &w->table, neap__target_missing(field[0]) ? "" : field[0]) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	if (w->options->labels && w->targets.steps)
		return neap__fail(NEAP_EFORMAT,
			"'%s', line %lld: the target is empty. Fill it in, or remove the row", path,
			(long long)line);
	return 0;
}

enum { MANY_CLASSES = 20 /* whole numbers: more are probably quantities */ };

/* Labels that went through floating point: pandas does so to a column with a gap. */
static void doubt_targets(const struct table_work *w)
{
	const struct neap__table_targets *y = &w->targets;
	char line[200];
	if (w->options->warn && y->classes && !y->texts && !w->options->classes &&
		y->names > MANY_CLASSES) {
		neap__print(line, sizeof line,
			"the target has %d different whole numbers, which are read as classes. If "
			"they "
			"are quantities, pass --numbers",
			y->names);
		w->options->warn(w->options->user, line);
	}
	if (w->options->warn && y->width == 1 && y->reals && !y->fractions && !y->numbers)
		w->options->warn(w->options->user,
			"all targets are whole numbers with a decimal point, such as 1.0, and are "
			"read as numbers. If they are classes, write 1; if not, pass --numbers");
}

/* A cell that makes the class of a sample one of its steps. */
static void doubt_cells(struct table_work *w)
{
	const struct neap__odd_cells *c = &w->odd;
	char line[NEAP__DETAIL_BYTES], is[80] = "empty";
	if (!w->options->warn || !w->targets.classes || is_on_top(w))
		return;
	if (!neap__odd_cells_doubt(&w->odd)) {
		neap__class_runs_doubt(&w->runs, &w->table, w->report->samples);
		return;
	}
	if (*c->first.text)
		neap__print(is, sizeof is, "'%.60s'", c->first.text);
	neap__print(line, sizeof line,
		"'%s', line %lld: the target is %s, but '%.60s' in the other rows of the sample, "
		"so the data set has one class per step. If the cell is a mistake, correct it and "
		"repeat the command for one class per sample",
		c->first.path, (long long)c->first.line, is, c->usual);
	w->options->warn(w->options->user, line);
}

/* Samples that have no target: without them the data set may have one target per sample. */
static void doubt_unanswered(struct table_work *w)
{
	struct unanswered *u = &w->unanswered;
	const char *what = w->targets.classes ? "class" : "target";
	end_sample(u);
	char line[NEAP__DETAIL_BYTES], so[100] = "";
	int one = u->count == 1;
	if (is_on_top(w))
		neap__doubt(w->options->warn, w->options->user,
			"column '%.60s' has a %s only in the first row of each sample (%lld of "
			"%lld cells are empty), which is used as the %s of the sample. To train on "
			"a %s per step instead, fill in the cells",
			w->options->targets, what, (long long)u->gaps, (long long)w->rows, what,
			what);
	if (!w->options->warn || u->count == 0)
		return;
	neap__print(so, sizeof so, ": a network cannot learn from %s", one ? "it" : "them");
	if (!u->mixed && !w->targets.vary)
		neap__print(so, sizeof so,
			", so the data set has one %s per step instead of one per sample", what);
	neap__print(line, sizeof line,
		"%lld of %lld samples %s no %s in any row (the first begins in '%.200s', line "
		"%lld)%s. Fill in the %s, or remove %s from the table and repeat the command",
		(long long)u->count, (long long)w->report->samples, one ? "has" : "have", what,
		u->path, (long long)u->line, so, what, one ? "the sample" : "these samples");
	w->options->warn(w->options->user, line);
}

/* A table of labels that is not there: an option may have been confused with another one. */
static int no_labels(const struct table_work *w)
{
	const char *labels = w->options->labels;
	char near[600];
	if (strchr(labels, '('))
		return neap__fail(NEAP_EUSAGE,
			"--labels: there is no file '%s'. If it is a pattern of file names, pass "
			"it with --label",
			labels);
	if (neap__labels_of(near, sizeof near, w->table.dir, 0))
		return neap__fail(NEAP_EUSAGE,
			"--labels: there is no file '%s', but '%s' lists labels for the files of "
			"'%s'. Pass it: --labels %s",
			labels, near, w->table.dir, neap__quoted(near));
	if (neap__missing_near(near, sizeof near, labels))
		return neap__fail(NEAP_EUSAGE,
			"--labels: there is no file '%s'. Did you mean '%s'?", labels, near);
	return neap__fail(NEAP_EUSAGE,
		"--labels: there is no file '%s'. Pass a table with the name of a sample and its "
		"target per line; if '%.60s' is a column of '%s', pass --target %s",
		labels, labels, w->table.dir, neap__word(labels));
}

/* Names that two columns have: an option would mean one of them alone. */
static int check_columns(const struct neap__table *t)
{
	void *seen = NULL;
	double number;
	int rc = 0;
	for (int64_t i = 0; rc == 0 && t->names && i < t->columns; i++) {
		/* A number is probably data, of which the rows that follow show more. */
		if (!t->names[i][0] ||
			(!t->options->header && neap__table_number(&number, t->names[i]) == 0))
			continue;
		char **name = tsearch(t->names[i], &seen, by_text);
		if (!name)
			rc = neap__fail_errno(ENOMEM, "'%s'", t->dir);
		else if (*name != t->names[i])
			rc = neap__fail(NEAP_EFORMAT,
				"'%s', line 1: two columns are named '%.60s'. Rename one of them%s",
				t->files.file[0].path, *name,
				t->options->header
					? ""
					: "; if the first line is data, pass --header no");
	}
	for (int64_t i = 0; t->names && i < t->columns; i++)
		tdelete(t->names[i], &seen, by_text);
	return rc;
}

/* Samples that are files, of which the labels have none, are probably those of another folder. */
static int check_files(const struct table_work *w)
{
	const struct neap__recordings *all = &w->table.files;
	char column[200];
	if (w->options->sample_column)
		return 0;
	for (int64_t i = 0; i < all->count; i++)
		if (neap__label_table_find(
			    &w->labels, neap__recordings_below(all->file[i].path, w->table.dir)))
			return 0;
	if (all->count == 1 &&
		neap__labels_column(column, sizeof column, all->file[0].path, w->options->labels))
		return neap__fail(NEAP_EFORMAT,
			"--labels: '%s' has no row for the file '%.100s', but rows for samples "
			"that the column '%.80s' of the file names. Pass --sample-column %s",
			w->options->labels, neap__recordings_below(all->file[0].path, w->table.dir),
			column, neap__word(column));
	return neap__fail(NEAP_EFORMAT,
		"--labels: '%s' has no row for any file of '%s'. It names '%.100s', but the files "
		"are "
		"'%.100s' and so on. Correct the names in the first column",
		w->options->labels, w->table.dir, neap__label_table_example(&w->labels),
		neap__recordings_below(all->file[0].path, w->table.dir));
}

static int scan(struct table_work *w)
{
	const struct neap_table_options *o = w->options;
	struct stat st;
	int rc;
	NEAP_TRY(check_columns(&w->table));
	if (o->labels && access(o->labels, F_OK) < 0 && errno == ENOENT)
		return no_labels(w);
	if (o->labels && stat(o->labels, &st) == 0 && S_ISDIR(st.st_mode))
		return neap__fail(NEAP_EUSAGE,
			"--labels: '%s' is a folder. Pass a table (.csv) with the name of a sample "
			"and its "
			"target per line, or remove --labels if the folders of the files are the "
			"classes",
			o->labels);
	if (o->labels) {
		NEAP_TRY(neap__label_table_read(&w->labels, o->labels));
		if (w->columns)
			NEAP_TRY(neap__label_table_select(
				&w->labels, o->labels, w->columns, w->table.dir));
		NEAP_TRY(check_files(w));
	}
	w->targets.width = o->labels ? w->labels.targets : w->table.targets;
	w->targets.numbers = o->numbers;
	w->table.leave = w->table.targets > 0 && !o->labels ? leave_row : NULL;
	w->table.user = w;
	while ((rc = neap__table_next(&w->table)) > 0)
		NEAP_TRY(scan_row(w));
	NEAP_TRY(rc);
	w->table.leave = NULL;
	NEAP_TRY(neap__left_rows_end(&w->left, &w->table));
	w->report->steps = w->rows;
	w->report->features = w->table.features;
	w->report->filled = w->table.filled;
	w->report->left_out = w->table.left_out;
	if (is_on_top(w))
		w->targets.steps = 0;
	if (!w->table.named)
		NEAP_TRY(neap__targets_settle(&w->targets, o->classes, o->nclasses, w->table.dir));
	if (w->targets.width && !w->targets.wholes && !w->targets.reals && !w->targets.texts)
		return neap__fail(NEAP_EFORMAT,
			"'%s': all targets are empty. Check --target or --labels", w->table.dir);
	return 0;
}

static int write_row(struct table_work *w)
{
	const char *path;
	int64_t line;
	const struct neap__table *t = &w->table;
	NEAP_TRY(count_row(w));
	const char *const *field = fields_of(w, &path, &line);
	if (t->named)
		w->number[0] = t->files.file[t->file].class_number;
	else if (field && (t->begins || w->targets.steps))
		NEAP_TRY(neap__targets_take(&w->targets, field, w->number, path, line));
	return neap__array_out_step(w->out, t->begins, t->value, w->number);
}

/* Names of the columns of a role in their order, in `names`; NULL in tables without names. */
static const char *const *names_of(
	const struct table_work *w, enum neap__table_column role, const char **names)
{
	const struct neap__table *t = &w->table;
	for (int64_t i = 0; t->names && i < t->columns; i++)
		if (t->role[i] == role)
			names[t->place[i]] = t->names[i];
	return t->names ? names : NULL;
}

static void name_features(struct neap_table_report *r, const char *const *names, int count)
{
	enum { SHOWN = 8 };
	size_t n = 0;
	for (int i = 0; names && i < count && i < SHOWN && n < sizeof r->named; i++)
		n += (size_t)neap__print(
			r->named + n, sizeof r->named - n, "%s%.24s", i ? ", " : "", names[i]);
	if (names && count > SHOWN && n < sizeof r->named)
		neap__print(r->named + n, sizeof r->named - n, " and %d more", count - SHOWN);
}

/* Room for a row as it is written. */
static int make_rows(struct table_work *w, int width, int features, const char *out)
{
	w->number = calloc((size_t)width + 1, sizeof *w->number);
	w->feature = calloc((size_t)features + 1, sizeof *w->feature);
	w->output = calloc((size_t)w->table.targets + 1, sizeof *w->output);
	return w->number && w->feature && w->output ? 0 : neap__fail_errno(ENOMEM, "'%s'", out);
}

/* Writes the rows of the table, and ends the file. */
static int write_rows(struct table_work *w, const char *const *names, int count)
{
	int rc;

	neap__table_rewind(&w->table);
	w->rows = 0;
	while ((rc = neap__table_next(&w->table)) > 0)
		NEAP_TRY(write_row(w));
	NEAP_TRY(rc);
	rc = neap__array_out_finish(w->out, names, count);
	w->out = NULL;
	return rc;
}

static int write_all(struct table_work *w, const char *out)
{
	static const char *const missing[] = {NULL, "previous", "zero", "drop"};
	const struct neap__table_targets *y = &w->targets;
	const struct neap__recordings *files = &w->table.files;
	const struct neap_table_options *o = w->options;
	struct neap_table_report *r = w->report;
	int named = w->table.named, classes = named || y->classes;
	const char *const *names = named	? (const char *const *)files->classes
				   : o->classes ? o->classes
						: (const char *const *)y->name;
	int count = !classes ? 0 : named ? files->nclasses : y->keys;
	struct neap__array_shape shape = {.samples = r->samples,
		.steps = r->longest,
		.rows = r->steps,
		.features = w->table.features,
		.width = named ? 1 : y->width,
		.classes = classes,
		.target = classes    ? y->steps ? NEAP_TARGET_LABELS : NEAP_TARGET_LABEL
			  : y->steps ? NEAP_TARGET_SERIES
				     : NEAP_TARGET_NUMBERS};
	NEAP_TRY(make_rows(w, shape.width, shape.features, out));
	shape.feature_names = names_of(w, NEAP__COLUMN_FEATURE, w->feature);
	name_features(r, shape.feature_names, shape.features);
	if (!classes && w->table.targets)
		shape.output_names = names_of(w, NEAP__COLUMN_TARGET, w->output);
	shape.sample_column = o->sample_column;
	shape.missing = r->filled || r->left_out ? missing[o->missing] : NULL;
	r->classes = count;
	r->numbers = classes ? 0 : shape.width;
	r->step_targets = y->steps;
	NEAP_TRY(neap__array_out_open(&w->out, out, &shape));
	return write_rows(w, names, count);
}

static int check(const struct neap_table_options *o)
{
	if (o->label && (o->targets || o->labels))
		return neap__fail(NEAP_EUSAGE,
			"--label and --%s both define the target of a sample. Remove one of them",
			o->labels ? "labels" : "target");
	return 0;
}

/* Doubts about what was written. */
static void doubt_all(struct table_work *w)
{
	neap__table_doubt(&w->table);
	doubt_targets(w);
	neap__row_times_doubt(&w->times, &w->table);
	doubt_cells(w);
	doubt_unanswered(w);
	neap__left_rows_doubt(&w->left, &w->table, &w->targets);
}

static void close_work(struct table_work *w)
{
	neap__array_out_abort(w->out);
	forget(w);
	neap__label_table_free(&w->labels);
	neap__targets_free(&w->targets);
	neap__odd_cells_free(&w->odd);
	neap__class_runs_free(&w->runs);
	neap__left_rows_free(&w->left);
	neap__table_close(&w->table);
	free(w->number);
	free(w->feature);
	free(w->output);
}

int neap_encode_table(struct neap_table_report *report, const char *path, const char *out,
	const struct neap_table_options *options)
{
	NEAP_NEED(report, path, out);
	struct neap_table_options o = {0};
	struct table_work w = {.options = &o, .report = report, .file = -1};
	NEAP_TRY(neap__struct_size(
		report->size, sizeof *report, sizeof *report, "neap_table_report"));
	*report = (struct neap_table_report){.size = sizeof *report};
	if (options)
		NEAP_TRY(neap__struct_take(&o, sizeof o, options, "neap_table_options"));
	NEAP_TRY(check(&o));
	if (o.labels && o.targets) { /* columns of the labels, not of the table */
		w.columns = o.targets;
		o.targets = NULL;
	}
	int rc = neap__table_open(&w.table, path, &o, report);
	if (rc == 0)
		rc = scan(&w);
	if (rc == 0)
		rc = write_all(&w, out);
	if (rc == 0)
		doubt_all(&w);
	close_work(&w);
	return rc;
}

int neap_encode_is_table(const char *path)
{
	const char *dot = path ? strrchr(path, '.') : NULL;
	if (!path)
		return 0;
	if (!neap__recordings_folder(path))
		return dot && (strcasecmp(dot, ".csv") == 0 || strcasecmp(dot, ".tsv") == 0);
	return neap__recordings_having(path, neap__table_endings) >
	       neap__recordings_having(path, neap__sound_endings);
}
