/* SPDX-License-Identifier: Apache-2.0 */
/* reading_cost.c: the share of the reader's time that the threads of a net lose. */
#include "measure/reading_cost.h"
#include "data/windows.h"
#include "nn/core/net_state.h"
#include "sys/pool.h"

static int rounds(int groups, int threads)
{
	return (groups + threads - 1) / threads;
}

double neap__reading_cost(const struct neap_net *net, const struct neap_batch *batch)
{
	int threads = neap__thread_pool_threads(net->pool), processors = neap__processors();

	if (!batch->windows || net->device || threads < processors)
		return 0;
	double seconds = neap__windows_cost(batch->windows);
	if (threads > processors || threads == 1 || net->ngroups < 1)
		return seconds;
	return seconds *
	       (1 - (double)rounds(net->ngroups, threads) / rounds(net->ngroups, threads - 1));
}

void neap__costs_add_reading(struct neap__costs *costs, double seconds)
{
	costs->advance += seconds;
	costs->record += seconds;
	costs->backward += seconds;
}
