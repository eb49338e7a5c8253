/* SPDX-License-Identifier: Apache-2.0 */
/* label_doubts.c: words that a pattern cuts, and names in two forms of Unicode (label_doubts.h). */
#include "data/encode/label_doubts.h"
#include "data/names/name_pattern.h"
#include "data/names/pattern_proposal.h"
#include "data/recordings.h"
#include "base/print.h"

#include <stdlib.h>
#include <string.h>

const char *neap__label_cut(char *file, size_t size, const char *dir, const char *label)
{
	struct neap__recordings all = {0};
	struct neap__name_pattern *pattern = NULL;
	const char *other = NULL, **path = NULL;
	int64_t count = 0;
	int cuts = 0;
	if (neap__recordings_all(&all, dir) == 0 &&
		neap__name_pattern_new(&pattern, label, "--label") == 0)
		path = malloc((size_t)(all.count + 1) * sizeof *path);
	for (int64_t i = 0; path && i < all.count; i++) {
		if (all.file[i].stray)
			continue;
		path[count++] = all.file[i].path;
		if (!cuts && (cuts = neap__name_pattern_cuts(pattern, all.file[i].path)) != 0)
			neap__print(
				file, size, "%s", neap__recordings_below(all.file[i].path, dir));
	}
	if (cuts)
		other = neap__pattern_proposal(path, count);
	free(path);
	neap__name_pattern_free(pattern);
	neap__recordings_free(&all);
	return other;
}

/* By combining character: pairs of a letter and the character that is the letter with the accent,
 * of Latin-1 and Latin Extended-A (the canonical decompositions of the Unicode Character Database).
 */
static const struct {
	const char *mark, *pairs;
} accents[] = {{"\xCC\x80", "AÀEÈIÌOÒUÙaàeèiìoòuùNǸnǹ"},
	{"\xCC\x81", "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyýCĆcćLĹlĺNŃnńRŔrŕSŚsśZŹzź"},
	{"\xCC\x82", "AÂEÊIÎOÔUÛaâeêiîoôuûCĈcĉGĜgĝHĤhĥJĴjĵSŜsŝWŴwŵYŶyŷ"},
	{"\xCC\x83", "AÃNÑOÕaãnñoõIĨiĩUŨuũ"}, {"\xCC\x84", "AĀaāEĒeēIĪiīOŌoōUŪuū"},
	{"\xCC\x86", "AĂaăEĔeĕGĞgğIĬiĭOŎoŏUŬuŭ"}, {"\xCC\x87", "CĊcċEĖeėGĠgġIİZŻzż"},
	{"\xCC\x88", "AÄEËIÏOÖUÜaäeëiïoöuüyÿYŸ"}, {"\xCC\x8A", "AÅaåUŮuů"},
	{"\xCC\x8B", "OŐoőUŰuű"}, {"\xCC\x8C", "CČcčDĎdďEĚeěNŇnňRŘrřSŠsšTŤtťZŽzž"},
	{"\xCC\xA7", "CÇcçGĢKĶkķLĻlļNŅnņRŖrŗSŞsşTŢtţ"}, {"\xCC\xA8", "AĄaąEĘeęIĮiįUŲuų"}};

/* The character of two bytes that the letter and the combining character at `at` are; or NULL. */
static const char *composed(const char *at)
{
	for (size_t i = 0; i < sizeof accents / sizeof *accents; i++)
		if (strncmp(at + 1, accents[i].mark, 2) == 0)
			for (const char *p = accents[i].pairs; *p; p += 3)
				if (*p == *at)
					return p + 1;
	return NULL;
}

int neap__label_same_text(const char *one, const char *other)
{
	int differs = 0;
	while (*one && *other) {
		const char *a = composed(one), *b = composed(other);
		if (a && !b && strncmp(other, a, 2) == 0) {
			one += 3;
			other += 2;
			differs = 1;
		} else if (b && !a && strncmp(one, b, 2) == 0) {
			one += 2;
			other += 3;
			differs = 1;
		} else if (*one++ != *other++) {
			return 0;
		}
	}
	return differs && *one == *other;
}
