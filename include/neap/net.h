/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h: recurrent and spiking networks as a chain of time steps: cells, layers and readout, with
 * forward steps (with or without a tape) and backward steps over any range. A network does not know
 * about schedules: its step functions are the callbacks that sweep.h requires of a model.
 *
 *     struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
 *     o.spec = "lif:256r,li";
 *     o.inputs = 128;
 *     o.classes = 10;
 *     struct neap_net *net;
 *     neap_net_create(&net, &o);
 *     neap_net_begin(net, batch, &objective);      a batch of data.h
 *     ... neap_net_advance, record, turn, backward over all steps ...
 *     neap_net_end(net);                           gradients are complete
 */
#ifndef NEAP_NET_H
#define NEAP_NET_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>
#include <neap/data.h>
#include <neap/peers.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Choices and their names in specifications, settings and options: X(CHOICE, name, meaning), in the
 * order of the enum that is defined from them. NEAP_CHOICE_NAME makes a list of the names.
 */
/* clang-format off */
#define NEAP_PRECISION_TABLE(X) \
	X(NEAP_FLOAT, float, "32 bits") \
	X(NEAP_DOUBLE, double, "64 bits") \
	X(NEAP_BF16, bf16, "32 bits; rnn, lstm and gru multiply numbers rounded to bfloat16")

/* How devices compute the products of layers of rnn, lstm, gru and egru. */
#define NEAP_MATH_TABLE(X) \
	X(NEAP_MATH_EXACT, exact, "bit-identical to the CPU's") \
	X(NEAP_MATH_TF32X3, tf32x3, "on tensor cores, three TF32 products each: about as exact as float") \
	X(NEAP_MATH_BF16, bf16, "on tensor cores, from numbers rounded to bfloat16")
/* Order of the sums of products with weights. */
#define NEAP_PRODUCTS_TABLE(X) \
	X(NEAP_CHAINS, chains, "one term after the other") \
	X(NEAP_TILES, tiles, "up to 32 terms at a time, as the tiles of AMX do")

/* Reset of the membrane potential after a spike. */
#define NEAP_RESET_TABLE(X) \
	X(NEAP_RESET_SUBTRACT, subtract, "minus threshold, one step later (snnTorch)") \
	X(NEAP_RESET_ZERO, zero, "to zero, one step later") \
	X(NEAP_RESET_HARD, hard, "to reset_value at once (SpikingJelly, Norse, NIR)") \
	X(NEAP_RESET_SOFT, soft, "minus threshold at once")

/* Surrogate derivative of a spike at x = membrane - threshold; k = 1/width. */
#define NEAP_SURROGATE_TABLE(X) \
	X(NEAP_TRIANGLE, triangle, "height max(0, 1 - |x|/width): compact") \
	X(NEAP_BOXCAR, boxcar, "1/(2 width) [|x| <= width]: compact") \
	X(NEAP_SUPERSPIKE, superspike, "1/(1 + k|x|)^2") \
	X(NEAP_SIGMOID, sigmoid, "k s(1 - s), s = 1/(1 + exp(-k x))") \
	X(NEAP_ATAN, atan, "(k/2)/(1 + (pi k x/2)^2)") \
	X(NEAP_GAUSSIAN, gaussian, "exp(-x^2/(2 width^2))/(width sqrt(2 pi))") \
	X(NEAP_SLAYER, slayer, "height exp(-|x|/width)") \
	X(NEAP_DOUBLE_GAUSSIAN, double_gaussian, "height (1.15 g(width) - 0.3 g(6 width)), g the gaussian")

/* Names of surrogates in snnTorch. */
#define NEAP_SURROGATE_ALIAS_TABLE(X) \
	X(NEAP_SUPERSPIKE, fast_sigmoid) \
	X(NEAP_TRIANGLE, triangular)

/* Parameters that a layer learns in addition to its weights. */
#define NEAP_LEARN_TABLE(X) \
	X(NEAP_LEARN_NONE, none, "nothing") \
	X(NEAP_LEARN_TAU, tau, "the time constants of its cell, of each unit; omega and b of brf") \
	X(NEAP_LEARN_ALL, all, "these, and a and b of seadlif")

/* Distribution of the initial weights and biases of a layer. */
#define NEAP_INIT_TABLE(X) \
	X(NEAP_INIT_NORMAL, normal, "normal, deviation scale/sqrt(inputs), or recurrent_scale/sqrt(units); biases 0") \
	X(NEAP_INIT_AUTO, auto, "torch for rnn, lstm, gru, egru and a readout above them, else normal") \
	X(NEAP_INIT_TORCH, torch, "uniform in +-1/sqrt(units), or +-1/sqrt(inputs) of other cells and readouts; biases too")

/* Reduction of the outputs over time to one prediction. */
#define NEAP_READOUT_TABLE(X) \
	X(NEAP_READ_MEAN, mean, "mean over the sample's own steps") \
	X(NEAP_READ_SUM, sum, "sum over them") \
	X(NEAP_READ_LAST, last, "the last step's") \
	X(NEAP_READ_MAX, max, "largest over time, each output for itself") \
	X(NEAP_READ_STEP, step, "a loss at every step, averaged") \
	X(NEAP_READ_SOFTMAX, softmax, "sum over time of the softmax of the outputs") \
	X(NEAP_READ_AUTO, auto, "sum after layers that spike; last after rnn, lstm and gru if inputs are numbers; else mean")
/* clang-format on */

#define NEAP_CHOICE_NAME(choice, name, meaning) #name,
#define NEAP_X(choice, name, meaning) choice,
/*
 * Floating-point type of the states and weights: NEAP_PRECISION_TABLE lists the values. With
 * NEAP_BF16 all numbers are floats, and the dense products of layers of rnn, lstm and gru round
 * their factors to bfloat16; neap_net_create refuses other cells, and processors without
 * AVX512-BF16 (NEAP_EUSAGE).
 */
enum neap_precision { NEAP_PRECISION_TABLE(NEAP_X) };
/* How devices compute products of layers of rnn, lstm, gru and egru: NEAP_MATH_TABLE lists the
 * values. */
enum neap_math { NEAP_MATH_TABLE(NEAP_X) };
/*
 * Order of the sums of products with weights: NEAP_PRODUCTS_TABLE lists the values. NEAP_TILES
 * changes the rounding of results, and is the same on all processors that have it: in
 * float, products with many spikes or many gradients are dense, with weights as sums of three
 * bfloat16 numbers; with NEAP_BF16, products of the forward and backward pass add up to 32 terms at
 * a time. neap_net_create refuses NEAP_DOUBLE, networks without such products, and processors
 * without AVX-512 (NEAP_EUSAGE).
 */
enum neap_products { NEAP_PRODUCTS_TABLE(NEAP_X) };
/* Reset of the membrane potential after a spike: NEAP_RESET_TABLE lists the values. */
enum neap_reset { NEAP_RESET_TABLE(NEAP_X) };
/* Surrogate derivative of a spike: NEAP_SURROGATE_TABLE lists the values. */
enum neap_surrogate { NEAP_SURROGATE_TABLE(NEAP_X) };
/* Parameters that a layer learns in addition to its weights: NEAP_LEARN_TABLE lists the values. */
enum neap_learn { NEAP_LEARN_TABLE(NEAP_X) };
/* Distribution of the initial weights: NEAP_INIT_TABLE lists the values. */
enum neap_init { NEAP_INIT_TABLE(NEAP_X) };
/* Reduction of the outputs over time to one prediction: NEAP_READOUT_TABLE lists the values. */
enum neap_readout { NEAP_READOUT_TABLE(NEAP_X) NEAP_READOUTS };
#undef NEAP_X

/*
 * Options of a network. `spec` lists the layers from the input up, separated by commas:
 * NAME[:SIZE[r]][:KEY=VALUE]... `r` makes a layer recurrent; the last layer is a readout (`li`)
 * whose size is the number of classes. Keys override the options below for one layer: reset,
 * detach, tau, learn, surrogate, width, height, support, threshold, reset_value, density, init,
 * scale, delay, from, dropout. Times have the unit s, ms, us or ns. For li, only tau (0 and none:
 * no smoothing), learn, init, scale (default 1), density (1), delay and from apply; recurrent_scale
 * is also a key. Keys in the notation of other packages: beta and alpha, the decay per step of a
 * membrane or a current (tau, tau_syn), and slope (1/width).
 *
 * from=input+layer0 lists the layers that a layer receives instead of the layer below: hidden
 * layers below it, or above it, whose outputs arrive one step later. Its weights have the rows of
 * all sources, in the order input, layer0, layer1, ...
 *
 * Keys of a convolution, in layers of spiking cells: conv (height x width of the kernel, "5" or
 * "3x5"), channels, stride, pad, dilation, groups; the number of units follows from these. pool
 * (height x width) pools what a spiking layer or a readout receives, by pooling=sum, max or avg, in
 * windows pool_stride apart (default: pool) with padding pool_pad. conv_pool pools the sums of the
 * convolution, before the bias is added, by conv_pooling=sum, avg or max; conv_pool_stride and
 * conv_pool_pad are keys too.
 * norm=batch normalises the products of a layer of spiking cells per channel, or per unit, by the
 * running statistics of the batches before (tensors norm_scale, norm_mean and norm_variance).
 * shape (CHANNELSxHEIGHTxWIDTH of what the layer receives) need not be given if the layer below is
 * a convolution, or in the first layer if the option `shape` is set. The units of a convolution are
 * numbered (y * width + x) * channels + channel.
 *
 * A parameter of a unit (tau, tau_syn, tau_adapt; a and b of seadlif; omega and b of brf) may be a
 * range LOW..HIGH, from which each unit's value is drawn by the seed.
 *
 * Spiking cells are lif, cubalif (key tau_syn, default 5ms), alif (tau_adapt 100ms, adapt 0.1),
 * adlif (tau_adapt 100ms, a 0.1, b 0.2) and seadlif (tau_adapt 100ms, a 1, b 1). All but lif and
 * seadlif, which resets to zero at once, reset by subtraction one step later; cubalif resets at
 * once if its key `reset` is hard or soft. brf (omega 50, b 20 per second, tau_adapt 10ms)
 * oscillates, has no tau, and is not reset. integrator has no threshold; it outputs its
 * membrane potential. Gated cells are rnn (activation=tanh or relu),
 * lstm, gru and egru; they are always recurrent, and have no tau and no reset (docs/cells.md has
 * their equations). For outputs that are numbers, rates and spikes below mean the average output.
 * Example: "lif:256r:tau=10ms,lif:128:reset=hard,li:tau=20ms".
 */
struct neap_net_options {
	uint32_t size; /* sizeof(struct neap_net_options) */
	enum neap_precision precision;
	/*
	 * NULL: gru:256,li if the inputs are `values`, lif:256r,li if they are spikes or an option
	 * is given that only spiking cells have (tau, reset, surrogate and so on). neap_train and
	 * neap_compare choose gru:256,li for texts as well, and a run that is resumed keeps its
	 * network.
	 */
	const char *spec;
	int inputs, classes;
	double dt; /* seconds per step */
	uint64_t seed;
	enum neap_reset reset;
	int detach; /* 1: no gradient through the reset */
	enum neap_surrogate surrogate;
	double width, height;
	double support;	  /* cutoff: the surrogate is 0 for |x| > support; 0: no cutoff */
	double threshold; /* 0: 1, or 0.1 for egru */
	double reset_value;
	double tau; /* membrane time constant in seconds */
	/*
	 * Time constant of the readout's smoothing in seconds; 0: none. NEAP_TAU_OUT_AUTO: 20 ms if
	 * its inputs are spikes and it makes one prediction per sample or learns its time constant,
	 * else 0.
	 */
	double tau_out;
	enum neap_learn learn;
	int euler;    /* 1: decay 1 - dt/tau instead of exp(-dt/tau) */
	int delay;    /* 1: layers see the layer below one step later (inputs: at once) */
	double scale; /* W ~ N(0, (scale/sqrt(fan in))^2); fan in: density * units below */
	double recurrent_scale; /* V ~ N(0, (recurrent_scale/sqrt(density * units))^2) */
	double density;		/* of W and V; below 1 they are stored in compressed rows */
	/*
	 * Fraction of a hidden layer's units, 0 to 0.99, whose outputs are dropped before the layer
	 * above during training (struct neap_objective); the others are scaled by 1/(1 - dropout).
	 * A unit is kept or dropped for a whole sequence; recurrent connections are not affected.
	 */
	double dropout;
	enum neap_readout readout;
	/*
	 * Samples per group, whose gradients are summed together; 0: at most 8, 16 in batches of 64
	 * and more, 32 if all hidden cells output numbers (integrator, rnn, lstm, gru).
	 */
	int group;
	int threads; /* 0: one per processor */
	int dense;   /* 1: dense tapes and kernels even if sparse ones are possible */
	int smooth;  /* 1: a spike is the integral of its surrogate (for gradient checks; dense) */
	/*
	 * Layers and tensors that do not learn, separated by commas: "layer0,readout.bias". NULL:
	 * none. Their gradients are 0; those of all other tensors are unaffected. No gradient is
	 * propagated below the first layer that learns, and tapes contain only that layer's inputs;
	 * a network with such reduced tapes has no log.
	 */
	const char *freeze;
	/*
	 * Seconds per step for which initial weights, learned biases and surrogates are meant: for
	 * a different dt they are scaled so that input per second, spikes per second and gradients
	 * are preserved (docs/cells.md). This includes the default of adlif's `a`; explicit keys
	 * and numbers are not scaled. 0: nothing is scaled.
	 */
	double time_unit;
	int values; /* 1: the inputs are numbers for all channels in every step; 0: spikes */
	/*
	 * Distribution of the initial weights. NEAP_INIT_AUTO is NEAP_INIT_NORMAL for layers with
	 * the key scale or recurrent_scale, and for hidden layers if the options of these names are
	 * not the defaults.
	 */
	enum neap_init init;
	/*
	 * Device that runs the steps, such as "cuda:0" or "cuda:clusters=8" (docs/gpu.md); NULL or
	 * "cpu": the processor. States, tapes and adjoints then lie in memory of the device.
	 */
	const char *device;
	/*
	 * Channels, height and width of the inputs, such as "2x34x34", for a first layer with the
	 * key conv or pool that has no key `shape`; NULL: unknown. Input (channel, y, x) has the
	 * number (channel * height + y) * width + x.
	 */
	const char *shape;
	/*
	 * 1: the steps of cell files are compiled with the C compiler `cc`, and the machine code is
	 * kept in the user's cache directory (docs/cell-files.md); 0: they are interpreted. Results
	 * are bit-identical. 1 is NEAP_EUSAGE without a compiler or without a cell file.
	 */
	int compile_cells;
	/*
	 * On a device, for networks of rnn, lstm, gru and egru: how it computes their products
	 * (docs/gpu.md). NEAP_EUSAGE: another value than NEAP_MATH_EXACT without a device, or for
	 * other networks.
	 */
	enum neap_math math;
	enum neap_products products;
	int reserved; /* 0: fields that are added later do not lie in padding, which is arbitrary */
};

#define NEAP_TAU_OUT_AUTO (-1.0)

/* clang-format off */
#define NEAP_NET_OPTIONS_DEFAULTS(X) \
	X(spec, NULL) X(dt, 1e-3) X(surrogate, NEAP_TRIANGLE) X(width, 0.5) X(height, 1.0) X(tau, 20e-3) \
	X(tau_out, NEAP_TAU_OUT_AUTO) X(scale, 0.5) X(recurrent_scale, 0.3) X(density, 1.0) \
	X(readout, NEAP_READ_AUTO) X(time_unit, 1e-3) X(init, NEAP_INIT_AUTO)
#define NEAP_NET_OPTIONS_INIT NEAP__INIT(neap_net_options, NEAP_NET_OPTIONS_DEFAULTS(NEAP__INIT_FIELD))
/* clang-format on */
NEAP__INIT_FUNCTION(neap_net_options, NEAP_NET_OPTIONS_DEFAULTS)

/* Memory of the device (neap_net_options.device) that a run uses, in bytes. All 0: no device. */
struct neap_device_use {
	char about[320];    /* its name in options, model, compute capability, multiprocessors */
	int devices;	    /* number of devices of the driver */
	uint64_t total;	    /* memory of the device */
	uint64_t free;	    /* of it, free before the run */
	uint64_t planned;   /* estimated need: the arena, and weights, gradients and inputs */
	uint64_t allocated; /* most that this process has allocated at a time */
	uint64_t measured;  /* most that became less free, by the driver, also by other programs */
	double joules; /* energy of the whole device, in this session's epochs; 0: not measured */
};

struct neap_net;

/* Creates a network with initial weights. Copies the options. Returns 0 or a negative code. */
NEAP_API int neap_net_create(struct neap_net **net, const struct neap_net_options *options);
/* Frees a network; NULL is allowed. */
NEAP_API void neap_net_free(struct neap_net *net);

/*
 * A parameter tensor. Dense: rows x columns, one row per input unit, row-major (weights W[in][out];
 * for gated cells the columns of the gates are next to each other, in PyTorch's order; egru also
 * has a tensor "layer0.candidate"); biases have one row. A convolution has a row for each (channel
 * below, y, x) of its kernel, and a bias for each channel. Sparse: values in compressed rows. If a
 * layer learns time constants or has a range of them, one row "layer0.leak" follows all other
 * tensors and, for tau_syn or tau_adapt, "layer0.leak_syn" or "layer0.leak_adapt": the decay per
 * step is 1/(1 + exp(-value)). "layer0.omega" and "layer0.b" of brf are logarithms, "layer0.a" and
 * "layer0.b" of seadlif the numbers themselves.
 * data contains floats or doubles by the precision of the network; grad always contains `count`
 * doubles, complete after neap_net_end.
 */
struct neap_param {
	const char *name; /* "layer0.weight", "layer0.recurrent", "layer0.bias", "readout.weight" */
	int64_t rows, columns;
	int64_t count; /* rows * columns, or the number of connections if sparse */
	void *data;
	double *grad;
	const uint32_t *row_start; /* [rows + 1]; NULL if dense */
	const uint16_t *column;	   /* [count]; NULL if dense */
	enum neap_precision precision;
	/* 1: parameters of units, such as time constants or delays; excluded from weight decay */
	int is_leak;
};

/* Returns the number of parameter tensors. */
NEAP_API int neap_net_params(const struct neap_net *net);
/* Fills in parameter tensor `index`, whose arrays are owned by the network. */
NEAP_API int neap_net_param(const struct neap_net *net, int index, struct neap_param *param);
/* Returns 1 if the tensor does not learn (neap_net_options.freeze); else, or without one, 0. */
NEAP_API int neap_net_frozen(const struct neap_net *net, int index);

/*
 * Firing-rate regularisation: lower and upper bounds on the rate r_j of each hidden unit of every
 * spiking layer, its spikes in the batch divided by the sum of the samples' lengths, per step. In
 * the options of train.h, r_j is in spikes per millisecond if a time_unit is set. Layers whose
 * outputs are numbers (integrator, rnn, lstm, gru, egru) are not penalised.
 */
struct neap_rate_penalty {
	double upper, upper_weight; /* weight * sum_j max(0, r_j - upper)^2 */
	double lower, lower_weight; /* weight * sum_j max(0, lower - r_j)^2 */
	double l1, l2;		    /* l1 sum_j r_j + l2 sum_j r_j^2 */
};

/*
 * A loss of one output z[classes], for a sample or a step: returns its value and writes dz = d
 * value / d z. target is NULL for classification; label is -1 for regression.
 */
struct neap_loss {
	const char *name;
	double (*value)(int classes, const double *z, int label, const float *target, double *dz);
	int takes_numbers; /* 1: targets may be numbers; 0: only labels */
	/*
	 * The loss for number targets, converted to the units of the targets by deviation[classes]
	 * (neap_objective); NULL: the loss has no units.
	 */
	double (*in_units)(
		int classes, const double *z, const float *target, const double *deviation);
};
/* Returns the loss of that name; NULL if there is none. */
NEAP_API const struct neap_loss *neap_loss_find(const char *name);
/* Returns a loss in table order; NULL beyond the end. */
NEAP_API const struct neap_loss *neap_loss_at(int index);

/*
 * What a network is trained for. Losses are averaged over the batch; a rate penalty is added once.
 * If targets are per step, the readout is `step`, and the loss of a sample is the mean over its
 * steps that are not masked. loss NULL: forward only.
 */
struct neap_objective {
	uint32_t size; /* sizeof(struct neap_objective) */
	const struct neap_loss *loss;
	struct neap_rate_penalty rates;
	/*
	 * 0: no dropout, as in evaluation. Otherwise the seed, such as the epoch, that selects with
	 * the seed of the network, the index of the sample, the layer and the unit which units are
	 * kept.
	 */
	uint32_t dropout;
	/*
	 * The ranks that have the rest of the batch (neap_batch.of), each a share of whole groups
	 * as assigned by neap_loader_options, possibly none. turn, which may then get state NULL,
	 * and end, after a turn with an adjoint, are collective; losses and gradients are those of
	 * the whole batch, predictions and outputs those of this rank's samples. Borrowed until
	 * neap_net_end. NULL: one process.
	 */
	const struct neap_peers *peers;
	/*
	 * If targets are classes per step and there is a loss: [classes][classes] counts of steps,
	 * row = label, column = the largest output, to which the first forward pass adds, from
	 * several threads. Borrowed until neap_net_end. NULL: not counted.
	 */
	int64_t *confusion;
	/*
	 * [classes] standard deviations by which number targets were divided: losses are reported
	 * in the original units; gradients are those of the normalised loss. Borrowed until
	 * neap_net_end. NULL: targets were not divided.
	 */
	const double *deviation;
	/*
	 * 1: steps that are recomputed after the turn leave out the readout if no tape contains
	 * anything of it (readouts mean, sum, last and max without learned time constants), since
	 * only the turn needs its state. Gradients and results do not change, but states recomputed
	 * after the turn then contain a readout of an earlier step, and must only be used for
	 * further recomputation. 0: all states are complete.
	 */
	int readout_once;
};

/* Exact sizes in bytes for the current batch; workspace is not part of the chain's budget. */
struct neap_net_sizes {
	uint32_t size; /* sizeof(struct neap_net_sizes) */
	size_t state, adjoint;
	/*
	 * Bytes of a step's tape: measured in the last recording of this network, before that an
	 * estimate; tape_max if every tape has that size, with dense tapes and samples of equal
	 * length.
	 */
	size_t tape_mean;
	size_t tape_max;
	size_t weights, grads, workspace;
	size_t log_mean, log_max; /* bytes of a step's log; 0: the network has no log */
};

/*
 * Begins a batch, which is borrowed until neap_net_end: checks every event and label, zeroes
 * gradients and counts, and allocates all memory for the steps, so the step functions allocate
 * nothing. objective NULL: forward only, labels may be missing. Returns 0, NEAP_EUSAGE,
 * NEAP_EOVERFLOW or -ENOMEM.
 */
NEAP_API int neap_net_begin(struct neap_net *net, const struct neap_batch *batch,
	const struct neap_objective *objective);
/* Fills in the sizes for the current batch. */
NEAP_API int neap_net_get_sizes(const struct neap_net *net, struct neap_net_sizes *sizes);

/*
 * The step functions (the callbacks of sweep.h); `net` is a struct neap_net *. The state at step 0
 * is all zero bytes. turn accepts adjoint NULL if no backward pass follows.
 */

/* Runs steps [t0, t1) forward and saves no tape. */
NEAP_API int neap_net_advance(void *net, void *state, int64_t t0, int64_t t1, int first);
/* Runs steps [t0, t1) forward and saves their tapes. */
NEAP_API int neap_net_record(void *net, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done);
/*
 * As neap_net_advance, and writes a log of the spikes, from which neap_net_replay rebuilds tapes. A
 * network has a log if its inputs are spikes, its hidden cells are lif, density is 1, there is no
 * dropout between hidden layers, no time constant is learned, no tape is reduced (freeze), and it
 * is not smooth; otherwise log_max is 0 and both functions return NEAP_EUSAGE.
 */
NEAP_API int neap_net_advance_log(void *net, void *state, int64_t t0, int64_t t1, int first,
	void *log, size_t room, size_t *used, int64_t *t_done);
/* Rebuilds the tapes of steps [t0, t1) from a log of neap_net_advance_log. */
NEAP_API int neap_net_replay(void *net, void *state, int64_t t0, int64_t t1, const void *log,
	int64_t log_t0, void *tape, size_t room, size_t *used, int64_t *t_done);
/* Computes the loss, and its adjoint at the last step. */
NEAP_API int neap_net_turn(void *net, const void *state, void *adjoint, double *loss);
/* Propagates the adjoint from t1 down to t0 and adds to the gradients. */
NEAP_API int neap_net_backward(void *net, void *adjoint, int64_t t1, int64_t t0, const void *tape);
/*
 * Writes everything that a network has accumulated in a sweep so far: calls `write` for each part.
 * neap_net_grad_load restores it through the same calls of `read`, for the same network and batch.
 * Returns 0, or the first negative code of a call.
 */
NEAP_API int neap_net_grad_save(
	void *net, int (*write)(void *to, const void *from, size_t bytes), void *to);
/* Restores what neap_net_grad_save wrote. */
NEAP_API int neap_net_grad_load(
	void *net, int (*read)(void *from, void *to, size_t bytes), void *from);
/* Announces that steps [t0, t1) are next, so a windowed batch can be read ahead. */
NEAP_API void neap_net_will_touch(void *net, int64_t t0, int64_t t1);

/* The result of the forward pass; valid after turn. */
struct neap_net_result {
	uint32_t size;	       /* sizeof(struct neap_net_result) */
	double loss;	       /* mean over the batch, including penalties */
	double penalty;	       /* the rate penalty, part of the loss */
	int correct;	       /* samples whose largest output is their label */
	const int *prediction; /* [batch size] */
	const double *answer;  /* [batch size][classes]; for step losses the mean output */
	double spikes;	       /* mean number of spikes per hidden unit and step */
	double support;	       /* fraction of units with non-zero surrogate; when recorded */
	int layers;	       /* hidden layers */
	const double *rate;    /* [layers] mean spikes per unit and step */
	/*
	 * Number of samples or steps with a label, and of those whose largest output is their
	 * label; both are 0 if targets are numbers.
	 */
	int64_t judged, right;
};
/* Fills in the result of the forward pass. */
NEAP_API int neap_net_get_result(const struct neap_net *net, struct neap_net_result *result);

/*
 * Ends the batch: adds the sums of all groups of all ranks to the grad of the parameters. Returns 0
 * or the code of a peer.
 */
NEAP_API int neap_net_end(struct neap_net *net);
/* Returns the samples per group in a batch of `samples`, at least 1. */
NEAP_API int neap_net_group(const struct neap_net *net, int samples);

/* Returns the XXH3 hash of the bytes of all gradients, in the order of the parameters. */
NEAP_API uint64_t neap_net_grad_hash(const struct neap_net *net);

/*
 * Returns the specification with every key of every layer, which defines the same layers whatever
 * the other options are. Owned by the network.
 */
NEAP_API const char *neap_net_spec(const struct neap_net *net);

/*
 * Gradient check: compares the analytic gradient of the smoothed network in double precision with
 * central differences, for `probes` parameters spread over all tensors (0: all). A detached reset
 * uses the spikes of the unperturbed network. The best of three step sizes counts: kinks spoil
 * large ones, rounding small ones. Sets *worst to the largest relative error,
 *     |a - n| / max(|a|, |n|, 1e-6 * largest gradient).
 */
NEAP_API int neap_gradcheck(double *worst, const struct neap_net_options *options,
	const struct neap_batch *batch, const struct neap_objective *objective, int probes);

#ifdef __cplusplus
}
#endif
#endif
