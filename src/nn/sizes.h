/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.h: whole numbers with an x between them, such as 5, 3x5 and 2x34x34. */
#ifndef NEAP_NN_SIZES_H
#define NEAP_NN_SIZES_H

struct neap__text;

/*
 * Reads to[count] numbers from `least` to 65536 of a text of so many characters; one number stands
 * for two equal ones. 1, or 0 where the text is something else; `to` is then unchanged.
 */
int neap__sizes_read(int *to, int count, int least, const char *text, int length);
void neap__sizes_write(struct neap__text *text, const int *sizes, int count);

#endif
