/* SPDX-License-Identifier: Apache-2.0 */
/* scratch_settle.c: syncfs, and a rest. */
#include "sys/scratch.h"
#include "base/fail.h"
#include "sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define REST 0.3 /* seconds: discards follow the commit, and nothing tells when they end */

int neap__scratch_settle(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 || syncfs(fd) < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (err)
		return neap__fail_errno(err, "cannot settle the file system of '%s'", directory);
	neap__sleep(REST);
	return 0;
}
