/* SPDX-License-Identifier: Apache-2.0 */
/* event_words.c: words and headers of files of events (event_words.h). */
#include "data/events/event_words.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PIECE = 1 << 15 /* bytes, chosen */, LONGEST_LINE = 4096, MOST_PIXELS = 65536 };

int neap__event_words(FILE *file, const char *path, size_t bytes,
	int (*take)(void *user, const unsigned char *word), void *user)
{
	unsigned char piece[PIECE];
	size_t n, want = sizeof piece / bytes * bytes;
	while ((n = fread(piece, 1, want, file)) > 0) {
		for (size_t i = 0; i + bytes <= n; i += bytes)
			NEAP_TRY(take(user, piece + i));
		if (n % bytes != 0 && !ferror(file))
			return neap__fail(NEAP_EFORMAT,
				"'%s' is truncated: the length of its data is not a multiple of "
				"%zu bytes, the size of an event. Replace it with an intact copy",
				path, bytes);
	}
	return ferror(file) ? neap__fail_errno(EIO, "cannot read '%s'", path) : 0;
}

/* A number of pixels at *text, and what follows it; 0 if it is none. */
static int take_pixels(const char **text, const char *after)
{
	char *end;
	errno = 0;
	long n = **text >= '0' && **text <= '9' ? strtol(*text, &end, 10) : 0;
	if (errno || n < 1 || n > MOST_PIXELS || !strchr(after, *end))
		return 0;
	*text = end;
	return (int)n;
}

/* "EVT3;height=720;width=1280" */
static void take_format(struct neap__prophesee *h, const char *value)
{
	neap__print(h->format, sizeof h->format, "%.*s", (int)strcspn(value, ";"), value);
	h->swapped = strstr(value, ";endianness=legacy") != NULL;
	const char *width = strstr(value, ";width="), *height = strstr(value, ";height=");
	if (width && (width += strlen(";width=")))
		h->width = take_pixels(&width, ";");
	if (height && (height += strlen(";height=")))
		h->height = take_pixels(&height, ";");
}

static void take_line(struct neap__prophesee *h, const char *key, const char *value)
{
	if (strcasecmp(key, "width") == 0)
		h->width = take_pixels(&value, "");
	else if (strcasecmp(key, "height") == 0)
		h->height = take_pixels(&value, "");
	else if (strcasecmp(key, "version") == 0)
		h->version = (int)strtol(value, NULL, 10);
	else if (strcmp(key, "geometry") == 0) {
		int width = take_pixels(&value, "x");
		if (width && *value++ == 'x' && (h->height = take_pixels(&value, "")) > 0)
			h->width = width;
	} else if (strcmp(key, "format") == 0)
		take_format(h, value);
	else if (strcmp(key, "evt") == 0 && !h->format[0]) { /* "2.0", "2.1", "3.0" */
		const char *minor = strchr(value, '.');
		minor = minor && strcmp(minor, ".0") != 0 ? minor + 1 : "";
		neap__print(h->format, sizeof h->format, "EVT%.*s%s", (int)strcspn(value, "."),
			value, minor);
		/* Cameras that write this line have the swapped layout only. */
		h->swapped = 1;
	}
}

int neap__prophesee_header(struct neap__prophesee *h, FILE *file, const char *path)
{
	char line[LONGEST_LINE];
	*h = (struct neap__prophesee){0};
	for (int number = 1;; number++) {
		long begin = ftell(file);
		if (begin < 0)
			return neap__fail_errno(errno, "cannot read '%s'", path);
		if (getc(file) != '%' || getc(file) != ' ')
			return fseek(file, begin, SEEK_SET) < 0
				       ? neap__fail_errno(errno, "cannot read '%s'", path)
				       : 0;
		if (!fgets(line, sizeof line, file) || !strchr(line, '\n'))
			return neap__fail(NEAP_EFORMAT,
				"'%s' is damaged: line %d of its header does not end. Replace "
				"it with an intact copy",
				path, number);
		size_t n = strlen(line);
		while (n > 0 && strchr(" \t\r\n", line[n - 1]))
			line[--n] = '\0';
		char *value = line + strcspn(line, " ");
		if (*value)
			*value++ = '\0';
		if (strcmp(line, "end") == 0)
			return 0;
		take_line(h, line, value + strspn(value, " "));
	}
}
