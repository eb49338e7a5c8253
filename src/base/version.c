/* SPDX-License-Identifier: Apache-2.0 */
/* version.c: the version that the library was built as. */
#include <neap/version.h>

const char *neap_version(void)
{
	return NEAP_VERSION;
}

int neap_version_number(void)
{
	return NEAP_VERSION_NUMBER;
}
