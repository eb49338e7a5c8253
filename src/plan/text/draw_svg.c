/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw_svg.c: the simulated schedule as an SVG, time to the right, steps upwards. The schedule
 * is simulated once while the marks are collected, at most so many as the caller allows. Of longer
 * schedules all long marks stay, and of the short ones every second, fourth, ... of a kind. Then
 * the axes are known and the text is written. The colours are those of Okabe and Ito, which
 * colour-blind readers tell apart; kinds of action also differ in width.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/text.h"
#include "plan/core/simulate.h"
#include "plan/core/sizing.h"

#define LIMIT_DEFAULT 200000
#define SLOTS_MOST (1 << 28)

enum look { ADVANCE, RECORD, BACKWARD, TURN, STORED, WRITE, READ, STALL, LOOKS };

static const struct {
	const char *label, *colour;
	double width;
} looks[LOOKS] = {
	[ADVANCE] = {"advance", "#0072B2", 1.2},
	[RECORD] = {"record", "#E69F00", 2.2},
	[BACKWARD] = {"backward", "#009E73", 2.2},
	[TURN] = {"turn", "#000000", 4},
	[STORED] = {"state in a slot", "#999999", 0.6},
	[WRITE] = {"write", "#D55E00", 8},
	[READ] = {"read", "#56B4E9", 8},
	[STALL] = {"waiting", "#CC79A7", 5},
};

struct svg_mark {
	double x0, x1; /* seconds */
	double y0, y1; /* steps; lanes: the tier's number, from 0 */
	int look;
};

struct drawing {
	const struct neap_problem *p;
	struct svg_mark *marks;
	int64_t count, room, limit;
	/* One short mark of so many of its look is drawn; short marks met; what is not short. */
	int64_t every, met[LOOKS];
	double longer_than[LOOKS];
	double *since; /* by slot: when its state came, or -1 */
	int64_t slots;
};

/* How much of the drawing a mark spans: steps, or time where it has but one step. */
static double extent(const struct svg_mark *m)
{
	return m->look < TURN ? fabs(m->y1 - m->y0) : m->x1 - m->x0;
}

/* 1: it stays whatever the number of marks. */
static int is_long(const struct drawing *d, const struct svg_mark *m)
{
	return m->look == TURN || extent(m) > d->longer_than[m->look];
}

/*
 * Keeps every second short mark of each look. Short is at most twice the mean of its look, so that
 * at least half of the marks are, and a quarter goes.
 */
static void thin(struct drawing *d)
{
	int64_t kept = 0, seen[LOOKS] = {0}, marks[LOOKS] = {0};
	double sum[LOOKS] = {0};

	for (int64_t i = 0; i < d->count; i++) {
		sum[d->marks[i].look] += extent(&d->marks[i]);
		marks[d->marks[i].look]++;
	}
	for (int look = 0; look < LOOKS; look++)
		d->longer_than[look] = marks[look] ? 2 * sum[look] / (double)marks[look] : 0;
	for (int64_t i = 0; i < d->count; i++)
		if (is_long(d, &d->marks[i]) || seen[d->marks[i].look]++ % 2 == 0)
			d->marks[kept++] = d->marks[i];
	if (kept < d->count || d->every == 1)
		d->every *= 2;
	d->count = kept;
}

static int add(struct drawing *d, int look, double x0, double x1, double y0, double y1)
{
	struct svg_mark mark = {x0, x1, y0, y1, look};

	if (d->every > 1 && !is_long(d, &mark) && d->met[look]++ % d->every != 0)
		return 0;
	if (d->count == d->limit)
		thin(d);
	if (d->count == d->limit)
		return 0; /* turns alone */
	if (d->count == d->room) {
		int64_t room = d->room ? 2 * d->room : 256;
		struct svg_mark *marks = realloc(d->marks, (size_t)room * sizeof *marks);
		if (!marks)
			return neap__fail(-ENOMEM, "draw: out of memory");
		d->marks = marks;
		d->room = room;
	}
	d->marks[d->count++] = mark;
	return 0;
}

static int slot_began(struct drawing *d, int64_t slot, double when)
{
	if (slot < 0 || slot >= SLOTS_MOST)
		return slot < 0 ? 0 : neap__fail(NEAP_EUSAGE, "draw: too many slots");
	if (slot >= d->slots) {
		int64_t room = 2 * slot + 16;
		double *since = realloc(d->since, (size_t)room * sizeof *since);
		if (!since)
			return neap__fail(-ENOMEM, "draw: out of memory");
		for (int64_t i = d->slots; i < room; i++)
			since[i] = -1;
		d->since = since;
		d->slots = room;
	}
	d->since[slot] = when;
	return 0;
}

static int slot_ended(struct drawing *d, const struct neap_action *a, double when)
{
	if (a->slot < 0 || a->slot >= d->slots || d->since[a->slot] < 0)
		return 0;
	double from = d->since[a->slot];
	d->since[a->slot] = -1;
	return add(d, STORED, from, when, (double)a->t0, (double)a->t0);
}

static int mark_transfer(
	struct drawing *d, const struct neap__clock *k, const struct neap_action *a)
{
	int lane = a->tier - 1, look = a->kind == NEAP_PUT ? WRITE : READ;
	return add(d, look, (double)k->tickets[a->ticket].start, (double)k->tickets[a->ticket].end,
		lane, lane);
}

/* One action, the clock having moved from `before` to k->now. */
static int mark(
	struct drawing *d, const struct neap__clock *k, const struct neap_action *a, double before)
{
	double now = (double)k->now, t0 = (double)a->t0, t1 = (double)a->t1;
	switch (a->kind) {
	case NEAP_ADVANCE:
		return add(d, ADVANCE, before, now, t0, t1);
	case NEAP_RECORD:
		return add(d, RECORD, before, now, t0, t1);
	case NEAP_BACKWARD:
		return add(d, BACKWARD, before, now, t1, t0);
	case NEAP_TURN:
		return add(d, TURN, now, now, t0, t0);
	case NEAP_SAVE:
		return slot_began(d, a->slot, before);
	case NEAP_DROP:
		return a->payload == NEAP_STATE ? slot_ended(d, a, now) : 0;
	case NEAP_GET:
		if (a->payload == NEAP_STATE)
			NEAP_TRY(slot_began(d, a->slot, (double)k->tickets[a->ticket].start));
		NEAP_TRY(mark_transfer(d, k, a));
		break;
	case NEAP_PUT:
		NEAP_TRY(mark_transfer(d, k, a));
		break;
	default:
		break;
	}
	if (now > before && a->kind != NEAP_LOAD)
		return add(d, STALL, before, now, (double)(a->tier - 1), (double)(a->tier - 1));
	return 0;
}

static int collect(struct drawing *d, struct neap__clock *k, struct neap_schedule *schedule)
{
	struct neap_action a;
	int rc;
	neap__clock_init(k, d->p);
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		double before = (double)k->now;
		NEAP_TRY(neap__clock_step(k, &a));
		NEAP_TRY(mark(d, k, &a, before));
	}
	return rc;
}

/* Where the picture's parts are, in SVG units. */
#define LEFT 90.0
#define TOP 70.0
#define WIDTH 860.0
#define HEIGHT 420.0
#define LANE 34.0

struct axes {
	double seconds, steps; /* full scale */
	double unit;	       /* seconds a labelled unit */
	const char *unit_name;
	double bottom; /* of the lanes */
};

static double px(const struct axes *x, double seconds)
{
	return LEFT + WIDTH * seconds / x->seconds;
}

static double py(const struct axes *x, double steps)
{
	return TOP + HEIGHT * (1 - steps / x->steps);
}

static double lane_y(double lane)
{
	return TOP + HEIGHT + 62 + LANE * lane;
}

/* 1, 2 or 5 times a power of ten: about `count` ticks over `range`. */
static double tick(double range, double count)
{
	double raw = range / count, power = pow(10, floor(log10(raw))), rest = raw / power;
	return power * (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10);
}

static void escaped(struct neap__text *out, const char *text)
{
	char room[NEAP__PLAIN_TEXT];
	for (const char *c = neap__plain_text(room, text); *c; c++) {
		switch (*c) {
		case '<':
			neap__text_add(out, "&lt;");
			break;
		case '>':
			neap__text_add(out, "&gt;");
			break;
		case '&':
			neap__text_add(out, "&amp;");
			break;
		case '"':
			neap__text_add(out, "&quot;");
			break;
		default:
			neap__text_add(out, "%c", *c);
		}
	}
}

static void write_head(
	struct neap__text *out, const struct axes *x, const char *title, int64_t every)
{
	double height = x->bottom + 30;
	neap__text_add(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"980\" height=\"%g\" "
		"viewBox=\"0 0 980 %g\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
		"<text x=\"%g\" y=\"24\" font-size=\"16\">",
		height, height, LEFT);
	escaped(out, title ? title : "schedule");
	if (every > 1)
		neap__text_add(out, " (thinned: one short mark of %lld)", (long long)every);
	neap__text_add(out, "</text>\n");
}

static void write_legend(struct neap__text *out, const int64_t *seen)
{
	double x = LEFT;
	for (int i = 0; i < LOOKS; i++) {
		if (!seen[i])
			continue;
		double width = looks[i].width > 6 ? 6 : looks[i].width;
		neap__text_add(out,
			"<line x1=\"%g\" y1=\"46\" x2=\"%g\" y2=\"46\" stroke=\"%s\" "
			"stroke-width=\"%g\"/><text x=\"%g\" y=\"50\">%s</text>\n",
			x, x + 22, looks[i].colour, width < 1.2 ? 1.2 : width, x + 27,
			looks[i].label);
		x += 50 + 7 * (double)strlen(looks[i].label);
	}
}

static void write_axes(struct neap__text *out, const struct axes *x)
{
	double range = x->seconds / x->unit, by = tick(range, 8), base = TOP + HEIGHT;
	neap__text_add(out,
		"<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" "
		"stroke=\"#000000\"/>\n",
		LEFT, TOP, WIDTH, HEIGHT);
	for (double v = 0; v <= range * (1 + 1e-9); v += by)
		neap__text_add(out,
			"<line x1=\"%.2f\" y1=\"%g\" x2=\"%.2f\" y2=\"%g\" stroke=\"#000000\"/>"
			"<text x=\"%.2f\" y=\"%g\" text-anchor=\"middle\">%.10g</text>\n",
			px(x, v * x->unit), base, px(x, v * x->unit), base + 5, px(x, v * x->unit),
			base + 19, fabs(v) < by / 2 ? 0 : v);
	by = fmax(1, tick(x->steps, 8));
	for (double v = 0; v <= x->steps; v += by)
		neap__text_add(out,
			"<line x1=\"%g\" y1=\"%.2f\" x2=\"%g\" y2=\"%.2f\" stroke=\"#000000\"/>"
			"<text x=\"%g\" y=\"%.2f\" text-anchor=\"end\">%.15g</text>\n",
			LEFT - 5, py(x, v), LEFT, py(x, v), LEFT - 8, py(x, v) + 4, v);
	neap__text_add(out,
		"<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">time (%s)</text>\n"
		"<text x=\"20\" y=\"%g\" text-anchor=\"middle\" "
		"transform=\"rotate(-90 20 %g)\">step</text>\n",
		LEFT + WIDTH / 2, base + 36, x->unit_name, TOP + HEIGHT / 2, TOP + HEIGHT / 2);
}

static void write_lanes(struct neap__text *out, const struct neap_problem *p)
{
	for (int i = 0; i < p->ntiers; i++) {
		neap__text_add(out,
			"<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"24\" fill=\"#f2f2f2\"/>"
			"<text x=\"%g\" y=\"%g\" text-anchor=\"end\">",
			LEFT, lane_y(i) - 12, WIDTH, LEFT - 8, lane_y(i) + 4);
		escaped(out, p->tiers[i].name[0] ? p->tiers[i].name : "slow");
		neap__text_add(out, "</text>\n");
	}
}

/* Marks of one look share a group, so that a mark is a few numbers. */
static void write_marks(struct neap__text *out, const struct drawing *d, const struct axes *x)
{
	static const double shift[LOOKS] = {[WRITE] = -6, [READ] = 6};
	for (int look = LOOKS - 1; look >= 0; look--) {
		int lane = look >= WRITE, cap = look == TURN;
		neap__text_add(out,
			"<g stroke=\"%s\" stroke-width=\"%g\" stroke-linecap=\"%s\" "
			"class=\"%s\">\n",
			looks[look].colour, looks[look].width, cap ? "round" : "butt",
			looks[look].label);
		for (int64_t i = 0; i < d->count; i++) {
			const struct svg_mark *m = &d->marks[i];
			if (m->look != look)
				continue;
			double y0 = lane ? lane_y(m->y0) + shift[look] : py(x, m->y0);
			double y1 = lane ? y0 : py(x, m->y1);
			neap__text_add(out, "<path d=\"M%.2f %.2fL%.2f %.2f\"/>\n", px(x, m->x0),
				y0, px(x, m->x1) + (cap ? 0.01 : 0), y1);
		}
		neap__text_add(out, "</g>\n");
	}
}

static struct axes scale(const struct drawing *d, const struct neap__clock *k)
{
	static const struct {
		double unit;
		const char *name;
	} units[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}};
	double seconds = (double)k->now, steps = (double)neap__last_state(&d->p->chain);
	struct axes x = {.seconds = seconds > 0 ? seconds : 1, .steps = steps > 0 ? steps : 1};
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (i == 0 || x.seconds >= units[i].unit)
			x.unit = units[i].unit, x.unit_name = units[i].name;
	x.bottom = d->p->ntiers ? lane_y(d->p->ntiers - 1) + 12 : TOP + HEIGHT + 40;
	return x;
}

int neap_draw(const struct neap_problem *problem, struct neap_schedule *schedule, const char *title,
	int64_t limit, int (*write)(void *user, const char *text, size_t length), void *user)
{
	NEAP_NEED(problem, schedule, write);
	struct drawing d = {.p = problem, .limit = limit > 0 ? limit : LIMIT_DEFAULT, .every = 1};
	struct neap__clock k;
	struct neap__text out = {0};
	int64_t seen[LOOKS] = {0};
	int rc = collect(&d, &k, schedule);
	if (rc < 0)
		goto out;
	for (int64_t i = 0; i < d.count; i++)
		seen[d.marks[i].look]++;
	struct axes x = scale(&d, &k);
	write_head(&out, &x, title, d.every);
	write_legend(&out, seen);
	write_lanes(&out, problem);
	write_marks(&out, &d, &x);
	write_axes(&out, &x);
	neap__text_add(&out, "</svg>\n");
	rc = out.error ? out.error : write(user, out.data, out.length);
out:
	neap__text_free(&out);
	free(d.marks);
	free(d.since);
	return rc;
}
