/* SPDX-License-Identifier: Apache-2.0 */
/* sort_command.c: copies in folders of classes, and names of events (sort_command.h). */
#include "data/names/sort_command.h"
#include "base/print.h"
#include "base/quote.h"

void neap__sort_command(char *room, size_t size, const char *labels, const char *dir)
{
	const char *in = neap__quoted(dir);
	neap__print(room, size,
		"tr ';\\t' , < %s | tr -d '\\r\"' | while IFS=, read -r f c _ || [ \"$f\" ]; do "
		"for g in %s/\"$f\" %s/\"$f\".wav \"$f\"; do if [ -f \"$g\" ]; then mkdir -p "
		"sorted/\"$c\"; cp \"$g\" sorted/\"$c\"; fi; done; done",
		neap__quoted(labels), in, in);
}

const char *neap__rename_events(char *room, size_t size, const char *dir)
{
	neap__print(room, size,
		"find %s -name '*.txt' -exec sh -c 'for f; do mv \"$f\" "
		"\"${f%%.txt}_events.txt\"; done' sh {} +",
		neap__quoted(dir));
	return room;
}
