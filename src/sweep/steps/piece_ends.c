/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece_ends.c: where the pieces of a range of steps end. The sizes of all tables follow from the
 * same functions, so that no run needs more rows than were counted.
 */
#include "sweep/steps/piece_ends.h"

/* Twice as many as blocks, since calls stop early where room is short; 4 more for the ends. */
static int64_t log_pieces(int64_t t0, int64_t t1)
{
	int64_t n = t1 - t0, most = 2 * ((n + NEAP__LOG_BLOCK - 1) / NEAP__LOG_BLOCK) + 4;
	return n < 1 ? 0 : n < most ? n : most;
}

int64_t neap__tape_piece_end(int64_t t, int64_t t1, int64_t seen, int64_t block)
{
	int64_t end = t1;
	if (t < seen && seen < end)
		end = seen;
	if (block && t / block < (end - 1) / block)
		end = (t / block + 1) * block;
	return end;
}

/* Pieces of a recorded range [t0, t1), one more where `passed` falls inside. */
int64_t neap__whole_pieces(int64_t t0, int64_t t1)
{
	return t1 <= t0 ? 0 : (t1 - 1) / NEAP__RECORD_BLOCK - t0 / NEAP__RECORD_BLOCK + 2;
}

/*
 * The same where extents are no stack: a piece may be cut up to NEAP__HOLE_CUTS times more, so that
 * its parts fit the gaps.
 */
int64_t neap__cut_pieces(int64_t t0, int64_t t1)
{
	int64_t n = t1 - t0, most = neap__whole_pieces(t0, t1) * (NEAP__HOLE_CUTS + 1);
	return n < 1 ? 0 : n < most ? n : most;
}

/* Pieces that the action's tapes or logs may come in. */
int64_t neap__pieces_of(const struct neap_action *a)
{
	return a->payload == NEAP_LOG ? log_pieces(a->t0, a->t1) : neap__cut_pieces(a->t0, a->t1);
}
