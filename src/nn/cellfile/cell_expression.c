/* SPDX-License-Identifier: Apache-2.0 */
/* cell_expression.c: expressions by recursive descent (cell_expression.h). */
#include "nn/cellfile/cell_expression.h"
#include "base/fail.h"
#include "base/suggest.h"
#include "base/units.h"

#include <string.h>

enum { DECAY = NEAP__CELL_OPS, POWER_MOST = 16 };

static const struct function {
	const char *name;
	int op, arguments;
} functions[] = {{"abs", NEAP__CELL_ABS, 1}, {"cos", NEAP__CELL_COS, 1}, {"decay", DECAY, 1},
	{"exp", NEAP__CELL_EXP, 1}, {"if", NEAP__CELL_SELECT, 3}, {"log", NEAP__CELL_LOG, 1},
	{"max", NEAP__CELL_MAX, 2}, {"min", NEAP__CELL_MIN, 2}, {"sigmoid", NEAP__CELL_SIGMOID, 1},
	{"sin", NEAP__CELL_SIN, 1}, {"sqrt", NEAP__CELL_SQRT, 1}, {"tanh", NEAP__CELL_TANH, 1},
	{0}};

static const struct function *function_of(const char *name, int length)
{
	for (const struct function *f = functions; f->name; f++)
		if (strlen(f->name) == (size_t)length && memcmp(f->name, name, (size_t)length) == 0)
			return f;
	return NULL;
}

int neap__cell_is_function(const char *name, int length)
{
	return function_of(name, length) != NULL;
}

static int add(struct neap__cell_reader *r, enum neap__cell_op op, int a, int b)
{
	return neap__cell_add(&r->source->graph, op, a, b, 0);
}

/* exp(-dt/tau), or with --euler 1 - dt/tau */
static int decay(struct neap__cell_reader *r, int tau)
{
	struct neap__cell_graph *g = &r->source->graph;
	int dt = neap__cell_const(g, r->setting->dt);

	if (r->setting->euler)
		return add(
			r, NEAP__CELL_SUB, neap__cell_const(g, 1), add(r, NEAP__CELL_DIV, dt, tau));
	return neap__cell_add(g, NEAP__CELL_EXP,
		add(r, NEAP__CELL_NEG, add(r, NEAP__CELL_DIV, dt, tau), 0), 0, 0);
}

static int unknown(struct neap__cell_reader *r)
{
	struct neap__cell_words *w = &r->words;
	struct neap__suggestion meant = {.text = w->word, .length = (size_t)w->length};
	char room[80];

	for (int i = 0; i < r->source->nsymbols; i++)
		neap__suggest(&meant, r->source->symbol[i].name);
	for (int i = 0; functions[i].name; i++)
		neap__suggest(&meant, functions[i].name);
	neap__suggest(&meant, "spike");
	return neap__cell_words_fail(w, w->word,
		"unknown name '%.*s'. Declare it with 'state' or 'param', or assign to it before%s",
		w->length < 40 ? w->length : 40, w->word, neap__did_you_mean(room, &meant, ""));
}

/* FUNCTION(ARGUMENT, ...): the word is the bracket. */
static int read_call(struct neap__cell_reader *r, const struct function *f, int *node)
{
	struct neap__cell_words *w = &r->words;
	const char *name = w->word;
	int argument[3] = {0};

	if (!neap__cell_word_is(w, "("))
		return neap__cell_words_fail(
			w, name, "'%s' is a function; write '%s(...)'", f->name, f->name);
	for (int i = 0; i < f->arguments; i++) {
		const char *want = i == f->arguments - 1 ? ")" : ",";
		neap__cell_words_next(w);
		NEAP_TRY(neap__cell_expression(r, &argument[i]));
		int fits =
			neap__cell_word_is(w, want) || (*want == ',' && neap__cell_word_is(w, ";"));
		if (!fits)
			return neap__cell_words_fail(w, w->word,
				"expected '%s' here; %s has %d argument%s", want, f->name,
				f->arguments, f->arguments > 1 ? "s" : "");
	}
	neap__cell_words_next(w);
	*node = f->op == DECAY ? decay(r, argument[0])
			       : neap__cell_add(&r->source->graph, (enum neap__cell_op)f->op,
					 argument[0], argument[1], argument[2]);
	return 0;
}

static int read_name(struct neap__cell_reader *r, int *node)
{
	struct neap__cell_words *w = &r->words;
	const struct function *f = function_of(w->word, w->length);
	const struct neap__cell_symbol *symbol;

	if (f)
		return neap__cell_words_next(w), read_call(r, f, node);
	symbol = neap__cell_symbol_find(r->source, w->word, w->length);
	if (!symbol && !neap__cell_word_is(w, "spike"))
		return unknown(r);
	*node = symbol ? symbol->node : r->spike;
	neap__cell_words_next(w);
	return 0;
}

static int read_number(struct neap__cell_reader *r, int *node)
{
	struct neap__cell_words *w = &r->words;
	char text[64];
	double value;

	if (w->length >= (int)sizeof text)
		return neap__cell_words_fail(
			w, w->word, "this number is too long; use at most 63 characters");
	memcpy(text, w->word, (size_t)w->length);
	text[w->length] = '\0';
	if (neap__units_number(&value, text) < 0 && neap__units_time(&value, text) < 0)
		return neap__cell_words_fail(w, w->word,
			"'%s' is not a number; expected one such as 0.5 or a time such as 20ms",
			text);
	*node = neap__cell_const(&r->source->graph, value);
	neap__cell_words_next(w);
	return 0;
}

/* A number, a name, a call, or an expression in brackets */
static int read_operand(struct neap__cell_reader *r, int *node)
{
	struct neap__cell_words *w = &r->words;

	if (w->kind == NEAP__CELL_NUMBER)
		return read_number(r, node);
	if (w->kind == NEAP__CELL_WORD)
		return read_name(r, node);
	if (!neap__cell_word_is(w, "("))
		return neap__cell_words_fail(w, w->word,
			"expected a number, a name or '(' here%s%.*s%s",
			w->kind == NEAP__CELL_WRONG ? ", not '" : "",
			w->kind == NEAP__CELL_WRONG ? w->length : 0, w->word,
			w->kind == NEAP__CELL_WRONG ? "'" : "");
	neap__cell_words_next(w);
	NEAP_TRY(neap__cell_expression(r, node));
	if (!neap__cell_word_is(w, ")"))
		return neap__cell_words_fail(w, w->word, "expected ')' here");
	neap__cell_words_next(w);
	return 0;
}

/* OPERAND[^WHOLE NUMBER] */
static int read_power(struct neap__cell_reader *r, int *node)
{
	struct neap__cell_words *w = &r->words;

	NEAP_TRY(read_operand(r, node));
	if (!neap__cell_word_is(w, "^"))
		return 0;
	neap__cell_words_next(w);
	int exponent = 0, digits = (int)strspn(w->word, "0123456789");
	for (int i = 0; i < w->length && i < 3 && w->kind == NEAP__CELL_NUMBER; i++)
		exponent = 10 * exponent + (w->word[i] - '0');
	if (digits < w->length || exponent < 1 || exponent > POWER_MOST || w->length > 2)
		return neap__cell_words_fail(w, w->word,
			"an exponent must be a whole number from 1 to %d; write exp(y*log(x)) for "
			"other powers",
			POWER_MOST);
	neap__cell_words_next(w);
	int base = *node;
	for (int i = 1; i < exponent; i++)
		*node = add(r, NEAP__CELL_MUL, *node, base);
	return 0;
}

static int read_signed(struct neap__cell_reader *r, int *node)
{
	struct neap__cell_words *w = &r->words;

	if (!neap__cell_word_is(w, "-"))
		return read_power(r, node);
	if (++r->nested > NEAP__CELL_NESTED)
		return neap__cell_words_fail(w, w->word,
			"more than %d nested signs and brackets; use fewer", NEAP__CELL_NESTED);
	neap__cell_words_next(w);
	NEAP_TRY(read_signed(r, node));
	r->nested--;
	*node = add(r, NEAP__CELL_NEG, *node, 0);
	return 0;
}

static int read_product(struct neap__cell_reader *r, int *node)
{
	struct neap__cell_words *w = &r->words;

	NEAP_TRY(read_signed(r, node));
	while (neap__cell_word_is(w, "*") || neap__cell_word_is(w, "/")) {
		enum neap__cell_op op = *w->word == '*' ? NEAP__CELL_MUL : NEAP__CELL_DIV;
		int right;
		neap__cell_words_next(w);
		NEAP_TRY(read_signed(r, &right));
		*node = add(r, op, *node, right);
	}
	return 0;
}

static int read_sum(struct neap__cell_reader *r, int *node)
{
	struct neap__cell_words *w = &r->words;

	NEAP_TRY(read_product(r, node));
	while (neap__cell_word_is(w, "+") || neap__cell_word_is(w, "-")) {
		enum neap__cell_op op = *w->word == '+' ? NEAP__CELL_ADD : NEAP__CELL_SUB;
		int right;
		neap__cell_words_next(w);
		NEAP_TRY(read_product(r, &right));
		*node = add(r, op, *node, right);
	}
	return 0;
}

int neap__cell_expression(struct neap__cell_reader *r, int *node)
{
	struct neap__cell_words *w = &r->words;

	if (++r->nested > NEAP__CELL_NESTED)
		return neap__cell_words_fail(w, w->word,
			"more than %d nested signs and brackets; use fewer", NEAP__CELL_NESTED);
	NEAP_TRY(read_sum(r, node));
	if (*w->word == '>' || *w->word == '<') {
		enum neap__cell_op op = w->length == 2 ? NEAP__CELL_GE : NEAP__CELL_GT;
		int turned = *w->word == '<', right;
		neap__cell_words_next(w);
		NEAP_TRY(read_sum(r, &right));
		*node = turned ? add(r, op, right, *node) : add(r, op, *node, right);
	}
	r->nested--;
	return 0;
}
