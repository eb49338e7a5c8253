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

static int add_names(struct neap__answer_arrays *a, const struct neap__answer_shape *shape)
{
	char number[NUMBER];
	size_t longest = 1;

	for (int c = 0; c < shape->classes; c++) {
		size_t length = 0;
		for (const char *text = name_of(number, shape, c); *text; length++)
			next_character(&text);
		longest = length > longest ? length : longest;
	}
	neap__print(a->names_type, sizeof a->names_type, "<U%zu", longest);
	int array =
		neap__npz_out_array(a->out, "names", a->names_type, 0, longest * sizeof(uint32_t));
	uint32_t *row = calloc(longest, sizeof *row);
	int rc = array < 0 ? array : row ? 0 : neap__fail_errno(ENOMEM, "names of classes");
	for (int c = 0; c < shape->classes && rc == 0; c++) {
		const char *text = name_of(number, shape, c);
		memset(row, 0, longest * sizeof *row);
		for (size_t i = 0; *text; i++)
			row[i] = next_character(&text);
		rc = neap__npz_out_row(a->out, array, row);
	}
	free(row);
	return rc;
}

static int add_arrays(struct neap__answer_arrays *a, const struct neap__answer_shape *shape)
{
	int numbers = shape->target == NEAP_TARGET_NUMBERS || shape->target == NEAP_TARGET_SERIES;

	NEAP_TRY(a->sample = neap__npz_out_array(a->out, "sample", "<i8", 0, sizeof(int64_t)));
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
	*arrays =
		(struct neap__answer_arrays){.time = -1, .step = -1, .label = -1, .prediction = -1};
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
