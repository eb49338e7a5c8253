/* SPDX-License-Identifier: Apache-2.0 */
/* array_labels.c: numbers and names of classes in files of arrays (array_labels.h). */
#include "data/events/array_labels.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_CLASSES = 65535 };

struct labels {
	struct neap__event_source *source;
	struct neap__columns *columns;
	double *label;
};

static int count_differs(const struct labels *s, int64_t labels)
{
	return neap__fail(NEAP_EFORMAT,
		"'%s': 'labels' has %lld entries, but there are %lld samples ('offsets'). Save one "
		"label per sample",
		s->columns->path, (long long)labels, (long long)s->source->samples);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Labels that are text name the classes if nothing else does. 0 or -ENOMEM. */
static int take_names(struct neap__event_source *o, char *const *text, int count)
{
	char **sorted = malloc(((size_t)count + 1) * sizeof *sorted);
	free(o->class_name); /* of an empty array */
	o->class_name = calloc((size_t)count + 1, sizeof *o->class_name);
	int rc = sorted && o->class_name ? 0 : -ENOMEM;
	if (rc == 0) {
		memcpy(sorted, text, (size_t)count * sizeof *sorted);
		qsort(sorted, (size_t)count, sizeof *sorted, by_text);
	}
	for (int i = 0; rc == 0 && i < count; i++) {
		if (i > 0 && strcmp(sorted[i - 1], sorted[i]) == 0)
			continue;
		if ((o->class_name[o->classes] = strdup(sorted[i])) != NULL)
			o->classes++;
		else
			rc = -ENOMEM;
	}
	free(sorted);
	return rc;
}

/* Names given as text become numbers in the order of `class_name`, or of the text itself. */
static int number_texts(struct labels *s)
{
	char **text = NULL, **class_name = s->source->class_name;
	int count = 0,
	    rc = s->columns->texts(s->columns, "labels", NEAP__MOST_LABELS, &text, &count);
	if (rc == 0 && !(s->label = malloc(((size_t)count + 1) * sizeof *s->label)))
		rc = neap__fail_errno(ENOMEM, "'%s'", s->columns->path);
	if (rc == 0 && count != s->source->samples)
		rc = count_differs(s, count);
	if (rc == 0 && s->source->classes == 0 && take_names(s->source, text, count) < 0)
		rc = neap__fail_errno(ENOMEM, "'%s'", s->columns->path);
	class_name = s->source->class_name;
	for (int i = 0; rc == 0 && i < count; i++) {
		int k = 0;
		while (k < s->source->classes && strcmp(class_name[k], text[i]) != 0)
			k++;
		if (k == s->source->classes)
			rc = neap__fail(NEAP_EFORMAT,
				"'%s': 'labels'[%d] is '%.100s', which is not among the %d "
				"classes, '%.60s', ... Add it to 'classes' or to the file of "
				"--classes, or leave out both: the labels then name the classes",
				s->columns->path, i, text[i], s->source->classes, class_name[0]);
		s->label[i] = k;
	}
	for (int i = 0; i < count; i++)
		free(text[i]);
	free(text);
	return rc;
}

/* Samples without labels can be predicted under names of their own. */
static int no_labels(const struct labels *s)
{
	const char *dot = strrchr(s->columns->path, '.');
	int is_numpy = dot && strcasecmp(dot, ".npz") == 0;
	char code[640] = "";
	if (!dot || strcasecmp(dot, ".npy") != 0)
		neap__print(code, sizeof code,
			is_numpy ? ": python3 -c \"import numpy; d = numpy.load(%.400s); n = "
				   "['sample%%d' %% i for i in range(%lld)]; "
				   "numpy.savez('neap.npz', **d, labels=n, classes=n)\""
				 : ": python3 -c \"import h5py; d = h5py.File(%.400s, 'a'); "
				   "d['labels'] = d['classes'] = ['sample%%d' %% i for i in "
				   "range(%lld)]\"",
			neap__python_quoted(s->columns->path), (long long)s->source->samples);
	return neap__fail(NEAP_EFORMAT,
		"'%s' has no array 'labels' for its %lld samples. Add it: one number or name per "
		"sample; to predict samples whose class is not known, name each of them%s",
		s->columns->path, (long long)s->source->samples, code);
}

/* 1: labels are 1 to `most`, and a class 0 would be empty. */
static int begins_at_one(const struct labels *s, double most)
{
	double least = INFINITY, largest = 0;
	for (int64_t i = 0; i < s->source->samples; i++) {
		least = fmin(least, s->label[i]);
		largest = fmax(largest, s->label[i]);
	}
	return least == 1 && largest == most && most > 1;
}

static int begin_at_zero(const struct labels *s, double most)
{
	return neap__fail(NEAP_EUSAGE,
		"'%s': 'labels' are 1 to %g, but labels begin at 0. Subtract 1 from all of them, "
		"and pass --classes %g",
		s->columns->path, most, most);
}

static int no_classes(const struct labels *s)
{
	double most = 0;
	for (int64_t i = 0; i < s->source->samples; i++)
		most = fmax(most, fmin(floor(s->label[i]), MOST_CLASSES - 1));
	if (begins_at_one(s, most))
		return begin_at_zero(s, most);
	return neap__fail(NEAP_EUSAGE,
		"'%s' has no array 'classes', and its labels are numbers up to %g. Pass --classes "
		"%.0f for classes 0 to %.0f, or --classes FILE with one name per line",
		s->columns->path, most, most + 1, most);
}

/* The names of --classes, if there are any, must be those of the array 'classes', or 0, 1, ... as
 * for a number of classes: then the names of the array are kept. */
static int check_classes(const struct labels *s, const struct neap_event_options *options)
{
	const struct neap__event_source *o = s->source;
	int same = options->nclasses == o->classes, numbered = same;
	for (int k = 0; options->classes && (same || numbered) && k < o->classes; k++) {
		char number[16];
		neap__print(number, sizeof number, "%d", k);
		same = same && strcmp(options->classes[k], o->class_name[k]) == 0;
		numbered = numbered && strcmp(options->classes[k], number) == 0;
	}
	same = same || numbered;
	if (!options->classes || same)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"'%s' has an array 'classes' with %d names, and --classes has %d other ones. "
		"Remove "
		"--classes, or change the array",
		s->columns->path, o->classes, options->nclasses);
}

/* Names of classes: those of the file, or the given ones. */
static int read_classes(struct labels *s, const struct neap_event_options *options)
{
	struct neap__event_source *o = s->source;
	struct neap__column column;
	int there = s->columns->find(s->columns, "classes", &column);

	if (there < 0)
		return there;
	if (there) {
		s->columns->shut(s->columns, &column);
		NEAP_TRY(s->columns->texts(
			s->columns, "classes", MOST_CLASSES, &o->class_name, &o->classes));
		NEAP_TRY(check_classes(s, options));
	}
	if (!options->classes || o->class_name)
		return 0;
	o->class_name = calloc((size_t)options->nclasses + 1, sizeof *o->class_name);
	for (; o->class_name && o->classes < options->nclasses; o->classes++)
		if (!(o->class_name[o->classes] = strdup(options->classes[o->classes])))
			break;
	return o->class_name && o->classes == options->nclasses
		       ? 0
		       : neap__fail_errno(ENOMEM, "'%s'", s->columns->path);
}

/* Numbers of the classes of all samples. */
static int read_labels(struct labels *s, const struct neap_event_options *options)
{
	struct neap__event_source *o = s->source;
	struct neap__column column;
	int64_t n = 0;
	NEAP_TRY(read_classes(s, options));
	int there = s->columns->find(s->columns, "labels", &column);
	if (there < 0)
		return there;
	if (there == 0)
		return no_labels(s);
	int text = column.text;
	s->columns->shut(s->columns, &column);
	if (text)
		return number_texts(s);
	NEAP_TRY(neap__column_all(s->columns, "labels", NEAP__MOST_LABELS, &s->label, &n));
	if (n != o->samples)
		return count_differs(s, n);
	if (o->classes == 0)
		return no_classes(s);
	if (begins_at_one(s, o->classes))
		return begin_at_zero(s, o->classes);
	for (int64_t i = 0; i < n; i++)
		if (!(s->label[i] >= 0 && s->label[i] < o->classes) ||
			s->label[i] != floor(s->label[i]))
			return neap__fail(NEAP_EFORMAT,
				"'%s': 'labels'[%lld] is %.17g; with %d classes, labels are 0 to "
				"%d. Correct it, or increase --classes",
				s->columns->path, (long long)i, s->label[i], o->classes,
				o->classes - 1);
	return 0;
}

int neap__array_labels_read(double **label, struct neap__event_source *source,
	struct neap__columns *columns, const struct neap_event_options *options)
{
	struct labels s = {source, columns, NULL};
	int rc = read_labels(&s, options);
	*label = s.label;
	return rc;
}
