/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_cell.c: texts of cell files. One that is accepted is the same cell as its single line, and
 * has a derivative and a tape.
 */
#include "fuzz_files.h"
#include "nn/cellfile/cell_derivative.h"

#include <string.h>

static int read_cell(struct neap__cell_source *source, const char *text, int detach)
{
	const struct neap__cell_setting setting = {.dt = 1e-3, .detach = detach};
	int rc = neap__cell_source_read(source, text, "a.cell", &setting);

	fuzz_line(rc);
	return rc;
}

static void derive(struct neap__cell_source *source, int smooth)
{
	struct neap__cell_derivative derivative;
	struct neap__cell_cut cut;

	int rc = neap__cell_differentiate(&derivative, source);
	fuzz_line(rc);
	if (rc < 0)
		return;
	fuzz_line(neap__cell_derivative_check(source, &derivative, "a.cell"));
	neap__cell_cut_make(&cut, source, &derivative, smooth);
	FUZZ_CHECK(
		cut.count <= source->nstates + 1, "%d rows, %d states", cut.count, source->nstates);
	FUZZ_CHECK(!cut.is_sparse || (cut.count == 1 && !cut.last), "%d rows", cut.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct neap__cell_source source, again;
	char *text = fuzz_text(data, size), *line = malloc(2 * size + 2);
	int detach = (int)(fuzz_seed(data, size) & 1);

	FUZZ_CHECK(line, "no memory");
	if (size < NEAP__CELL_TEXT && read_cell(&source, text, detach) == 0) {
		neap__cell_source_line(line, text);
		FUZZ_CHECK(strlen(line) <= strlen(text), "%s", line);
		FUZZ_CHECK(!strpbrk(line, ",:\n#"), "%s", line);
		FUZZ_CHECK(read_cell(&again, line, detach) == 0, "%s: %s", line, neap_detail());
		FUZZ_CHECK(memcmp(&source, &again, sizeof source) == 0, "%s", line);
		derive(&source, detach);
	}
	free(text);
	free(line);
	return 0;
}
