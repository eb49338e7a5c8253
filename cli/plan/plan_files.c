/* SPDX-License-Identifier: Apache-2.0 */
/* plan_files.c: a plan as actions on standard output, as a drawing, as a file, and read back. */
#include "plan_command.h"

#include <inttypes.h>
#include <stdlib.h>

int cli_plan_actions(const struct neap_problem *problem, const struct neap_plan *plan)
{
	char line[NEAP_ACTION_TEXT];
	struct neap_schedule *schedule;
	struct neap_action a;
	int rc = neap_schedule_open(&schedule, problem, plan);

	if (rc < 0)
		return cli_fail("plan", rc);
	while ((rc = neap_schedule_next(schedule, &a)) > 0 && puts(neap_action_show(line, &a)) >= 0)
		;
	neap_schedule_close(schedule);
	return rc < 0 ? cli_fail("plan", rc) : cli_finish("plan");
}

struct making {
	const struct neap_problem *problem;
	const struct neap_plan *plan;
	uint32_t flags;
};

static int make_drawing(
	const void *user, int (*write)(void *file, const char *text, size_t length), void *file)
{
	const struct making *m = user;
	struct neap_schedule *schedule;
	char title[200];
	int rc = neap_schedule_open(&schedule, m->problem, m->plan);
	if (rc < 0)
		return rc;
	snprintf(title, sizeof title, "%s, %" PRId64 " steps", m->plan->chosen,
		m->problem->chain.steps);
	rc = neap_draw(m->problem, schedule, title, 0, write, file);
	neap_schedule_close(schedule);
	return rc;
}

int cli_plan_draw(
	const struct neap_problem *problem, const struct neap_plan *plan, const char *path)
{
	const struct making m = {problem, plan, 0};
	return cli_write_file("draw", path, "plan", make_drawing, &m);
}

static int make_text(
	const void *user, int (*write)(void *file, const char *text, size_t length), void *file)
{
	const struct making *m = user;
	return neap_plan_write(m->plan, m->problem, m->flags, write, file);
}

int cli_plan_save(const struct neap_problem *problem, const struct neap_plan *plan, uint32_t flags,
	const char *path, const char *command)
{
	const struct making m = {problem, plan, flags};
	return cli_write_file("save", path, command, make_text, &m);
}

int cli_plan_load(struct neap_saved **saved, const char *path)
{
	char *text;
	size_t length = 0;
	int rc = cli_read_text(&text, &length, path, "plan");
	if (rc == CLI_DONE) {
		int code = neap_plan_read(saved, text, length, 0);
		if (code < 0)
			rc = cli_usage("plan", "%s: %s", path, neap_detail()) == CLI_USAGE &&
					     code > -4096
				     ? CLI_FAILED
				     : CLI_USAGE;
	}
	free(text);
	return rc;
}
