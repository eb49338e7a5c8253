/* SPDX-License-Identifier: Apache-2.0 */
/* target_fit.c: readout and loss by the targets of a data set (target_fit.h). */
#include "measure/target_fit.h"
#include "data/dataset.h"
#include "nn/spec.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/show.h"

#include <math.h>
#include <string.h>

enum { FEW = 10 /* steps, chosen: fewer hold no spike train */, ENOUGH = 50 /* of another dt */ };

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
	const struct neap_loss *given = *loss ? neap_loss_find(*loss) : NULL;
	if (numbers && given && !given->takes_numbers)
		return neap__fail(NEAP_EUSAGE,
			"--loss: '%s' needs classes (integers), but the targets of "
			"'%s' are numbers. Remove --loss, or pass --loss mse",
			given->name, info->name);
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

/* A number of the attributes that `encode` writes; 0: none such. */
static int attribute(const struct neap_dataset *set, const char *name)
{
	for (int i = 0; i < NEAP__EVENT_NUMBERS; i++)
		if (strcmp(neap__event_numbers[i], name) == 0 && set->events[i] >= 1 &&
			set->events[i] <= UINT16_MAX + 1)
			return (int)set->events[i];
	return 0;
}

void neap__spec_fit(struct neap_net_options *net, const struct neap_dataset *set)
{
	if (!net->spec)
		net->spec = neap__automatic_spec(net, set->info.values || set->ops->adopt);
}

void neap__shape_fit(
	struct neap_net_options *net, const struct neap_dataset *set, char text[NEAP__SHAPE_TEXT])
{
	int wide = attribute(set, "columns"), high = attribute(set, "rows");
	int wants = net->spec && (strstr(net->spec, ":conv=") || strstr(net->spec, ":pool="));

	if ((net->shape && *net->shape) || !wants || !set->has_events || !wide || !high)
		return;
	if (set->info.inputs % wide == 0 && set->info.inputs / wide % high == 0) {
		neap__print(text, NEAP__SHAPE_TEXT, "%dx%dx%d", set->info.inputs / wide / high,
			high, wide);
		net->shape = text;
	}
}

int neap__few_steps(char line[NEAP__FEW_STEPS_LINE], const struct neap_dataset_info *info,
	double dt, int64_t max_steps)
{
	double steps = info->steps ? (double)info->steps : ceil(info->duration / dt);
	double finer = pow(10, fmax(0, floor(log10(info->duration * 1e6 / ENOUGH)))); /* us */
	char lasts[24], step[24];

	if (max_steps > 0 && max_steps < FEW && steps >= 2 * (double)max_steps) {
		neap__print(line, NEAP__FEW_STEPS_LINE,
			"warning: --max-steps %lld cuts the samples of '%.200s' to their first "
			"%lld of up to %.0f steps. Increase it, or remove it",
			(long long)max_steps, info->name, (long long)max_steps, steps);
		return 1;
	}
	if (info->steps || !(info->duration > 0) || steps >= FEW)
		return 0;
	neap__print(line, NEAP__FEW_STEPS_LINE,
		"warning: the longest sample of '%.200s' lasts %s, which is %.0f step%s of --dt "
		"%s. Decrease --dt, such as --dt %.15g%s; if it lasts longer, its times have "
		"another unit",
		info->name, neap__show_time(lasts, info->duration), steps, steps == 1 ? "" : "s",
		neap__show_time(step, dt), finer < 1e3 ? finer : finer / 1e3,
		finer < 1e3 ? "us" : "ms");
	return 1;
}
