/* SPDX-License-Identifier: Apache-2.0 */
/* cell_program.c: opens a cell file and makes the cell of a layer from it (cell_program.h). */
#include "nn/cellfile/cell_program.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/text.h"
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ending[] = ".cell", option[] = "cell=", inline_begin[] = "cell ";

static int begins(const char *word, int length, const char *with)
{
	return length > (int)strlen(with) && strncmp(word, with, strlen(with)) == 0;
}

int neap__cell_program_named(const char *word, int length)
{
	int tail = length - (int)strlen(ending);

	return begins(word, length, option) || begins(word, length, inline_begin) ||
	       (tail > 0 && strncmp(word + tail, ending, strlen(ending)) == 0);
}

int neap__cell_program_reads(const char *spec)
{
	for (const char *word = spec; word; word = strchr(word, ',')) {
		word += *word == ',';
		int length = (int)strcspn(word, ":,");
		if (neap__cell_program_named(word, length) && !begins(word, length, inline_begin))
			return 1;
	}
	return 0;
}

/* Reads a file into text[NEAP__CELL_TEXT]. */
static int read_file(char *text, const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t length;
	int rc = 0;

	if (!file)
		return neap__fail(NEAP_EUSAGE,
			"--net: cannot read the cell file '%.300s': %s. "
			"Pass the path of a cell file",
			path, neap__error_text(errno));
	length = fread(text, 1, NEAP__CELL_TEXT, file);
	if (ferror(file))
		rc = neap__fail(NEAP_EUSAGE,
			"--net: cannot read the cell file '%.300s': %s. Pass "
			"the path of a cell file",
			path, neap__error_text(errno));
	else if (length == NEAP__CELL_TEXT)
		rc = neap__fail(NEAP_EUSAGE,
			"--net: '%.300s' has %d bytes or more, which is too large for a cell file. "
			"Pass a cell file",
			path, NEAP__CELL_TEXT);
	else if (memchr(text, '\0', length))
		rc = neap__fail(NEAP_EUSAGE,
			"--net: '%.300s' has a zero byte, so it is not a text. Pass a cell file",
			path);
	fclose(file);
	if (rc == 0)
		text[length] = '\0';
	return rc;
}

/* The text of a layer's name, and what messages call it. */
static int read_text(char *text, struct neap__cell_program *p, const char *word, int length)
{
	char path[4096];

	if (begins(word, length, inline_begin)) {
		neap__print(p->where, sizeof p->where, "--net, text of the cell");
		if (length >= NEAP__CELL_TEXT)
			return neap__fail(NEAP_EUSAGE,
				"--net: the text of the cell has %d bytes or more; shorten it",
				NEAP__CELL_TEXT);
		memcpy(text, word, (size_t)length);
		text[length] = '\0';
		return 0;
	}
	if (begins(word, length, option)) {
		word += strlen(option);
		length -= (int)strlen(option);
	}
	if (length >= (int)sizeof path)
		return neap__fail(NEAP_EUSAGE,
			"--net: the path of the cell file '%.40s...' is too long; use a shorter "
			"one",
			word);
	memcpy(path, word, (size_t)length);
	path[length] = '\0';
	neap__print(p->where, sizeof p->where, "%s", path);
	return read_file(text, path);
}

static int open_program(struct neap__cell_program *p, struct neap_net *net, const char *word,
	int length, char *text, struct neap__cell_source *source)
{
	const struct neap__cell_setting setting = {
		.dt = net->options.dt, .euler = net->options.euler};

	NEAP_TRY(read_text(text, p, word, length));
	NEAP_TRY(neap__cell_source_read(source, text, p->where, &setting));
	p->text = neap__net_get(net, strlen(text) + 1, 1);
	if (!p->text)
		return neap__fail_errno(ENOMEM, "cell '%s'", source->name);
	neap__cell_source_line(p->text, text);
	neap__print(p->name, sizeof p->name, "%s%s", source->name, ending);
	p->nstates = source->nstates;
	p->nparams = source->nparams;
	memcpy(p->param, source->param, sizeof p->param);
	for (int k = 0; k < p->nstates; k++)
		memcpy(p->state[k], source->state[k].name, sizeof p->state[k]);
	p->cell = (struct neap__cell){.name = p->name,
		.traits = NEAP__HIDDEN | NEAP__HAS_SURROGATE | NEAP__HAS_DETACH,
		.code = {&p->code[0], &p->code[1]}};
	return 0;
}

int neap__cell_program_open(
	struct neap__cell_program **out, struct neap_net *net, const char *word, int length)
{
	struct neap__cell_program *p = neap__net_get_zeroed(net, 1, sizeof *p);
	struct neap__cell_source *source = malloc(sizeof *source);
	char *text = malloc(NEAP__CELL_TEXT);
	int rc;

	if (p && source && text)
		rc = open_program(p, net, word, length, text, source);
	else
		rc = neap__fail_errno(ENOMEM, "cell of a layer");
	free(source);
	free(text);
	if (rc == 0)
		*out = p;
	return rc;
}

static int out_of_range(const struct neap__cell_program *p, const struct neap__cell_param *param,
	const char *value, int length)
{
	return neap__fail(NEAP_EUSAGE, "--net: %s of %s must be a %s from %g to %g%s, not '%.*s'",
		param->name, p->name, param->is_time ? "time" : "number", param->low, param->high,
		param->is_time ? " seconds" : "", length, value);
}

int neap__cell_program_set(struct neap__cell_program *program, const char *name, int name_length,
	const char *value, int length)
{
	char text[64];

	for (int i = 0; i < program->nparams; i++) {
		struct neap__cell_param *p = &program->param[i];
		double v = NAN;
		if (strlen(p->name) != (size_t)name_length ||
			memcmp(p->name, name, (size_t)name_length) != 0)
			continue;
		if (length < (int)sizeof text) {
			memcpy(text, value, (size_t)length);
			text[length] = '\0';
			if (neap__units_number(&v, text) < 0 &&
				!(p->is_time && neap__units_time(&v, text) == 0))
				v = NAN;
		}
		if (!isfinite(v) || v < p->low || v > p->high)
			return out_of_range(program, p, value, length);
		p->value = v;
		return 1;
	}
	return 0;
}

static size_t tape_max(const struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap__cell_cut *cut = &layer->program->cut;
	size_t n = (size_t)layer->n, real = net->ops->real;
	size_t last = layer->smooth ? n * real : (n + 7) / 8;

	last = (last + real - 1) & ~(real - 1);
	return (size_t)cut->count * n * real + (cut->last ? last : 0);
}

static size_t extra_at(const struct neap__layer *layer, size_t real)
{
	const struct neap__cell_program *p = layer->program;

	return p->returns_last ? layer->adjoint_at + (1 + (size_t)p->nstates) * layer->n * real : 0;
}

static size_t extra_at_float(const struct neap__layer *layer)
{
	return extra_at(layer, sizeof(float));
}

static size_t extra_at_double(const struct neap__layer *layer)
{
	return extra_at(layer, sizeof(double));
}

/* Which spikes of the step before a step uses and returns a gradient to. */
static void find_last(struct neap__cell_program *p, const struct neap__cell_source *s,
	const struct neap__cell_derivative *d)
{
	uint8_t used[NEAP__CELL_NODES] = {0};

	used[s->condition] = 1;
	for (int k = 0; k < s->nstates; k++)
		used[s->state[k].next] = 1;
	for (int i = s->graph.count - 1; i >= 0; i--) {
		const struct neap__cell_node *n = &s->graph.node[i];
		for (int k = 0; used[i] && k < neap__cell_operands(n->op); k++)
			used[neap__cell_operand(n, k)] = 1;
		p->takes_last |=
			used[i] && (n->op == NEAP__CELL_LAST || n->op == NEAP__CELL_RESET_LAST);
	}
	p->returns_last = s->graph.node[d->last].op != NEAP__CELL_CONST;
}

/* 1: what enters a unit reaches the spike condition, in this step or through states in later ones.
 */
static int hears(const struct neap__cell_source *s)
{
	uint8_t reached[NEAP__CELL_STATES] = {0}, node[NEAP__CELL_NODES];

	for (int round = 0; round <= s->nstates; round++) {
		for (int i = 0; i < s->graph.count; i++) {
			const struct neap__cell_node *n = &s->graph.node[i];
			node[i] = n->op == NEAP__CELL_IN ||
				  (n->op == NEAP__CELL_STATE && reached[n->a]);
			for (int k = 0; k < neap__cell_operands(n->op); k++)
				node[i] |= node[neap__cell_operand(n, k)];
		}
		for (int k = 0; k < s->nstates; k++)
			reached[k] |= node[s->state[k].next];
	}
	return node[s->condition];
}

static void fill_code(struct neap__cell_program *p)
{
	for (int precision = 0; precision < 2; precision++) {
		struct neap__cell_code *code = &p->code[precision];
		code->rows.state = p->nstates;
		code->rows.adjoint = 1 + p->nstates + p->returns_last;
		for (int k = 0; k < NEAP__SHOWN_MOST && k < p->nstates; k++)
			code->shown[k] = (struct neap__shown){p->state[k], k};
		code->is_dense = !p->cut.is_sparse;
		code->tape_max = p->cut.is_sparse ? NULL : tape_max;
		code->extra_at = precision == NEAP_DOUBLE ? extra_at_double : extra_at_float;
	}
	neap__cell_steps_float(&p->code[NEAP_FLOAT], p->cut.is_sparse);
	neap__cell_steps_double(&p->code[NEAP_DOUBLE], p->cut.is_sparse);
}

static int build(struct neap_net *net, struct neap__layer *layer, struct neap__cell_source *source)
{
	struct neap__cell_program *p = layer->program;
	struct neap__cell_derivative derivative;
	double params[NEAP__CELL_PARAMS];
	const struct neap__cell_setting setting = {.params = params,
		.dt = net->options.dt,
		.euler = net->options.euler,
		.detach = layer->detach};

	for (int i = 0; i < p->nparams; i++)
		params[i] = p->param[i].value;
	NEAP_TRY(neap__cell_source_read(source, p->text, p->where, &setting));
	if (!hears(source))
		return neap__fail(NEAP_EUSAGE,
			"%s: the spike condition does not depend on 'in', so the weights have no "
			"effect. Use 'in' in an assignment that reaches the condition",
			p->where);
	NEAP_TRY(neap__cell_differentiate(&derivative, source));
	NEAP_TRY(neap__cell_derivative_check(source, &derivative, p->where));
	neap__cell_cut_make(&p->cut, source, &derivative, net->options.smooth);
	find_last(p, source, &derivative);
	neap__cell_linearise(&p->linear, source);
	p->condition_row = -1;
	for (int k = 0; k < p->cut.count; k++)
		if (p->cut.node[k] == source->condition)
			p->condition_row = k;
	layer->threshold = source->threshold;
	/* What the rest of the net derives from a reset: the spikes of the step before are kept. */
	layer->reset = p->takes_last ? NEAP_RESET_SUBTRACT : NEAP_RESET_SOFT;
	fill_code(p);
	return neap__cell_lists_make(net, p, source, &derivative);
}

int neap__cell_program_build(struct neap_net *net, struct neap__layer *layer)
{
	struct neap__cell_source *source = malloc(sizeof *source);
	int rc;

	if (!source)
		return neap__fail_errno(ENOMEM, "%s", layer->program->name);
	rc = build(net, layer, source);
	free(source);
	return rc;
}

int neap__cell_program_whole(struct neap_net *net)
{
	const char *at = net->options.spec;
	struct neap__text text = {0};
	int programs = 0;

	for (int l = 0; l < net->nlayers; l++) {
		const struct neap__cell_program *p = net->layers[l].program;
		int length = (int)strcspn(at, ","), name = p ? (int)strcspn(at, ":,") : 0;
		programs += p != NULL;
		neap__text_add(&text, "%s%s%.*s", l ? "," : "", p ? p->text : "", length - name,
			at + name);
		at += length + (at[length] == ',');
	}
	if (programs)
		net->whole_spec = text.data;
	else
		neap__text_free(&text);
	return text.error;
}
