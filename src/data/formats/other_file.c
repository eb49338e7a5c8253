/* SPDX-License-Identifier: Apache-2.0 */
/* other_file.c: the line about a file that is not HDF5, where one is expected (h5.h). */
#include "data/formats/h5.h"
#include "data/recordings.h"
#include "base/fail.h"

#include <sys/stat.h>

int neap__other_file(const char *path)
{
	static const char *const endings[] = {".h5", ".hdf5", NULL};
	struct stat st;

	if (stat(path, &st) == 0 && st.st_size == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is empty. Restore it from its source, or rewrite it", path);
	if (neap__recordings_ends(path, endings))
		return neap__fail(NEAP_EFORMAT,
			"'%s' is not an HDF5 file, although its name ends as one. Restore it from "
			"its source, rewrite it, or rename it with the ending of its contents",
			path);
	if (neap__recordings_ends(path, neap__event_endings)) /* of kinds that are no HDF5 */
		return neap__recordings_lone(path, 1);
	if (neap__recordings_text(path))
		return neap__fail(NEAP_EFORMAT,
			"'%s' is not an HDF5 file. If it is a text to learn, pass the name "
			"'text:%s'",
			path, path);
	return neap__recordings_read(path) ? neap__table_lone(path)
					   : neap__recordings_wrong_file(path);
}
