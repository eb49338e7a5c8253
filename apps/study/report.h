/* SPDX-License-Identifier: Apache-2.0 */
/* report.h: report.md of a study: the machine, a section an experiment, model and measurement. */
#ifndef NEAP_STUDY_REPORT_H
#define NEAP_STUDY_REPORT_H

#include "study/experiment.h"

/* One line about this machine, and about the device of the study. */
void neap__report_machine(const struct neap__study *study, char *room, size_t size);
/* The section of the experiment at hand, and its points' model against measurement. */
int neap__report_section(struct neap__study *study);
/* The line of one that lacks points. */
void neap__report_missing(struct neap__study *study, int count);
/* OUT/report.md. */
int neap__report_write(struct neap__study *study);

#endif
