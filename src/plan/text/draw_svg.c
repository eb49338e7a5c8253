/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw_svg.c: the simulated schedule as an SVG, time to the right, steps upwards. The schedule
 * is simulated once while the marks are collected, at most so many as the caller allows. Of longer
 * schedules all long marks stay, and of the short ones every second, fourth, ... of a kind. Then
 * the axes are known and the text is written. Kinds of action differ in colour (base/svg.h) and in
 * width.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/print.h"
#include "base/svg.h"
#include "plan/core/simulate.h"
#include "plan/core/sizing.h"

#define LIMIT_DEFAULT 200000
#define SLOTS_MOST (1 << 28)

enum look { ADVANCE, RECORD, BACKWARD, TURN, STORED, WRITE, READ, STALL, LOOKS };

static const struct {
	const char *label, *colour;
	double width;
} looks[LOOKS] = {
	[ADVANCE] = {"advance", NEAP__SVG_BLUE, 1.2},
	[RECORD] = {"record", NEAP__SVG_ORANGE, 2.2},
	[BACKWARD] = {"backward", NEAP__SVG_GREEN, 2.2},
	[TURN] = {"turn", NEAP__SVG_INK, 9}, /* the diameter of a dot */
	[STORED] = {"state in a slot", NEAP__SVG_FAINT, 0.6},
	[WRITE] = {"write", NEAP__SVG_RED, 8},
	[READ] = {"read", NEAP__SVG_SKY, 8},
	[STALL] = {"waiting", NEAP__SVG_PINK, 5},
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
	const struct neap_problem counted = neap__calls_counted(d->p);
	neap__clock_init(k, &counted);
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		double before = (double)k->now;
		NEAP_TRY(neap__clock_step(k, &a));
		NEAP_TRY(mark(d, k, &a, before));
	}
	return rc;
}

/* Where the picture's parts are, in pixels. */
#define LEFT 66.0
#define RIGHT 16.0
#define WIDTH 560.0 /* of the picture */
#define HEIGHT 300.0
#define LANE 34.0
#define TITLE 17.0 /* font size */

struct axes {
	struct neap__svg_axis x, y; /* x: in labelled units */
	double unit;		    /* seconds a labelled unit */
	const char *unit_name;
	double bottom; /* of the lanes */
};

static double px(const struct axes *x, double seconds)
{
	return neap__svg_place(&x->x, seconds / x->unit);
}

static double py(const struct axes *x, double steps)
{
	return neap__svg_place(&x->y, steps);
}

static double lane_y(const struct axes *x, double lane)
{
	return x->y.from + HEIGHT + 66 + LANE * lane;
}

/* The title as it is written; how many short marks are left out. */
static void title_of(char *room, size_t size, const char *title, int64_t every)
{
	if (every > 1)
		neap__print(room, size, "%s (thinned: one short mark of %lld)",
			title ? title : "schedule", (long long)every);
	else
		neap__print(room, size, "%s", title ? title : "schedule");
}

/* Title and legend above the frame; the y below them. out NULL: measures only. */
static double write_head(struct neap__text *out, const char *title, const int64_t *seen)
{
	double x = LEFT, y = neap__svg_wrapped(out, 12, 8 + TITLE, TITLE, 62, title);
	for (int i = 0; i < LOOKS; i++) {
		double width = 38 + NEAP__SVG_CHAR * (double)strlen(looks[i].label);
		if (!seen[i])
			continue;
		if (x > LEFT && x + width > WIDTH) {
			x = LEFT;
			y += 22;
		}
		double from = i == TURN ? x + 10 : x, to = i == TURN ? from + 0.01 : x + 20;
		if (out)
			neap__text_add(out,
				"<line x1=\"%g\" y1=\"%g\" x2=\"%g\" y2=\"%g\" stroke=\"%s\" "
				"stroke-width=\"%g\"%s/><text x=\"%g\" y=\"%g\">%s</text>\n",
				from, y - 5, to, y - 5, looks[i].colour,
				i == TURN ? looks[i].width : fmin(6, fmax(1.2, looks[i].width)),
				i == TURN ? " stroke-linecap=\"round\"" : "", x + 25, y,
				looks[i].label);
		x += width;
	}
	return y + 12;
}

static void write_axes(struct neap__text *out, const struct axes *x)
{
	double middle = x->y.from + HEIGHT / 2;
	neap__text_add(out,
		"<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" "
		"stroke=\"" NEAP__SVG_INK "\"/>\n"
		"<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">time (%s)</text>\n"
		"<text x=\"18\" y=\"%g\" text-anchor=\"middle\" "
		"transform=\"rotate(-90 18 %g)\">step</text>\n",
		x->x.from, x->y.from, x->x.size, x->y.size, LEFT + x->x.size / 2,
		x->y.from + HEIGHT + 42, x->unit_name, middle, middle);
	neap__svg_ticks(out, &x->x, &x->y);
}

/* Bands of the tiers, and the lines of the ticks behind the marks. */
static void write_lanes(struct neap__text *out, const struct neap_problem *p, const struct axes *x)
{
	neap__svg_ticks(out, &x->y, &x->x);
	for (int i = 0; i < p->ntiers; i++) {
		neap__text_add(out,
			"<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"24\" fill=\"" NEAP__SVG_BAND
			"\"/>"
			"<text x=\"%g\" y=\"%g\" text-anchor=\"end\">",
			LEFT, lane_y(x, i) - 12, x->x.size, LEFT - 8, lane_y(x, i) + 5);
		neap__svg_escaped(out, p->tiers[i].name[0] ? p->tiers[i].name : "slow");
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
			double y0 = lane ? lane_y(x, m->y0) + shift[look] : py(x, m->y0);
			double y1 = lane ? y0 : py(x, m->y1);
			neap__text_add(out, "<path d=\"M%.2f %.2fL%.2f %.2f\"/>\n", px(x, m->x0),
				y0, px(x, m->x1) + (cap ? 0.01 : 0), y1);
		}
		neap__text_add(out, "</g>\n");
	}
}

static struct axes scale(const struct drawing *d, const struct neap__clock *k, double top)
{
	static const struct {
		double unit;
		const char *name;
	} units[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}};
	double seconds = k->now > 0 ? (double)k->now : 1;
	double steps = fmax(1, (double)neap__last_state(&d->p->chain));
	struct axes x = {.x = {.from = LEFT, .size = WIDTH - LEFT - RIGHT},
		.y = {.high = steps, .from = top, .size = HEIGHT, .turned = 1, .whole = 1}};
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (i == 0 || seconds >= units[i].unit)
			x.unit = units[i].unit, x.unit_name = units[i].name;
	x.x.high = seconds / x.unit;
	x.bottom = d->p->ntiers ? lane_y(&x, d->p->ntiers - 1) + 12 : top + HEIGHT + 46;
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
	char head[NEAP__PLAIN_TEXT];
	int rc = collect(&d, &k, schedule);
	if (rc < 0)
		goto out;
	for (int64_t i = 0; i < d.count; i++)
		seen[d.marks[i].look]++;
	title_of(head, sizeof head, title, d.every);
	struct axes x = scale(&d, &k, write_head(NULL, head, seen));
	neap__svg_begin(&out, WIDTH, x.bottom + 12, head);
	write_head(&out, head, seen);
	write_lanes(&out, problem, &x);
	write_marks(&out, &d, &x);
	write_axes(&out, &x);
	neap__svg_end(&out);
	rc = out.error ? out.error : write(user, out.data, out.length);
out:
	neap__text_free(&out);
	free(d.marks);
	free(d.since);
	return rc;
}
