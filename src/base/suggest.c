/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c: distances between names (suggest.h). */
#include "base/suggest.h"
#include "base/print.h"

#include <ctype.h>
#include <string.h>

#define LETTERS 40 /* longer names are not compared */

static int least(int a, int b)
{
	return a < b ? a : b;
}

static int folded(char c)
{
	return c == '_' ? '-' : tolower((unsigned char)c);
}

static int is_same(char a, char b)
{
	return folded(a) == folded(b);
}

/* Letters to change. */
static int distance(const char *a, size_t n, const char *b)
{
	int rows[3][LETTERS + 1];
	size_t m = strlen(b);

	if (n > LETTERS || m > LETTERS)
		return LETTERS;
	int *before = rows[0], *last = rows[1], *row = rows[2];
	for (size_t j = 0; j <= m; j++)
		last[j] = (int)j;
	for (size_t i = 1; i <= n; i++) {
		row[0] = (int)i;
		for (size_t j = 1; j <= m; j++) {
			int same = is_same(a[i - 1], b[j - 1]);
			row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + !same);
			if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) &&
				is_same(a[i - 2], b[j - 1]))
				row[j] = least(row[j], before[j - 2] + 1);
		}
		int *spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[m];
}

void neap__suggest(struct neap__suggestion *s, const char *name)
{
	/* Of three letters one: 'out' is not 'dt'. */
	size_t most = s->length == 3 ? 1 : s->length / 3 + 1;
	int changes = distance(s->text, s->length, name);

	/* A name that begins so is meant as well: --mem for --memory. */
	if (s->length >= 3 && strncmp(name, s->text, s->length) == 0)
		changes = 1;
	/* And so is one with a word behind it: batch_size for batch. */
	size_t n = strlen(name);
	if (n >= 4 && n < s->length && folded(s->text[n]) == '-' &&
		strncmp(name, s->text, n) == 0 && changes > (int)most)
		changes = (int)most;
	if (changes <= (int)most && (size_t)changes < s->length &&
		(!s->name || changes < s->changes)) {
		s->name = name;
		s->changes = changes;
	}
}

const char *neap__did_you_mean(char room[80], const struct neap__suggestion *s, const char *before)
{
	room[0] = '\0';
	if (s->name)
		neap__print(room, 80, "; did you mean '%s%s'?", before, s->name);
	return room;
}
