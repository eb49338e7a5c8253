/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiled_code.h: functions that the C compiler `cc` makes of a text that the program generated.
 * The shared objects are kept in neap/code of the user's cache directory ($XDG_CACHE_HOME, or
 * ~/.cache), which only the user may access, under a hash of the text, of the flags and of the
 * macros that the compiler predefines: its version and the instruction sets that it may use. A file
 * from there is used only if it contains the same text.
 */
#ifndef NEAP_NN_CELLFILE_COMPILED_CODE_H
#define NEAP_NN_CELLFILE_COMPILED_CODE_H

#include <neap/status.h>

/*
 * Sets function[i] to the function name[i] of the text, which stays loaded until the process ends.
 * The text is ASCII, and declares no function that it does not define. `option` is what asked for
 * the compiler, for messages. SIGINT, SIGTERM and SIGHUP of the calling thread end the compiler and
 * are delivered when its files are removed. 0, -ENOMEM, NEAP_EINTERRUPTED, or NEAP_EUSAGE with a
 * line: there is no compiler, it failed, or other users can access the directory.
 */
int neap__compiled_code(void **function, const char *const *name, int functions, const char *text,
	const char *option);

#endif
