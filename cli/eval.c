/* SPDX-License-Identifier: Apache-2.0 */
/* eval.c: `neap eval`: accuracy, confusion and firing rates of a trained net. */
#include "net_options.h"
#include "confusion.h"
#include "json_report.h"
#include "rank_process.h"
#include "train/reports/text_loss.h"

#include <inttypes.h>
#include <math.h>
#include <neap/train.h>

static const char examples[] = "  neap eval run test.h5\n"
			       "  neap eval run/last.safetensors test.h5 --json\n"
			       "  neap eval --from net.nir test.h5\n"
			       "  neap eval run text:book.txt\n";

enum { CHARACTERS = 20 /* rows of a text's table; chosen to fit a terminal */ };

struct evaluating {
	struct cli_progress bar;
	struct neap__json answers; /* a list, whose elements come as samples are answered */
};

static int on_progress(void *user, int64_t done, int64_t total)
{
	struct evaluating *e = user;
	if (e->bar.terminal)
		cli_progress_show(&e->bar, (double)done, (double)total, NULL);
	return cli_interrupted();
}

/* Within a batch, also where no terminal shows a bar: it may last for hours. */
static int on_advanced(void *user, double done, int64_t total)
{
	struct evaluating *e = user;
	cli_progress_show(&e->bar, done, (double)total, NULL);
	return cli_interrupted();
}

static int on_answer(void *user, const struct neap_answer *answer)
{
	struct evaluating *e = user;
	cli_json_answer(&e->answers, answer, NULL);
	return e->answers.text.error;
}

static void add_classes(struct neap__json *to, const struct neap_eval_result *r)
{
	neap__json_begin(to, "classes", '[');
	for (int i = 0; i < r->classes && r->confusion; i++) {
		const int64_t *row = &r->confusion[i * (int64_t)r->classes];
		int64_t samples = cli_confusion_samples(r, i);
		neap__json_begin(to, NULL, '{');
		cli_json_class(to, "name", r->class_name[i], i);
		neap__json_int(to, r->target == NEAP_TARGET_LABELS ? "steps" : "samples", samples);
		neap__json_number(to, "accuracy", samples ? (double)row[i] / (double)samples : NAN);
		neap__json_end(to, '}');
	}
	neap__json_end(to, ']');
}

static int print_json(
	const struct neap_eval_result *r, const struct neap__json *answers, int of_characters)
{
	struct neap__json report = {0}, *to = &report;

	neap__json_begin(to, NULL, '{');
	neap__json_int(to, "samples", r->samples);
	neap__json_int(to, "judged", r->judged);
	neap__json_number(to, "accuracy", r->accuracy);
	neap__json_number(to, "low", r->judged > 0 ? r->low : NAN);
	neap__json_number(to, "high", r->judged > 0 ? r->high : NAN);
	neap__json_number(to, "loss", r->loss);
	if (r->target_deviation > 0)
		neap__json_number(to, "target_deviation", r->target_deviation);
	if (of_characters)
		neap__json_number(to, "bits_per_character", r->loss / M_LN2);
	add_classes(to, r);
	neap__json_begin(to, "confusion", '[');
	for (int i = 0; i < r->classes && r->confusion; i++) {
		neap__json_begin(to, NULL, '[');
		for (int j = 0; j < r->classes; j++)
			neap__json_int(to, NULL, r->confusion[i * (int64_t)r->classes + j]);
		neap__json_end(to, ']');
	}
	neap__json_end(to, ']');
	neap__json_begin(to, "rates", '[');
	for (int i = 0; i < r->layers; i++)
		neap__json_number(to, NULL, r->rates[i]);
	neap__json_end(to, ']');
	neap__json_value(to, "answers", answers);
	neap__json_end(to, '}');
	return cli_json_print(to, "eval");
}

/* 1: the loss of a text, whose unit is nats per character. */
static int is_of_characters(const struct neap_eval_options *o, const struct neap_eval_result *r)
{
	return r->target == NEAP_TARGET_LABELS && r->judged > 0 && neap__text_loss(o->model);
}

static int print_text(const struct neap_eval_result *r, int of_characters)
{
	printf("%s", r->judged > 0 ? "accuracy " : "");
	cli_show_accuracy(r);
	if (of_characters)
		printf("loss per character: %.4f nats, which are %.4f bits\n", r->loss,
			r->loss / M_LN2);
	for (int i = 0; i < r->layers; i++)
		if (!isnan(r->rates[i]))
			printf("layer %d: %.3f%% of the units spike per step\n", i,
				100 * r->rates[i]);
	if (r->confusion) {
		printf("\n");
		cli_show_confusion(r, of_characters ? CHARACTERS : r->classes);
	}
	return cli_finish("eval");
}

/* The command line, which the options fill. */
static struct {
	struct neap_eval_options o;
	struct cli_given_model model;
	int json;
} given = {.o = {.size = sizeof given.o}};

/* clang-format off */
static const struct cli_option options[] = {
	CLI_EVAL_OPTIONS(given.o, given.model),
	CLI_GROUP("Output"),
	{.name = "json", .kind = CLI_FLAG, .into = &given.json,
		.help = "print one JSON object on standard output, including the answer to each "
			"sample"},
	{0},
};
/* clang-format on */

static const struct cli_command command = {.name = "eval",
	.arguments = "RUN DATA",
	.about = "evaluates a trained network: accuracy, confusion matrix and firing "
		 "rates. DATA is "
		 "a data set, or a text (text:FILE)",
	.examples = examples,
	.options = options,
	.least = 0,
	.most = 2};
int cli_eval(int argc, char **argv)
{
	struct evaluating evaluating = {0};
	struct neap_eval_options *o = &given.o;
	struct neap_eval_result result = {.size = sizeof result};
	const char *named[2];

	o->progress = on_progress;
	o->advanced = on_advanced;
	o->user = &evaluating;
	o->say = cli_say_line;
	int parsed = cli_parse(&command, argc, argv, named);

	if (parsed < 0)
		return CLI_ENDED(parsed);
	int code = cli_take_model(o, &given.model, parsed, 0, named, "eval");
	if (code != CLI_DONE)
		return code;
	if (given.json)
		o->answered = on_answer;
	o->peers = cli_peers();
	cli_catch_signals();
	cli_progress_start(&evaluating.bar, "eval", "samples");
	neap__json_begin(&evaluating.answers, NULL, '[');
	int rc = neap_eval(&result, o);
	neap__json_end(&evaluating.answers, ']');
	cli_progress_clear(&evaluating.bar);
	code = rc < 0	    ? cli_fail("eval", rc)
	       : given.json ? print_json(&result, &evaluating.answers, is_of_characters(o, &result))
			    : print_text(&result, is_of_characters(o, &result));
	neap__json_free(&evaluating.answers);
	neap_eval_result_free(&result);
	return code;
}
