/* SPDX-License-Identifier: Apache-2.0 */
/* action_text.c: actions as lines of text, and back. */
#include "plan/text/action_text.h"

#include <inttypes.h>
#include <string.h>
#include "plan/text/plan_keys.h"
#include "base/print.h"

/* "state at 40", "tape 40 50" or "log 40 50". */
static int show_payload(char *room, size_t n, const struct neap_action *a)
{
	const char *name = a->payload == NEAP_LOG ? "log" : "tape";
	if (a->payload == NEAP_STATE)
		return neap__print(room, n, " state at %" PRId64, a->t0);
	if (a->kind == NEAP_LOAD || a->kind == NEAP_FORGET)
		return neap__print(room, n, " %s at %" PRId64, name, a->t0);
	return neap__print(room, n, " %s %" PRId64 " %" PRId64, name, a->t0, a->t1);
}

const char *neap_action_show(char room[NEAP_ACTION_TEXT], const struct neap_action *a)
{
	if (!room || !a)
		return NULL;
	size_t most = NEAP_ACTION_TEXT;
	size_t n = (size_t)neap__print(room, most, "%s", neap_action_name(a->kind));
	int range = a->kind == NEAP_ADVANCE || a->kind == NEAP_RECORD || a->kind == NEAP_BACKWARD;
	int moves = a->kind == NEAP_PUT || a->kind == NEAP_GET;
	if (range)
		n += (size_t)neap__print(room + n, most - n, "%s %" PRId64 " %" PRId64,
			a->payload == NEAP_LOG ? " log" : "", a->t0, a->t1);
	else if (a->kind != NEAP_TURN && a->kind != NEAP_WAIT)
		n += (size_t)show_payload(room + n, most - n, a);
	if (moves || a->kind == NEAP_FORGET)
		n += (size_t)neap__print(
			room + n, most - n, " tier %d place %" PRId64, a->tier, a->place);
	if (moves || a->kind == NEAP_WAIT)
		n += (size_t)neap__print(room + n, most - n, " ticket %d", a->ticket);
	if (range || a->kind == NEAP_TURN || a->kind == NEAP_WAIT || a->kind == NEAP_FORGET ||
		a->payload != NEAP_STATE)
		return room;
	if (a->slot == NEAP_LIVE)
		neap__print(room + n, most - n, " live");
	else
		neap__print(room + n, most - n, " slot %" PRId64, a->slot);
	return room;
}

/* The next words of a line. */
struct words {
	const char *at;
};

static int word(struct words *w, const char *text)
{
	size_t n = strlen(text);
	const char *at = w->at + (*w->at == ' ');
	if (strncmp(at, text, n) != 0 || (at[n] != ' ' && at[n] != '\0'))
		return 0;
	w->at = at + n;
	return 1;
}

static int number(struct words *w, int64_t *value, int64_t most)
{
	char digits[24];
	const char *at = w->at + (*w->at == ' ');
	size_t n = strcspn(at, " ");
	if (n >= sizeof digits)
		return 0;
	memcpy(digits, at, n);
	digits[n] = '\0';
	if (neap__read_count(value, digits) < 0 || *value > most)
		return 0;
	w->at = at + n;
	return 1;
}

static int parse_payload(struct words *w, struct neap_action *a)
{
	int at_step = a->kind == NEAP_LOAD || a->kind == NEAP_FORGET;
	if (word(w, "state"))
		at_step = 1;
	else if (a->kind != NEAP_SAVE && a->kind != NEAP_LOAD && word(w, "log"))
		a->payload = NEAP_LOG;
	else if (!word(w, "tape") || a->kind == NEAP_SAVE)
		return 0;
	else
		a->payload = NEAP_TAPE;
	if (!at_step)
		return number(w, &a->t0, INT64_MAX) && number(w, &a->t1, INT64_MAX);
	if (!word(w, "at") || !number(w, &a->t0, INT64_MAX))
		return 0;
	a->t1 = a->t0;
	return 1;
}

static int parse_slot(struct words *w, struct neap_action *a)
{
	int moves = a->kind == NEAP_PUT || a->kind == NEAP_GET;
	if (a->payload != NEAP_STATE)
		return 1;
	if (moves && word(w, "live")) {
		a->slot = NEAP_LIVE;
		return 1;
	}
	return word(w, "slot") && number(w, &a->slot, INT64_MAX);
}

static int parse_place(struct words *w, struct neap_action *a)
{
	int64_t tier;
	if (!word(w, "tier") || !number(w, &tier, NEAP_TIERS_MAX) || !word(w, "place") ||
		!number(w, &a->place, INT64_MAX))
		return 0;
	a->tier = (uint16_t)tier;
	return 1;
}

static int parse_ticket(struct words *w, struct neap_action *a)
{
	int64_t ticket;
	if (!word(w, "ticket") || !number(w, &ticket, NEAP_TICKETS - 1))
		return 0;
	a->ticket = (int32_t)ticket;
	return 1;
}

static int parse(struct words *w, struct neap_action *a)
{
	switch (a->kind) {
	case NEAP_ADVANCE:
	case NEAP_RECORD:
		if (word(w, "log"))
			a->payload = NEAP_LOG;
		/* fall through */
	case NEAP_BACKWARD:
		return number(w, &a->t0, INT64_MAX) && number(w, &a->t1, INT64_MAX);
	case NEAP_TURN:
		return 1;
	case NEAP_WAIT:
		return parse_ticket(w, a);
	case NEAP_FORGET:
		return parse_payload(w, a) && parse_place(w, a);
	case NEAP_PUT:
	case NEAP_GET:
		return parse_payload(w, a) && parse_place(w, a) && parse_ticket(w, a) &&
		       parse_slot(w, a);
	default:
		return parse_payload(w, a) && parse_slot(w, a);
	}
}

int neap__action_parse(struct neap_action *action, const char *line)
{
	struct words w = {line};
	*action = (struct neap_action){0};
	for (int kind = 0; kind < NEAP_ACTION_KINDS; kind++)
		if (word(&w, neap_action_name(kind))) {
			action->kind = (uint8_t)kind;
			return parse(&w, action) && *w.at == '\0' ? 0 : -1;
		}
	return -1;
}
