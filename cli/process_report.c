/* SPDX-License-Identifier: Apache-2.0 */
/* process_report.c: what a whole run took as a process, for reports. */
#include "process_report.h"

void cli_json_process(struct neap__json *to, const struct neap_process_memory *m)
{
	neap__json_begin(to, "process", '{');
	if (m->total)
		neap__json_bytes(to, "total", m->total);
	else
		neap__json_null(to, "total");
	neap__json_bytes(to, "most", m->most);
	neap__json_bytes(to, "measured", m->measured);
	neap__json_bytes(to, "arena", m->arena);
	neap__json_bytes(to, "slow", m->slow);
	neap__json_bytes(to, "weights", m->weights);
	neap__json_bytes(to, "gradients", m->gradients);
	neap__json_bytes(to, "optimizer", m->optimizer);
	neap__json_bytes(to, "scratch", m->scratch);
	neap__json_bytes(to, "inputs", m->inputs);
	neap__json_bytes(to, "planning", m->planning);
	neap__json_bytes(to, "program", m->program);
	neap__json_end(to, '}');
}

void cli_json_device(struct neap__json *to, const struct neap_device_use *use)
{
	if (!use->total) {
		neap__json_null(to, "device");
		return;
	}
	neap__json_begin(to, "device", '{');
	neap__json_text(to, "about", use->about);
	neap__json_bytes(to, "total", use->total);
	neap__json_bytes(to, "free", use->free);
	neap__json_bytes(to, "planned", use->planned);
	neap__json_bytes(to, "allocated", use->allocated);
	neap__json_bytes(to, "measured", use->measured);
	if (use->joules > 0)
		neap__json_number(to, "joules", use->joules);
	else
		neap__json_null(to, "joules");
	neap__json_end(to, '}');
}

void cli_print_device(const struct neap_device_use *use)
{
	char planned[24], allocated[24], measured[24], all[24];

	if (use->total)
		printf("device      %s: peak %s of %s (planned %s, %s by the driver)\n", use->about,
			neap__show_size(allocated, use->allocated),
			neap__show_size(all, use->total), neap__show_size(planned, use->planned),
			neap__show_size(measured, use->measured));
}

void cli_print_process(const struct neap_process_memory *m, int bounded)
{
	char most[24], measured[24];

	if (!bounded) {
		printf("process     resident memory %s (without --memory, the budget was %s: half "
		       "of the free memory)\n",
			neap__show_size(measured, m->measured), neap__show_size(most, m->arena));
		return;
	}
	printf("process     resident memory %s (estimated upper bound %s)\n",
		neap__show_size(measured, m->measured), neap__show_size(most, m->most));
}
