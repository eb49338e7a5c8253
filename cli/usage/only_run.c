/* SPDX-License-Identifier: Apache-2.0 */
/* only_run.c: what is a run, and the run that was probably meant (cli.h). */
#include "cli.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cli_is_run(const char *path)
{
	static const char ending[] = ".safetensors";
	char model[4096];
	size_t n = strlen(path), end = strlen(ending);

	if (n > end && strcmp(path + n - end, ending) == 0)
		return 1;
	snprintf(model, sizeof model, "%s/model.safetensors", path);
	return access(model, F_OK) == 0;
}

const char *cli_only_run(char room[300])
{
	char path[300];
	const struct dirent *entry;
	int runs = 0;
	DIR *folder = opendir(".");

	while (folder && (entry = readdir(folder)) != NULL) {
		snprintf(path, sizeof path, "%.255s/run.json", entry->d_name);
		if (entry->d_name[0] == '.' || access(path, R_OK) != 0)
			continue;
		snprintf(room, 300, "'%.255s'", entry->d_name);
		runs++;
	}
	if (folder)
		closedir(folder);
	return runs == 1 ? room : "FOLDER";
}
