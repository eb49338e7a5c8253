/* SPDX-License-Identifier: Apache-2.0 */
/* fio.h: the disk benchmark fio, run on the disk that the file tier uses, to compare with. */
#ifndef NEAP_BENCH_FIO_H
#define NEAP_BENCH_FIO_H

#include <stdint.h>

struct neap__fio {
	const char *path; /* of the file it works on; made by the first write */
	uint64_t bytes, block;
	int depth;
};

/* Bytes a second, and processor seconds a byte. */
struct neap__moved {
	double rate, cpu;
};

/*
 * One pass over the file with direct I/O through io_uring, registered buffers and
 * files. -ENOENT: fio is not installed.
 */
int neap__fio_run(struct neap__moved *moved, const struct neap__fio *fio, int write);

#endif
