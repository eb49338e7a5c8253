/* SPDX-License-Identifier: Apache-2.0 */
/* given_model.c: the model that a command evaluates, from RUN or --from (given_model.h). */
#include "given_model.h"

int cli_take_model(struct neap_eval_options *o, struct cli_given_model *given, int parsed,
	const char *const *named, const char *command)
{
	if (given->from && parsed > 1)
		return cli_usage(
			command, "both RUN '%s' and --from; one of them is accepted", named[0]);
	if (!given->from && parsed < 2)
		return cli_usage(command,
			"RUN DATA is missing: a run and a data set; 'neap %s --help' has examples",
			command);
	o->model = given->from ? given->from : named[0];
	o->data = named[parsed - 1];
	given->kind = (enum neap_reset)given->reset;
	if (given->reset_given)
		o->reset = &given->kind;
	return CLI_DONE;
}
