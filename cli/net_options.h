/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_options.h: the options that train, compare and calibrate share: the net, the loss, the
 * sweep, the batch; and those of commands that evaluate, with the model that they name.
 */
#ifndef NEAP_CLI_NET_OPTIONS_H
#define NEAP_CLI_NET_OPTIONS_H

#include "cli.h"

#include <neap/train.h>

extern const char *const cli_resets[],
	*const cli_surrogates[],
		*const cli_readouts[],
			*const cli_precisions[],
				*const cli_products[],
					*const cli_maths[], *const cli_learns[], *const cli_inits[];
extern const struct cli_also cli_surrogate_aliases[];
/* The losses of neap_loss_at by name; NULL beyond the end. */
const char *cli_loss_name(int index);
/* The kinds of --encode, and "none"; NULL beyond the end. */
const char *cli_coding_name(int index);

/* Choices are parsed into ints, which cli_net_choices_into moves into the options. */
struct cli_net_choices {
	int reset, surrogate, readout, precision, math, products, learn, init;
	int net_given, scale_given, recurrent_scale_given, init_given;
	double beta, slope; /* in place of tau and width; 0: not given */
};
void cli_net_choices_from(struct cli_net_choices *choices, const struct neap_net_options *net);
/* CLI_DONE or one line. */
int cli_net_choices_into(
	struct neap_net_options *net, const struct cli_net_choices *choices, const char *command);

/* clang-format off */
#define CLI_DEVICE_OPTION(device) \
	{.name = "device", .kind = CLI_TEXT, .into = &(device), .argument = "NAME", \
		.help = "device that computes, such as cuda, cuda:1 or cuda:clusters=8; --memory then counts its bytes, and --slow takes " \
			"pinned:SIZE (default cpu: the processor)"}
#define CLI_COMPILE_OPTION(compile) \
	{.name = "compile-cells", .kind = CLI_FLAG, .into = &(compile), \
		.help = "compile cell files with the C compiler cc; the results are the same"}
#define CLI_NET_OPTIONS(net, choices_) \
	CLI_GROUP("Network"), \
	{.name = "net", .kind = CLI_TEXT, .into = &(net).spec, .argument = "SPEC", \
		.help = "layers from the input to the output; NAME is a built-in cell or a cell file, as in my.cell:256r,li " \
			"(default: lif:256r,li for spikes; gru:256,li for numbers and texts, unless an option of spiking cells " \
			"is given)", .given = &(choices_).net_given}, \
	{.name = "dt", .kind = CLI_TIME, .into = &(net).dt, .argument = "TIME", \
		.unit = "ms", \
		.help = "duration of a time step (default 1ms)", .low = 1e-6, .high = 10}, \
	{.name = "time-unit", .kind = CLI_TIME, .into = &(net).time_unit, .argument = "TIME", \
		.unit = "ms", .help = "time step for which weights, biases and surrogates are given; they are " \
			"rescaled to --dt (default 1ms; 0: no rescaling, and rates are per step)", .high = 10}, \
	{.name = "reset", .kind = CLI_CHOICE, .into = &(choices_).reset, .argument = "KIND", \
		.help = "effect of a spike on the membrane potential", .choices = cli_resets}, \
	{.name = "detach", .kind = CLI_FLAG, .into = &(net).detach, \
		.help = "stop the gradient at the reset"}, \
	{.name = "surrogate", .kind = CLI_CHOICE, .into = &(choices_).surrogate, \
		.argument = "KIND", .help = "surrogate derivative of a spike", .choices = cli_surrogates, \
		.also = cli_surrogate_aliases}, \
	{.name = "width", .kind = CLI_NUMBER, .into = &(net).width, .argument = "X", \
		.help = "width of the surrogate derivative, in units of the membrane potential (default 0.5)", .low = 1e-6, .high = 1e6}, \
	{.name = "slope", .kind = CLI_NUMBER, .into = &(choices_).slope, .argument = "X", \
		.help = "slope of the surrogate, 1/width; replaces --width (default: none)", \
		.low = 1e-6, .high = 1e6}, \
	{.name = "height", .kind = CLI_NUMBER, .into = &(net).height, .argument = "X", \
		.help = "height of the surrogates triangle, slayer and double_gaussian (default 1)", .low = 1e-6, .high = 1e6}, \
	{.name = "support", .kind = CLI_NUMBER, .into = &(net).support, .argument = "X", \
		.help = "distance from the threshold beyond which the surrogate derivative is 0, in units of " \
			"the membrane potential (default 0: no limit)", .high = 1e6}, \
	{.name = "threshold", .kind = CLI_NUMBER, .into = &(net).threshold, .argument = "X", \
		.help = "membrane potential above which a unit spikes (default 1; egru: 0.1)", .low = 1e-6, .high = 1e6}, \
	{.name = "reset-value", .kind = CLI_NUMBER, .into = &(net).reset_value, .argument = "X", \
		.help = "membrane potential after a hard reset", .low = -1e6, .high = 1e6}, \
	{.name = "tau", .kind = CLI_TIME, .into = &(net).tau, .argument = "TIME", \
		.unit = "ms", .help = "membrane time constant (default 20ms)", .low = 1e-6, .high = 1e6}, \
	{.name = "beta", .kind = CLI_NUMBER, .into = &(choices_).beta, .argument = "X", \
		.help = "membrane decay per step, exp(-dt/tau), between 0 and 1; replaces --tau (default: " \
			"none)", .low = 1e-9, .high = 1 - 1e-9}, \
	{.name = "tau-out", .kind = CLI_TIME, .into = &(net).tau_out, .argument = "TIME", \
		.unit = "ms", .zero = "none", \
		.help = "time constant over which the readout smooths its outputs; none or 0: no smoothing " \
			"(default: 20ms if spikes enter it and it gives one answer per sample, else none)", \
		.high = 1e6}, \
	{.name = "learn", .kind = CLI_CHOICE, .into = &(choices_).learn, .argument = "KIND", \
		.help = "parameters to learn in addition to the weights; tau: the time constants of each unit, omega and b of brf; all: also a and b of seadlif", .choices = cli_learns}, \
	{.name = "euler", .kind = CLI_FLAG, .into = &(net).euler, \
		.help = "use the Euler decay 1 - dt/tau instead of exp(-dt/tau)"}, \
	{.name = "delay", .kind = CLI_COUNT, .into = &(net).delay, .argument = "N", \
		.help = "delay of the input of each layer from the layer below in steps, 0 or 1; the key delay of a layer, as in lif:64:delay=0..20:learn, has longer and learned delays (default 0)", .high = 1}, \
	{.name = "init", .kind = CLI_CHOICE, .into = &(choices_).init, .argument = "RULE", \
		.help = "distribution of the initial weights: torch, that of PyTorch's layers; normal, that of " \
			"--scale and --recurrent-scale; auto, torch for rnn, lstm, gru, egru and a readout above " \
			"them or integrator unless a scale is given, normal for others", .choices = cli_inits, \
		.given = &(choices_).init_given}, \
	{.name = "scale", .kind = CLI_NUMBER, .into = &(net).scale, .argument = "X", \
		.help = "scale of the initial input weights (default 0.5)", .high = 1e6, \
		.given = &(choices_).scale_given}, \
	{.name = "recurrent-scale", .kind = CLI_NUMBER, .into = &(net).recurrent_scale, \
		.argument = "X", .help = "scale of the initial recurrent weights (default 0.3)", .high = 1e6, \
		.given = &(choices_).recurrent_scale_given}, \
	{.name = "density", .kind = CLI_NUMBER, .fraction = 1, .into = &(net).density, .argument = "X", \
		.help = "fraction of connections that exist, above 0 and at most 1", .low = 1e-9, .high = 1}, \
	{.name = "dropout", .kind = CLI_NUMBER, .fraction = 1, .into = &(net).dropout, .argument = "P", \
		.help = "fraction of each hidden layer's units whose output is dropped in training, the same " \
			"units for a whole sequence (default 0)", \
		.high = 0.99}, \
	{.name = "readout", .kind = CLI_CHOICE, .into = &(choices_).readout, .argument = "KIND", \
		.help = "reduction of the outputs over time to one answer; auto: step for targets per step; sum " \
			"for classes of spiking layers; last for rnn, lstm, gru and integrator if the inputs are numbers; else mean", .choices = cli_readouts}, \
	{.name = "precision", .kind = CLI_CHOICE, .into = &(choices_).precision, \
		.argument = "KIND", .help = "floating-point type of states, weights and gradients; bf16: float, but rnn, lstm and gru " \
			"multiply numbers rounded to bfloat16 (needs AVX512-BF16)", .choices = cli_precisions}, \
	{.name = "math", .kind = CLI_CHOICE, .into = &(choices_).math, \
		.argument = "KIND", .help = "with --device cuda, products of rnn, lstm, gru and egru; exact: as on the CPU; tf32x3: on " \
			"tensor cores, about as exact; bf16: from numbers rounded to bfloat16", .choices = cli_maths}, \
	{.name = "products", .kind = CLI_CHOICE, .into = &(choices_).products, \
		.argument = "KIND", .help = "order of the sums of products with weights; tiles: that of AMX, which changes rounding: " \
			"dense products of many spikes in float, and products in bf16 (needs AVX-512, is made for AMX; default " \
			"chains)", .choices = cli_products}, \
	{.name = "dense", .kind = CLI_FLAG, .into = &(net).dense, \
		.help = "use dense tapes and kernels, also for spikes"}, \
	{.name = "group", .kind = CLI_COUNT, .into = &(net).group, .argument = "N", \
		.help = "samples whose weight gradients are summed together; affects rounding (default 0: 8, " \
			"16 for batches of 64 or more, 32 for rnn, lstm, gru, integrator)", \
		.high = 65536}, \
	{.name = "threads", .kind = CLI_COUNT, .into = &(net).threads, .argument = "N", \
		.help = "compute threads (default 0: one per processor)", .high = 1024, \
		.wrong = "0 uses one per processor"}, \
	CLI_COMPILE_OPTION((net).compile_cells), \
	CLI_DEVICE_OPTION((net).device)

#define CLI_LOSS_OPTIONS(loss, rates) \
	CLI_GROUP("Loss and penalties on rates"), \
	{.name = "loss", .kind = CLI_TEXT, .into = &(loss), .argument = "NAME", \
		.help = "loss function (default: mse for targets that are numbers, else cross-entropy)", \
		.names = cli_loss_name}, \
	{.name = "rate-upper", .kind = CLI_RATE, .into = &(rates).upper, .argument = "RATE", \
		.help = "firing rate above which a unit is penalised; a number without a unit is in spikes " \
			"per ms", .high = 1}, \
	{.name = "rate-weight", .kind = CLI_NUMBER, .into = &(rates).upper_weight, \
		.argument = "X", .help = "weight of the penalty above --rate-upper", .high = 1e9}, \
	{.name = "rate-lower", .kind = CLI_RATE, .into = &(rates).lower, .argument = "RATE", \
		.help = "firing rate below which a unit is penalised (default: none)", .high = 1}, \
	{.name = "rate-lower-weight", .kind = CLI_NUMBER, .into = &(rates).lower_weight, \
		.argument = "X", .help = "weight of the penalty below --rate-lower", .high = 1e9}, \
	{.name = "rate-l1", .kind = CLI_NUMBER, .into = &(rates).l1, .argument = "X", \
		.help = "weight of an L1 penalty on firing rates", .high = 1e9}, \
	{.name = "rate-l2", .kind = CLI_NUMBER, .into = &(rates).l2, .argument = "X", \
		.help = "weight of an L2 penalty on firing rates", .high = 1e9}

#define CLI_SLOW_OPTIONS(sweep) \
	CLI_GROUP("Memory and plan"), \
	{.name = "memory", .kind = CLI_SIZE, .into = &(sweep).memory, .argument = "BYTES", \
		.help = "memory budget of a forward and backward pass (default: half of the free memory)", .low = 1}, \
	{.name = "slow", .kind = CLI_TEXT, .into = &(sweep).slow, .argument = "LIST", \
		.help = "slow memory for offloading: DIR|FILE|mem:SIZE,... fastest first; DIR+DIR stripes " \
			"over both (default: none)"}, \
	{.name = "inputs", .kind = CLI_SIZE, .into = &(sweep).inputs, .argument = "BYTES", \
		.help = "limit on buffered inputs; longer samples are read in windows (default: 16M, or more with a large budget)", \
		.low = 1}, \
	{.name = "slow-in-memory", .kind = CLI_FLAG, .into = &(sweep).slow_in_memory, \
		.help = "allow a directory in memory (tmpfs) for --slow"}, \
	{.name = "page-cache", .kind = CLI_FLAG, .into = &(sweep).page_cache, \
		.help = "use the page cache for --slow instead of direct I/O"}

/* With CLI_PARAM_OPTIONS: CLI_PARAMS is (sweep).params. */
#define CLI_SWEEP_OPTIONS(sweep, chain) \
	CLI_SLOW_OPTIONS(sweep), CLI_PARAM_OPTIONS \
	{.name = "memory-total", .kind = CLI_SIZE, .into = &(sweep).memory_total, \
		.argument = "BYTES", \
		.help = "memory limit for the whole process; the budget of a forward and backward pass is " \
			"what weights, optimizer and data leave (default: none)", \
		.low = 1}, \
	{.name = "patience", .kind = CLI_LIMIT, .into = &(sweep).patience, .argument = "TIME", \
		.help = "time without progress after which slow memory, or ranks that do not answer, are " \
			"given up (default: 30s or 4 forward passes, ranks never; 0: never)", \
		.bare = "It is the time to wait for slow memory, such as 30s; training does not stop " \
			"early, set --epochs instead", \
		.high = 1e9}, \
	{.name = "no-replan", .kind = CLI_FLAG, .into = &(sweep).no_replan, \
		.help = "do not replan when measured times differ from the planned ones (implied by --chain)"}, \
	{.name = "chain", .kind = CLI_TEXT, .into = &(chain), .argument = "FILE", \
		.help = "chain file of 'neap calibrate' with the costs of steps and transfers (default: " \
			"measured at the start)"}

/* How numbers become spikes; `encode` is a text. The defaults are those of src/data/coding. */
#define CLI_ENCODE_OPTION(encode) \
	{.name = "encode", .kind = CLI_TEXT, .into = &(encode), .argument = "KIND[:KEY=X,...]", \
		.keys = 1, .names = cli_coding_name, \
		.help = "convert inputs that are numbers into spikes, after normalisation (default: none, " \
			"they are input currents). Keys and their defaults: delta, threshold=0.1 of a " \
			"change, off=1 (decreases have their own channels; 0: none), padding=0; latency, " \
			"gain=0.25, offset=0.5, threshold=0.01, linear=1, tau=0 steps, clip=0, period=0 " \
			"steps (0: the sample); rate, gain=0.25, offset=0.5 (gain x + offset is the spike " \
			"probability per step), seed (that of the run); threshold, level=0, off=1; all " \
			"kinds: repeat=1, steps per row. KIND"}

/* How data is read, and the net that takes it: of train, compare and calibrate alike. */
#define CLI_DATA_OPTIONS(o) \
	{.name = "channels", .kind = CLI_COUNT, .into = &(o).net.inputs, .argument = "N", \
		.help = "input channels of the network, if more are to come than DATA has (default: those of " \
			"DATA)", \
		.low = 1, .high = 65536}, \
	{.name = "classes", .kind = CLI_COUNT, .into = &(o).net.classes, .argument = "N", \
		.help = "classes of the network, if more are to come than DATA has (default: those of DATA)", .low = 1, .high = 65536, \
		.wrong = "The names of the classes are in DATA (neap encode --classes FILE); remove --classes"}, \
	{.name = "shape", .kind = CLI_TEXT, .into = &(o).net.shape, .argument = "CxHxW", \
		.help = "channels, height and width of the inputs, such as 2x34x34, for a network with conv or " \
			"pool (default: of the sensor, in files of neap encode)"}, \
	{.name = "next-step", .kind = CLI_FLAG, .into = &(o).next, \
		.help = "predict the inputs of the next step from all steps before it (inputs that are " \
			"numbers)"}, \
	{.name = "no-normalise", .kind = CLI_FLAG, .into = &(o).no_normalise, \
		.help = "do not normalise inputs that are numbers (default: mean 0, standard deviation 1 per " \
			"feature)"}, \
	CLI_ENCODE_OPTION((o).encode)

/* Which batch of real data `o` (compare, calibrate) looks at. */
#define CLI_BATCH_OPTIONS(o, seed) \
	CLI_GROUP("Batch"), \
	{.name = "batch", .kind = CLI_COUNT, .into = &(o).batch, .argument = "N", \
		.help = "samples per batch (default 32)", .low = 1, .high = CLI_BATCH_MOST}, \
	{.name = "max-steps", .kind = CLI_INT, .into = &(o).max_steps, .argument = "N", \
		.help = "truncate samples to this number of steps (default 0: no limit)", .high = 1e12}, \
	{.name = "first", .kind = CLI_INT, .into = &(o).first, .argument = "N", \
		.help = "index of the batch in the shuffled data (default 0)", .high = 1e12}, \
	CLI_DATA_OPTIONS(o), \
	{.name = "seed", .kind = CLI_INT, .into = &(seed), .argument = "N", \
		.help = "seed of the initial weights and the shuffling", .high = CLI_STEPS_MOST}
/* clang-format on */

/* clang-format off */
/* Of commands that evaluate; `o` is a struct neap_eval_options, `given` a struct cli_given_model. */
#define CLI_EVAL_OPTIONS(o, given_) \
	CLI_GROUP("Model and evaluation"), \
	{.name = "from", .kind = CLI_TEXT, .into = &(given_).from, .argument = "FILE", \
		.help = "model to use instead of RUN: a run, a .safetensors file or a NIR graph (default: " \
			"RUN)"}, \
	{.name = "dt", .kind = CLI_TIME, .into = &(o).dt, .argument = "TIME", \
		.unit = "ms", .help = "time step of a NIR graph that does not specify one (default: none)", .low = 1e-9, \
		.high = 10}, \
	{.name = "reset", .kind = CLI_CHOICE, .into = &(given_).reset, .argument = "KIND", \
		.help = "reset of the membrane in a NIR graph (default: as the graph specifies, or hard)", \
		.choices = cli_resets, .given = &(given_).reset_given}, \
	{.name = "batch", .kind = CLI_COUNT, .into = &(o).batch, .argument = "N", \
		.help = "samples per batch (default 64)", .low = 1, .high = CLI_BATCH_MOST}, \
	{.name = "threads", .kind = CLI_COUNT, .into = &(o).threads, .argument = "N", \
		.help = "compute threads (default 0: one per processor)", .high = 1024, \
		.wrong = "0 uses one per processor"}, \
	CLI_COMPILE_OPTION((o).compile_cells), \
	CLI_DEVICE_OPTION((o).device)
/* clang-format on */

/* What these name: the model by --from, and its reset. */
struct cli_given_model {
	const char *from;
	int reset, reset_given;
	enum neap_reset kind;
};
/* Refuses a run or a model where a data set is asked for. CLI_DONE or one line. */
int cli_refuse_run(const char *data, const char *command);
/* neap_eval_options.say: a line on standard error, unless --quiet hides it. */
void cli_say_line(void *user, const char *line);
/*
 * Puts RUN and the first DATA, or --from and DATA, and the reset into the options; with `several`
 * more DATA may follow. CLI_DONE or one line.
 */
int cli_take_model(struct neap_eval_options *o, struct cli_given_model *given, int parsed,
	int several, const char *const *named, const char *command);

/*
 * Reads --chain FILE (NULL: none) into *costs and points sweep->costs there; lists are
 * refused: the steps of a sequence are alike. If the device of `net` is given without clusters, it
 * gets those that were fastest when the file was measured. CLI_DONE or one line.
 */
int cli_costs_read(struct neap_sweep_settings *sweep, struct neap_net_options *net,
	struct neap_problem *costs, const char *file, const char *command);

#endif
