/* SPDX-License-Identifier: Apache-2.0 */
/* trained_on.c: compares the fingerprint of data with that in run.json (trained_on.h). */
#include "train/answers/trained_on.h"
#include "train/run_options.h"
#include "data/coded_rows.h"
#include "data/dataset.h"
#include "data/row_reading.h"
#include "base/fail.h"
#include "base/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Reads the data as the run did: options change what is read, and so its fingerprint. 0 or < 0. */
static int fingerprint(uint64_t *found, const char *data, const struct neap_train_options *o)
{
	struct neap__coding coding;
	struct neap_dataset *set;

	NEAP_TRY(neap_dataset_open(&set, data));
	int rc = o->next ? neap__rows_next(set) : 0;
	if (rc == 0)
		rc = neap__coding_parse(&coding, o->encode);
	if (rc == 0)
		neap__coding_seed(&coding, o->seed);
	if (rc == 0)
		rc = neap__rows_encode(set, &coding, o->max_steps);
	if (rc == 0)
		rc = neap__dataset_channels(set, o->net.inputs);
	if (rc == 0)
		rc = neap__data_fingerprint(found, set);
	neap_dataset_close(set);
	return rc;
}

/* The folder of a model in `room`, which has strlen(model) + 2 bytes. */
static const char *folder_of(char *room, const char *model)
{
	struct stat st;

	strcpy(room, model);
	if (stat(model, &st) == 0 && S_ISDIR(st.st_mode))
		return room;
	char *slash = strrchr(room, '/');
	if (!slash)
		return strcpy(room, ".");
	*slash = '\0';
	return room;
}

int neap__trained_on(const char *model, const char *data, int64_t samples)
{
	char *room = malloc(strlen(model) + 2), hex[24];
	struct neap_run *run = NULL;
	uint64_t found;
	int is = 0;

	if (room && neap_run_open(&run, folder_of(room, model)) == 0 &&
		neap__run_samples(run) == samples && neap__run_fingerprint(run) &&
		fingerprint(&found, data, neap_run_options(run)) == 0) {
		neap__print(hex, sizeof hex, "%016" PRIx64, found);
		is = strcmp(hex, neap__run_fingerprint(run)) == 0;
	}
	neap_run_close(run);
	free(room);
	return is;
}
