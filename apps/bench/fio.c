/* SPDX-License-Identifier: Apache-2.0 */
/* fio.c: one pass of fio, from its command line to the numbers of its JSON report. */
#include "bench/fio.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/fail.h"
#include "sys/command.h"

#define OUTPUT (256 << 10) /* bytes of its report, at most */

static double number(const json_t *o, const char *name)
{
	return json_number_value(json_object_get(o, name)); /* 0 where it is none */
}

static int read_report(
	struct neap__moved *moved, const struct neap__fio *fio, int write, const char *text)
{
	json_t *root = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
	const json_t *job = json_array_get(json_object_get(root, "jobs"), 0);
	const json_t *way = json_object_get(job, write ? "write" : "read");
	double seconds = number(way, "runtime") * 1e-3;
	double busy = (number(job, "usr_cpu") + number(job, "sys_cpu")) / 100;
	moved->rate = number(way, "bw_bytes");
	moved->cpu = busy * seconds / (double)fio->bytes;
	int done = number(way, "io_bytes") >= (double)fio->bytes && moved->rate > 0;
	json_decref(root);
	return done ? 0 : neap__fail(NEAP_EFORMAT, "the report of fio cannot be parsed");
}

int neap__fio_run(struct neap__moved *moved, const struct neap__fio *fio, int write)
{
	char size[32], block[32], depth[32], name[4096];
	const char *argv[] = {"fio", "--name=neap", "--ioengine=io_uring", "--direct=1",
		"--registerfiles=1", "--fixedbufs=1", "--thread", "--output-format=json",
		write ? "--rw=write" : "--rw=read", size, block, depth, name, NULL};
	snprintf(size, sizeof size, "--size=%llu", (unsigned long long)fio->bytes);
	snprintf(block, sizeof block, "--bs=%llu", (unsigned long long)fio->block);
	snprintf(depth, sizeof depth, "--iodepth=%d", fio->depth);
	snprintf(name, sizeof name, "--filename=%s", fio->path);
	char *text = malloc(OUTPUT);
	if (!text)
		return neap__fail_errno(ENOMEM, "fio's report");
	int rc = neap__command(argv, 0, text, OUTPUT);
	if (rc > 0)
		rc = neap__fail(NEAP_EFORMAT, "fio ended with status %d", rc);
	else if (rc == -ENOENT)
		rc = neap__fail_errno(ENOENT, "fio");
	else if (rc < 0)
		rc = neap__fail_errno(-rc, "fio did not end by itself");
	if (rc == 0)
		rc = read_report(moved, fio, write, text);
	free(text);
	return rc;
}
