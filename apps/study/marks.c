/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c: the marks of points. Rows come in pairs: open, then filled. */
#include "base/svg.h"
#include "study/figure.h"

static const struct {
	const char *path; /* around (0, 0), from -1 to 1 */
	int filled;
} marks[] = {
	{"M-1 0H1M0-1V1", 0}, /* plus */
	{"M-1-1 1 1M1-1-1 1", 0},
	{"M-1 0H1M0-1V1M-.8-.8 .8 .8M.8-.8-.8 .8", 0},
	{"M-.9-.9H.9V.9H-.9z", 0}, /* square */
	{"M-.9-.9H.9V.9H-.9z", 1},
	{"M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z", 0}, /* circle */
	{"M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z", 1},
	{"M0-1.2 1.1.8H-1.1z", 0}, /* triangle */
	{"M0-1.2 1.1.8H-1.1z", 1},
	{"M0 1.2 1.1-.8H-1.1z", 0},
	{"M0 1.2 1.1-.8H-1.1z", 1},
	{"M0-1.3 1.3 0 0 1.3-1.3 0z", 0}, /* diamond */
	{"M0-1.3 1.3 0 0 1.3-1.3 0z", 1},
	{"M0-1.2 1.1-.4.7 1H-.7L-1.1-.4z", 0}, /* pentagon */
	{"M0-1.2 1.1-.4.7 1H-.7L-1.1-.4z", 1},
};
#define MARKS (int)(sizeof marks / sizeof marks[0])

void neap__mark_draw(
	struct neap__text *out, struct neap__shade shade, double x, double y, double size)
{
	int mark = (shade.mark + MARKS - 1) % MARKS;
	neap__text_add(out,
		"<path transform=\"translate(%.2f %.2f) scale(%g)\" d=\"%s\" fill=\"%s\" "
		"stroke=\"%s\" "
		"stroke-width=\"%.2g\"/>\n",
		x, y, size, marks[mark].path, marks[mark].filled ? shade.color : "none",
		shade.color, 1.6 / size);
}
