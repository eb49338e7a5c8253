/* SPDX-License-Identifier: Apache-2.0 */
#include "netoptions.h"

/* In the order of the enums of net.h. */
const char *const cli_resets[] = {"subtract", "zero", "hard", "soft", NULL};
const char *const cli_surrogates[] = {
	"triangle", "boxcar", "superspike", "sigmoid", "atan", "gaussian", NULL};
const char *const cli_readouts[] = {"mean", "sum", "last", "max", "step", "softmax", NULL};
const char *const cli_precisions[] = {"float", "double", NULL};

void cli_net_choices_from(struct cli_net_choices *choices, const struct neap_net_options *net)
{
	choices->reset = (int)net->reset;
	choices->surrogate = (int)net->surrogate;
	choices->readout = (int)net->readout;
	choices->precision = (int)net->precision;
}

void cli_net_choices_into(struct neap_net_options *net, const struct cli_net_choices *choices)
{
	net->reset = (enum neap_reset)choices->reset;
	net->surrogate = (enum neap_surrogate)choices->surrogate;
	net->readout = (enum neap_readout)choices->readout;
	net->precision = (enum neap_precision)choices->precision;
}
