/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_windows.c: the windows of long batches (neap/data.h), in a library without the readers of
 * files. Its batches have none: layers of neap.torch pass all inputs.
 */
#include <neap/data.h>
#include "base/fail.h"

int neap_windows_take(struct neap_windows *windows, int64_t t, struct neap_window *window)
{
	(void)windows;
	(void)t;
	*window = (struct neap_window){0};
	return neap__fail(NEAP_EUSAGE, "this library reads no files, and a batch has no windows");
}

void neap_windows_expect(struct neap_windows *windows, int64_t t0, int64_t t1)
{
	(void)windows;
	(void)t0;
	(void)t1;
}
