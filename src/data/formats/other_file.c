/* SPDX-License-Identifier: Apache-2.0 */
/* other_file.c: the line about a file that is not HDF5, where one is expected (h5.h). */
#include "data/formats/h5.h"
#include "data/recordings.h"
#include "base/fail.h"

int neap__other_file(const char *path)
{
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
