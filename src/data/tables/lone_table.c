/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lone_table.c: refuses a table where a data set is expected (recordings.h): one that lists labels
 * is encoded with the data that it belongs to, and one of many recordings together with the others.
 */
#include "data/recordings.h"
#include "data/names/sort_command.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"

#include <dirent.h>
#include <string.h>

enum { PATH = 1024, COMMAND = NEAP__DETAIL_BYTES - 300 };

/* The folder that a file is in, as a path. */
static void folder_of(char room[PATH], const char *path)
{
	const char *slash = strrchr(path, '/');
	neap__print(room, PATH, "%.*s",
		!slash	       ? 1
		: slash > path ? (int)(slash - path)
			       : 1,
		slash ? path : ".");
}

/* The only folder in `dir` whose files the table lists: 1 and its path in place of `dir`. */
static int listed_folder(char dir[PATH], const char *table)
{
	char one[PATH], found[PATH] = "";
	const struct dirent *entry;
	int count = 0;
	DIR *folder = opendir(dir);

	while (folder && (entry = readdir(folder)) != NULL) {
		neap__print(one, sizeof one, "%s%s%.255s", strcmp(dir, ".") == 0 ? "" : dir,
			strcmp(dir, ".") == 0 ? "" : "/", entry->d_name);
		if (entry->d_name[0] == '.' || !neap__recordings_folder(one) ||
			!neap__labels_name(table, one))
			continue;
		count++;
		memcpy(found, one, sizeof found);
	}
	if (folder)
		closedir(folder);
	if (count == 1)
		memcpy(dir, found, PATH);
	return count;
}

/* The commands that encode the data of a table of labels; 0: the data is not found. */
static int labelled(char *room, size_t size, const char *path)
{
	char dir[PATH], train[4096], test[4096], sort[900];

	folder_of(dir, path);
	if (neap__recordings_parts(train, test, dir) && neap__labels_name(path, train) &&
		!neap__recordings_having(train, neap__sound_endings) &&
		neap__recordings_having(train, neap__table_endings)) {
		const char *missing = neap__tables_have_gaps(dir) ? " --missing previous" : "";
		const char *also = neap__labels_name(path, test) ? neap__quoted(path) : "FILE.csv";
		neap__print(room, size,
			"neap encode %s --out train.h5 --labels %s%s; neap encode %s --out test.h5 "
			"--labels %s%s; neap train train.h5 --test test.h5",
			neap__quoted(train), neap__quoted(path), missing, neap__quoted(test), also,
			missing);
		return 1;
	}
	if (!listed_folder(dir, path) && !neap__labels_name(path, dir))
		return 0;
	if (!neap__recordings_having(dir, neap__sound_endings) &&
		neap__recordings_having(dir, neap__table_endings)) {
		neap__print(room, size,
			"neap encode %s --out FILE.h5 --labels %s%s; neap train FILE.h5",
			neap__quoted(dir), neap__quoted(path),
			neap__tables_have_gaps(dir) ? " --missing previous" : "");
		return 1;
	}
	neap__sort_command(sort, sizeof sort, path, dir);
	neap__print(room, size,
		"this shell command copies it to a folder 'sorted' by class, which is then encoded "
		"by neap encode sorted --out FILE.h5: %s",
		sort);
	return 1;
}

int neap__table_lone(const char *path)
{
	char command[COMMAND], labels[600], dir[PATH], above[300];

	if (labelled(command, sizeof command, path))
		return neap__fail(NEAP_EFORMAT,
			"'%s' is a table of labels, not data. Encode the data with it: %s", path,
			command);
	folder_of(dir, path);
	if (neap__labels_of_file(labels, sizeof labels, path))
		return neap__fail(NEAP_EFORMAT,
			"'%s' is one of the recordings that '%s' has the labels of, and training "
			"needs a data set. Encode the folder: neap encode %s --out FILE.h5 "
			"--labels %s%s; neap train FILE.h5",
			path, labels, neap__quoted(dir), neap__quoted(labels),
			neap__tables_have_gaps(dir) ? " --missing previous" : "");
	if (neap__recordings_above(above, sizeof above, path, neap__table_endings))
		return neap__fail(NEAP_EFORMAT,
			"'%s' is one table, and training needs a data set. If the folders in '%s' "
			"are the classes, encode that folder: neap encode %s --out FILE.h5%s. To "
			"encode only this table: neap encode %s --out FILE.h5",
			path, above, neap__quoted(above),
			neap__tables_have_gaps(above) ? " --missing previous" : "",
			neap__quoted(path));
	return neap__fail(NEAP_EFORMAT,
		"'%s' is not an HDF5 file. Encode recordings, events and tables first: neap encode "
		"%s --out FILE.h5",
		path, neap__quoted(path));
}
