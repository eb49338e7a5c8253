/* SPDX-License-Identifier: Apache-2.0 */
/* missing_file.c: looks for a similar name in the folder of a missing file (missing_file.h). */
#include "data/missing_file.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/suggest.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

int neap__missing_file(int err, const char *path)
{
	char dir[1024] = ".", near[256] = "";
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	struct neap__suggestion meant = {.text = base, .length = strlen(base)};
	struct dirent *entry;
	int rc = neap__fail_errno(err, "cannot read '%s'", path);
	if (err != ENOENT || !*base || (slash && slash - path >= (int)sizeof dir - 1))
		return rc;
	if (slash)
		neap__print(dir, sizeof dir, "%.*s", (int)(slash - path) + 1, path);
	DIR *folder = opendir(dir);
	while (folder && (entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.' && base[0] != '.')
			continue;
		neap__suggest(&meant, entry->d_name);
		if (meant.name == entry->d_name) {
			neap__print(near, sizeof near, "%s", entry->d_name);
			meant.name = near;
		}
	}
	if (folder)
		closedir(folder);
	neap__print(dir, sizeof dir, "%s", neap_detail());
	if (near[0])
		return neap__fail(
			rc, "%s. Did you mean '%.*s%s'?", dir, (int)(base - path), path, near);
	return neap__fail(rc, "%s. Check the path", dir);
}
