/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_names.c: options as PyTorch's examples, Keras, Lightning, scikit-learn and snnTorch name
 * them, and options of other subcommands: what they are called here, or what to do instead.
 */
#include "cli.h"

#include <string.h>

enum { NAMES_MOST = 9 };

#define ENCODE_FIRST                                                                               \
	"targets are part of DATA: neap encode TABLE --out FILE.h5 --target COLUMN, or with "      \
	"--label for file names"

static const struct foreign_name {
	const char *names[NAMES_MOST]; /* with '-' also for '_' */
	const char *ours;	       /* the option, for commands that have it; or NULL: */
	const char *instead;	       /* what to do */
	const char *command;	       /* NULL: any */
} foreign[] = {
	{{"batch-size", "bs", "minibatch"}, "batch", NULL, NULL},
	{{"num-epochs", "n-epochs", "max-epochs", "max-iter", "iterations"}, "epochs", NULL, NULL},
	{{"learning-rate", "eta", "step-size"}, "lr", NULL, NULL},
	{{"optim", "optimiser", "opt"}, "optimizer", NULL, NULL},
	{{"scheduler", "lr-scheduler", "lr-schedule"}, "schedule", NULL, NULL},
	{{"wd", "l2", "l2-penalty"}, "weight-decay", NULL, NULL},
	{{"grad-clip", "clip-grad", "clip-norm", "clipnorm", "max-grad-norm", "gradient-clip-val",
		 "gradient-clip", "gradient-clipping"},
		"clip", NULL, NULL},
	{{"shuffle", "no-shuffle"}, NULL,
		"the order of the samples is always random and follows from --seed", "train"},
	{{"force", "overwrite"}, NULL,
		"a run is never overwritten. Pass another --out, or remove the folder", "train"},
	{{"test-size", "test-split"}, NULL,
		"--validation 0.2 holds out a part of DATA; a test set is passed with --test DATA",
		"train"},
	{{"criterion", "loss-fn", "objective"}, "loss", NULL, NULL},
	{{"dropout-rate", "drop", "p-dropout"}, "dropout", NULL, NULL},
	{{"random-state", "random-seed", "manual-seed"}, "seed", NULL, NULL},
	{{"workers", "num-workers", "n-jobs", "jobs", "num-threads", "cpus", "cpu", "cores"},
		"threads", NULL, NULL},
	{{"val-split", "validation-split", "val-fraction", "val-size"}, "validation", NULL, NULL},
	{{"val", "valid", "dev"}, "validation",
		"with a fraction such as 0.2, or '--test' with a data set", "train"},
	{{"test", "data", "test-set", "test-data"}, NULL,
		"the data is the second argument: neap eval RUN DATA", "eval"},
	{{"test", "data", "test-set", "test-data"}, NULL,
		"the data is the second argument: neap predict RUN DATA", "predict"},
	{{"test-set", "test-data", "val-data", "validation-data"}, "test", NULL, "train"},
	{{"output", "output-dir", "out-dir", "save", "save-dir", "save-path", "logdir"}, "out",
		NULL, NULL},
	{{"load", "load-from", "weights", "pretrained", "init-from", "finetune", "checkpoint"},
		"from", NULL, NULL},
	{{"e"}, "epochs", NULL, NULL},
	{{"b"}, "batch", NULL, NULL},
	{{"l", "r"}, "lr", NULL, NULL},
	{{"s"}, "seed", NULL, NULL},
	{{"t", "j"}, "threads", NULL, NULL},
	{{"m"}, "memory", NULL, NULL},
	{{"f"}, "from", NULL, "train"},
	{{"n"}, NULL, "use '--net' for the network, or '--epochs' for the number of epochs",
		"train"},
	{{"n"}, "net", NULL, NULL},
	{{"d"}, "device", NULL, NULL},
	{{"f"}, "force", NULL, "encode"},
	{{"l"}, "label", NULL, "encode"},
	{{"c"}, "config", NULL, "train"},
	{{"target-column", "label-column", "column", "y-column", "targets", "class-column", "y"},
		"target", NULL, "encode"},
	{{"class", "class-name"}, NULL,
		"use '--target' for a column of a table, or '--label' for a part of the file names",
		"encode"},
	{{"features", "feature", "columns", "usecols", "feature-columns"}, NULL,
		"all columns that have no other role are features; ignore columns with '--drop'",
		"encode"},
	{{"index", "index-col"}, NULL,
		"use '--sample-column' for a column that names samples; ignore row numbers with "
		"'--drop'",
		"encode"},
	{{"target", "targets", "target-column", "label", "labels", "label-column", "y"}, NULL,
		ENCODE_FIRST, "train"},
	{{"target", "targets", "target-column", "label", "labels", "label-column", "y"}, NULL,
		ENCODE_FIRST, "compare"},
	{{"target", "targets", "target-column", "label", "labels", "label-column", "y"}, NULL,
		ENCODE_FIRST, "eval"},
	{{"class-names", "classnames", "names"}, NULL,
		"the names of the classes are in DATA: neap encode --classes FILE", "train"},
	{{"test", "train", "val", "test-size", "test-split", "val-split", "validation-split",
		 "train-split"},
		NULL,
		"a part is held out in training: neap train FILE.h5 --validation 0.2. A test set "
		"is encoded by a separate call",
		"encode"},
	{{"normalize", "normalise", "standardize", "scale"}, NULL,
		"'neap train' normalises all features, unless it has --no-normalise", "encode"},
	{{"window", "win", "hop", "stride", "overlap", "chunk", "segment"}, NULL,
		"samples are not cut. Number the windows in a column of the table, and pass it "
		"with '--sample-column'",
		"encode"},
	{{"size", "sensor-size"}, "sensor", NULL, "encode"},
	{{"dt", "bin", "bins", "bin-size", "time-window", "time-bins", "n-time-bins", "frames",
		 "timesteps"},
		NULL, "it is --dt of 'neap train'; encoded events keep their exact times",
		"encode"},
	{{"model", "run"}, NULL, "the run is the first argument: neap predict RUN DATA", "predict"},
	{{"model", "run"}, NULL, "the run is the first argument: neap eval RUN DATA", "eval"},
	{{"restart", "continue", "resume-from", "resume-from-checkpoint", "ckpt-path"}, "resume",
		NULL, NULL},
	{{"memory-limit", "mem-limit", "max-memory", "memory-budget", "budget", "ram"}, "memory",
		NULL, NULL},
	{{"seq-len", "seq-length", "sequence-length", "steps", "block-size", "bptt"}, NULL,
		"for a text, pass the length of a sample in its name, text:steps=100:FILE. "
		"--max-steps truncates samples of other data",
		"train"},
	{{"max-length", "max-len"}, "max-steps", NULL, NULL},
	{{"timestep", "time-step", "delta-t", "time-window", "bin-size"}, "dt", NULL, NULL},
	{{"timesteps", "time-steps", "num-steps", "n-steps", "time-bins", "n-time-bins", "bins"},
		NULL,
		"a sample has as many steps as it is long: --dt sets the duration of a step of "
		"spikes; each row of numbers is a step, or several with --encode KIND:repeat=N",
		"train"},
	{{"dtype", "fp16", "amp", "half", "bf16", "mixed-precision", "float64"}, "precision", NULL,
		NULL},
	{{"normalize", "normalise", "standardize"}, "no-normalise", NULL, NULL},
	{{"proba", "probabilities", "prob", "predict-proba"}, "softmax", NULL, NULL},
	{{"silent", "no-progress"}, "quiet", NULL, NULL},
	{{"hidden", "hidden-size", "hidden-units", "units", "num-hidden", "layers", "num-layers",
		 "n-layers"},
		"net", "whose layers have a name and a size, such as --net gru:64,li", NULL},
	{{"model", "cell", "arch", "architecture", "rnn-type"}, "net",
		"whose layers have a name and a size, such as --net gru:64,li", NULL},
	{{"activation", "nonlinearity"}, "net",
		"with the key activation= of a layer: --net rnn:64:activation=relu,li", NULL},
	{{"bidirectional"}, NULL, "bidirectional layers are not supported. Leave it out", NULL},
	{{"tf32", "allow-tf32", "tensor-cores"}, "math",
		"tf32x3 or bf16 with --device cuda (docs/gpu.md)", NULL},
	{{"gpu", "gpus", "cuda", "device", "accelerator", "mps"}, "device",
		"cuda or cuda:N for an NVIDIA GPU (docs/gpu.md)", NULL},
	{{"class-weight", "class-weights", "pos-weight", "sample-weight", "balanced"}, NULL,
		"classes are not weighted. Leave it out, or balance the samples of the classes in "
		"the data",
		"train"},
	{{"logger", "wandb", "tensorboard", "mlflow", "log-dir"}, NULL,
		"the curves are in RUN/metrics.csv, and 'neap plot RUN' draws them", "train"},
	{{"folds", "k-fold", "kfold", "cv", "cross-validation", "n-splits", "num-folds"}, NULL,
		"there is no cross-validation. Use --validation 0.2 with several --seed, each "
		"with its own --out",
		"train"},
	{{"sample-column", "drop", "header", "missing", "classes", "polarity"}, NULL,
		"it is an option of 'neap encode': neap encode TABLE --out FILE.h5, and then neap "
		"train FILE.h5",
		"train"},
	{{"metric", "metrics", "scoring", "accuracy", "f1", "average"}, NULL,
		"loss, accuracy and the confusion matrix are always reported; --json has the "
		"numbers",
		"eval"},
	{{"early-stopping", "early-stop"}, NULL,
		"training does not stop early; model.safetensors has the weights of the best "
		"epoch. "
		"Set --epochs",
		"train"},
	{{"data", "dataset", "train-data", "train", "input", "data-dir", "data-path"}, NULL,
		"data is an argument, not an option: see 'usage' in the help", NULL},
	{{"verbose", "progress"}, NULL, "progress is printed unless --quiet is given", NULL},
	{{"text"}, NULL, "a text is an argument of this form: text:FILE", NULL},
	{{"checkpointing", "gradient-checkpointing", "grad-checkpointing",
		 "activation-checkpointing", "recompute", "remat"},
		NULL,
		"steps are recomputed as the budget requires: pass --memory BYTES, and --strategy "
		"NAME to choose how",
		"train"},
	{{"text:steps"}, NULL, "write --text text:steps=64:FILE, or text:steps=64:FILE as DATA",
		"train"},
	{{"prompt", "generate", "temperature", "max-tokens", "max-new-tokens"}, NULL,
		"generating text is not supported. 'neap predict RUN text:FILE' prints the scores "
		"of the next character at each step",
		NULL},
	{{"length", "n", "count", "num-samples"}, NULL,
		"all samples of DATA are predicted; generating text is not supported", "predict"},
	{{"vocab", "vocab-size", "level", "tokenizer", "tokens", "bpe"}, NULL,
		"a text is learned by its characters, which are found in it", "train"},
	{{"save-every", "save-freq", "save-steps", "checkpoint-every", "save-interval"}, "snapshot",
		"the time between snapshots, such as 60s; each epoch ends with one", NULL},
	{{"model", "run", "runs"}, NULL, "the run is an argument: neap plot RUN", "plot"},
	{{"model", "run", "from", "weights"}, NULL,
		"the run is the first argument: neap export RUN --nir FILE", "export"},
	{{"metric", "metrics", "columns", "loss", "accuracy", "acc", "rates"}, NULL,
		"loss, accuracy and rates are all drawn; the numbers are in RUN/metrics.csv",
		"plot"},
	{{"show", "open", "display"}, NULL, "the figure is written to a file, --out FILE.svg",
		"plot"},
	{{"quantize", "int8", "opset", "fp16"}, NULL,
		"the weights are written as they are. Leave it out", "export"},
	{{"threshold", "cutoff"}, NULL,
		"the class with the highest score is the answer; the scores are printed by 'neap "
		"predict RUN DATA --softmax'",
		"eval"},
	{{"confusion", "confusion-matrix", "report"}, NULL,
		"the confusion matrix is printed always; --json has it as 'confusion'", "eval"},
	{{"topk", "top-k", "top"}, NULL,
		"the scores of all classes are written; sort them, or see --softmax", "predict"},
	{{"csv", "output-csv", "to-csv"}, NULL,
		"CSV is written by default; to write it to a file, pass --out FILE.csv", "predict"},
	{{"npz", "numpy"}, NULL, "pass --out FILE.npz", "predict"},
	{{"format", "output-format"}, NULL,
		"the ending of --out chooses it, .csv or .npz; --json writes JSON", "predict"},
	{{"format", "output-format"}, "json", NULL, NULL},
	{{"glob", "recursive"}, NULL,
		"pass the folder, which is read with all folders in it, or several files",
		"predict"},
	{{"n-mels", "mels", "n-mfcc", "n-bands", "bands", "filters", "n-filters"}, "channels", NULL,
		"encode"},
	{{"fmin", "f-min"}, "low", NULL, "encode"},
	{{"fmax", "f-max"}, "high", NULL, "encode"},
	{{"group", "id", "id-column", "groupby", "group-by", "key", "sample-id"}, "sample-column",
		NULL, "encode"},
	{{"level"}, NULL, "it is an option of 'neap predict'", "encode"},
	{{"threshold", "sensitivity"}, NULL,
		"the spikes of a sound have no threshold to set; the ear has --channels, --low and "
		"--high",
		"encode"},
	{{"height", "width", "resolution"}, "sensor", "in the form WIDTHxHEIGHT", "encode"},
	{{"regex", "pattern", "label-regex"}, "label", NULL, "encode"},
	{{"fs", "sr", "rate", "sample-rate", "resample"}, NULL,
		"the sampling rate is read from each recording, which is resampled as needed",
		"encode"},
	{{"sep", "delimiter"}, NULL, "the separator (comma, semicolon or tab) is recognized",
		"encode"},
	{{"decimal"}, NULL, "numbers in tables need a decimal point", "encode"},
	{{"na", "na-values", "fillna", "fill", "impute", "interpolate"}, "missing",
		"previous, zero or drop, for features; without a target, a step is masked",
		"encode"},
	{{"glob", "recursive"}, NULL,
		"a folder is read with all folders in it; --split FILE lists the files to encode",
		"encode"},
	{{"epochs", "net", "lr", "batch", "validation", "seed", "memory", "optimizer", "loss"},
		NULL, "it is an option of 'neap train'", "encode"},
	{{"onnx", "pt", "pytorch", "torch", "format"}, NULL,
		"NIR is the only format, --nir FILE. The weights are in RUN/model.safetensors, "
		"which PyTorch's safetensors package reads",
		"export"},
	{{"epochs", "lr", "optimizer", "net", "resume", "validation"}, NULL,
		"it is an option of 'neap train'; a trained network is evaluated as it is", "eval"},
	{{"epochs", "lr", "optimizer", "net", "resume", "validation"}, NULL,
		"it is an option of 'neap train'; a trained network is evaluated as it is",
		"predict"},
	{{"epochs", "resume", "validation", "test"}, NULL,
		"it is an option of 'neap train'; compare runs one batch", "compare"},
	{{"memory", "memory-total", "strategy"}, NULL,
		"an evaluation has no backward pass, and needs no budget. Remove it; --batch "
		"chooses how many samples are in memory",
		"eval"},
	{{"memory", "memory-total", "strategy"}, NULL,
		"an evaluation has no backward pass, and needs no budget. Remove it; --batch "
		"chooses how many samples are in memory",
		"predict"},
	{{"sample", "spikes", "membranes", "plot"}, NULL, "it is an option of 'neap predict'",
		"eval"},
	{{"out", "output", "file", "o"}, "nir", "with the file to write", "export"},
	{{"out", "output", "csv", "o"}, NULL,
		"the report goes to standard output, with --json as JSON. To write the answer to "
		"each sample to a file, use 'neap predict RUN DATA --out FILE.csv'",
		"eval"},
	{{"softmax"}, NULL, "it is an option of 'neap predict'", "eval"},
	{{"tier", "offload", "disk", "swap"}, "slow", "with a folder on the slow memory", NULL},
	{{"logy", "y-log", "log-scale"}, "log", NULL, "plot"},
	{{"why"}, NULL,
		"a strategy that does not fit is listed with the reason, and with --json as 'why'",
		"plan"},
	{{"sensor", "polarity", "time-unit", "inputs", "labels", "sample-column"}, NULL,
		"it belongs to 'neap encode', and the model has the settings of its training data. "
		"Remove it",
		"predict"},
	{{"sensor", "polarity", "inputs"}, NULL, "it belongs to 'neap encode'", "train"},
	{{"sensor", "polarity", "inputs"}, NULL, "it belongs to 'neap encode'", "eval"},
	{{"drop", "target", "label", "classes"}, NULL,
		"the columns and classes are those of the model. Other columns of a table are "
		"ignored",
		"predict"},
};

static int is_name(const struct foreign_name *row, const char *text, size_t length)
{
	for (int i = 0; i < NAMES_MOST && row->names[i]; i++) {
		const char *name = row->names[i];
		size_t n = 0;
		while (n < length && (name[n] == text[n] || (name[n] == '-' && text[n] == '_')))
			n++;
		if (n == length && !name[n])
			return 1;
	}
	return 0;
}

static int has_option(const struct cli_option *options, const char *name)
{
	for (; options->name; options++)
		if (options->kind != CLI_HEADING && strcmp(options->name, name) == 0)
			return 1;
	return 0;
}

const char *cli_foreign_name(
	char room[256], const struct cli_command *command, const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
		const struct foreign_name *row = &foreign[i];
		if (!is_name(row, text, length) ||
			(row->command && strcmp(row->command, command->name) != 0) ||
			(row->ours && !has_option(command->options, row->ours) &&
				!has_option(cli_common_options, row->ours)))
			continue;
		if (!row->ours)
			snprintf(room, 256, "; %s.", row->instead);
		else
			snprintf(room, 256, "; use '--%s'%s%s.", row->ours,
				row->instead ? ", " : "", row->instead ? row->instead : "");
		return room;
	}
	return NULL;
}
