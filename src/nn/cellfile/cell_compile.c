/* SPDX-License-Identifier: Apache-2.0 */
/* cell_compile.c: compiles the cell files of a net whose options ask for it (cell_program.h). */
#include "nn/cellfile/cell_program.h"
#include "nn/cellfile/compiled_code.h"
#include "base/fail.h"

#include <errno.h>

static const char option[] = "--compile-cells";

static int compile(struct neap__cell_program *p, int is_double)
{
	struct neap__text text = {0};
	int rc = neap__cell_text(&text, p, is_double);

	if (rc < 0)
		rc = neap__fail_errno(ENOMEM, "%s", p->name);
	else
		rc = neap__compiled_code(
			p->compiled, neap__cell_part_names, NEAP__CELL_PARTS, text.data, option);
	neap__text_free(&text);
	return rc;
}

int neap__cells_compile(struct neap_net *net)
{
	int programs = 0;

	/* A smooth net, of a gradient check, has spikes that only the interpreter computes. */
	if (net->options.smooth)
		return 0;
	for (int l = 0; l < net->nlayers; l++) {
		struct neap__cell_program *p = net->layers[l].program;
		if (p)
			NEAP_TRY(compile(p, net->options.precision == NEAP_DOUBLE));
		programs += p != NULL;
	}
	if (programs)
		return 0;
	return neap__fail(NEAP_EUSAGE, "%s: no layer of the network is a cell file. Remove %s",
		option, option);
}
