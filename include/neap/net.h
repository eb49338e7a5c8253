/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h: recurrent and spiking networks as a chain of steps: cells, layers, readout; forward with
 * or without tape, and backward, over any range of steps. A net knows nothing of schedules: its
 * step functions have the form that sweep.h asks of a model.
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
 * Choices and their names, as specifications, settings and options spell them: X(CHOICE, name,
 * meaning), in the order of the enum made from it. NEAP_CHOICE_NAME makes a list of the names.
 */
/* clang-format off */
#define NEAP_PRECISION_TABLE(X) \
	X(NEAP_FLOAT, float, "32 bits") \
	X(NEAP_DOUBLE, double, "64 bits")

/* What happens to a membrane that spikes. */
#define NEAP_RESET_TABLE(X) \
	X(NEAP_RESET_SUBTRACT, subtract, "minus threshold, one step later (snnTorch)") \
	X(NEAP_RESET_ZERO, zero, "to zero, one step later") \
	X(NEAP_RESET_HARD, hard, "to reset_value at once (SpikingJelly, Norse, NIR)") \
	X(NEAP_RESET_SOFT, soft, "minus threshold at once")

/* The derivative of a spike at x = membrane - threshold; k = 1/width. */
#define NEAP_SURROGATE_TABLE(X) \
	X(NEAP_TRIANGLE, triangle, "height max(0, 1 - |x|/width): compact") \
	X(NEAP_BOXCAR, boxcar, "1/(2 width) [|x| <= width]: compact") \
	X(NEAP_SUPERSPIKE, superspike, "1/(1 + k|x|)^2") \
	X(NEAP_SIGMOID, sigmoid, "k s(1 - s), s = 1/(1 + exp(-k x))") \
	X(NEAP_ATAN, atan, "(k/2)/(1 + (pi k x/2)^2)") \
	X(NEAP_GAUSSIAN, gaussian, "exp(-x^2/(2 width^2))/(width sqrt(2 pi))")

/* Names of surrogates in other packages: snnTorch's. */
#define NEAP_SURROGATE_ALIAS_TABLE(X) \
	X(NEAP_SUPERSPIKE, fast_sigmoid) \
	X(NEAP_TRIANGLE, triangular)

/* What a layer learns beside its weights. */
#define NEAP_LEARN_TABLE(X) \
	X(NEAP_LEARN_NONE, none, "nothing") \
	X(NEAP_LEARN_TAU, tau, "the time constants of its cell, of each unit")

/* The distribution that the initial weights and biases of a layer are drawn from. */
#define NEAP_INIT_TABLE(X) \
	X(NEAP_INIT_NORMAL, normal, "normal, deviation scale/sqrt(inputs), or recurrent_scale/sqrt(units); biases 0") \
	X(NEAP_INIT_AUTO, auto, "torch for rnn, lstm, gru, egru and a readout above them, else normal") \
	X(NEAP_INIT_TORCH, torch, "uniform in +-1/sqrt(units), or +-1/sqrt(inputs) of other cells and readouts; biases too")

/* How outputs over time become one answer. */
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
/* Floating-point type of the states and weights: NEAP_PRECISION_TABLE lists the values. */
enum neap_precision { NEAP_PRECISION_TABLE(NEAP_X) };
/* What happens to a membrane that spikes: NEAP_RESET_TABLE lists the values. */
enum neap_reset { NEAP_RESET_TABLE(NEAP_X) };
/* Surrogate derivative of a spike: NEAP_SURROGATE_TABLE lists the values. */
enum neap_surrogate { NEAP_SURROGATE_TABLE(NEAP_X) };
/* What a layer learns in addition to its weights: NEAP_LEARN_TABLE lists the values. */
enum neap_learn { NEAP_LEARN_TABLE(NEAP_X) };
/* Distribution of the initial weights: NEAP_INIT_TABLE lists the values. */
enum neap_init { NEAP_INIT_TABLE(NEAP_X) };
/* How outputs over time become one answer: NEAP_READOUT_TABLE lists the values. */
enum neap_readout { NEAP_READOUT_TABLE(NEAP_X) NEAP_READOUTS };
#undef NEAP_X

/*
 * Layers from the input up, separated by commas: NAME[:SIZE[r]][:KEY=VALUE]...
 * `r` makes a layer recurrent; the last layer is a readout (`li`) whose size is
 * the number of classes. Keys override the options below for one layer: reset,
 * detach, tau, learn, surrogate, width, height, support, threshold, reset_value,
 * density, init, scale, delay, dropout.
 * Times take s, ms, us or ns. For li only tau (0 and none: no smoothing), learn, init, scale
 * (default 1), density (1) and delay apply; recurrent_scale is a key too. Names of other packages
 * say a key otherwise: beta and alpha, what a step leaves of a membrane or of a current (tau,
 * tau_syn), slope (1/width). Cells that spike are lif, cubalif (key tau_syn, default 5ms), alif
 * (tau_adapt 100ms, adapt 0.1) and adlif (tau_adapt 100ms, a 0.1, b 0.2); all but lif reset by
 * subtraction one step later, cubalif at once where its key `reset` is hard or soft. Gated cells
 * are rnn (activation=tanh or relu), lstm, gru and egru; they are recurrent, r or not, and have no
 * tau and no reset (docs/cells.md has their equations). What is said of rates and spikes below is,
 * for outputs that are numbers, the mean of those. Example:
 * "lif:256r:tau=10ms,lif:128:reset=hard,li:tau=20ms".
 */
struct neap_net_options {
	uint32_t size; /* sizeof(struct neap_net_options) */
	enum neap_precision precision;
	const char *spec;
	int inputs, classes;
	double dt; /* seconds a step */
	uint64_t seed;
	enum neap_reset reset;
	int detach; /* 1: no gradient through the reset */
	enum neap_surrogate surrogate;
	double width, height;
	double support;	  /* cut a surrogate beyond |x| > support; 0: where it ends by itself */
	double threshold; /* 0: 1, of egru 0.1 */
	double reset_value;
	double tau; /* seconds: membrane */
	/*
	 * Seconds over which the readout smooths its outputs; 0: not at all. NEAP_TAU_OUT_AUTO: 20
	 * ms where spikes enter it and it gives one answer per sample, or learns its time constant,
	 * else 0.
	 */
	double tau_out;
	enum neap_learn learn;
	int euler;    /* 1: decay 1 - dt/tau instead of exp(-dt/tau) */
	int delay;    /* 1: a layer sees the layer below one step late (inputs at once) */
	double scale; /* W ~ N(0, (scale/sqrt(fan in))^2); fan in: density * units below */
	double recurrent_scale; /* V ~ N(0, (recurrent_scale/sqrt(density * units))^2) */
	double density;		/* of W and V; below 1 they are kept in compressed rows */
	/*
	 * Share of a hidden layer's units, 0 to 0.99, whose outputs do not reach the layer above
	 * while training (struct neap_objective); those of the others count 1/(1 - dropout). A
	 * unit is kept or dropped for a whole sequence; recurrent connections are not touched.
	 */
	double dropout;
	enum neap_readout readout;
	/*
	 * Samples whose gradients are summed together; 0: at most 8, 16 in batches of 64 and more,
	 * 32 where the outputs of all hidden cells are numbers of all units: rnn, lstm, gru.
	 */
	int group;
	int threads; /* 0: one a processor */
	int dense;   /* 1: dense tapes and kernels where sparse ones would do */
	int smooth; /* 1: the spike is the integral of its surrogate (for gradient checks; dense) */
	/*
	 * Layers and tensors that do not learn, with commas between: "layer0,readout.bias". NULL:
	 * none. Their gradients are 0, those of all others as without it. Below the first layer
	 * that learns nothing goes backward, and nothing but that layer's inputs is kept on tape; a
	 * net that leaves out tapes has no log.
	 */
	const char *freeze;
	/*
	 * Seconds of a step that initial weights, learned biases and surrogates are meant for: at
	 * another dt they are scaled, so that drive a second, spikes a second and gradients stay
	 * what they are (docs/cells.md). The default of adlif's `a` is, too; keys and numbers that
	 * are said stand as they are. 0: nothing is scaled.
	 */
	double time_unit;
	int values; /* 1: the inputs are numbers of all channels in every step; 0: spikes */
	/*
	 * How initial weights are drawn. NEAP_INIT_AUTO: NEAP_INIT_NORMAL too in a layer whose keys
	 * include scale or recurrent_scale, and in hidden layers if the options of these names are
	 * not the defaults.
	 */
	enum neap_init init;
};

#define NEAP_TAU_OUT_AUTO (-1.0)

/* clang-format off */
#define NEAP_NET_OPTIONS_DEFAULTS(X) \
	X(spec, "lif:256r,li") X(dt, 1e-3) X(surrogate, NEAP_TRIANGLE) X(width, 0.5) X(height, 1.0) X(tau, 20e-3) \
	X(tau_out, NEAP_TAU_OUT_AUTO) X(scale, 0.5) X(recurrent_scale, 0.3) X(density, 1.0) \
	X(readout, NEAP_READ_AUTO) X(time_unit, 1e-3) X(init, NEAP_INIT_AUTO)
#define NEAP_NET_OPTIONS_INIT NEAP__INIT(neap_net_options, NEAP_NET_OPTIONS_DEFAULTS(NEAP__INIT_FIELD))
/* clang-format on */
NEAP__INIT_FUNCTION(neap_net_options, NEAP_NET_OPTIONS_DEFAULTS)

struct neap_net;

/* Creates a net with initial weights. Copies the options. */
NEAP_API int neap_net_create(struct neap_net **net, const struct neap_net_options *options);
/* Frees a net; NULL is allowed. */
NEAP_API void neap_net_free(struct neap_net *net);

/*
 * A parameter tensor. Dense: rows x columns, a row an input unit, row-major
 * (weights W[in][out]; of gated cells the gates' columns stand side by side, in PyTorch's
 * order; egru has a tensor "layer0.candidate" besides); biases have one row. Sparse:
 * values in compressed rows. Behind all others, where a layer learns time constants, one row
 * "layer0.leak" and, of tau_syn or tau_adapt, "layer0.leak_syn" or "layer0.leak_adapt":
 * a decay a step is 1/(1 + exp(-value)).
 * data holds floats or doubles by the net's precision; grad always doubles, as
 * many as `count`, complete after neap_net_end.
 */
struct neap_param {
	const char *name; /* "layer0.weight", "layer0.recurrent", "layer0.bias", "readout.weight" */
	int64_t rows, columns;
	int64_t count; /* rows * columns, or the number of kept connections */
	void *data;
	double *grad;
	const uint32_t *row_start; /* [rows + 1]; NULL when dense */
	const uint16_t *column;	   /* [count]; NULL when dense */
	enum neap_precision precision;
	int is_leak; /* values stand for time constants: weight decay leaves them alone */
};

/* Number of parameter tensors. */
NEAP_API int neap_net_params(const struct neap_net *net);
/* Fills in parameter tensor `index`, whose arrays are owned by the net. */
NEAP_API int neap_net_param(const struct neap_net *net, int index, struct neap_param *param);
/* 1: the tensor does not learn (neap_net_options.freeze); 0: it does, or has no such number. */
NEAP_API int neap_net_frozen(const struct neap_net *net, int index);

/*
 * Lower and upper bounds on the firing rate r_j of each hidden unit of every layer that
 * spikes: its spikes in the batch over the sum of the samples' lengths, a step. In options of
 * train.h r_j is spikes a millisecond, where a time_unit is said. Layers whose outputs
 * are numbers (rnn, lstm, gru, egru) are not penalised.
 */
struct neap_rate_penalty {
	double upper, upper_weight; /* weight * sum_j max(0, r_j - upper)^2 */
	double lower, lower_weight; /* weight * sum_j max(0, lower - r_j)^2 */
	double l1, l2;		    /* l1 sum_j r_j + l2 sum_j r_j^2 */
};

/*
 * A loss on one answer z[classes], of a sample or a step: returns its value and writes
 * dz = d value / d z. target is NULL for classification, label -1 for regression.
 */
struct neap_loss {
	const char *name;
	double (*value)(int classes, const double *z, int label, const float *target, double *dz);
	int takes_numbers; /* 1: targets may be numbers; 0: labels alone */
	/*
	 * The loss of targets that are numbers in the units that deviation[classes] leads to
	 * (neap_objective); NULL: the loss has no other units.
	 */
	double (*in_units)(
		int classes, const double *z, const float *target, const double *deviation);
};
/* The loss of that name; NULL if there is none. */
NEAP_API const struct neap_loss *neap_loss_find(const char *name);
/* Losses in table order; NULL beyond the end. */
NEAP_API const struct neap_loss *neap_loss_at(int index);

/*
 * Losses are averaged over the batch; a rate penalty is added once. Where targets are of steps, the
 * readout is `step`, and the loss of a sample is the mean over its steps that are not masked. loss
 * NULL: forward only.
 */
struct neap_objective {
	uint32_t size; /* sizeof(struct neap_objective) */
	const struct neap_loss *loss;
	struct neap_rate_penalty rates;
	/*
	 * 0: nothing is dropped, as in evaluation. Else which units dropout keeps is drawn by
	 * (net's seed, this number, index of the sample, layer, unit): a number an epoch.
	 */
	uint32_t dropout;
	/*
	 * The ranks that hold the rest of the batch (neap_batch.of), each its share in whole groups
	 * as neap_loader_options deals them, maybe none: then turn, which may get state NULL, and
	 * end, after a turn with an adjoint, are collective, losses and gradients are of the whole
	 * batch, and predictions and answers of this rank's samples. Borrowed until neap_net_end.
	 * NULL: alone.
	 */
	const struct neap_peers *peers;
	/*
	 * Where targets are classes of steps and there is a loss: [classes][classes] counts of
	 * steps, row = label, column = the largest output, that the first pass adds to. Borrowed
	 * until neap_net_end; steps add to it from several threads. NULL: nobody counts.
	 */
	int64_t *confusion;
	/*
	 * [classes] Of targets that are numbers, divided by these: what a loss tells is in their
	 * own units, gradients are those of the loss as it stands. Borrowed likewise. NULL: none
	 * were.
	 */
	const double *deviation;
};

/* Exact sizes in bytes for the batch begun; workspace is outside the chain's budget. */
struct neap_net_sizes {
	uint32_t size; /* sizeof(struct neap_net_sizes) */
	size_t state, adjoint;
	/*
	 * Of a step's tape: measured on what this net last recorded, an estimate before; tape_max
	 * where every step's tape takes as much: dense tapes, and no sample ends early.
	 */
	size_t tape_mean;
	size_t tape_max;
	size_t weights, grads, workspace;
	size_t log_mean, log_max; /* of a step's log; 0: the net has no log */
};

/*
 * Begins a batch, which is borrowed until neap_net_end: checks every event and label, zeroes
 * gradients and counts, and makes all room that the steps need, so that the step functions allocate
 * nothing. objective NULL: forward only, labels may be missing. 0, NEAP_EUSAGE, NEAP_EOVERFLOW or
 * -ENOMEM.
 */
NEAP_API int neap_net_begin(struct neap_net *net, const struct neap_batch *batch,
	const struct neap_objective *objective);
/* Fills in the sizes for the current batch. */
NEAP_API int neap_net_get_sizes(const struct neap_net *net, struct neap_net_sizes *sizes);

/*
 * The step functions (sweep.h has their contract); `net` is a struct neap_net *.
 * The state at step 0 is all zero bytes. turn takes adjoint NULL where no
 * backward pass follows.
 */

/* Computes the states of steps [t0, t1) and stores no tape. */
NEAP_API int neap_net_advance(void *net, void *state, int64_t t0, int64_t t1, int first);
/* Computes the states of steps [t0, t1) and stores their tapes. */
NEAP_API int neap_net_record(void *net, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done);
/*
 * The same with a log of the spikes: advance writes it, replay makes tapes from it. A net has a log
 * where its inputs are spikes, its hidden cells are lif, density is 1, no dropout lies between
 * hidden layers, no time constant is learned, no tape is left out (freeze), and the net is not
 * smooth; else log_max is 0 and these return NEAP_EUSAGE.
 */
NEAP_API int neap_net_advance_log(void *net, void *state, int64_t t0, int64_t t1, int first,
	void *log, size_t room, size_t *used, int64_t *t_done);
/* Computes tapes of steps [t0, t1) from the log that neap_net_advance_log wrote. */
NEAP_API int neap_net_replay(void *net, void *state, int64_t t0, int64_t t1, const void *log,
	int64_t log_t0, void *tape, size_t room, size_t *used, int64_t *t_done);
/* Computes the loss, and the adjoint at the last step. */
NEAP_API int neap_net_turn(void *net, const void *state, void *adjoint, double *loss);
/* Moves the adjoint from t1 down to t0 and adds to the gradients. */
NEAP_API int neap_net_backward(void *net, void *adjoint, int64_t t1, int64_t t0, const void *tape);
/*
 * Writes all that a net has gathered in the middle of a sweep by calls of `write`, and reads it
 * back by the same calls of `read`, for the same net and batch. 0, or the first negative code of a
 * call.
 */
NEAP_API int neap_net_grad_save(
	void *net, int (*write)(void *to, const void *from, size_t bytes), void *to);
/* Reads back what neap_net_grad_save wrote. */
NEAP_API int neap_net_grad_load(
	void *net, int (*read)(void *from, void *to, size_t bytes), void *from);
/* Says that steps [t0, t1) come next, so that a windowed batch may read ahead. */
NEAP_API void neap_net_will_touch(void *net, int64_t t0, int64_t t1);

/* What the forward pass found; valid after turn. */
struct neap_net_result {
	uint32_t size;	       /* sizeof(struct neap_net_result) */
	double loss;	       /* mean over the batch, penalties included */
	double penalty;	       /* the part of the loss that is the penalty on rates */
	int correct;	       /* samples whose largest answer is their label */
	const int *prediction; /* [batch size] */
	const double *answer;  /* [batch size][classes]; of step losses the mean output */
	double spikes;	       /* hidden spikes a unit and step, mean */
	double support;	       /* share of units inside the surrogate's support; when recorded */
	int layers;	       /* hidden layers */
	const double *rate;    /* [layers] mean spikes a unit and step */
	/*
	 * What has a label, samples or steps, and how many of these the largest answer is right
	 * about; where targets are numbers both are 0.
	 */
	int64_t judged, right;
};
/* Fills in the result of the forward pass. */
NEAP_API int neap_net_get_result(const struct neap_net *net, struct neap_net_result *result);

/*
 * Ends the batch: adds up the sums of all groups, of all ranks, into the parameters' grad. 0, or
 * the code of a peer.
 */
NEAP_API int neap_net_end(struct neap_net *net);
/* Samples whose gradients are summed together in a batch of so many, at least 1: a group. */
NEAP_API int neap_net_group(const struct neap_net *net, int samples);

/* The XXH3 hash of the bytes of all gradients, in the order of the parameters. */
NEAP_API uint64_t neap_net_grad_hash(const struct neap_net *net);

/*
 * The specification with every key of every layer said, so that it makes the same layers with any
 * options beside it. Owned by the net.
 */
NEAP_API const char *neap_net_spec(const struct neap_net *net);

/*
 * Gradient check: the analytic gradient of the smoothed net in double precision against central
 * differences, over `probes` parameters spread over all tensors (0: all). A detached reset sees the
 * unperturbed net's spikes. The best of three lengths of difference counts: kinks spoil long
 * differences, rounding short ones. Gives the worst relative error,
 *     |a - n| / max(|a|, |n|, 1e-6 * largest gradient).
 */
NEAP_API int neap_gradcheck(double *worst, const struct neap_net_options *options,
	const struct neap_batch *batch, const struct neap_objective *objective, int probes);

#ifdef __cplusplus
}
#endif
#endif
