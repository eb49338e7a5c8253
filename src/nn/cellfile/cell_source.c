/* SPDX-License-Identifier: Apache-2.0 */
/* cell_source.c: reads the statements of a cell file (cell_source.h). */
#include "nn/cellfile/cell_source.h"
#include "nn/cellfile/cell_expression.h"
#include "base/fail.h"
#include "base/suggest.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

/* Names that a cell does not declare: words of the language, and options that each layer has. */
static const char *const taken[] = {"cell", "state", "param", "spike", "reset", "in", "dt", "inf",
	"surrogate", "width", "height", "support", "detach", "density", "init", "scale",
	"recurrent_scale", "dropout", "delay", "learn", NULL};

struct neap__cell_symbol *neap__cell_symbol_find(
	struct neap__cell_source *source, const char *name, int length)
{
	for (int i = 0; i < source->nsymbols; i++)
		if (strlen(source->symbol[i].name) == (size_t)length &&
			memcmp(source->symbol[i].name, name, (size_t)length) == 0)
			return &source->symbol[i];
	return NULL;
}

/* Adds a symbol; NULL: there is no room. */
static struct neap__cell_symbol *add_symbol(
	struct neap__cell_source *source, const char *name, int length, int node)
{
	if (source->nsymbols == NEAP__CELL_SYMBOLS)
		return NULL;
	struct neap__cell_symbol *symbol = &source->symbol[source->nsymbols++];
	*symbol = (struct neap__cell_symbol){.node = node, .state = -1};
	memcpy(symbol->name, name, (size_t)length);
	return symbol;
}

/* The name of a declaration, which must be a new one; *name is where it is. */
static int new_name(struct neap__cell_reader *r, const char *what, const char **name, int *length)
{
	struct neap__cell_words *w = &r->words;
	int is_taken = 0;

	*name = w->word;
	*length = w->length;
	if (w->kind != NEAP__CELL_WORD)
		return neap__cell_words_fail(
			w, w->word, "%s needs a name, such as '%s u'", what, what);
	if (w->length >= NEAP__CELL_NAME)
		return neap__cell_words_fail(w, w->word,
			"the name '%.*s' is too long; use at most %d characters",
			w->length < 60 ? w->length : 60, w->word, NEAP__CELL_NAME - 1);
	for (int i = 0; taken[i]; i++)
		is_taken |= neap__cell_word_is(w, taken[i]);
	if (is_taken || neap__cell_is_function(w->word, w->length))
		return neap__cell_words_fail(w, w->word,
			"'%.*s' has a meaning already; choose another name", w->length, w->word);
	neap__cell_words_next(w);
	return 0;
}

static int declare(struct neap__cell_reader *r, const char *name, int length, int node,
	struct neap__cell_symbol **symbol)
{
	if (neap__cell_symbol_find(r->source, name, length))
		return neap__cell_words_fail(&r->words, name,
			"'%.*s' exists already; choose another name", length, name);
	*symbol = add_symbol(r->source, name, length, node);
	if (*symbol)
		return 0;
	return neap__cell_words_fail(&r->words, name,
		"the cell has more than %d names; remove some", NEAP__CELL_SYMBOLS);
}

static int expect(struct neap__cell_reader *r, const char *sign, const char *example)
{
	struct neap__cell_words *w = &r->words;

	if (!neap__cell_word_is(w, sign))
		return neap__cell_words_fail(
			w, w->word, "expected '%s' here, as in '%s'", sign, example);
	neap__cell_words_next(w);
	return 0;
}

/* [-]NUMBER, or inf; *is_time is set if it has a unit. */
static int read_number(struct neap__cell_reader *r, double *value, int *is_time)
{
	struct neap__cell_words *w = &r->words;
	const char *begin = w->word;
	int sign = 1;
	char text[64];

	if (neap__cell_word_is(w, "-")) {
		sign = -1;
		neap__cell_words_next(w);
	}
	*value = INFINITY;
	if (!neap__cell_word_is(w, "inf")) {
		*value = NAN;
		if (w->kind == NEAP__CELL_NUMBER && w->length < (int)sizeof text) {
			memcpy(text, w->word, (size_t)w->length);
			text[w->length] = '\0';
			if (neap__units_number(value, text) < 0) {
				*value = NAN;
				if (neap__units_time(value, text) < 0)
					*value = NAN;
				else
					*is_time = 1;
			}
		}
	}
	if (isnan(*value))
		return neap__cell_words_fail(
			w, begin, "expected a number here, such as 0.5 or a time such as 20ms");
	*value *= sign;
	neap__cell_words_next(w);
	return 0;
}

/* state NAME [= NUMBER] */
static int read_state(struct neap__cell_reader *r)
{
	struct neap__cell_source *s = r->source;
	struct neap__cell_symbol *symbol;
	const char *name;
	int length, is_time = 0;
	double start = 0;

	NEAP_TRY(new_name(r, "state", &name, &length));
	if (s->nstates == NEAP__CELL_STATES)
		return neap__cell_words_fail(&r->words, name,
			"the cell has more than %d states; remove some", NEAP__CELL_STATES);
	if (neap__cell_word_is(&r->words, "=")) {
		neap__cell_words_next(&r->words);
		const char *at = r->words.word;
		NEAP_TRY(read_number(r, &start, &is_time));
		if (!isfinite(start))
			return neap__cell_words_fail(
				&r->words, at, "a state needs a finite value at step 0");
	}
	int stored = neap__cell_add(&s->graph, NEAP__CELL_STATE, s->nstates, 0, 0);
	NEAP_TRY(declare(r, name, length,
		neap__cell_add(
			&s->graph, NEAP__CELL_ADD, stored, neap__cell_const(&s->graph, start), 0),
		&symbol));
	symbol->state = s->nstates;
	struct neap__cell_state *state = &s->state[s->nstates++];
	state->start = start;
	memcpy(state->name, symbol->name, sizeof state->name);
	return 0;
}

/* param NAME = NUMBER [in LOW..HIGH] */
static int read_param(struct neap__cell_reader *r)
{
	static const char example[] = "param tau = 20ms in 1ms..1s";
	struct neap__cell_source *s = r->source;
	struct neap__cell_param p = {.low = -INFINITY, .high = INFINITY};
	struct neap__cell_symbol *symbol;
	const char *name;
	int length;

	NEAP_TRY(new_name(r, "param", &name, &length));
	if (s->nparams == NEAP__CELL_PARAMS)
		return neap__cell_words_fail(&r->words, name,
			"the cell has more than %d parameters; remove some", NEAP__CELL_PARAMS);
	NEAP_TRY(expect(r, "=", example));
	const char *at = r->words.word;
	NEAP_TRY(read_number(r, &p.value, &p.is_time));
	if (neap__cell_word_is(&r->words, "in")) {
		neap__cell_words_next(&r->words);
		NEAP_TRY(read_number(r, &p.low, &p.is_time));
		NEAP_TRY(expect(r, "..", example));
		NEAP_TRY(read_number(r, &p.high, &p.is_time));
	}
	if (!isfinite(p.value) || !(p.value >= p.low && p.value <= p.high))
		return neap__cell_words_fail(&r->words, at,
			"the default value %g is not in the range %g..%g. Change one of them",
			p.value, p.low, p.high);
	double value = r->setting->params ? r->setting->params[s->nparams] : p.value;
	NEAP_TRY(declare(r, name, length, neap__cell_const(&s->graph, value), &symbol));
	symbol->is_fixed = 1;
	memcpy(p.name, symbol->name, sizeof p.name);
	s->param[s->nparams++] = p;
	return 0;
}

/* NAME = EXPRESSION */
static int read_assignment(struct neap__cell_reader *r)
{
	const char *name = r->words.word;
	int length = r->words.length, node;
	struct neap__cell_symbol *symbol = neap__cell_symbol_find(r->source, name, length);

	if (symbol)
		neap__cell_words_next(&r->words);
	else
		NEAP_TRY(new_name(r, "statement", &name, &length));
	if (symbol && symbol->is_fixed)
		return neap__cell_words_fail(&r->words, name,
			"'%.*s' cannot be assigned to; use another name", length, name);
	NEAP_TRY(expect(r, "=", "u = decay(tau)*u + in"));
	NEAP_TRY(neap__cell_expression(r, &node));
	if (symbol) {
		symbol->node = node;
		return 0;
	}
	return declare(r, name, length, node, &symbol);
}

/* spike EXPRESSION */
static int read_spike(struct neap__cell_reader *r, const char *at)
{
	struct neap__cell_source *s = r->source;

	if (s->condition >= 0)
		return neap__cell_words_fail(&r->words, at,
			"a cell has one spike condition, and this is the second; remove one");
	const char *expression = r->words.word;
	NEAP_TRY(neap__cell_expression(r, &s->condition));
	const struct neap__cell_node *node = &s->graph.node[s->condition];
	if (node->op == NEAP__CELL_SUB && s->graph.node[node->b].op == NEAP__CELL_CONST) {
		s->threshold = s->graph.node[node->b].value;
		s->condition = node->a;
	}
	if (s->graph.node[s->condition].op == NEAP__CELL_CONST)
		return neap__cell_words_fail(&r->words, expression,
			"the spike condition is constant; it must depend on a state or on 'in'");
	r->spike = neap__cell_add(&s->graph, NEAP__CELL_NOW, s->condition, 0, 0);
	r->reset = r->setting->detach
			   ? neap__cell_add(&s->graph, NEAP__CELL_RESET_NOW, s->condition, 0, 0)
			   : r->spike;
	return 0;
}

/* reset NAME = EXPRESSION. If the expression is NAME + X or NAME - X, spikes times X are added. */
static int read_reset(struct neap__cell_reader *r)
{
	struct neap__cell_graph *g = &r->source->graph;
	struct neap__cell_words *w = &r->words;
	struct neap__cell_symbol *symbol = neap__cell_symbol_find(r->source, w->word, w->length);
	int value;

	if (w->kind != NEAP__CELL_WORD || !symbol || symbol->is_fixed)
		return neap__cell_words_fail(w, w->word,
			"reset needs the name of a state or of a local value, as in 'reset u = 0'");
	neap__cell_words_next(w);
	NEAP_TRY(expect(r, "=", "reset u = 0"));
	NEAP_TRY(neap__cell_expression(r, &value));
	const struct neap__cell_node *node = &g->node[value];
	int old = symbol->node;
	int adds = node->op == NEAP__CELL_ADD || node->op == NEAP__CELL_SUB;
	if (adds && node->a == old)
		symbol->node = neap__cell_add(g, node->op, old,
			neap__cell_add(g, NEAP__CELL_MUL, r->reset, node->b, 0), 0);
	else if (node->op == NEAP__CELL_ADD && node->b == old)
		symbol->node = neap__cell_add(g, NEAP__CELL_ADD, old,
			neap__cell_add(g, NEAP__CELL_MUL, r->reset, node->a, 0), 0);
	else
		symbol->node = neap__cell_add(g, NEAP__CELL_BLEND, r->reset, value, old);
	return 0;
}

static int read_statement(struct neap__cell_reader *r)
{
	struct neap__cell_words *w = &r->words;
	const char *at = w->word;
	int is_declaration = neap__cell_word_is(w, "state") || neap__cell_word_is(w, "param");

	if (is_declaration && r->has_step)
		return neap__cell_words_fail(
			w, at, "declare states and parameters before the first other statement");
	if (neap__cell_word_is(w, "state"))
		return neap__cell_words_next(w), read_state(r);
	if (neap__cell_word_is(w, "param"))
		return neap__cell_words_next(w), read_param(r);
	r->has_step = 1;
	if (neap__cell_word_is(w, "spike"))
		return neap__cell_words_next(w), read_spike(r, at);
	if (neap__cell_word_is(w, "reset"))
		return neap__cell_words_next(w), read_reset(r);
	if (w->kind == NEAP__CELL_WORD)
		return read_assignment(r);
	return neap__cell_words_fail(w, at,
		"'%.*s' begins no statement; expected state, param, spike, reset or NAME = ...",
		w->length < 40 ? w->length : 40, at);
}

static int read_statements(struct neap__cell_reader *r)
{
	struct neap__cell_words *w = &r->words;

	while (w->kind == NEAP__CELL_BREAK)
		neap__cell_words_next(w);
	const char *first = w->word;
	if (!neap__cell_word_is(w, "cell"))
		return neap__cell_words_fail(
			w, w->word, "a cell file begins with 'cell NAME', such as 'cell lif'");
	for (;;) {
		const char *name;
		int length;
		if (w->word == first) {
			neap__cell_words_next(w);
			NEAP_TRY(new_name(r, "cell", &name, &length));
			memcpy(r->source->name, name, (size_t)length);
		} else {
			NEAP_TRY(read_statement(r));
		}
		if (r->source->graph.is_full)
			return neap__cell_words_fail(w, w->word,
				"the step has more than %d operations; simplify it",
				NEAP__CELL_NODES);
		if (w->kind != NEAP__CELL_BREAK && w->kind != NEAP__CELL_END)
			return neap__cell_words_fail(w, w->word,
				"'%.*s' is not expected here; end the statement before it",
				w->length < 40 ? w->length : 40, w->word);
		while (w->kind == NEAP__CELL_BREAK)
			neap__cell_words_next(w);
		if (w->kind == NEAP__CELL_END)
			return 0;
	}
}

int neap__cell_source_read(struct neap__cell_source *source, const char *text, const char *where,
	const struct neap__cell_setting *setting)
{
	struct neap__cell_graph *g = &source->graph;
	struct neap__cell_reader r = {.source = source, .setting = setting};

	memset(source, 0, sizeof *source);
	source->condition = -1;
	add_symbol(source, "in", 2, neap__cell_add(g, NEAP__CELL_IN, 0, 0, 0))->is_fixed = 1;
	add_symbol(source, "dt", 2, neap__cell_const(g, setting->dt))->is_fixed = 1;
	r.spike = neap__cell_add(g, NEAP__CELL_LAST, 0, 0, 0);
	r.reset = setting->detach ? neap__cell_add(g, NEAP__CELL_RESET_LAST, 0, 0, 0) : r.spike;
	neap__cell_words_begin(&r.words, text, where);
	NEAP_TRY(read_statements(&r));
	if (source->condition < 0)
		return neap__cell_words_fail(&r.words, r.words.word,
			"the cell has no spike condition; add one, such as 'spike u - 1'");
	if (!source->nstates)
		return neap__cell_words_fail(&r.words, r.words.word,
			"the cell has no state; declare one, such as 'state u'");
	for (int i = 0; i < source->nsymbols; i++) {
		const struct neap__cell_symbol *symbol = &source->symbol[i];
		if (symbol->state >= 0)
			source->state[symbol->state].next =
				neap__cell_add(g, NEAP__CELL_SUB, symbol->node,
					neap__cell_const(g, source->state[symbol->state].start), 0);
	}
	if (g->is_full)
		return neap__cell_words_fail(&r.words, r.words.word,
			"the step has more than %d operations; simplify it", NEAP__CELL_NODES);
	return 0;
}

void neap__cell_source_line(char *to, const char *text)
{
	struct neap__cell_words w;
	enum neap__cell_word_kind last = NEAP__CELL_BREAK;
	const char *begin = to, *end = text;

	for (neap__cell_words_begin(&w, text, ""); w.kind != NEAP__CELL_END;
		neap__cell_words_next(&w)) {
		int is_text = w.kind == NEAP__CELL_WORD || w.kind == NEAP__CELL_NUMBER;
		/* "0. ..5" would become "0...5". Words without a gap between them stay so: the text
		 * does not get longer. */
		int joins = *w.word == '.' && to > begin && to[-1] == '.' && w.word != end;
		end = w.word + w.length;
		if (w.kind == NEAP__CELL_BREAK && last != NEAP__CELL_BREAK)
			*to++ = ';';
		if ((is_text && (last == NEAP__CELL_WORD || last == NEAP__CELL_NUMBER)) || joins)
			*to++ = ' ';
		last = w.kind;
		if (w.kind == NEAP__CELL_BREAK)
			continue;
		memcpy(to, w.word, (size_t)w.length);
		*to = *to == ',' ? ';' : *to;
		to += w.length;
	}
	*(last == NEAP__CELL_BREAK && to > begin ? to - 1 : to) = '\0';
}
