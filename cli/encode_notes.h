/* SPDX-License-Identifier: Apache-2.0 */
/* encode_notes.h: lines of `neap encode` about skipped files, names that were found, and doubts. */
#ifndef NEAP_CLI_USAGE_ENCODE_NOTES_H
#define NEAP_CLI_USAGE_ENCODE_NOTES_H

#include <stdint.h>

/* Files that were skipped: consecutive ones with the same fault share a line. All zero at first. */
struct cli_skipped {
	int kinds;	 /* lines so far, the present one included */
	int64_t alike;	 /* files in addition to the one of `line` */
	char line[960];	 /* not printed yet; "": none */
	char names[400]; /* of the first of `alike` */
};
void cli_skipped_add(struct cli_skipped *skipped, const char *line);
/* Prints what is pending; `failed`: the error repeats the only line, so that is left out. */
void cli_skipped_end(struct cli_skipped *skipped, int failed);

/* Refuses --out where it is a folder, or in none. CLI_DONE, or the exit code after one line. */
int cli_encoded_out(const char *out);
/* Prints the names of the classes of the data set that was written. */
void cli_encoded_names(const char *out);
/* Calls `doubt` for classes and folders that are probably meant otherwise; `label`: --label. */
void cli_encoded_doubts(const char *out, const char *dir, const char *label,
	void (*doubt)(void *user, const char *line), void *user);

#endif
