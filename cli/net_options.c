/* SPDX-License-Identifier: Apache-2.0 */
/* net_options.c: the names of a net's choices, the costs that --chain gives, the model to evaluate.
 */
#include "net_options.h"
#include "chain_file.h"
#include "base/quote.h"

#include <string.h>
#include <unistd.h>

const char *const cli_resets[] = {NEAP_RESET_TABLE(NEAP_CHOICE_NAME) NULL};
const char *const cli_surrogates[] = {NEAP_SURROGATE_TABLE(NEAP_CHOICE_NAME) NULL};
const struct cli_also cli_surrogate_aliases[] = {
#define ALSO(value, name) {value, #name},
	NEAP_SURROGATE_ALIAS_TABLE(ALSO)
#undef ALSO
		{0}};
const char *const cli_readouts[] = {NEAP_READOUT_TABLE(NEAP_CHOICE_NAME) NULL};
const char *const cli_maths[] = {NEAP_MATH_TABLE(NEAP_CHOICE_NAME) NULL};
const char *const cli_precisions[] = {NEAP_PRECISION_TABLE(NEAP_CHOICE_NAME) NULL};
const char *const cli_products[] = {NEAP_PRODUCTS_TABLE(NEAP_CHOICE_NAME) NULL};
const char *const cli_inits[] = {NEAP_INIT_TABLE(NEAP_CHOICE_NAME) NULL};
const char *const cli_learns[] = {NEAP_LEARN_TABLE(NEAP_CHOICE_NAME) NULL};

const char *cli_loss_name(int index)
{
	const struct neap_loss *loss = neap_loss_at(index);
	return loss ? loss->name : NULL;
}

const char *cli_coding_name(int index)
{
	return index == 0 ? "none" : neap_coding_name(index - 1);
}

void cli_net_choices_from(struct cli_net_choices *choices, const struct neap_net_options *net)
{
	choices->reset = (int)net->reset;
	choices->surrogate = (int)net->surrogate;
	choices->readout = (int)net->readout;
	choices->precision = (int)net->precision;
	choices->math = (int)net->math;
	choices->products = (int)net->products;
	choices->learn = (int)net->learn;
	choices->init = (int)net->init;
}

/*
 * A time constant in --net that is a bare number of 1 or more: 20 is more often 20 ms than 20 s.
 * Smaller ones are seconds, as specifications that neap writes have them. CLI_DONE or one line.
 */
static int check_times(const char *spec, const char *command)
{
	static const char *const keys[] = {"tau", "tau_syn", "tau_adapt"};
	double value;

	for (const char *at = strchr(spec, ':'); at; at = strchr(at + 1, ':')) {
		const char *text = at + 1 + strcspn(at + 1, "=:,") + 1;
		int length = text[-1] == '=' ? (int)strcspn(text, ":,") : 0;
		char room[32];
		for (size_t i = 0; length && i < sizeof keys / sizeof keys[0]; i++) {
			snprintf(room, sizeof room, "%.*s", length, text);
			if (strncmp(at + 1, keys[i], strlen(keys[i])) == 0 &&
				at[1 + strlen(keys[i])] == '=' &&
				neap__units_number(&value, room) == 0 && value >= 1)
				return cli_usage(command,
					"--net: %s=%s has no unit. Did you mean %s=%sms or %s=%ss?",
					keys[i], room, keys[i], room, keys[i], room);
		}
	}
	return CLI_DONE;
}

int cli_net_choices_into(
	struct neap_net_options *net, const struct cli_net_choices *choices, const char *command)
{
	int scaled = choices->scale_given || choices->recurrent_scale_given;
	int code = choices->net_given ? check_times(net->spec, command) : CLI_DONE;

	if (code != CLI_DONE)
		return code;

	if (scaled && choices->init_given && choices->init == NEAP_INIT_TORCH)
		return cli_usage(command,
			"--init torch has no scale. Remove --scale and --recurrent-scale, or pass "
			"--init normal");
	net->reset = (enum neap_reset)choices->reset;
	net->surrogate = (enum neap_surrogate)choices->surrogate;
	net->readout = (enum neap_readout)choices->readout;
	net->precision = (enum neap_precision)choices->precision;
	net->math = (enum neap_math)choices->math;
	net->products = (enum neap_products)choices->products;
	net->learn = (enum neap_learn)choices->learn;
	net->init = (enum neap_init)choices->init;
	/* A scale is of normal values, also one that is the default. */
	if (scaled && !choices->init_given)
		net->init = NEAP_INIT_NORMAL;
	if (choices->beta > 0)
		net->tau = neap__units_tau(choices->beta, net->dt, net->euler);
	if (choices->slope > 0)
		net->width = 1 / choices->slope;
	return CLI_DONE;
}

void cli_say_line(void *user, const char *line)
{
	char room[NEAP__PLAIN_TEXT];
	(void)user;
	if (!cli_hides(line))
		fprintf(stderr, "%s\n", neap__plain_text(room, line));
}

/* RUN DATA of which one is there, which is not a run. */
static int no_run(const char *data, const char *command)
{
	if (!strchr(data, ':') && access(data, F_OK) < 0)
		return cli_usage(command,
			"there is no file or folder '%s'. Pass a run and a data set: neap %s RUN "
			"DATA",
			data, command);
	return cli_usage(command,
		"RUN is missing: pass the folder of a run of 'neap train' before the data: neap %s "
		"RUN '%s'",
		command, data);
}

/* Writes the folder of a run that is named by it or by a file in it. */
static const char *folder_of(char *room, size_t size, const char *run)
{
	static const char ending[] = ".safetensors";
	const char *slash = strrchr(run, '/');
	size_t n = strlen(run), end = strlen(ending);

	if (n <= end || strcmp(run + n - end, ending) != 0)
		snprintf(room, size, "%s", run);
	else
		snprintf(room, size, "%.*s", slash ? (int)(slash - run) : 1, slash ? run : ".");
	return room;
}

int cli_refuse_run(const char *data, const char *command)
{
	static const char settings[] = "run.json";
	size_t n = strlen(data), end = strlen(settings);
	char folder[4096];

	if (strcmp(command, "train") == 0 && n >= end && strcmp(data + n - end, settings) == 0)
		return cli_usage(command,
			"'%s' has the options of a run, not data. To train with them: neap train "
			"--config %s --out NEW",
			data, neap__quoted(data));
	if (!cli_is_run(data))
		return CLI_DONE;
	folder_of(folder, sizeof folder, data);
	if (strcmp(command, "calibrate") == 0)
		return cli_usage(command,
			"'%s' is a run, not a data set. calibrate measures a network on data: neap "
			"calibrate DATA --net SPEC",
			data);
	if (strcmp(command, "compare") == 0)
		return cli_usage(command,
			"'%s' is a run, not a data set. compare trains the same net with several "
			"strategies: neap compare DATA. To plot several runs: neap plot "
			"%s RUN",
			data, neap__quoted(data));
	return cli_usage(command,
		"'%s' is a run, not a data set. To continue it: neap train --out %s --resume. To "
		"start from its weights: neap train DATA --from %s",
		data, neap__quoted(folder), neap__quoted(data));
}

int cli_take_model(struct neap_eval_options *o, struct cli_given_model *given, int parsed,
	int several, const char *const *named, const char *command)
{
	int models = given->from == NULL; /* among the arguments */

	if (given->from && parsed > 1 && (!several || cli_is_run(named[0])))
		return cli_usage(command,
			"both RUN '%s' and --from are given; pass only one of them", named[0]);
	if (models && parsed == 1 && !cli_is_run(named[0]))
		return no_run(named[0], command);
	if (!models && parsed == 0)
		return cli_usage(command,
			"DATA is missing: pass a data set: neap %s --from %s DATA", command,
			neap__quoted(given->from));
	if (models && parsed == 1)
		return cli_usage(command,
			"DATA is missing: pass the data set after the run: neap %s %s DATA",
			command, neap__quoted(named[0]));
	if (parsed < models + 1)
		return cli_usage(command,
			"RUN DATA is missing: pass a run and a data set; 'neap %s --help' has "
			"examples",
			command);
	if (models && cli_is_run(named[1]) && cli_is_run(named[0]))
		return cli_usage(command,
			"'%s' and '%s' are runs, and DATA is missing. Pass one of them and a data "
			"set: neap %s %s DATA",
			named[0], named[1], command, neap__quoted(named[0]));
	if (models && cli_is_run(named[1]))
		return cli_usage(command, "'%s' is a run, but DATA comes second: neap %s %s %s",
			named[1], command, neap__quoted(named[1]), neap__quoted(named[0]));
	o->model = given->from ? given->from : named[0];
	o->data = named[models];
	given->kind = (enum neap_reset)given->reset;
	if (given->reset_given)
		o->reset = &given->kind;
	return CLI_DONE;
}

/* Clusters of blocks that a chain file found fastest, for a device without any. */
static void take_clusters(
	struct neap_net_options *net, const struct cli_chain *chain, const char *file)
{
	static char device[64]; /* lives as long as the options */
	const char *clusters = strstr(chain->device, ":clusters=");
	char line[200];

	if (!clusters || !net->device || strncmp(net->device, "cuda", 4) != 0 ||
		strlen(net->device) >= sizeof device - sizeof chain->device ||
		strstr(net->device, ":clusters="))
		return;
	snprintf(device, sizeof device, "%s%s", net->device, clusters);
	net->device = device;
	snprintf(line, sizeof line, "device %s: clusters were fastest in %.80s", device, file);
	cli_say_line(NULL, line);
}

int cli_costs_read(struct neap_sweep_settings *sweep, struct neap_net_options *net,
	struct neap_problem *costs, const char *file, const char *command)
{
	struct cli_chain chain;

	*costs = (struct neap_problem)NEAP_PROBLEM_INIT;
	if (!file)
		return CLI_DONE;
	int rc = cli_chain_read(&chain, costs, file, command);
	if (rc == CLI_DONE && costs->chain.stages)
		rc = cli_usage(command,
			"--chain %s: the steps have different costs, but all steps of a sequence "
			"cost the same. Use a file of 'neap calibrate'",
			file);
	if (rc == CLI_DONE)
		take_clusters(net, &chain, file);
	cli_chain_free(&chain);
	if (rc == CLI_DONE)
		sweep->costs = costs;
	return rc;
}
