/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h: small training runs in folders of their own. */
#ifndef NEAP_TEST_RUNS_H
#define NEAP_TEST_RUNS_H

#include "test.h"
#include <neap/train.h>
#include <sys/stat.h>

#define SMALL_DATA "randman:classes=4,units=20,steps=60,samples=200,seed=3"
#define SMALL_TEST "randman:classes=4,units=20,steps=60,samples=100,seed=3,part=test"

/* A folder for this program's runs, removed at its end; in memory where that can be had. */
static char folder[64];

static inline int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/dev/shm/neap-runs-XXXXXX");
	if (mkdtemp(folder))
		return 0;
	snprintf(folder, sizeof folder, "/tmp/neap-runs-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
	char command[80];
	(void)state;
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

/* folder/name, in one of a few buffers. */
static inline const char *in_folder(const char *name)
{
	static char rooms[8][128];
	static int next;
	char *room = rooms[next++ % 8];
	snprintf(room, sizeof rooms[0], "%s/%s", folder, name);
	return room;
}

static inline int exists(const char *name)
{
	return access(in_folder(name), F_OK) == 0;
}

/* 180 samples to train on in 12 batches, the last of 4, 20 to validate. */
static inline struct neap_train_options small_run(const char *name)
{
	struct neap_train_options o = NEAP_TRAIN_OPTIONS_INIT;
	o.data = SMALL_DATA;
	o.out = in_folder(name);
	o.net.spec = "lif:32r,li";
	o.net.scale = 1.5;
	o.net.threads = 1; /* a second thread would mostly spin: batches are too small for two */
	o.epochs = 3;
	o.batch = 16;
	o.warmup = 5;
	o.sweep.memory = 1 << 20;
	return o;
}

static inline uint64_t train_hash(const struct neap_train_options *options)
{
	struct neap_train_result result = {.size = sizeof result};
	int rc = neap_train(&result, options);
	if (rc != 0)
		fail_msg("%s: %s", neap_strerror(rc), neap_detail());
	uint64_t hash = result.weights_hash;
	neap_train_result_free(&result);
	return hash;
}

static inline void same_files(const char *a, const char *b)
{
	char command[300];
	snprintf(command, sizeof command, "cmp %s %s", in_folder(a), in_folder(b));
	assert_int_equal(system(command), 0);
}

#endif
