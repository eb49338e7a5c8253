/* SPDX-License-Identifier: Apache-2.0 */
/* answer_arrays.c: rows of answers, and names of classes as UCS4 (answer_arrays.h). */
#include "train/answers/answer_arrays.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 16, REPLACEMENT = 0xfffd };

/* The next character of a text, which is moved; what is no UTF-8 becomes U+FFFD. */
static uint32_t next_character(const char **text)
{
	static const unsigned char head[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	int n = neap__utf8_bytes(*text);
	const unsigned char *s = (const unsigned char *)*text;
	uint32_t c = n ? s[0] & head[n] : REPLACEMENT;

	for (int i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	*text += n ? n : 1;
	return c;
}

static const char *name_of(char number[NUMBER], const struct neap__answer_shape *shape, int c)
{
	if (shape->class_name && shape->class_name[c])
		return shape->class_name[c];
	neap__print(number, NUMBER, "%d", c);
	return number;
}

/* Adds an array of text; `longest`: of any row, in characters, at least 1. */
static int add_text(struct neap__answer_arrays *a, const char *name, char type[16], size_t longest)
{
	neap__print(type, 16, "<U%zu", longest);
	return neap__npz_out_array(a->out, name, type, 0, longest * sizeof(uint32_t));
}

static size_t longer(size_t longest, const char *text)
{
	size_t length = 0;

	for (; *text; length++)
		next_character(&text);
	return length > longest ? length : longest;
}

static int text_row(
	const struct neap__answer_arrays *a, int array, size_t longest, const char *text)
{
	uint32_t *row = calloc(longest, sizeof *row);

	for (size_t i = 0; row && i < longest && *text; i++)
		row[i] = next_character(&text);
	int rc = row ? neap__npz_out_row(a->out, array, row) : neap__fail_errno(ENOMEM, "names");
	free(row);
	return rc;
}

static int add_names(struct neap__answer_arrays *a, const struct neap__answer_shape *shape)
{
	char number[NUMBER];
	size_t longest = 1;

	for (int c = 0; c < shape->classes; c++)
		longest = longer(longest, name_of(number, shape, c));
	int array = add_text(a, "names", a->names_type, longest), rc = array < 0 ? array : 0;
	for (int c = 0; c < shape->classes && rc == 0; c++)
		rc = text_row(a, array, longest, name_of(number, shape, c));
	return rc;
}

/* The names of the samples, of which a row has one. */
static int add_recordings(struct neap__answer_arrays *a, const struct neap__answer_shape *shape)
{
	a->recording_longest = 1;
	for (int64_t i = 0; i < shape->samples; i++)
		a->recording_longest = longer(a->recording_longest, shape->sample_name[i]);
	a->recording = add_text(a, "recording", a->recording_type, a->recording_longest);
	return a->recording < 0 ? a->recording : 0;
}

static int add_arrays(struct neap__answer_arrays *a, const struct neap__answer_shape *shape)
{
	int numbers = shape->target == NEAP_TARGET_NUMBERS || shape->target == NEAP_TARGET_SERIES;

	NEAP_TRY(a->sample = neap__npz_out_array(a->out, "sample", "<i8", 0, sizeof(int64_t)));
	if (shape->sample_name)
		NEAP_TRY(add_recordings(a, shape));
	if (shape->timed)
		NEAP_TRY(a->time = neap__npz_out_array(a->out, "time", "<f8", 0, sizeof(double)));
	if (shape->of_steps)
		NEAP_TRY(a->step = neap__npz_out_array(a->out, "step", "<i8", 0, sizeof(int64_t)));
	if (!numbers) {
		NEAP_TRY(
			a->label = neap__npz_out_array(a->out, "label", "<i4", 0, sizeof(int32_t)));
		NEAP_TRY(a->prediction = neap__npz_out_array(
				 a->out, "prediction", "<i4", 0, sizeof(int32_t)));
	}
	NEAP_TRY(a->scores = neap__npz_out_array(a->out, "scores", "<f8", shape->classes,
			 (size_t)shape->classes * sizeof(double)));
	return add_names(a, shape);
}

int neap__answer_arrays_open(struct neap__answer_arrays *arrays, const char *path,
	const struct neap__answer_shape *shape)
{
	*arrays = (struct neap__answer_arrays){
		.recording = -1, .time = -1, .step = -1, .label = -1, .prediction = -1};
	NEAP_TRY(neap__npz_out_open(&arrays->out, path));
	int rc = add_arrays(arrays, shape);
	if (rc < 0) {
		neap__npz_out_abort(arrays->out);
		arrays->out = NULL;
	}
	return rc < 0 ? rc : 0;
}

int neap__answer_arrays_add(struct neap__answer_arrays *a, const struct neap_answer *answer)
{
	int32_t label = answer->label, prediction = answer->prediction;

	NEAP_TRY(neap__npz_out_row(a->out, a->sample, &answer->index));
	if (a->recording >= 0)
		NEAP_TRY(text_row(a, a->recording, a->recording_longest,
			answer->sample_name ? answer->sample_name : ""));
	if (a->time >= 0)
		NEAP_TRY(neap__npz_out_row(a->out, a->time, &answer->time));
	if (a->step >= 0)
		NEAP_TRY(neap__npz_out_row(a->out, a->step, &answer->step));
	if (a->label >= 0)
		NEAP_TRY(neap__npz_out_row(a->out, a->label, &label));
	if (a->prediction >= 0)
		NEAP_TRY(neap__npz_out_row(a->out, a->prediction, &prediction));
	return neap__npz_out_row(a->out, a->scores, answer->score);
}
