/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_study.h: experiments that measure what strategies cost in memory and time, each a
 * table of points (CSV), figures (SVG) and a section of a report.
 *
 *     struct neap_study_options o = {.size = sizeof o, .out = "study"};
 *     neap_study_run(&o, NULL, 0);
 *
 * Points are kept as they are measured: run again with the same folder, a study goes
 * on where it was interrupted and draws what is complete.
 */
#ifndef NEAP_STUDY_RUN_STUDY_H
#define NEAP_STUDY_RUN_STUDY_H

#include <stdint.h>
#include <neap/status.h>

/* The experiments, in table order; NULL beyond the end. */
const char *neap_study_name(int index);
/* 1: the experiment needs a device. */
int neap_study_on_device(const char *name);
/* One line about an experiment; NULL when there is none of that name. */
const char *neap_study_about(const char *name);

enum neap_study_scale {
	NEAP_STUDY_QUICK, /* all of them within minutes on two processors */
	NEAP_STUDY_FULL,  /* within about three hours */
	NEAP_STUDY_TINY,  /* within seconds: to see that it works; says little */
};

struct neap_study_options {
	uint32_t size;	 /* sizeof(struct neap_study_options) */
	int scale;	 /* enum neap_study_scale */
	const char *out; /* folder, made if it is not there; of one scale and one machine */
	/* Directory of slow memory in a file; with a device a list of tiers. NULL: /var/tmp; with a
	 * device pinned:4G. */
	const char *slow;
	/* As in neap_net_options: the experiments that need a device run, and no others. May be
	 * NULL.
	 */
	const char *device;
	int png; /* 1: a PNG for each SVG, by rsvg-convert */
	/*
	 * Points done of those that were missing, with the next one's name (NULL: between
	 * experiments). Non-zero ends the study with NEAP_EINTERRUPTED. May be NULL.
	 */
	int (*progress)(void *user, const char *point, int done, int total);
	/* One line of text without newline: what is missing, where the report is. May be NULL. */
	void (*say)(void *user, const char *line);
	void *user;
};

/*
 * Runs the `count` experiments named (0: all of the processor, or of the device) and writes
 * OUT/report.md about all those that are complete in OUT. NEAP_EUSAGE for an unknown name or a
 * folder of another scale or machine; NEAP_EFORMAT for a file of points that is not one.
 */
int neap_study_run(const struct neap_study_options *options, const char *const *names, int count);

#endif
