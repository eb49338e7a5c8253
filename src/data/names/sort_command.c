/* SPDX-License-Identifier: Apache-2.0 */
/* sort_command.c: copies in folders of classes, and names of events (sort_command.h). */
#include "data/names/sort_command.h"
#include "base/print.h"
#include "base/quote.h"

void neap__sort_command(char *room, size_t size, const char *labels, const char *dir)
{
	const char *in = neap__quoted(dir);
	/* Files of equal names in different subfolders stay apart: a slash becomes %2F. */
	neap__print(room, size,
		"tr ';\\t' , < %s | tr -d '\\r\"' | while IFS=, read -r f c _ || [ \"$f\" ]; do "
		"n=$(printf "
		"%%s \"$f\" | sed 's:^\\./::;s:^\\.:_.:;s:%%:%%25:g;s:/:%%2F:g'); for e in '' "
		".wav; do "
		"for g in %s/\"$f$e\" \"$f$e\"; do if [ -f \"$g\" ]; then mkdir -p sorted/\"$c\"; "
		"cp "
		"\"$g\" sorted/\"$c/$n$e\"; break 2; fi; done; done; done",
		neap__quoted(labels), in);
}

const char *neap__rename_events(char *room, size_t size, const char *dir)
{
	neap__print(room, size,
		"find %s -name '*.txt' -exec sh -c 'for f; do mv \"$f\" "
		"\"${f%%.txt}_events.txt\"; done' sh {} +",
		neap__quoted(dir));
	return room;
}
