/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.h: the state of one training run, which the files of this folder share, and what each of
 * them does for it.
 */
#ifndef NEAP_TRAIN_TRAINER_H
#define NEAP_TRAIN_TRAINER_H

#include <neap/train.h>
#include "data/coding/coding.h"
#include "measure/net_steps.h"
#include "measure/target_fit.h"
#include "train/optimizer.h"
#include "train/learning_rate.h"
#include "train/ranks/rank_start.h"
#include "ranks/rank_meter.h"
#include "train/safetensors.h"
#include "measure/slow_tiers.h"

/*
 * Progress of a run, which every snapshot holds. Each field has a row in the table of snapshot.c;
 * a new field needs one too.
 */
struct neap__counters {
	int64_t epoch, batch, update;	   /* epochs done, batches done in the next, updates */
	int64_t best_epoch;		   /* 1-based; 0: none */
	double best_validation, best_loss; /* accuracy and loss of it */
	double seconds;			   /* of all sessions */
	/* Sums over the running epoch, training data. */
	int64_t seen, correct, judged;	       /* correct: of what was judged, samples or steps */
	double loss, penalty, spikes, support; /* times samples */
	/* Sums over the run. */
	int64_t overflows, recoveries;
	double predicted, measured;
	int64_t peak_planned, peak_measured, arena; /* largest */
	/* Sums over the running epoch: seconds of exchanges, and of waits for them; bytes sent. */
	double exchanged, waited;
	int64_t sent;
};

/* The data of a run. */
struct neap__data {
	struct neap_dataset *set, *test;
	struct neap_dataset_info info;
	int64_t *first, *second; /* training and validation samples */
	int64_t nfirst, nsecond, ntest;
	struct neap_loader *loader, *validation;
	uint64_t fingerprint;
	int64_t longest; /* steps of the longest sample; 0: unknown */
};

/* Initial weights of a layer by what arrives (initial_gain.c). */
struct neap__initial_gain {
	double factor;	  /* its weights were multiplied by; 0: they were left alone */
	double hertz;	  /* spikes that arrive, a unit below and second */
	double deviation; /* of membranes with the weights as they had been, in thresholds */
};

/* Costs that sweeps are planned with: running averages of measurements. */
struct neap__planning {
	struct neap__costs costs;   /* a step and sample */
	struct neap__costs planned; /* costs when the plan in force was made */
	double margin;		    /* planned over measured mean tape */
	double tape[2];		    /* a step and sample: largest mean, of two windows of batches */
	int64_t sweeps;
	double seconds;	   /* spent planning */
	uint64_t memory;   /* bytes of the arena, at most */
	uint64_t beside;   /* bytes of the device that are not the arena's */
	uint64_t resident; /* of the process, before the first plan was made */
	/* What the plan in force was made for. */
	int64_t steps;
	struct neap_step_ops ops;
};

struct neap__trainer {
	struct neap_trace *trace;	   /* of the sweep before, or NULL */
	int64_t traced;			   /* the sweep in the file; 0: none yet */
	struct neap_sweep_stats sweeps;	   /* sums of seconds and stalls, of this session */
	struct neap_train_options options; /* resolved */
	struct neap_train_result *result;
	struct neap__ranks ranks;
	struct neap__rank_meter meter; /* its peers are those of `ranks` */
	int idle;		       /* 1: this rank has no samples in any batch */
	struct neap__data data;
	struct neap_net *net;
	struct neap__safetensors from; /* of options.from, while it is opened */
	struct neap_objective objective;
	struct neap__initial_gain *gain; /* [layers]; NULL: weights are not drawn */
	double readout_spikes; /* of a sample, that options.readout_gain was chosen for; 0: it was
				  not */
	const struct neap__learning_rate *schedule;
	struct neap__optimizer optimizer;
	struct neap__optimizer whole; /* moments of all ranks, on rank 0 while files have them */
	struct neap__tiers tiers;
	struct neap_sweep *sweep;
	struct neap__planning planning;
	struct neap__counters counters;
	struct neap_process_memory memory;
	int folder; /* open and locked while the run writes; or -1 */
	char *model, *last, *metrics, *costs, *run; /* paths */
	char *spec;		 /* of the run that is resumed, if the options have none; or NULL */
	double started, session; /* clock; seconds of the sessions before */
	double snapshot;	 /* clock of the last snapshot */
	int made;		 /* the folder, by this session */
	int drafted; /* run.json was first written by this session, and no plan is known to fit */
	int there, has_snapshot; /* the folder was there and not empty; last.safetensors is */
	int resumed;
	int keeps_memory;  /* 1: the budget is that of the run that is resumed */
	int silent;	   /* 1: a warning reported a silent layer */
	int64_t no_inputs; /* samples that were read without a spike; 0: there are some */
	int lost_inputs;   /* 1: a warning reported options that leave little of them */
	char shape[NEAP__SHAPE_TEXT]; /* of the inputs, from the data */
	char fitted[NEAP__FIT_LINE];  /* what the targets choose; "": nothing */
	int mse_by_default;	      /* the loss is mse because the targets are numbers */
	double joules;		      /* of the device, up to the end of the last epoch */
	int other_side; /* 1: that run was on a device and this one is not, or the reverse */
	char coding[NEAP__CODING_TEXT]; /* options.encode points here */
	const char *state;		/* for run.json: "running", "interrupted", "done" */
};

/* Writes the trace of the last sweep to its file, and says so. 0 or a negative code. */
int neap__trainer_trace(struct neap__trainer *trainer);
/* Passes one line to options.say. */
void neap__trainer_say(const struct neap__trainer *trainer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * run_folder.c: check returns 1 where the run's folder exists; is_free refuses one that is not to
 * be resumed, same_data data that differs from a resumed run's (it sets keeps_memory, and the
 * network if the options have none); take makes
 * the folder, locks it and removes half-written files of a killed run.
 */
int neap__run_folder_is_free(const struct neap__trainer *trainer);
int neap__run_folder_same_data(struct neap__trainer *trainer);
int neap__run_folder_check(const struct neap_train_options *options);
int neap__run_folder_paths(struct neap__trainer *trainer);
int neap__run_folder_take(struct neap__trainer *trainer, int there);
void neap__run_folder_leave(struct neap__trainer *trainer);

/*
 * answers/test_set.c: data_open opens a data set; where one of a resumed run is missing, the line
 * shows `argument`, by which its new name is passed. test_set_open opens and checks options.test,
 * if it is given; test_set_say reports what is doubtful about it: another encoding, classes that
 * are matched by number, or that it is the training data.
 */
int neap__data_open(struct neap_dataset **set, const struct neap__trainer *trainer,
	const char *name, const char *argument);
int neap__test_set_open(struct neap__trainer *trainer);
void neap__test_set_say(const struct neap__trainer *trainer);

/* epoch.c: 1 if there are enough validation samples to choose the best epoch by them. */
int neap__chooses_best(const struct neap__trainer *trainer);
/* Runs the rest of the present epoch; adds to the samples seen in this session. */
int neap__epoch(struct neap__trainer *trainer, double *samples);
/* Evaluates the net on the validation split; samples 0 without one. */
int neap__validate(struct neap__trainer *trainer, struct neap_eval_result *result);

/*
 * initial_gain.c: multiplies the weights of all layers, and begins the statistics of those with a
 * norm; net and data are open. The result is a function of the options and the samples alone. 0,
 * -ENOMEM or what reading the set fails with. say tells what was done, in a line.
 */
int neap__initial_gain(struct neap__trainer *trainer);
/*
 * initial_gain.c: runs a few training samples through the net, as one batch, the first TRIAL_STEPS
 * of each at most. `answered` may be NULL. 0, -ENOMEM or what reading the set fails with.
 */
enum { NEAP__TRIAL_STEPS = 4096 };
int neap__run_trials(struct neap_eval_result *result, struct neap__trainer *trainer,
	int (*answered)(void *user, const struct neap_answer *answer), void *user);
struct neap__param;
void neap__multiply(struct neap__param *weights, enum neap_precision precision, double factor);
/*
 * readout_gain.c: chooses options.readout_gain for the activity of a net with its initial weights,
 * which `rule` will update; 1: none is needed, or the options do not allow one. A
 * function of the options and the samples alone. 0 or as neap__run_trials.
 */
int neap__readout_gain_choose(struct neap__trainer *trainer, const struct neap__rule *rule);
/*
 * Has the optimizer update the readout in units of options.readout_gain, and multiplies its weights
 * and biases by it if they are drawn (`draws`).
 */
void neap__readout_gain(struct neap__trainer *trainer, int draws);
void neap__readout_gain_say(const struct neap__trainer *trainer);
/* The i-th of `some` training samples that are spread over all of them. */
int64_t neap__training_sample(const struct neap__data *data, int64_t i, int64_t some);
void neap__initial_gain_say(const struct neap__trainer *trainer);

/*
 * initial_gain.c: names layers that are silent or saturated, and the mend. `rates` are spikes a
 * unit and step of each hidden layer; NULL: those of the last batch.
 */
void neap__activity_say(struct neap__trainer *trainer, const double *rates);

/*
 * rank_state.c, all collective: state_send gives what rank 0 read from a snapshot to all ranks;
 * weights gives what each rank updated to all; moments_room makes trainer->whole on rank 0, and
 * moments_gather fills it. moments are those that files have: of the whole net.
 */
int neap__rank_state_send(struct neap__trainer *trainer);
int neap__rank_weights(struct neap__trainer *trainer);
int neap__rank_moments_room(struct neap__trainer *trainer);
int neap__rank_moments_gather(struct neap__trainer *trainer);
struct neap__optimizer *neap__rank_moments(struct neap__trainer *trainer);

/* doubts.c: says what is likely a mistake of the data or the options, in a line each. */
void neap__doubts_say(const struct neap__trainer *trainer);
/*
 * After the last epoch: warns if its training accuracy or loss is no better than that of a constant
 * prediction, unless a warning has reported a silent layer or inputs without spikes: that is the
 * cause, and more epochs do not help.
 */
void neap__doubts_say_constant(
	const struct neap__trainer *trainer, double accuracy, double loss, double validation);
/*
 * falling_loss.c: after the last epoch, a note if the run had few updates and its loss was still
 * falling from `before`, or was falling before the schedule lowered the learning rate; with many
 * updates, if the outputs were too large at first.
 */
void neap__doubts_say_falling(
	const struct neap__trainer *trainer, double before, double loss, double accuracy);

/* setup.c: opens the data, makes net, optimizer and loaders. Writes nothing. */
int neap__setup(struct neap__trainer *trainer);
void neap__setup_say(const struct neap__trainer *trainer);
void neap__teardown(struct neap__trainer *trainer);

/* batch_planning.c: makes the first plan, for the longest batch, and one for each batch begun. */
int neap__planning_start(struct neap__trainer *trainer);
void neap__planning_say(const struct neap__trainer *trainer); /* what was chosen, and why */
int neap__planning_batch(struct neap__trainer *trainer, const struct neap_batch *batch);
void neap__planning_learn(struct neap__trainer *trainer, const struct neap_batch *batch,
	const struct neap_sweep_stats *stats);

/*
 * memory_total.c: what the process takes. begin reckons before the first plan, and planned after
 * it; planned returns 1 where the arena has less than it was planned with. Before each batch is
 * begun, before releases an arena that leaves no room for its sums; batch returns 1 where the arena
 * has to be smaller from now on. release frees the arena for other work, if there is a total.
 */
int neap__memory_total_begin(struct neap__trainer *trainer, const struct neap_batch *batch);
void neap__memory_total_watch(struct neap__trainer *trainer);
int neap__memory_total_planned(struct neap__trainer *trainer);
void neap__memory_total_before(struct neap__trainer *trainer);
int neap__memory_total_batch(struct neap__trainer *trainer);
void neap__memory_total_release(struct neap__trainer *trainer);
int neap__memory_total_say(struct neap__trainer *trainer);
/* Of a device: what it holds in addition to the arena, when the first plan is made; what the run
 * used. */
int neap__memory_device_beside(struct neap__trainer *trainer);
int neap__memory_device_end(struct neap__trainer *trainer);

/* snapshot.c: saves and loads last.safetensors; load returns 1 where there is one. */
int neap__snapshot_save(struct neap__trainer *trainer);
int neap__snapshot_load(struct neap__trainer *trainer);
/* The factor of the readout that the run of the snapshot has; 0: none, or it cannot be read. */
double neap__snapshot_readout_gain(const struct neap__trainer *trainer);

/*
 * metrics.c: metrics.csv and costs.csv. start keeps the rows of the epochs so far; if some of them
 * have none, it warns, and a copy of the file stays.
 */
int neap__metrics_start(const struct neap__trainer *trainer);
int neap__metrics_add(const struct neap__trainer *trainer, double rate,
	const struct neap_eval_result *validation, double joules);

/* run_json.c: run.json. */
int neap__run_json_write(const struct neap__trainer *trainer);

#endif
