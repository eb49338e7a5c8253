/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h: what the subcommands of `neap` share: options, units, progress, text files and failures.
 * One subcommand a file, one row in CLI_COMMAND_TABLE.
 */
#ifndef NEAP_CLI_CLI_H
#define NEAP_CLI_CLI_H

#include <neap/neap.h>
#include "base/show.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/units.h"
#include <stdint.h>
#include <stdio.h>

/* Exit codes: done, failed while running, bad usage or input. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };
/*
 * Without a line: the reader of standard output closed the pipe, as `head` does. It is the status
 * that a shell reports of a process that SIGPIPE (13) ended, which this one is, unless whoever
 * started it ignores the signal.
 */
enum { CLI_READER_LEFT = 128 + 13 };

enum cli_kind {
	CLI_FLAG,    /* int: set to 1 */
	CLI_TEXT,    /* const char *: any text but an empty one */
	CLI_INT,     /* int64_t within [low, high] */
	CLI_COUNT,   /* int within [low, high] */
	CLI_SIZE,    /* uint64_t bytes within [low, high]: 16M, 1.5G */
	CLI_TIME,    /* double seconds within [low, high]: 1ms, 20us, 0.5s, 3 */
	CLI_LIMIT,   /* the same, or inf */
	CLI_NUMBER,  /* double within [low, high] */
	CLI_RATE,    /* double events a ms within [low, high]: 20Hz, 0.2kHz, 0.02 */
	CLI_CHOICE,  /* int: index into the NULL-terminated choices */
	CLI_LIST,    /* struct cli_list: the option may be repeated */
	CLI_HEADING, /* no option: the name stands above those that follow, in help and manual */
};

/* Bounds of options: a double counts 10^15 exactly, and 10^12 s are 30,000 years. */
#define CLI_STEPS_MOST 1e15
#define CLI_SECONDS_MOST 1e12
#define CLI_BATCH_MOST 65536 /* samples */

#define CLI_LIST_MAX 16
struct cli_list {
	int count;
	const char *text[CLI_LIST_MAX];
};

/* Another name of a choice; a row without a name ends the table. */
struct cli_also {
	int choice;
	const char *name;
};

/* One option: "--name ARGUMENT  help". Rows name the fields they set; the others are 0. */
struct cli_option {
	const char *name; /* without the dashes; NULL ends a table */
	enum cli_kind kind;
	void *into;	      /* the default stands there before parsing */
	const char *argument; /* for --help; NULL for flags */
	const char *help;
	double low, high;		 /* of the value; high 0: none but the kind's own */
	const char *const *choices;	 /* CLI_CHOICE: the names, NULL-terminated */
	const char *(*names)(int index); /* the same for --help, of a library's table; NULL ends */
	int *given;			 /* may be NULL: set to 1 when the option was there */
	char letter;			 /* -o for --out; 0: none */
	const char *alias;		 /* another name; NULL: none */
	const char *zero;		 /* CLI_TIME: a word that stands for 0 */
	const char *minus_one;		 /* CLI_NUMBER: a word that stands for -1 */
	const char *unit;	     /* CLI_TIME: a number alone is refused, this unit proposed */
	const char *bare;	     /* CLI_LIMIT: a number alone is refused with this */
	const char *wrong;	     /* what to do about a value that is no number; NULL: nothing */
	int fraction;		     /* CLI_NUMBER: 1: a share, which people also give in percent */
	int keys;		     /* 1: a name of `names` may have ":KEY=VALUE,..." behind it */
	const struct cli_also *also; /* CLI_CHOICE: other names of the choices; NULL: none */
	const char
		*differ; /* CLI_CHOICE: how they differ, for another name, NULL: proposed by it */
};

/* A row of a table that begins a group. */
#define CLI_GROUP(title)                                                                           \
	{                                                                                          \
		.name = (title), .kind = CLI_HEADING                                               \
	}

/* Options of every command: --quiet. Ends with a row without a name. */
extern const struct cli_option cli_common_options[];
extern int cli_quiet;  /* 1: no progress, no lines about what goes well */
extern int cli_silent; /* 1: no warnings either: another rank prints them */
/* 1: the line is not printed: a note with --quiet, which keeps warnings; all where silent. */
int cli_hides(const char *line);

struct cli_command {
	const char *name, *arguments, *about;
	const char *examples; /* lines, each beginning with "  neap" */
	const struct cli_option *options;
	int least, most; /* positional arguments */
};

/*
 * Parses `--name value`, `--name=value` and positional arguments (into `positional`, room for
 * `most`). Returns the number of positional arguments. Where the command is to end now, because
 * help or one line about a mistake was printed, returns -1 - exit code (see CLI_ENDED).
 */
int cli_parse(const struct cli_command *command, int argc, char **argv, const char **positional);

/* usage/help.c: help, and a line an option for completions. */
void cli_help(const struct cli_command *command);
void cli_list_options(const struct cli_command *command);

/*
 * usage/foreign_names.c: "; what to do instead." of an option that the command lacks, but that
 * other programs have; NULL: it is not one of them. Returns `room`.
 */
const char *cli_foreign_name(
	char room[256], const struct cli_command *command, const char *text, size_t length);

/* The exit code in a negative answer of cli_parse. */
#define CLI_ENDED(parsed) (-1 - (parsed))

/* Prints "neap COMMAND: text" on standard error; returns CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

int cli_is_bad_input(int code); /* 1: a failure that other arguments or files would avoid */
/*
 * Prints the detail line of a library call that failed with `code`. Returns CLI_USAGE where the
 * caller can give other input, else CLI_FAILED.
 */
int cli_fail(const char *command, int code);

/* usage/spans.c: 0, or -1 where the whole text is no such value. */
int cli_parse_span(double *low, double *high, const char *text); /* A:B, or X: 1-X to 1+X */

/*
 * tier_option.c: NAME:key=value,... of --tier into *tier. In a classic problem a tier has slots=,
 * and write= and read= are seconds a state. CLI_DONE or one line.
 */
int cli_parse_tier(struct neap_tier_spec *tier, const char *text, int classic, const char *command);

/* Rows that several commands share. */
/* clang-format off */
#define CLI_JSON_OPTION(json) \
	{.name = "json", .kind = CLI_FLAG, .into = &(json), \
		.help = "print one JSON object on standard output"}

/* NEAP_PARAM_OPTION_TABLE as options that fill CLI_PARAMS, which a command defines. */
#define CLI_PARAM_OPTION(member, option, meaning) \
	{.name = option, .kind = CLI_INT, .into = &CLI_PARAMS.member, .argument = "N", \
		.help = meaning " (default: chosen by the plan)", .low = 1, .high = CLI_STEPS_MOST},
#define CLI_PARAM_OPTIONS NEAP_PARAM_OPTION_TABLE(CLI_PARAM_OPTION)
/* clang-format on */

/* "one, two, three": the names of a table, for lines that refuse another one. */
const char *cli_show_names(char *room, size_t size, const char *(*name)(int index));
/* The line about a name that a table lacks, after `before`, with what may be meant. CLI_USAGE. */
int cli_unknown_name(
	const char *command, const char *before, const char *text, const char *(*name)(int index));

/* usage/progress.c: progress on standard error, a bar on a terminal, elsewhere a line every 10 s.
 */
struct cli_progress {
	const char *label;
	const char *unit;      /* "files", "samples" */
	double started, shown; /* neap_clock() at the start and when it was last shown */
	int terminal, drawn;   /* 1: there is a terminal; a bar stands on it */
};
void cli_progress_start(struct cli_progress *progress, const char *label, const char *unit);
/* Shows `done` of `total`; `note` (may be NULL) follows the bar. */
void cli_progress_show(struct cli_progress *progress, double done, double total, const char *note);
/* Clears the bar, so that a line can be printed; the next show draws it again. */
void cli_progress_clear(struct cli_progress *progress);

/* process.c: opens closed standard streams and ignores SIGXFSZ; to be called first. */
void cli_begin(void);
/* After cli_catch_signals, cli_interrupted is 1 from the first SIGINT, SIGTERM or SIGHUP on; the
 * second one ends the process. */
void cli_catch_signals(void);
/* The same, with a line of `command` on standard error at both: it stops after `after`, it stopped.
 * The second one ends the process with CLI_FAILED. */
void cli_catch_signals_aloud(const char *command, const char *after);
int cli_interrupted(void);

/* Parameters of a plan as "chunk=10 remote_chunk=100", "" without any. Returns `room`. */
const char *cli_show_params(char room[160], const struct neap_params *params);

/*
 * text_file.c: reads a whole text file into *text, zero-terminated, which the caller frees in
 * every case; *size (may be NULL) is its length. CLI_DONE or one line.
 */
int cli_read_text(char **text, size_t *size, const char *path, const char *command);

/*
 * Writes a text to a file, which a failure leaves as it was, to a device or a FIFO, or to standard
 * output, "-". `make(user, write, file)` makes the text by calls of write(file, text, length). A
 * line about a failure names `option`. CLI_DONE or one line; or CLI_READER_LEFT.
 */
int cli_is_output(const char *path); /* 1: "-"; NULL is not */
/* 1: two names of one file that is there. */
int cli_same_file(const char *a, const char *b);
/* CLI_DONE, or one line if the file `path` of `option` is the one that is read; NULL is none. */
int cli_check_output(const char *option, const char *path, const char *read, const char *command);
typedef int cli_make(
	const void *user, int (*write)(void *file, const char *text, size_t length), void *file);
int cli_write_file(const char *option, const char *path, const char *command, cli_make *make,
	const void *user);

/* Flushes standard output: CLI_DONE, or CLI_FAILED with a line; or CLI_READER_LEFT. */
int cli_finish(const char *command);

/*
 * The subcommands: X(NAME, what it is for). A file NAME.c gives cli_NAME, which runs with argv[0]
 * its name and returns an exit code.
 */
#define CLI_COMMAND_TABLE(X)                                                                       \
	X(plan, "plan a forward and backward pass over a chain of steps under a budget")           \
	X(train, "train a network on a data set under a memory budget")                            \
	X(eval, "evaluate a trained network: accuracy, confusion matrix, firing rates")            \
	X(predict, "print a trained network's answer to each sample")                              \
	X(encode, "convert recordings, events and tables into data sets")                          \
	X(export, "export a trained network as a NIR graph")                                       \
	X(plot, "plot loss, accuracy and firing rates of runs over epochs, as SVG or PNG")         \
	X(compare, "run one batch of real data with every strategy")                               \
	X(calibrate, "measure the costs of steps, copies and slow memory on this machine")         \
	X(bench, "benchmark planning, kernels and slow memory against their targets")              \
	X(study, "measure and plot what the strategies cost")

#define CLI_X(name, about) int cli_##name(int argc, char **argv);
CLI_COMMAND_TABLE(CLI_X)
#undef CLI_X

/* usage/encode_kind.c: what an input of `neap encode` contains, and options that do not apply to
 * it. */
enum cli_encoded { CLI_RECORDINGS, CLI_EVENTS, CLI_TABLE };

/* The kind of a folder or file, as rank 0 sees it. Collective. */
enum cli_encoded cli_encoded_kind(const char *dir);
/* Refuses options under the heading of another kind. CLI_DONE, or the exit code after one line. */
int cli_encoded_check(enum cli_encoded kind, const struct cli_option *options, const char *dir);
/*
 * usage/encode_classes.c: --classes N: "0", "1", ...; or the lines of a file, `dir` being what is
 * encoded. Names are in `text`; both are to be freed. NULL: none. CLI_DONE or one line.
 */
int cli_encoded_classes(
	char ***name, int *names, char **text, const char *classes, const char *dir);
/* The line about --classes that is no file. */
int cli_encoded_no_classes(const char *classes, const char *dir);
/* The line about two arguments, of which the second may be the file to write; lists_columns:
 * --target or --drop is given. */
int cli_encoded_several(const char *first, const char *second, int lists_columns);
/* usage/joined_texts.c: prints the line about several texts that are to be learned, if all the
 * files are texts. 1, or 0: they are not. */
int cli_several_texts(const char *const *file, int count);
/* 1: a folder that `train` wrote a model to, or the model itself. */
int cli_is_run(const char *path);
/* The quoted name of the only run in the current folder, written to `room`, or "FOLDER". */
const char *cli_only_run(char room[300]);
/* Refuses a share as --split. CLI_DONE, or the exit code after one line. */
int cli_encoded_split(const char *split);

/*
 * usage/repeated_command.c: from cli_repeat_encode on, an error that proposes an option ends in the
 * whole command with it. Keeps the pointers; options NULL: no longer.
 */
void cli_repeat_encode(const struct cli_option *options, const char *dir, const char *out,
	int words, char *const *word);
/* Adds the command to an error of encode, if it proposes an option and there is room. */
void cli_repeat_add(char *line, size_t size);

/* usage/encode_notes.c: lines of `neap encode` about skipped files, names and doubts. */
/* Files that were skipped: consecutive ones with the same fault share a line. All zero at first. */
struct cli_skipped {
	int kinds;		     /* lines so far, the present one included */
	int64_t alike;		     /* files in addition to the one of `line` */
	char line[NEAP__PLAIN_TEXT]; /* not printed yet; "": none */
	char names[400];	     /* of the first of `alike` */
};
void cli_skipped_add(struct cli_skipped *skipped, const char *line);
/* Prints what is pending; `failed`: the error repeats the only line, so that is left out. */
void cli_skipped_end(struct cli_skipped *skipped, int failed);

/* Refuses --out where it is a folder, or in none. CLI_DONE, or the exit code after one line. */
int cli_encoded_out(const char *out);
/* Prints the names of the classes of the data set that was written. */
void cli_encoded_names(const char *out);
/* Calls `doubt` for a folder with the parts train and test. `by_folder`: folders are the classes;
 * `given`: all options but the file to write, as words of a command behind a blank. */
void cli_encoded_parts(const char *dir, int by_folder, const char *given,
	void (*doubt)(void *user, const char *line), void *user);
/* Calls `doubt` for classes that are probably meant otherwise; `label`: --label. */
void cli_encoded_doubts(const char *out, const char *dir, const char *label,
	void (*doubt)(void *user, const char *line), void *user);

#endif
