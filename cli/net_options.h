/* SPDX-License-Identifier: Apache-2.0 */
/* net_options.h: the options that train and compare share: the net, the loss, the sweep. */
#ifndef NEAP_CLI_NET_OPTIONS_H
#define NEAP_CLI_NET_OPTIONS_H

#include "cli.h"

#include <neap/train.h>

extern const char *const cli_resets[], *const cli_surrogates[], *const cli_readouts[],
									*const cli_precisions[],
										*const cli_learns[];

/* Choices land in ints first; cli_net_choices moves them into the options. */
struct cli_net_choices {
	int reset, surrogate, readout, precision, learn;
};
void cli_net_choices_from(struct cli_net_choices *choices, const struct neap_net_options *net);
void cli_net_choices_into(struct neap_net_options *net, const struct cli_net_choices *choices);

#define CLI_NET_OPTIONS(net, choices)                                                              \
	{"net", CLI_TEXT, &(net).spec, "SPEC", "layers from the input up", 0, 0, NULL, NULL},      \
		{"dt", CLI_TIME, &(net).dt, "TIME", "a step (default 1ms)", 1e-6, 10, NULL, NULL}, \
		{"reset", CLI_CHOICE, &(choices).reset, "KIND", "what a spike resets", 0, 0,       \
			cli_resets, NULL},                                                         \
		{"detach", CLI_FLAG, &(net).detach, NULL, "no gradient through the reset", 0, 0,   \
			NULL, NULL},                                                               \
		{"surrogate", CLI_CHOICE, &(choices).surrogate, "KIND", "derivative of a spike",   \
			0, 0, cli_surrogates, NULL},                                               \
		{"width", CLI_NUMBER, &(net).width, "X", "of the surrogate (default 0.5)", 1e-6,   \
			1e6, NULL, NULL},                                                          \
		{"height", CLI_NUMBER, &(net).height, "X", "of the triangle (default 1)", 1e-6,    \
			1e6, NULL, NULL},                                                          \
		{"support", CLI_NUMBER, &(net).support, "X", "cut the surrogate beyond (0: no)",   \
			0, 1e6, NULL, NULL},                                                       \
		{"threshold", CLI_NUMBER, &(net).threshold, "X", "of a spike (default 1)", 1e-6,   \
			1e6, NULL, NULL},                                                          \
		{"reset-value", CLI_NUMBER, &(net).reset_value, "X", "of a hard reset", -1e6, 1e6, \
			NULL, NULL},                                                               \
		{"tau", CLI_TIME, &(net).tau, "TIME", "membrane (default 20ms)", 1e-6, 1e6, NULL,  \
			NULL},                                                                     \
		{"tau-out", CLI_TIME, &(net).tau_out, "TIME", "readout (default 20ms)", 1e-6, 1e6, \
			NULL, NULL},                                                               \
		{"learn", CLI_CHOICE, &(choices).learn, "KIND",                                    \
			"beside weights: the time constants of each unit", 0, 0, cli_learns,       \
			NULL},                                                                     \
		{"euler", CLI_FLAG, &(net).euler, NULL, "decay 1 - dt/tau, not exp(-dt/tau)", 0,   \
			0, NULL, NULL},                                                            \
		{"delay", CLI_COUNT, &(net).delay, "N",                                            \
			"steps until a layer sees the layer below: 0 or 1", 0, 1, NULL, NULL},     \
		{"scale", CLI_NUMBER, &(net).scale, "X", "of input weights (default 0.5)", 0, 1e6, \
			NULL, NULL},                                                               \
		{"recurrent-scale", CLI_NUMBER, &(net).recurrent_scale, "X",                       \
			"of recurrent weights (default 0.3)", 0, 1e6, NULL, NULL},                 \
		{"density", CLI_NUMBER, &(net).density, "X", "share of connections kept", 1e-9, 1, \
			NULL, NULL},                                                               \
		{"dropout", CLI_NUMBER, &(net).dropout, "X",                                       \
			"share of hidden units that training keeps from the layer above", 0, 0.99, \
			NULL, NULL},                                                               \
		{"readout", CLI_CHOICE, &(choices).readout, "KIND", "outputs over time as one", 0, \
			0, cli_readouts, NULL},                                                    \
		{"precision", CLI_CHOICE, &(choices).precision, "KIND", "of the arithmetic", 0, 0, \
			cli_precisions, NULL},                                                     \
		{"dense", CLI_FLAG, &(net).dense, NULL, "dense tapes and kernels", 0, 0, NULL,     \
			NULL},                                                                     \
		{"group", CLI_COUNT, &(net).group, "N",                                            \
			"samples summed together (0: 8, of 64 and more 16; rnn, lstm, gru: 32)",   \
			0, 65536, NULL, NULL},                                                     \
	{                                                                                          \
		"threads", CLI_COUNT, &(net).threads, "N", "0: one a processor", 0, 1024, NULL,    \
			NULL                                                                       \
	}

#define CLI_LOSS_OPTIONS(loss, rates)                                                              \
	{"loss", CLI_TEXT, &(loss), "NAME", "cross-entropy or mse", 0, 0, NULL, NULL},             \
		{"rate-upper", CLI_NUMBER, &(rates).upper, "X",                                    \
			"spikes a step above which units are penalised", 0, 1, NULL, NULL},        \
		{"rate-weight", CLI_NUMBER, &(rates).upper_weight, "X", "of that penalty", 0, 1e9, \
			NULL, NULL},                                                               \
		{"rate-lower", CLI_NUMBER, &(rates).lower, "X",                                    \
			"spikes a step below which units are penalised", 0, 1, NULL, NULL},        \
		{"rate-lower-weight", CLI_NUMBER, &(rates).lower_weight, "X", "of that penalty",   \
			0, 1e9, NULL, NULL},                                                       \
		{"rate-l1", CLI_NUMBER, &(rates).l1, "X", "penalty on rates", 0, 1e9, NULL, NULL}, \
	{                                                                                          \
		"rate-l2", CLI_NUMBER, &(rates).l2, "X", "penalty on squared rates", 0, 1e9, NULL, \
			NULL                                                                       \
	}

#define CLI_SLOW_OPTIONS(sweep)                                                                    \
	{"memory", CLI_SIZE, &(sweep).memory, "BYTES",                                             \
		"budget of a sweep (default: half of what is free)", 1, 9e18, NULL, NULL},         \
		{"slow", CLI_TEXT, &(sweep).slow, "LIST",                                          \
			"slow memory: DIR|FILE|mem:SIZE,... fastest first; DIR+DIR: striped", 0,   \
			0, NULL, NULL},                                                            \
		{"inputs", CLI_SIZE, &(sweep).inputs, "BYTES",                                     \
			"bound on inputs of long samples, read in windows (default 16M)", 1, 9e18, \
			NULL, NULL},                                                               \
		{"slow-in-memory", CLI_FLAG, &(sweep).slow_in_memory, NULL,                        \
			"accept a directory in memory (tmpfs)", 0, 0, NULL, NULL},                 \
	{                                                                                          \
		"page-cache", CLI_FLAG, &(sweep).page_cache, NULL,                                 \
			"let slow files go through the page cache", 0, 0, NULL, NULL               \
	}

#define CLI_SWEEP_OPTIONS(sweep, chain)                                                            \
	CLI_SLOW_OPTIONS(sweep), CLI_PARAM_OPTIONS((sweep).params),                                \
		{"patience", CLI_LIMIT, &(sweep).patience, "TIME",                                 \
			"until slow memory that moves nothing is given up (default: 30s or 4 "     \
			"forward passes; 0: never)",                                               \
			0, 1e9, NULL, NULL},                                                       \
	{                                                                                          \
		"chain", CLI_TEXT, &(chain), "FILE",                                               \
			"costs as 'neap calibrate' measured them (default: measured anew)", 0, 0,  \
			NULL, NULL                                                                 \
	}

/*
 * Reads --chain FILE (NULL: none) into *costs and points sweep->costs there; lists are
 * refused: the steps of a sequence are alike. CLI_DONE or one line.
 */
int cli_costs_read(struct neap_sweep_settings *sweep, struct neap_problem *costs, const char *file,
	const char *command);

#endif
