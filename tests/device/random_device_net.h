/* SPDX-License-Identifier: Apache-2.0 */
/* random_device_net.h: networks by chance with all that devices compute, as texts. */
#ifndef NEAP_RANDOM_DEVICE_NET_H
#define NEAP_RANDOM_DEVICE_NET_H

#include <neap/net.h>

#include "device/kernels/kernels.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a number below `below`. */
static inline uint32_t draw_below(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % below;
}

/* The number of the first random net: that of NEAP_SEED, or 0. */
static inline uint32_t first_seed(void)
{
	const char *seed = getenv("NEAP_SEED");

	return seed ? (uint32_t)atoi(seed) : 0;
}

/*
 * Writes the keys of a drawn surrogate, with or without an end of its support: ":surrogate=...".
 * Returns the characters written.
 */
static inline int draw_surrogate(char *to, size_t room, uint32_t *state)
{
	static const char *const names[] = {NEAP_SURROGATE_TABLE(NEAP_CHOICE_NAME)};
	const char *name = names[draw_below(state, DEVICE_SURROGATES)];
	const char *support = draw_below(state, 3) ? "" : ":support=0.7";

	return snprintf(to, room, ":surrogate=%s%s", name, support);
}

/* The key of the delays of a layer. */
static inline size_t add_delay(char *spec, size_t room, uint32_t *state)
{
	int least = (int)draw_below(state, 5),
	    more = (int)draw_below(state, draw_below(state, 2) ? 6 : 100);

	switch (draw_below(state, 4)) {
	case 0:
		return (size_t)snprintf(spec, room, ":delay=1");
	case 1:
		return (size_t)snprintf(spec, room, ":delay=%d", least + more);
	default:
		return (size_t)snprintf(spec, room, ":delay=%d..%d%s", least, least + 1 + more,
			draw_below(state, 2) ? ":learn" : "");
	}
}

static inline void add_layer(char *spec, size_t room, uint32_t *state, int is_dense)
{
	static const char *const cells[] = {
		"lif", "lif", "cubalif", "alif", "adlif", "rnn", "lstm", "gru", "egru"};
	static const char *const resets[] = {"subtract", "zero", "hard", "soft"};
	uint32_t cell = is_dense ? 5 + draw_below(state, 4) : draw_below(state, 5);
	size_t used = strlen(spec);
	int units = 1 + (int)draw_below(state, draw_below(state, 6) ? 20 : 70);

	used += (size_t)snprintf(spec + used, room - used, "%s:%d%s:scale=%d", cells[cell], units,
		is_dense || draw_below(state, 2) ? "" : "r", 1 + (int)draw_below(state, 4));
	if (cell < 2 && draw_below(state, 2))
		used += (size_t)snprintf(
			spec + used, room - used, ":reset=%s", resets[draw_below(state, 4)]);
	if (!is_dense && draw_below(state, 4) == 0)
		used += (size_t)snprintf(spec + used, room - used, ":detach=1");
	if (!is_dense && draw_below(state, 4) == 0)
		used += (size_t)snprintf(spec + used, room - used, ":width=3");
	if (!is_dense && draw_below(state, 3) == 0)
		used += (size_t)snprintf(spec + used, room - used, ":%s",
			draw_below(state, 3) ? "learn=tau" : "tau=3ms..30ms");
	if (cell != 5 && cell != 6 && cell != 7 &&
		draw_below(state, 2)) /* these have no threshold */
		used += (size_t)draw_surrogate(spec + used, room - used, state);
	if (draw_below(state, 3) == 0)
		used += (size_t)snprintf(
			spec + used, room - used, ":density=0.%d", 1 + (int)draw_below(state, 9));
	if (strchr(spec, ',') && draw_below(state, 3) == 0)
		used += is_dense ? (size_t)snprintf(spec + used, room - used, ":delay=1")
				 : add_delay(spec + used, room - used, state);
	if (draw_below(state, 3) == 0)
		used += (size_t)snprintf(
			spec + used, room - used, ":dropout=0.%d", 1 + (int)draw_below(state, 9));
	snprintf(spec + used, room - used, ",");
}

/* Draws the text of a net; returns whether its layers are of rnn, lstm, gru and egru. */
static inline int random_device_net(char *spec, size_t room, uint32_t *state)
{
	int is_dense = draw_below(state, 3) == 0;

	for (uint32_t layers = 1 + draw_below(state, 3); layers > 0; layers--)
		add_layer(spec, room, state, is_dense);
	strcat(spec, draw_below(state, 3) ? "li" : "li:tau=none");
	if (draw_below(state, 3) == 0 && is_dense)
		strcat(spec, ":delay=1");
	else if (!is_dense && draw_below(state, 3) == 0)
		add_delay(spec + strlen(spec), room - strlen(spec), state);
	if (!strstr(spec, "none") && draw_below(state, 3) == 0)
		strcat(spec, ":learn=tau");
	if (draw_below(state, 4) == 0)
		strcat(spec, ":density=0.4");
	return is_dense;
}

#endif
