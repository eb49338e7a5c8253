/* SPDX-License-Identifier: Apache-2.0 */
/* target_fit.c: readout and loss by the targets of a data set (target_fit.h). */
#include "measure/target_fit.h"
#include "nn/spec.h"
#include "base/fail.h"
#include "base/print.h"

#include <string.h>

int neap__target_fit(struct neap_net_options *net, const char **loss,
	const struct neap_dataset_info *info, char changed[NEAP__FIT_LINE])
{
	int of_steps = info->target == NEAP_TARGET_LABELS || info->target == NEAP_TARGET_SERIES;
	int numbers = info->target == NEAP_TARGET_NUMBERS || info->target == NEAP_TARGET_SERIES;
	int reads = of_steps && (net->readout == NEAP_READ_AUTO || net->readout == NEAP_READ_MEAN);
	int loses = numbers && !*loss;

	changed[0] = '\0';
	net->values = info->values;
	if (of_steps && !reads && net->readout != NEAP_READ_STEP)
		return neap__fail(NEAP_EUSAGE,
			"--readout: '%s' has a target per step, which only the readout 'step' "
			"compares. Pass --readout step",
			info->name);
	if (numbers && *loss && strcmp(*loss, "cross-entropy") == 0)
		return neap__fail(NEAP_EUSAGE,
			"--loss: 'cross-entropy' needs classes (integers), but the targets of "
			"'%s' are numbers. Remove --loss, or pass --loss mse",
			info->name);
	if (reads)
		net->readout = NEAP_READ_STEP;
	else if (net->readout == NEAP_READ_AUTO)
		net->readout = neap__automatic_readout(net, numbers);
	if (!*loss)
		*loss = numbers ? "mse" : "cross-entropy";
	if (numbers && net->tau_out == NEAP_TAU_OUT_AUTO)
		net->tau_out = NEAP__TAU_OUT_NUMBERS;
	if (reads || loses)
		neap__print(changed, NEAP__FIT_LINE, "the targets are %s%s: %s%s%s",
			numbers ? "numbers" : "classes", of_steps ? ", one per step" : "",
			reads ? "the readout is step" : "", reads && loses ? ", " : "",
			loses ? "the loss is mse, since cross-entropy needs classes (integers)"
			      : "");
	return 0;
}
