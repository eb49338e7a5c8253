/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c: head and style of figures, text, axes with ticks at 1, 2 or 5 times powers of ten (svg.h).
 */
#include "base/svg.h"

#include <math.h>
#include <string.h>

#define TICKS_MOST 12
#define ROW 1.25 /* heights of a line of text */

void neap__svg_begin(struct neap__text *out, double width, double height, const char *title)
{
	neap__text_add(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"%g\" "
		"fill=\"" NEAP__SVG_INK "\" role=\"img\">\n<title>",
		width, height, width, height, NEAP__SVG_FONT);
	neap__svg_escaped(out, title);
	neap__text_add(out, "</title>\n<style>@media (prefers-color-scheme: dark) {\n");
#define X(light, dark)                                                                             \
	neap__text_add(out, "[fill=\"%s\" i]{fill:%s} [stroke=\"%s\" i]{stroke:%s}\n", light,      \
		dark, light, dark);
	NEAP__SVG_DARK_TABLE(X)
#undef X
	neap__text_add(out,
		"}</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"" NEAP__SVG_PAPER
		"\"/>\n");
}

void neap__svg_end(struct neap__text *out)
{
	neap__text_add(out, "</svg>\n");
}

static void add_escaped(struct neap__text *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		const char *entity = text[i] == '<'   ? "&lt;"
				     : text[i] == '>' ? "&gt;"
				     : text[i] == '&' ? "&amp;"
				     : text[i] == '"' ? "&quot;"
						      : NULL;
		if (entity)
			neap__text_add(out, "%s", entity);
		else
			neap__text_add(out, "%c", text[i]);
	}
}

void neap__svg_escaped(struct neap__text *out, const char *text)
{
	char room[NEAP__PLAIN_TEXT];
	neap__plain_text(room, text);
	add_escaped(out, room, strlen(room));
}

double neap__svg_wrapped(
	struct neap__text *out, double x, double y, double size, int characters, const char *text)
{
	char room[NEAP__PLAIN_TEXT];
	const char *at = neap__plain_text(room, text);

	while (*at) {
		size_t length = strlen(at), end = length;
		if (length > (size_t)characters) {
			for (end = (size_t)characters; end > 0 && at[end] != ' ';)
				end--;
			if (end == 0) /* a word longer than a line is cut between characters */
				for (end = (size_t)characters; (at[end] & 0xc0) == 0x80;)
					end++;
		}
		if (out) {
			neap__text_add(
				out, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%g\">", x, y, size);
			add_escaped(out, at, end);
			neap__text_add(out, "</text>\n");
		}
		at += end + strspn(at + end, " ");
		y += ROW * size;
	}
	return y;
}

double neap__svg_place(const struct neap__svg_axis *a, double value)
{
	double v = a->log ? log10(value) : value;
	double share = (v - a->low) / (a->high - a->low);
	return a->from + a->size * (a->turned ? 1 - share : share);
}

/* 1, 2 or 5 times a power of ten: the distance of at most `most` ticks over a range. */
static double step_of(double range, int most)
{
	double ten = pow(10, floor(log10(range / most)));
	double part = range / most / ten;
	return ten * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* As few digits as tell ticks apart; an exponent only where there would be many zeros. */
static void add_number(struct neap__text *out, double value, double step)
{
	int power = (int)round(log10(fabs(value) > 0 ? fabs(value) : 1));
	if ((power >= 6 || power <= -4) && fabs(value - pow(10, power)) < 1e-9 * value) {
		neap__text_add(out, "1e%d", power);
		return;
	}
	if (step < 1e-5 && fabs(value) > step / 2 && fabs(value) < 1e-3) { /* too long otherwise */
		double apart = floor(log10(fabs(value)) + 1e-9) - floor(log10(step) + 1e-9);
		neap__text_add(out, "%.*e", (int)fmin(12, fmax(0, apart)), value);
		return;
	}
	int digits = (int)fmin(12, fmax(0, -floor(log10(step) + 1e-9)));
	neap__text_add(out, "%.*f", digits, fabs(value) < step / 2 ? 0.0 : value);
}

static void add_tick(struct neap__text *out, const struct neap__svg_axis *a, double value,
	double step, const struct neap__svg_axis *other)
{
	double at = neap__svg_place(a, value), end = other->from + other->size;

	if (a->turned)
		neap__text_add(out,
			"<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
			"stroke=\"" NEAP__SVG_GRID "\"/><text class=\"tick-y\" x=\"%.2f\" "
			"y=\"%.2f\" dy=\"5\" text-anchor=\"end\">",
			other->from, at, end, at, other->from - 8, at);
	else
		neap__text_add(out,
			"<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
			"stroke=\"" NEAP__SVG_INK
			"\"/><text class=\"tick-x\" x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">",
			at, end, at, end + 5, at, end + 20);
	add_number(out, value, step);
	neap__text_add(out, "</text>\n");
}

/* Ticks every `step` from value `low` to `high`; a step that is lost in the value ends. */
static void add_even_ticks(struct neap__text *out, const struct neap__svg_axis *a,
	const struct neap__svg_axis *other, double low, double high, double step)
{
	double first = ceil(low / step - 1e-9);
	for (int i = 0; i <= TICKS_MOST && (first + i) * step <= high + 1e-9 * step; i++)
		add_tick(out, a, (first + i) * step, step, other);
}

void neap__svg_ticks(
	struct neap__text *out, const struct neap__svg_axis *a, const struct neap__svg_axis *other)
{
	static const double parts[] = {1, 2, 5};

	if (!a->log) {
		double step = step_of(a->high - a->low, a->whole && !a->turned ? TICKS_MOST : 6);
		add_even_ticks(out, a, other, a->low, a->high, a->whole ? fmax(1, step) : step);
		return;
	}
	double decades = a->high - a->low;
	if (decades < 0.7) { /* hardly two of the others */
		double low = pow(10, a->low), high = pow(10, a->high);
		add_even_ticks(out, a, other, low, high, step_of(high - low, 6));
		return;
	}
	/* 1, 2 and 5 of each decade; only 1 of many decades, or where numbers would touch. */
	int few = decades < (a->turned ? 3 : 1.8), every = 1 + (int)(decades / 8);
	for (double ten = floor(a->low); ten <= a->high; ten += few ? 1 : every)
		for (int i = 0; i < (few ? 3 : 1); i++) {
			double v = parts[i] * pow(10, ten);
			if (log10(v) >= a->low - 1e-9 && log10(v) <= a->high + 1e-9)
				add_tick(out, a, v, v, other);
		}
}
