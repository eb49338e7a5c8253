/* SPDX-License-Identifier: Apache-2.0 */
/* odd_cells.c: run lengths of classes in the rows of a sample (odd_cells.h). */
#include "data/tables/odd_cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Chosen: one sample of ten may have odd cells, two each in addition to a first row of the usual
 * class; a table of one sample may have one. */
enum { OF_SAMPLES = 10, EACH = 3, ROWS_OF_ONE = 10 };

/* Replaces `to`, whose text is freed. */
static void move(struct neap__odd_cell *to, struct neap__odd_cell *from)
{
	free(to->text);
	*to = *from;
	*from = (struct neap__odd_cell){0};
}

/* A run of equal rows ends. Of single rows, the first behind the main class counts, or else the
 * last one in front of it. */
static void end_run(struct neap__odd_cells *c)
{
	if (!c->run.text)
		return;
	if (c->run_rows > 1 && !c->main) {
		c->main = c->run.text;
		c->run.text = NULL;
	} else if (c->run_rows > 1) {
		c->vary |= strcmp(c->run.text, c->main) != 0;
	} else if (!c->main || strcmp(c->run.text, c->main) != 0) {
		if (!c->main || !c->here.text)
			move(&c->here, &c->run);
		c->found++;
	}
	free(c->run.text);
	c->run = (struct neap__odd_cell){0};
}

static void end_sample(struct neap__odd_cells *c)
{
	end_run(c);
	c->samples += c->rows > 0;
	if (c->found > 0 && c->rows > 1) { /* masks are meant where most rows have one */
		c->vary |= !c->main || !*c->main || strcmp(c->here.text, c->main) == 0;
		c->odd++;
		c->count += c->found;
	}
	if (c->odd == 1 && c->found > 0 && c->main) {
		move(&c->first, &c->here);
		free(c->usual);
		c->usual = c->main;
		c->main = NULL;
	}
	free(c->main);
	free(c->here.text);
	c->main = NULL;
	c->here = (struct neap__odd_cell){0};
	c->found = 0;
}

int neap__odd_cells_see(
	struct neap__odd_cells *c, const char *text, int begins, const char *path, int64_t line)
{
	if (c->vary)
		return 0;
	if (begins) {
		end_sample(c);
		c->rows = 0;
	}
	c->rows++;
	if (c->run.text && strcmp(c->run.text, text) == 0) {
		c->run_rows++;
		return 0;
	}
	end_run(c);
	c->run = (struct neap__odd_cell){strdup(text), path, line};
	c->run_rows = 1;
	return c->run.text ? 0 : -ENOMEM;
}

int neap__odd_cells_doubt(struct neap__odd_cells *c)
{
	int64_t rows = c->rows;
	end_sample(c);
	c->rows = 0;
	if (c->vary || c->odd == 0 || c->count > EACH * c->odd)
		return 0;
	return c->samples == 1 ? c->count == 1 && rows >= ROWS_OF_ONE
			       : c->odd == 1 || c->odd * OF_SAMPLES <= c->samples;
}

void neap__odd_cells_free(struct neap__odd_cells *c)
{
	free(c->first.text);
	free(c->usual);
	free(c->here.text);
	free(c->run.text);
	free(c->main);
	*c = (struct neap__odd_cells){0};
}
