/* SPDX-License-Identifier: Apache-2.0 */
/* run_metrics.c: finds the metrics.csv of a run and reads it (metrics_file.h). */
#include "metrics_file.h"
#include "cli.h"
#include "data/missing_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_metrics_read(struct cli_metrics *metrics, const char *run, const char *command)
{
	struct stat st;
	char *path, *text = NULL;
	int folder = stat(run, &st) < 0 || S_ISDIR(st.st_mode);

	*metrics = (struct cli_metrics){0};
	const char *dot = strrchr(run, '.');
	if (!folder && dot && strcmp(dot, ".safetensors") == 0)
		return cli_usage(command,
			"'%s' is a model, which has no epochs. Pass the folder of its run: neap "
			"plot '%.*s'",
			run, strrchr(run, '/') ? (int)(strrchr(run, '/') - run) : 1,
			strrchr(run, '/') ? run : ".");
	if (!folder && dot &&
		(strcmp(dot, ".h5") == 0 || strcmp(dot, ".npz") == 0 || strcmp(dot, ".npy") == 0))
		return cli_usage(command,
			"'%s' is a data set, and a run is plotted. Pass the folder that 'neap "
			"train' wrote: neap plot RUN",
			run);
	if (asprintf(&path, "%s%s", run, folder ? "/metrics.csv" : "") < 0)
		return cli_usage(command, "out of memory");
	int rc = CLI_DONE;
	if (folder && access(path, F_OK) < 0) {
		char near[1400];
		int found = neap__runs_near(near, sizeof near, run);
		rc = cli_usage(command,
			"'%s' is not the folder of a run: there is no '%s'. Pass the --out of "
			"'neap train'%s%s",
			run, path, found ? ", such as " : "", near);
	}
	if (rc == CLI_DONE)
		rc = cli_read_text(&text, NULL, path, command);
	if (rc == CLI_DONE)
		rc = cli_metrics_parse(metrics, text, path, command);
	if (rc == CLI_DONE && metrics->rows == 0)
		rc = cli_usage(
			command, "%s has no complete epoch yet; wait for the first one", path);
	free(text);
	free(path);
	return rc;
}
