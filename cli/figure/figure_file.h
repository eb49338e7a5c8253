/* SPDX-License-Identifier: Apache-2.0 */
/* figure_file.h: writes a figure as SVG, or as PNG, which is the SVG drawn by rsvg-convert. */
#ifndef NEAP_CLI_FIGURE_FILE_H
#define NEAP_CLI_FIGURE_FILE_H

#include "cli.h"

int cli_ends_in(const char *text, const char *end);
/* 1: the name ends in .svg or .png. */
int cli_figure_named(const char *path);
/*
 * Whether a figure could be written there, before it is made: name, folder, rsvg-convert. CLI_DONE,
 * or one line that names `option`.
 */
int cli_figure_check(const char *option, const char *path, const char *command);
/* As cli_write_file, of a text that is SVG; a PNG has twice as many pixels. */
int cli_figure_write(const char *option, const char *path, const char *command, cli_make *make,
	const void *user);

#endif
