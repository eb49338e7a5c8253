/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.h: trains and evaluates networks, and compares strategies on real batches.
 *
 *     struct neap_train_options o = NEAP_TRAIN_OPTIONS_INIT;
 *     o.data = "train.h5";
 *     o.test = "test.h5";
 *     o.out = "run";
 *     o.sweep.memory = 16 << 20;
 *     struct neap_train_result result = {.size = sizeof result};
 *     neap_train(&result, &o);
 *
 * The folder of a run contains model.safetensors (the best epoch on validation, or the last epoch),
 * last.safetensors (weights, optimizer, counters: the snapshot for --resume), metrics.csv and
 * costs.csv (results and costs per epoch), run.json (settings, plan, machine).
 */
#ifndef NEAP_TRAIN_H
#define NEAP_TRAIN_H

#include <neap/data.h>
#include <neap/net.h>
#include <neap/sweep.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Memory of the whole process in bytes, by part. `most`, the sum of the parts, is an upper bound
 * that is estimated before the first sweep; `measured` is the actual memory up to the end.
 */
struct neap_process_memory {
	uint64_t total;	   /* the requested budget; 0: none */
	uint64_t most;	   /* upper bound on resident memory */
	uint64_t measured; /* largest resident memory of the process (VmHWM); 0: unknown */
	uint64_t arena, slow;
	uint64_t weights, gradients, optimizer, scratch;
	uint64_t inputs;   /* batches, windows and the sample that is being read */
	uint64_t planning; /* tables while a plan is made */
	uint64_t program;  /* code, libraries, stacks, and everything else */
	uint64_t files;	   /* of these, code and libraries that were in memory at the estimate */
};

/* Memory, strategy, tiers and costs of the sweeps of a run. */
struct neap_sweep_settings {
	/* Budget of the arena in bytes, which are in the device's memory if there is a device; 0:
	   half of the free memory. */
	uint64_t memory;
	/*
	 * Budget of the whole process in bytes: the arena gets what the other parts leave, but at
	 * most `memory` (0: any). 0: no budget for the process.
	 */
	uint64_t memory_total;
	const char *strategy; /* NULL: "auto" */
	struct neap_params params;
	const char
		*slow; /* slow tiers, "DIR[+DIR...]|FILE|mem:SIZE,...", fastest first; NULL: none */
	int slow_in_memory; /* 1: a DIR may be in RAM (tmpfs) */
	int page_cache;	    /* 1: files go through the page cache */
	/*
	 * Bound in bytes on the inputs of long batches, which are read in windows; 0: 16 MiB, but
	 * batches stay in memory as a whole while two of them take at most an eighth of
	 * `memory_total`, a quarter of `memory`, or, if neither is set, a sixteenth of free memory,
	 * and at most a quarter of free memory.
	 */
	uint64_t inputs;
	/*
	 * Costs of steps and tiers, measured beforehand (a chain file): seconds per step of a whole
	 * batch, and the tiers of `slow` in the same order. NULL: measured at the start.
	 */
	const struct neap_problem *costs;
	/* Directory of a journal (sweep.h) and seconds between its commits; for compare only. */
	const char *journal;
	double journal_seconds;
	/*
	 * File for a trace of the sweeps (neap/trace.h): in a comparison, the last run of each
	 * strategy; in training, batch number `trace_batch` of the session, from 1, or the last one
	 * (0). Up to 2^20 events; the oldest are dropped. NULL: none.
	 */
	const char *trace;
	int64_t trace_batch;
	/*
	 * Patience of each sweep (neap_sweep_options) in seconds; 0 or infinite: no transfer is
	 * abandoned. Below 0: 30 s or four times a forward pass, whichever is longer.
	 */
	double patience;
	/*
	 * 1: no plan is replaced while it runs (neap_sweep_options), so every run makes the same
	 * calls. If `costs` are given, no plan is replaced either.
	 */
	int no_replan;
};

/* State of a run, passed to `progress` after every batch and every epoch. */
struct neap_train_progress {
	int epoch, epochs;	 /* 0-based */
	int64_t batch, batches;	 /* done in this epoch, and their total number */
	int64_t sample, samples; /* as for batches */
	int64_t update;		 /* optimizer steps so far */
	double loss, accuracy;	 /* running means of this epoch on training data; NaN: no labels */
	double seconds;		 /* since the run started or was resumed */
	double samples_per_second;
	uint64_t peak_planned, peak_measured; /* bytes, largest so far */
	double spikes, support; /* activity in the last batch; NaN: no spiking layer */
	int epoch_done;		/* 1: the epoch is complete and the fields below are valid */
	double validation_loss, validation_accuracy;
	double learning_rate;
	int best;	/* 1: the best epoch on validation so far, given enough samples */
	double penalty; /* rate penalty, running mean of this epoch; not included in `loss` */
};

/* Returns the name of an optimizer, in table order; NULL beyond the end. */
NEAP_API const char *neap_optimizer_name(int index);
/* Returns the name of a learning-rate schedule, in table order; NULL beyond the end. */
NEAP_API const char *neap_learning_rate_name(int index);

/* The options of a training run: data, network, optimizer, budget, output. */
struct neap_train_options {
	uint32_t size;		     /* sizeof(struct neap_train_options) */
	const char *data;	     /* training set, a name for neap_dataset_open */
	const char *test;	     /* test set or NULL; evaluated once, at the end */
	const char *out;	     /* folder of the run: new or empty, unless `resume` */
	int resume;		     /* 1: continue from the snapshot in `out`, if there is one */
	struct neap_net_options net; /* inputs and classes 0: taken from the data */
	const char *loss;	     /* a name of neap_loss_at; NULL: chosen by the targets */
	struct neap_rate_penalty rates;
	const char *optimizer; /* a name of neap_optimizer_name */
	double learning_rate, momentum, beta1, beta2, epsilon, weight_decay;
	const char *schedule; /* a name of neap_learning_rate_name */
	int64_t warmup;	      /* updates; -1: 50, but at most two epochs */
	double clip;	      /* bound on the global norm of the gradient; 0: off */
	int epochs, batch;
	int64_t max_steps;   /* samples are cut to this number of steps; 0: no limit */
	double validation;   /* fraction of the training set used for validation */
	const char *holdout; /* speaker whose samples are used for validation instead; or NULL */
	uint64_t seed;
	struct neap_augment augment; /* for the training samples; never for validation and test */
	struct neap_sweep_settings sweep;
	double snapshot_seconds; /* interval, also during an epoch; 0: only at the end of epochs */
	const char *command;	 /* command line, for run.json; may be NULL */
	/* A non-zero result saves a snapshot and stops with NEAP_EINTERRUPTED. May be NULL. */
	int (*progress)(void *user, const struct neap_train_progress *progress);
	/* Called with one line without newline (the plan, what was resumed). May be NULL. */
	void (*say)(void *user, const char *line);
	void *user;
	/*
	 * File (as for neap_model_open) with the initial weights; NULL: random initial weights.
	 * `net` must describe a network with the same tensors, as neap_model_net returns it. Not
	 * read by a run that continues from a snapshot.
	 */
	const char *from;
	int fresh_readout; /* 1: reinitialise the readout nevertheless; its classes may differ */
	/*
	 * For data whose inputs are numbers. 0: each feature is normalised to mean 0 and standard
	 * deviation 1 over the training samples, as stored in the model; 1: not normalised.
	 */
	int no_normalise;
	int next; /* 1: the targets are the inputs of the next step */
	/*
	 * Standard deviation of the membrane potentials before training, in units of the threshold.
	 * The initial weights of the first layer are rescaled for it with the training data, those
	 * of the layers above with the spikes of the layers below, whatever net.scale is. Not
	 * rescaled: layers with a scale in the specification, without a membrane, or with numbers
	 * as input; all layers if `from` is set or gain is 0.
	 */
	double gain;
	/*
	 * The ranks that train this network together, each with the same options; NULL: one
	 * process. Results are bit-identical to those of one process. Collective. Only rank 0
	 * writes files, calls `say` and has the complete `result`; `progress` is called on all
	 * ranks and can stop all of them. If codes differ, the detail line shows the rank; a
	 * failure within a batch is known only to the rank itself (neap_peers.leave).
	 */
	const struct neap_peers *peers;
	/*
	 * How numerical inputs are encoded as spikes, after normalisation: "KIND:KEY=VALUE,...",
	 * with a kind of neap_coding_name. NULL, "", "none": not encoded. Stored in the model.
	 */
	const char *encode;
	/*
	 * For data whose targets are numbers. 0: each output is trained with targets normalised to
	 * mean 0 and standard deviation 1 over the training samples, as stored in the model;
	 * predictions and losses are reported in the original units. 1: not normalised.
	 */
	int no_normalise_targets;
	/*
	 * Minimum number of validation samples for choosing the best epoch. With fewer, the choice
	 * would be random, so the model is that of the last epoch. 0: no minimum.
	 */
	int validation_least;
	/*
	 * Factor of the readout's weights and biases: their initial values and every update are
	 * multiplied by it. With the readout `sum`, outputs change by the sum over all spikes of a
	 * sample, so a factor below 1 makes updates small enough if samples have many spikes.
	 * 0: no factor, the same as 1. NEAP_READOUT_GAIN_AUTO: chosen before training, from the
	 * spikes of some training samples, and then stored with the run; 1 for data,
	 * readouts and optimizers whose updates are not too large (docs/learning.md).
	 */
	double readout_gain;
};

#define NEAP_READOUT_GAIN_AUTO (-1.0)

/* Defaults that work for spoken digits with `lif` and similar cells. */
/* clang-format off */
#define NEAP_TRAIN_OPTIONS_DEFAULTS(X) \
	X(net, NEAP_NET_OPTIONS_INIT) X(rates.upper, 0.02) X(rates.upper_weight, 1.0) \
	X(optimizer, "adam") X(learning_rate, 4e-3) X(momentum, 0.9) X(beta1, 0.9) X(beta2, 0.999) X(epsilon, 1e-8) \
	X(schedule, "cooldown") X(warmup, -1) X(clip, 1.0) X(epochs, 30) X(batch, 32) X(validation, 0.1) X(seed, 1) \
	X(sweep.patience, -1) X(gain, 0.55) X(validation_least, 30)
#define NEAP_TRAIN_OPTIONS_INIT NEAP__INIT(neap_train_options, NEAP_TRAIN_OPTIONS_DEFAULTS(NEAP__INIT_FIELD))
/* clang-format on */
NEAP__INIT_FUNCTION(neap_train_options, NEAP_TRAIN_OPTIONS_DEFAULTS)

/* Accuracy, loss and confusion matrix of a model on a data set. */
struct neap_eval_result {
	uint32_t size; /* sizeof(struct neap_eval_result) */
	int64_t samples, correct;
	double accuracy, loss;
	double low, high; /* 95% Wilson interval of the accuracy */
	int classes;
	/* [classes][classes], row = label; NULL if targets are numbers. Owned by the result. */
	int64_t *confusion;
	int layers;
	/* [layers] mean spikes per unit and step, NaN without spikes; owned by the result. */
	double *rates;
	/* [classes] names of classes, NULL if unknown; owned by the result. Or NULL. */
	char **class_name;
	enum neap_target target;
	/*
	 * Number of samples or steps with a label; `correct` of them are predicted correctly. 0 if
	 * targets are numbers: accuracy is then NaN, and `loss` measures the error.
	 */
	int64_t judged;
	/* With `every`: level of the recording. Standard deviation of number targets. Or 0. */
	double level, target_deviation;
};
/* Frees the arrays of a result. */
NEAP_API void neap_eval_result_free(struct neap_eval_result *result);

/* The result of a training run, and its memory and time. */
struct neap_train_result {
	uint32_t size; /* sizeof(struct neap_train_result) */
	int epochs_done;
	int64_t updates;
	/* 1-based epoch of the model's weights; 0: none. Most correct predictions, then lowest
	   loss, then earliest; the last epoch with fewer than `validation_least` samples. */
	int best_epoch;
	double best_validation, train_loss, train_accuracy;
	double seconds, seconds_per_epoch;
	struct neap_plan plan;		      /* for the longest batch */
	uint64_t peak_planned, peak_measured; /* largest over all sweeps */
	uint64_t arena_bytes, weights_bytes, grads_bytes, optimizer_bytes;
	uint64_t data_bytes;  /* memory of the largest batch, whole or in windows */
	int64_t window_steps; /* of a window of a long batch; 0: no windows were used */
	double input_wait;    /* seconds spent waiting for batches and windows of inputs */
	int64_t overflows, recoveries;
	int64_t late;		    /* transfers abandoned in this session: see patience */
	double predicted, measured; /* sums over all sweeps, in seconds */
	uint64_t weights_hash;	    /* of the final weights */
	struct neap_eval_result validation, test; /* of the model; samples is 0 if not evaluated */
	struct neap_process_memory process;
	struct neap_exchange exchange;
	struct neap_device_use device;
};
/* Trains a network with the given options and writes the folder of the run. */
NEAP_API int neap_train(struct neap_train_result *result, const struct neap_train_options *options);
/* Frees the arrays of a result. */
NEAP_API void neap_train_result_free(struct neap_train_result *result);

/*
 * The options of the run in a folder, from its run.json: those with which it was started or last
 * resumed, with `memory` set to the budget that it used. Fields that are not stored (out, progress,
 * say, user, command, trace) are as in NEAP_TRAIN_OPTIONS_INIT; `resume` is 1. Options and strings
 * are owned by the run until it is closed. Returns 0, -ENOENT without run.json, or NEAP_EFORMAT.
 */
struct neap_run;
/* Opens the run in folder `out`. */
NEAP_API int neap_run_open(struct neap_run **run, const char *out);

/*
 * Opens options for a new run from a JSON file: the run.json of another run, or one object whose
 * keys are the long names of options of `neap train`, with - or _, and whose values are numbers in
 * SI units, strings with units ("20ms", "16M", "15Hz"), true or false. Costs are not read. Owned as
 * by neap_run_open; `resume` is 0. Returns 0 or a negative code; an unknown key is NEAP_EFORMAT.
 */
NEAP_API int neap_config_open(struct neap_run **run, const char *file);
/* Returns the options of a run; valid until neap_run_close. */
NEAP_API const struct neap_train_options *neap_run_options(const struct neap_run *run);
/* Frees the run and its options; NULL is allowed. */
NEAP_API void neap_run_close(struct neap_run *run);

/*
 * Where a model is read from: the folder of a run (its best model), a .safetensors file, or a graph
 * in NIR (docs/weights.md). Options and strings are owned by the model until it is closed.
 */
struct neap_model_options {
	uint32_t size; /* sizeof(struct neap_model_options) */
	const char *path;
	/* For a graph in NIR that does not specify them: */
	double dt;		      /* seconds per step; 0: from its metadata */
	const enum neap_reset *reset; /* of all spiking nodes; NULL: from its metadata, or hard */
};
struct neap_model;
/* Opens a model. Returns 0 or a negative code. */
NEAP_API int neap_model_open(struct neap_model **model, const struct neap_model_options *options);
/* Returns the options of the model's network; valid until neap_model_close. */
NEAP_API const struct neap_net_options *neap_model_net(const struct neap_model *model);
/* Returns `encode` of the model's run, with its seed; NULL: inputs are not encoded. */
NEAP_API const char *neap_model_coding(const struct neap_model *model);
/* Frees the model and its options; NULL is allowed. */
NEAP_API void neap_model_close(struct neap_model *model);

/* How neap_export writes a model as a graph in NIR. */
struct neap_export_options {
	uint32_t size;	   /* sizeof(struct neap_export_options) */
	const char *model; /* as neap_model_options.path */
	const char *nir;   /* the file to write */
	int metadata;	   /* 1: resets without a NIR equivalent become metadata that neap reads */
	/* Called with one line about content that other readers ignore. May be NULL. */
	void (*say)(void *user, const char *line);
	void *user;
};
/* Writes a model as a graph in NIR. 0, or NEAP_EUSAGE if NIR cannot represent the model. */
NEAP_API int neap_export(const struct neap_export_options *options);

/* The prediction of a network for one sample, or for one step of it. */
struct neap_answer {
	int64_t index; /* of the sample in its data set */
	int64_t steps;
	int label;	/* -1: none */
	int prediction; /* the class with the largest score; the first of equal ones */
	int classes;
	const double *score;	       /* [classes] output of the readout; valid during the call */
	const char *const *class_name; /* as in the result; valid until neap_eval returns */
	/*
	 * Kind of the data's targets or, if it has none, of the model's training data. If targets
	 * are numbers, the scores are the predicted numbers, and prediction is not set.
	 */
	enum neap_target target;
	int64_t step; /* the step that this predicts; -1: the whole sample */
	/* Time in the sample, in seconds, of a prediction over time (`every`); 0: not one. */
	double time;
	/* The name of the sample, if the table has names; else NULL. Valid during the call. */
	const char *sample_name;
};

/* Outputs and states of a layer after a step of a sample. */
struct neap_layer_view {
	const char *name; /* "layer0", ..., "readout" */
	const char *cell; /* "lif" */
	int units;
	int spikes;	       /* number of spikes; -1: the outputs are numbers of all units */
	const uint16_t *spike; /* [spikes] the units that spiked, ascending */
	int states;
	/*
	 * [states] Names and rows [units] of the state: "membrane" first, then "adaptation" or
	 * "current" if the cell has one; "output", then "cell" for gated cells; "output" for the
	 * readout. Resets that act at once have been applied.
	 */
	const char *const *state_name;
	const double *const *state;
};

/* Inputs and layers of a network after a step of a sample. Valid during the call. */
struct neap_step_view {
	int64_t sample; /* index of the sample in the data set */
	int64_t step, steps;
	double dt; /* seconds per step */
	int inputs;
	int events;		       /* number of input spikes; 0 if inputs are numbers */
	const uint16_t *event;	       /* [events] the channels that spiked, ascending */
	const float *values;	       /* [inputs] if inputs are numbers; else NULL */
	enum neap_precision precision; /* precision of the states */
	int layers;
	const struct neap_layer_view *layer; /* [layers] from the inputs up, the readout last */
};

/* How neap_eval evaluates the model of a run folder (or a .safetensors file) on a data set. */
struct neap_eval_options {
	uint32_t size; /* sizeof(struct neap_eval_options) */
	/* `data`: a data set, a recording, or a text table (.csv, .tsv). */
	const char *model, *data;
	int batch;						  /* 0: 64 */
	int threads;						  /* 0: one per processor */
	int (*progress)(void *user, int64_t done, int64_t total); /* may be NULL */
	void *user;
	/* Called for every sample in order; a negative result ends the evaluation. May be NULL. */
	int (*answered)(void *user, const struct neap_answer *answer);
	double dt;		      /* as in neap_model_options */
	const enum neap_reset *reset; /* as in neap_model_options */
	/*
	 * The ranks that share every batch, each with the same options; NULL: one process. Results
	 * are bit-identical on all ranks; `answered` is called on rank 0. Collective.
	 */
	const struct neap_peers *peers;
	/*
	 * 1: if targets are per step, `answered` is called for every step of every sample in order
	 * (label -1: masked) instead of per sample. Samples run one at a time; `peers` is NULL.
	 */
	int of_steps;
	/*
	 * Archive of NumPy arrays (.npz) to write atomically: `sample`, `recording` (if samples
	 * have names), `step` (if per step), `label` and `prediction` (if classes), all [answers],
	 * `scores` [answers][classes], `names` [classes]. A row is one call of `answered`, which is
	 * required and is called first; `peers` must be NULL. NULL: none.
	 */
	const char *arrays;
	/* Only this sample; NULL: all. */
	const int64_t *sample;
	/*
	 * Called after every step, in the order of samples and steps, before `answered` for that
	 * step or sample. A negative result ends the evaluation and is returned. If stepped,
	 * `spikes` or `membranes` is set, samples run one at a time; `peers` is NULL. May be NULL.
	 */
	int (*stepped)(void *user, const struct neap_step_view *view);
	/*
	 * Archives of NumPy arrays (.npz) to write atomically: the spikes, and the states of layers
	 * and readout, in every step (docs/answers.md). NULL: none.
	 */
	const char *spikes, *membranes;
	/* Only this layer: "layer0" or "0", "readout"; NULL: all. */
	const char *layer;
	/*
	 * Interval between predictions over time, in seconds of the sample; 0: none. `answered` is
	 * then called at every interval of each sample, and at its end, with the prediction for the
	 * sample so far; if targets are per step, with the outputs of that step. A recording or "-"
	 * is read and run in pieces, in memory that does not grow with its length. Samples run one
	 * at a time; `peers` must be NULL. At least one step of the model.
	 */
	double every;
	/*
	 * With `every`: root mean square of the sound after the encoder's pre-emphasis (full scale
	 * is 1), which the encoder scales to its own level (neap_encoder_options.rms). The sound is
	 * then read once. 0: the level of a recording is measured in two more passes; for "-" it is
	 * the level so far.
	 */
	double level;
	/*
	 * With `every`: called several times per second with `user` while waiting for "-", also
	 * from another thread; a non-zero result ends with NEAP_EINTERRUPTED. May be NULL.
	 */
	int (*interrupted)(void *user);
	/*
	 * With `every`: each prediction covers the last `window` seconds, a multiple of `every`;
	 * for predictions of samples. The result is then for the end of each sample, after its
	 * second-to-last prediction. 0: predictions cover the sample so far.
	 */
	double window;
	/* Called on rank 0 with one line about what the data does not specify. May be NULL. */
	void (*say)(void *user, const char *line);
	/* 1: scores of classes are probabilities, by softmax; not for targets that are numbers. */
	int softmax;
	/* As `progress`, several times per second in a batch; not with `peers`. May be NULL. */
	int (*advanced)(void *user, double done, int64_t total);
	const char *device; /* as in neap_net_options */
	int compile_cells;  /* as in neap_net_options */
};
/* Evaluates a model on a data set. */
NEAP_API int neap_eval(struct neap_eval_result *result, const struct neap_eval_options *options);

/* A strategy with its own parameters; all cases of a comparison use one calibration. */
struct neap_compare_case {
	const char *strategy;
	struct neap_params params;
	uint64_t memory; /* budget in bytes; 0: sweep.memory */
	int least;	 /* 1: use the least budget that works with the parameters instead */
};

/* How neap_compare runs one real batch with several strategies. */
struct neap_compare_options {
	uint32_t size; /* sizeof(struct neap_compare_options) */
	const char *data;
	struct neap_net_options net;
	const char *loss;
	struct neap_rate_penalty rates;
	int batch;
	int64_t max_steps;
	int64_t first; /* index of the first sample */
	uint64_t seed;
	struct neap_sweep_settings sweep;
	const char *const *strategies; /* NULL-terminated; NULL: all */
	/*
	 * Array of cases_count cases to run instead of strategies; runs are in the same order,
	 * after the reference. sweep.params is ignored.
	 */
	const struct neap_compare_case *cases;
	int cases_count;
	int repeats; /* runs of each; the median is reported; 0: 1 */
	int no_reference;
	/*
	 * Memory for store-all as the reference, over as many first steps as fit; 0: over all
	 * steps, if that takes at most half of the free memory.
	 */
	uint64_t reference_memory;
	int (*progress)(void *user, const char *strategy, int done, int total); /* may be NULL */
	/* Called with one line without newline: the estimated memory. May be NULL. */
	void (*say)(void *user, const char *line);
	void *user;
	const char *encode;	/* as in neap_train_options */
	int next, no_normalise; /* as in neap_train_options */
	/*
	 * Further rounds of runs, one of each strategy, begin only while the rounds have taken
	 * fewer seconds; there are at least 3 rounds, if `repeats` allows. 0: no limit.
	 */
	double seconds;
	int no_pace; /* 1: the pace of steps is not measured around each run: half the passes */
	/* Seconds that passes of each strategy take in the end to measure the energy of a device;
	 * 0: it is not measured. */
	double energy;
};

/*
 * Seconds per step, including waits and recomputation, over ranges of 1/100 of the steps: medians
 * of the first and the last tenth of the ranges of a pass. Forward is the first pass.
 */
struct neap_pace {
	int64_t range; /* steps per range; 0: too few steps, NaN below */
	double forward_first, forward_last, backward_first, backward_last;
};

/* The result of one strategy. */
struct neap_compare_run {
	struct neap_plan plan;
	int reference; /* 1: store-all, outside the budget */
	int ran;       /* 0: infeasible, or failed with `error` */
	int error;
	char what[200];		       /* reason why it did not run */
	struct neap_sweep_stats stats; /* of the median run */
	struct neap_pace pace;	       /* of the median run */
	double input_wait;	       /* seconds spent waiting for windows of inputs */
	int64_t steps; /* fewer than the batch has if the reference covers its first steps */
	double seconds, spread; /* median, (max - min) / median */
	/*
	 * Slowdown of steps during the sweep relative to the plan (measured with sweeps without
	 * transfers just before and after it), and the planned time for steps of that duration.
	 */
	double slowed, expected;
	double ratio;	 /* median over the runs of seconds / expected of each run */
	double overhead; /* seconds per step relative to the reference, minus 1; NaN without one */
	double loss;
	uint64_t grad_hash;
	/* The plan at the end of the last run (neap_sweep_options.no_replan), and its costs. */
	struct neap_plan ended;
	struct neap_problem problem;
	/*
	 * As `overhead`, but each run relative to the run of the reference in the same round: the
	 * median, the least and the most over the rounds. NaN without a reference.
	 */
	double round_overhead, round_least, round_most;
	int rounds; /* runs of this strategy */
};

/* The results of all strategies on the same batch. */
struct neap_compare_result {
	uint32_t size; /* sizeof(struct neap_compare_result) */
	int runs_count;
	struct neap_compare_run *runs; /* owned by the result */
	int64_t steps, lengths_total;
	int batch;
	uint64_t memory;
	struct neap_problem problem;	      /* as measured: sizes and seconds per step */
	char tier_about[NEAP_TIERS_MAX][320]; /* location, page cache, engine */
	uint64_t data_bytes, weights_bytes, grads_bytes;
	int64_t window_steps;	/* of a window of a long batch; 0: no windows were used */
	double input_wait;	/* seconds that sweeps waited for windows */
	double spikes, support; /* per unit and step; NaN: no spiking layer */
	int64_t trace_dropped;	/* events dropped because sweep.trace was full */
	/* Tiers that failed while they were measured and were left out: one line about each. */
	int tiers_lost;
	char tier_lost[NEAP_TIERS_MAX][512];
	struct neap_process_memory process;
	struct neap_device_use device;
	double *joules; /* [runs_count] energy per batch; NaN: not measured; owned by the result */
};
/* Runs one batch with each strategy and measures memory and time. */
NEAP_API int neap_compare(
	struct neap_compare_result *result, const struct neap_compare_options *options);
/* Frees the arrays of a result. */
NEAP_API void neap_compare_result_free(struct neap_compare_result *result);

/*
 * How neap_calibrate measures costs: of steps, copies of the state and slow tiers for a batch on
 * this machine, and how much they slow each other down when they overlap.
 */
struct neap_calibrate_options {
	uint32_t size; /* sizeof(struct neap_calibrate_options) */
	const char *data;
	struct neap_net_options net;
	const char *loss;
	struct neap_rate_penalty rates;
	int batch;
	int64_t max_steps;
	int64_t first; /* index of the first batch */
	uint64_t seed;
	struct neap_sweep_settings sweep; /* memory: bound on what is stored; slow: tiers */
	int repeats;			  /* of each measurement; the median is reported; 0: 9 */
	int64_t timed;			  /* steps that are timed; 0: 256 */
	int (*progress)(void *user, const char *what, int done, int total); /* may be NULL */
	void *user;
	const char *encode;	/* as in neap_train_options */
	int next, no_normalise; /* as in neap_train_options */
};

/* Measured costs of steps, copies and slow tiers. */
struct neap_calibration {
	uint32_t size;		     /* sizeof(struct neap_calibration) */
	struct neap_problem problem; /* the batch as a uniform chain; budget; tiers */
	int batch;
	struct neap_timing advance, record, backward; /* seconds per step */
	struct neap_timing replay;		  /* seconds per step; 0: the network has no log */
	struct neap_timing slot_write, slot_read; /* seconds per copy of the state */
	struct neap_timing call; /* seconds per call of the model, in addition to its steps */
	struct neap_calibrated_tier tiers[NEAP_TIERS_MAX];
	/* Of a device: bytes per second of copies from and to pinned memory of the host, and
	   between parts of its memory, and seconds per kernel launch with the wait for it. */
	struct neap_device_use device;
	struct neap_timing to_device, from_device, device_to_device, launch;
};
/* Measures the costs of steps, copies and slow tiers. */
NEAP_API int neap_calibrate(
	struct neap_calibration *calibration, const struct neap_calibrate_options *options);

#ifdef __cplusplus
}
#endif
#endif
