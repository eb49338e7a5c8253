/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.h: training, evaluating and comparing strategies on real batches.
 *
 *     struct neap_train_options o = NEAP_TRAIN_OPTIONS_INIT;
 *     o.data = "train.h5";
 *     o.test = "test.h5";
 *     o.out = "run";
 *     o.sweep.memory = 16 << 20;
 *     struct neap_train_result result = {.size = sizeof result};
 *     neap_train(&result, &o);
 *
 * The folder of a run has model.safetensors (best on validation, or of the last epoch),
 * last.safetensors (weights, optimizer, counters: where --resume continues), metrics.csv and
 * costs.csv (a row per epoch: what was learned, what it cost), run.json (settings, plan, machine).
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
 * Bytes of the whole process, part by part. `most` is their sum, which the process does not exceed.
 * It is reckoned before the first sweep; `measured` is what the process took up to the end.
 */
struct neap_process_memory {
	uint64_t total;	   /* as asked for; 0: nothing was */
	uint64_t most;	   /* resident bytes, at most */
	uint64_t measured; /* largest resident size of the process (VmHWM); 0: unknown */
	uint64_t arena, slow;
	uint64_t weights, gradients, optimizer, scratch;
	uint64_t inputs;   /* batches, windows and the sample being read */
	uint64_t planning; /* tables while a plan is made */
	uint64_t program;  /* code, libraries, stacks, and all else */
	uint64_t files; /* of these: parts of code and libraries in memory when it was reckoned */
};

/* How sweeps are to be run. */
struct neap_sweep_settings {
	uint64_t memory; /* bytes of the arena; 0: half of what is free */
	/*
	 * Bytes of the whole process: the arena gets what the other parts leave, at most `memory`
	 * (0: any). 0: the process takes what it takes.
	 */
	uint64_t memory_total;
	const char *strategy; /* NULL: "auto" */
	struct neap_params params;
	const char
		*slow; /* slow tiers: "DIR[+DIR...]|FILE|mem:SIZE,...", fastest first; NULL: none */
	int slow_in_memory; /* 1: a DIR may be in memory (tmpfs) */
	int page_cache;	    /* 1: files go through the page cache */
	/* Bound on what the inputs of long batches take, which are read in windows; 0: 16 MiB. */
	uint64_t inputs;
	/*
	 * What steps and tiers cost, as measured before (a chain file): seconds a step of
	 * a whole batch, the tiers of `slow` in their order. NULL: measured at the start.
	 */
	const struct neap_problem *costs;
	/* A directory for a journal (sweep.h), and seconds between its commits; compare only. */
	const char *journal;
	double journal_seconds;
	/*
	 * A file for what sweeps did when (neap/trace.h): of the last run of each strategy
	 * compared; of the batch `trace_batch` of a training session, from 1, or of its last
	 * one (0). Up to 2^20 events in all; the oldest are dropped. NULL: none.
	 */
	const char *trace;
	int64_t trace_batch;
	/*
	 * Of each sweep (neap_sweep_options), in seconds; 0 or infinite: no transfer is given
	 * up. Below 0: 30 s or four times a forward pass, whichever is more.
	 */
	double patience;
	/*
	 * 1: no plan is replaced while it runs (neap_sweep_options), so that a run does the same
	 * every time; with `costs` that are given none is.
	 */
	int no_replan;
};

/* Where a run stands; handed to `progress` after every batch and every epoch. */
struct neap_train_progress {
	int epoch, epochs;	 /* 0-based */
	int64_t batch, batches;	 /* done in this epoch, of so many */
	int64_t sample, samples; /* likewise */
	int64_t update;		 /* optimizer steps so far */
	double loss, accuracy;	 /* running means of this epoch, training data; NaN: no labels */
	double seconds;		 /* since the run began or was resumed */
	double samples_per_second;
	uint64_t peak_planned, peak_measured; /* bytes, largest so far */
	double spikes, support;		      /* activity of the last batch; NaN: no layer spikes */
	int epoch_done; /* 1: the epoch is complete and the numbers below hold */
	double validation_loss, validation_accuracy;
	double learning_rate;
	int best;	/* 1: the best on validation so far, which the samples are enough to say */
	double penalty; /* on rates, running mean of this epoch; `loss` is without it */
};

/* Optimizers in table order; NULL beyond the end. */
NEAP_API const char *neap_optimizer_name(int index);
/* Learning-rate schedules in table order; NULL beyond the end. */
NEAP_API const char *neap_learning_rate_name(int index);

/* Everything that defines a training run: data, net, optimizer, budget, output. */
struct neap_train_options {
	uint32_t size;	  /* sizeof(struct neap_train_options) */
	const char *data; /* training set, a name for neap_dataset_open */
	const char *test; /* or NULL: looked at once, at the end */
	const char *out;  /* folder of the run: new or empty, unless `resume` */
	int resume; /* 1: continue from the snapshot in `out`; without one, from the beginning */
	struct neap_net_options net; /* inputs, classes 0: from the data */
	const char *loss;	     /* a name of neap_loss_at; NULL: by the targets */
	struct neap_rate_penalty rates;
	const char *optimizer; /* a name of neap_optimizer_name */
	double learning_rate, momentum, beta1, beta2, epsilon, weight_decay;
	const char *schedule; /* a name of neap_learning_rate_name */
	int64_t warmup;	      /* updates; -1: 50, but at most two epochs */
	double clip;	      /* global norm of the gradient; 0: off */
	int epochs, batch;
	int64_t max_steps;   /* cut samples beyond; 0: no limit */
	double validation;   /* share of the training set held out */
	const char *holdout; /* name of a speaker held out as validation instead; or NULL */
	uint64_t seed;
	struct neap_augment augment; /* of the training samples; never of validation and test */
	struct neap_sweep_settings sweep;
	double snapshot_seconds; /* also within an epoch; 0: at epoch ends only */
	const char *command;	 /* command line, for run.json; may be NULL */
	/* Non-zero: snapshot and stop with NEAP_EINTERRUPTED. May be NULL. */
	int (*progress)(void *user, const struct neap_train_progress *progress);
	/* One line of text without newline (the plan, what resumed). May be NULL. */
	void (*say)(void *user, const char *line);
	void *user;
	/*
	 * A file for neap_model_open whose weights the run begins with; NULL: weights are drawn.
	 * `net` has to describe a net of the same tensors, as neap_model_net gives it. A run that
	 * goes on from a snapshot does not read it.
	 */
	const char *from;
	int fresh_readout; /* 1: the readout is drawn all the same; classes may be others */
	/*
	 * Of data whose inputs are numbers. Each feature is normalised to a mean of 0 and a
	 * deviation of 1 over the training samples, as the model keeps it; 1: numbers as they are.
	 */
	int no_normalise;
	int next; /* 1: the targets are the inputs of the step after */
	/*
	 * The standard deviation of membranes, in thresholds, before anything is learned: the
	 * initial weights of the first layer are scaled for that by what the training data brings,
	 * those of layers above by the spikes of the layers below, whatever net.scale is. 0: none
	 * are; nor those of layers whose scale the specification says, whose cells have no
	 * membrane or that get numbers; nor any where weights are given by `from`.
	 */
	double gain;
	/*
	 * The ranks that train this net together, each with these options; NULL: alone. Results are
	 * the same bits. Collective. Rank 0 alone writes files, says lines and has `result` whole;
	 * `progress` is called on all, and ends the run on all. A code that is not the same on all
	 * ranks has a line that names the rank; a failure in the middle of a batch is known to the
	 * rank that has it alone (neap_peers.leave).
	 */
	const struct neap_peers *peers;
	/*
	 * How inputs that are numbers become spikes, after normalisation: "KIND:KEY=VALUE,...", of
	 * the kinds of neap_coding_name. NULL, "", "none": not at all. The model keeps it.
	 */
	const char *encode;
	/*
	 * Of data whose targets are numbers. Each output is learned as normalised to a mean of 0
	 * and a deviation of 1 over the training samples, which the model keeps; answers and losses
	 * are told in the targets' own units. 1: targets as they are.
	 */
	int no_normalise_targets;
	/*
	 * Validation samples that it takes to choose the best epoch by them. With fewer, chance
	 * would choose it: the model is that of the last epoch. 0: any number will do.
	 */
	int validation_least;
};

/* The settings that learn spoken digits; `lif` and its neighbours. */
/* clang-format off */
#define NEAP_TRAIN_OPTIONS_DEFAULTS(X) \
	X(net, NEAP_NET_OPTIONS_INIT) X(rates.upper, 0.02) X(rates.upper_weight, 1.0) \
	X(optimizer, "adam") X(learning_rate, 4e-3) X(momentum, 0.9) X(beta1, 0.9) X(beta2, 0.999) X(epsilon, 1e-8) \
	X(schedule, "cosine") X(warmup, -1) X(clip, 1.0) X(epochs, 30) X(batch, 32) X(validation, 0.1) X(seed, 1) \
	X(sweep.patience, -1) X(gain, 0.55) X(validation_least, 30)
#define NEAP_TRAIN_OPTIONS_INIT NEAP__INIT(neap_train_options, NEAP_TRAIN_OPTIONS_DEFAULTS(NEAP__INIT_FIELD))
/* clang-format on */
NEAP__INIT_FUNCTION(neap_train_options, NEAP_TRAIN_OPTIONS_DEFAULTS)

/* Accuracy, loss and confusion matrix of a model on a data set. */
struct neap_eval_result {
	uint32_t size; /* sizeof(struct neap_eval_result) */
	int64_t samples, correct;
	double accuracy, loss;
	double low, high; /* Wilson interval of the accuracy, 95% */
	int classes;
	/* [classes][classes], row = label; NULL if targets are numbers. Owned by the result. */
	int64_t *confusion;
	int layers;
	/* [layers] spikes a unit and step, NaN where a layer does not spike; owned by the result */
	double *rates;
	/* [classes] names of classes, NULL where none is known; owned by the result, or NULL. */
	char **class_name;
	enum neap_target target;
	/*
	 * What has a label, samples or steps; `correct` of them are right. 0 where targets are
	 * numbers: then accuracy is NaN, and `loss` says how far answers are off.
	 */
	int64_t judged;
	/* Level of a recording read with `every`; deviation of number targets in training; or 0. */
	double level, target_deviation;
};
/* Frees the arrays of a result. */
NEAP_API void neap_eval_result_free(struct neap_eval_result *result);

/*
 * What ranks exchanged for the batches of this session: calls of neap_peers, from the turn of a
 * batch to the agreement after its update. A call takes the rank that comes last no longer than the
 * exchange itself, so `seconds` adds up the least over ranks of each call; it is what
 * neap_ranks_predict predicts. The rest of `waited` is waiting for slower ranks.
 */
struct neap_exchange {
	int ranks; /* 0: alone, all numbers are 0 */
	uint32_t reserved;
	int64_t batches, calls; /* of all batches */
	double seconds, waited; /* the same on all ranks; of this rank */
	uint64_t sent;		/* bytes, by this rank */
};

/* What a training run reached, and the memory and time that it used. */
struct neap_train_result {
	uint32_t size; /* sizeof(struct neap_train_result) */
	int epochs_done;
	int64_t updates;
	/* Whose weights the model has, 1-based; 0: none. More right; of as many the lower loss;
	 * else the earlier; the last one with fewer than `validation_least` samples. */
	int best_epoch;
	double best_validation, train_loss, train_accuracy;
	double seconds, seconds_per_epoch;
	struct neap_plan plan;		      /* of the longest batch */
	uint64_t peak_planned, peak_measured; /* largest over all sweeps */
	uint64_t arena_bytes, weights_bytes, grads_bytes, optimizer_bytes;
	uint64_t data_bytes;  /* the largest batch in memory, whole or in windows */
	int64_t window_steps; /* of a window of a long batch; 0: all were held whole */
	double input_wait;    /* seconds that sweeps waited for windows */
	int64_t overflows, recoveries;
	int64_t late;		    /* transfers given up in this session: see patience */
	double predicted, measured; /* seconds of all sweeps */
	uint64_t weights_hash;	    /* of the final weights */
	struct neap_eval_result validation, test; /* of the model; samples 0: none */
	struct neap_process_memory process;
	struct neap_exchange exchange;
};
/* Trains a net as the options say and writes the folder of the run. */
NEAP_API int neap_train(struct neap_train_result *result, const struct neap_train_options *options);
/* Frees the arrays of a result. */
NEAP_API void neap_train_result_free(struct neap_train_result *result);

/*
 * The options of the run in a folder, as its run.json keeps them: those it was begun or last
 * resumed with, where `memory` is the budget that it took. What no file keeps (out, progress, say,
 * user, command, trace) is as in NEAP_TRAIN_OPTIONS_INIT; `resume` is 1. Options and texts belong
 * to the run and hold until it is closed. 0; -ENOENT where there is no run.json; NEAP_EFORMAT.
 */
struct neap_run;
/* Opens the run in folder `out`. */
NEAP_API int neap_run_open(struct neap_run **run, const char *out);

/*
 * Options for a new run from a JSON file: the run.json of another run, or one object whose keys are
 * the long names of options of `neap train`, with - or _, and whose values are numbers in SI units,
 * texts with units ("20ms", "16M", "15Hz"), or true and false. Costs are not taken. The same rules
 * of ownership; `resume` is 0. 0, or a negative code: NEAP_EFORMAT names a key that is unknown.
 */
NEAP_API int neap_config_open(struct neap_run **run, const char *file);
/* The options of a run; valid until neap_run_close. */
NEAP_API const struct neap_train_options *neap_run_options(const struct neap_run *run);
/* Frees the run and its options; NULL is allowed. */
NEAP_API void neap_run_close(struct neap_run *run);

/*
 * Where a model is read from: the folder of a run (its best model), a .safetensors file of one, or
 * a graph in NIR (docs/weights.md). Options and texts are owned by the model until it is closed.
 */
struct neap_model_options {
	uint32_t size; /* sizeof(struct neap_model_options) */
	const char *path;
	/* Of a graph in NIR, which may not say them: */
	double dt; /* seconds a step; 0: what its metadata says */
	const enum neap_reset
		*reset; /* of all its nodes that spike; NULL: as metadata says, or hard */
};
struct neap_model;
/* Opens a model. 0, or a negative code. */
NEAP_API int neap_model_open(struct neap_model **model, const struct neap_model_options *options);
/* The options of the model's net; valid until neap_model_close. */
NEAP_API const struct neap_net_options *neap_model_net(const struct neap_model *model);
/* `encode` of the run that the model is of, with its seed; NULL: its inputs are not encoded. */
NEAP_API const char *neap_model_coding(const struct neap_model *model);
/* Frees the model and its options; NULL is allowed. */
NEAP_API void neap_model_close(struct neap_model *model);

/* Writes a model as a graph in NIR. 0; NEAP_EUSAGE with a line about what NIR cannot say. */
struct neap_export_options {
	uint32_t size;	   /* sizeof(struct neap_export_options) */
	const char *model; /* as neap_model_options.path */
	const char *nir;   /* the file to write */
	int metadata; /* 1: resets that NIR cannot say become metadata, which neap reads back */
	/* One line about what other readers of the file will not see. May be NULL. */
	void (*say)(void *user, const char *line);
	void *user;
};
/* Writes a model as a graph in NIR. */
NEAP_API int neap_export(const struct neap_export_options *options);

/* What a net answers to one sample, or to one step of it. */
struct neap_answer {
	int64_t index; /* of the sample in its data set */
	int64_t steps;
	int label;	/* -1: none */
	int prediction; /* the class with the largest score, of equal ones the first */
	int classes;
	const double *score;	       /* [classes] of the readout; valid within the call */
	const char *const *class_name; /* as in the result; valid until neap_eval returns */
	/*
	 * Of the data, or where that has no targets, of the data that the model was trained on.
	 * Where it is numbers, they are the scores, and there is no prediction.
	 */
	enum neap_target target;
	int64_t step; /* that this is the answer to; -1: the whole sample */
	/* Of a decision: seconds of the sample that it is about, so far; 0: this is none. */
	double time;
	/* Of a table whose samples have names: the sample's; NULL: none. Valid within the call. */
	const char *sample_name;
};

/* What a layer of a net has after a step of a sample. */
struct neap_layer_view {
	const char *name; /* "layer0", ..., "readout" */
	const char *cell; /* "lif" */
	int units;
	int spikes;	       /* -1: its outputs are numbers of all units */
	const uint16_t *spike; /* [spikes] the units that spiked, ascending */
	int states;
	/*
	 * [states] Names and rows [units] of the state: "membrane" first, then "adaptation" or
	 * "current" where the cell has one; of gated cells "output", then "cell"; of the readout
	 * "output". A reset that acts at once has acted.
	 */
	const char *const *state_name;
	const double *const *state;
};

/* What a net has after a step of a sample, and what entered. Valid within the call. */
struct neap_step_view {
	int64_t sample; /* its number in the data set */
	int64_t step, steps;
	double dt; /* seconds a step */
	int inputs;
	int events;		       /* of the inputs; 0 where they are numbers */
	const uint16_t *event;	       /* [events] the channels that spiked, ascending */
	const float *values;	       /* [inputs] where they are numbers; else NULL */
	enum neap_precision precision; /* that the states were computed in */
	int layers;
	const struct neap_layer_view *layer; /* [layers] from the inputs up, the readout last */
};

/* Evaluates the model of a run folder (or a .safetensors file) on a data set. */
struct neap_eval_options {
	uint32_t size; /* sizeof(struct neap_eval_options) */
	/* `data`: a data set, a recording, or a table of text (.csv, .tsv). */
	const char *model, *data;
	int batch;						  /* 0: 64 */
	int threads;						  /* 0: one a processor */
	int (*progress)(void *user, int64_t done, int64_t total); /* may be NULL */
	void *user;
	/* Called for every sample in order; a negative code ends the evaluation. May be NULL. */
	int (*answered)(void *user, const struct neap_answer *answer);
	double dt;		      /* as in neap_model_options */
	const enum neap_reset *reset; /* likewise */
	/*
	 * The ranks that share every batch, each with these options; NULL: alone. Results are the
	 * same bits, on all of them; `answered` is called on rank 0. Collective.
	 */
	const struct neap_peers *peers;
	/*
	 * 1: if targets are of steps, `answered` is called for every step of every sample in order
	 * (label -1: masked), not once per sample. Samples run one at a time; `peers` is NULL.
	 */
	int of_steps;
	/*
	 * An archive of NumPy arrays (.npz) to write, whole or not at all: `sample`, `step` of
	 * steps, `label` and `prediction` of classes, all [answers], `scores` [answers][classes],
	 * `names` [classes]. A row is a call of `answered`, which must not be NULL, and is called
	 * first; `peers` is NULL. NULL: none.
	 */
	const char *arrays;
	/* This sample alone; NULL: all. */
	const int64_t *sample;
	/*
	 * Called after every step, in the order of samples and steps, before `answered` of that
	 * step or sample. A negative code ends the evaluation with it. Where one of this, `spikes`
	 * and `membranes` is there, samples run one at a time, and `peers` is NULL. May be NULL.
	 */
	int (*stepped)(void *user, const struct neap_step_view *view);
	/*
	 * Archives of NumPy arrays (.npz) to write, whole or not at all: the spikes, and the states
	 * of layers and the readout, at every step (docs/answers.md). NULL: none.
	 */
	const char *spikes, *membranes;
	/* Of this layer alone: "layer0" or "0", "readout"; NULL: of all. */
	const char *layer;
	/*
	 * Seconds of a sample from one decision to the next; 0: none. `answered` is then called
	 * every so many seconds of each sample, and at its end, with the readout's answer to the
	 * sample so far; where targets are of steps, with the outputs of that step. A recording or
	 * "-" is read and run a piece at a time, in memory that does not grow with its length.
	 * Samples run one at a time; `peers` is NULL. At least one step of the model.
	 */
	double every;
	/*
	 * With `every`: the root mean square of the sound, full scale 1, after the emphasis of the
	 * encoder, which sets that level to its own (neap_encoder_options.rms). The sound is then
	 * read once, as it comes. 0: the level of a recording is measured before, which takes two
	 * passes more, and that of "-" is the level so far.
	 */
	double level;
	/*
	 * With `every`: asked several times a second with `user` while "-" is waited for, from
	 * another thread, too; non-zero ends with NEAP_EINTERRUPTED. May be NULL.
	 */
	int (*interrupted)(void *user);
	/*
	 * With `every`, a whole number of times that: a decision is about the last so many seconds,
	 * of answers to samples. What the result counts is then the end of each sample, since the
	 * decision before its last one. 0: the sample so far.
	 */
	double window;
	/* One line of text without newline: what the data leaves open. On rank 0. May be NULL. */
	void (*say)(void *user, const char *line);
	/* 1: scores of classes are probabilities, the softmax of what the readout answers. Not for
	   models whose targets are numbers. */
	int softmax;
};
/* Evaluates a model on a data set. */
NEAP_API int neap_eval(struct neap_eval_result *result, const struct neap_eval_options *options);

/* A strategy under parameters of its own; all of a comparison share one calibration. */
struct neap_compare_case {
	const char *strategy;
	struct neap_params params;
	uint64_t memory; /* budget in bytes; 0: sweep.memory */
	int least;	 /* 1: the least budget that its parameters can do with, instead */
};

/* One real batch under several strategies. */
struct neap_compare_options {
	uint32_t size; /* sizeof(struct neap_compare_options) */
	const char *data;
	struct neap_net_options net;
	const char *loss;
	struct neap_rate_penalty rates;
	int batch;
	int64_t max_steps;
	int64_t first; /* number of the first sample */
	uint64_t seed;
	struct neap_sweep_settings sweep;
	const char *const *strategies; /* NULL-terminated; NULL: all */
	/*
	 * Cases, so many, instead of strategies; runs are in their order, after the
	 * reference. sweep.params are not looked at.
	 */
	const struct neap_compare_case *cases;
	int cases_count;
	int repeats; /* runs of each, the median is reported; 0: 1 */
	int no_reference;
	/*
	 * Store-all as reference in so much memory, over the first steps that it holds; 0: over
	 * all steps, if that is at most half of the free memory.
	 */
	uint64_t reference_memory;
	int (*progress)(void *user, const char *strategy, int done, int total); /* may be NULL */
	/* One line of text without newline: what the process will take. May be NULL. */
	void (*say)(void *user, const char *line);
	void *user;
	const char *encode;	/* as in neap_train_options */
	int next, no_normalise; /* likewise */
};

/*
 * Seconds a step, waits and recomputation included, over ranges of a hundredth of the
 * steps: the median of the first tenth of the ranges in a direction's course, and of the
 * last. Forward is the first pass.
 */
struct neap_pace {
	int64_t range; /* steps; 0: too few, NaN below */
	double forward_first, forward_last, backward_first, backward_last;
};

/* The result of one strategy. */
struct neap_compare_run {
	struct neap_plan plan;
	int reference; /* store-all outside the budget */
	int ran;       /* 0: infeasible, or `error` */
	int error;
	char what[200];		       /* why it did not run */
	struct neap_sweep_stats stats; /* of the median run */
	struct neap_pace pace;	       /* likewise */
	double input_wait;	       /* seconds that it waited for windows of inputs */
	int64_t steps;		       /* fewer than the batch's: a reference over its first */
	double seconds, spread;	       /* median, (max - min) / median */
	/*
	 * How much longer steps took beside that sweep than as it was planned (by sweeps without
	 * transfers just before it and after it), and the plan's time at what they took then.
	 */
	double slowed, expected;
	double ratio;	 /* the median over the runs of seconds / expected, each its own */
	double overhead; /* over the reference's seconds a step, minus 1; NaN without one */
	double loss;
	uint64_t grad_hash;
	/* The plan as the last run left it (neap_sweep_options.no_replan), with its costs. */
	struct neap_plan ended;
	struct neap_problem problem;
};

/* The results of all strategies on the same batch. */
struct neap_compare_result {
	uint32_t size; /* sizeof(struct neap_compare_result) */
	int runs_count;
	struct neap_compare_run *runs; /* owned by the result */
	int64_t steps, lengths_total;
	int batch;
	uint64_t memory;
	struct neap_problem problem;	      /* as measured: sizes and seconds a step */
	char tier_about[NEAP_TIERS_MAX][320]; /* where each lies, page-cached or not, its engine */
	uint64_t data_bytes, weights_bytes, grads_bytes;
	int64_t window_steps; /* of a window of a long batch; 0: it was held whole */
	double input_wait;    /* seconds that sweeps waited for windows */
	double spikes, support;
	int64_t trace_dropped; /* events that sweep.trace had no room for */
	/* Tiers that failed while they were measured and were left out: a line about each. */
	int tiers_lost;
	char tier_lost[NEAP_TIERS_MAX][512];
	struct neap_process_memory process;
};
/* Runs one batch with each strategy and measures memory and time. */
NEAP_API int neap_compare(
	struct neap_compare_result *result, const struct neap_compare_options *options);
/* Frees the arrays of a result. */
NEAP_API void neap_compare_result_free(struct neap_compare_result *result);

/*
 * Calibration: what the steps of a batch, copies of its state and slow tiers cost on
 * this machine, and how much they slow each other when they run together.
 */
struct neap_calibrate_options {
	uint32_t size; /* sizeof(struct neap_calibrate_options) */
	const char *data;
	struct neap_net_options net;
	const char *loss;
	struct neap_rate_penalty rates;
	int batch;
	int64_t max_steps;
	int64_t first; /* number of the first batch */
	uint64_t seed;
	struct neap_sweep_settings sweep; /* memory bounds what is kept; the tiers of slow */
	int repeats;			  /* of each measurement, the median counts; 0: 9 */
	int64_t timed;			  /* steps that are timed; 0: 256 */
	int (*progress)(void *user, const char *what, int done, int total); /* may be NULL */
	void *user;
	const char *encode;	/* as in neap_train_options */
	int next, no_normalise; /* likewise */
};

/* Measured costs of steps, copies and slow tiers. */
struct neap_calibration {
	uint32_t size;		     /* sizeof(struct neap_calibration) */
	struct neap_problem problem; /* the batch as a uniform chain; budget; tiers */
	int batch;
	struct neap_timing advance, record, backward; /* seconds a step */
	struct neap_timing replay; /* of a tape from state and log; 0: the net has no log */
	struct neap_timing slot_write, slot_read; /* seconds a copy of the state */
	struct neap_timing call; /* seconds a call of the model, besides its steps */
	struct neap_calibrated_tier tiers[NEAP_TIERS_MAX];
};
/* Measures the costs of steps, copies and slow tiers. */
NEAP_API int neap_calibrate(
	struct neap_calibration *calibration, const struct neap_calibrate_options *options);

#ifdef __cplusplus
}
#endif
#endif
