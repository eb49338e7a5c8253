/* SPDX-License-Identifier: Apache-2.0 */
/* gradient_distance.c: a net's gradient as one list, and the distance of two (net_cases.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "study/net_cases.h"

int64_t neap__net_gradient(const struct neap_net *net, double **values)
{
	struct neap_param param;
	int64_t count = 0, at = 0;

	for (int i = 0; i < neap_net_params(net); i++)
		count += neap_net_param(net, i, &param) == 0 ? param.count : 0;
	*values = malloc((size_t)count * sizeof **values);
	for (int i = 0; *values && i < neap_net_params(net); i++)
		if (neap_net_param(net, i, &param) == 0) {
			memcpy(*values + at, param.grad, (size_t)param.count * sizeof **values);
			at += param.count;
		}
	return *values ? count : 0;
}

void neap__net_distance(
	const double *whole, const double *g, int64_t count, double *cosine, double *error)
{
	double ww = 0, gg = 0, wg = 0, dd = 0;
	for (int64_t i = 0; i < count; i++) {
		double d = g[i] - whole[i];
		ww += whole[i] * whole[i];
		gg += g[i] * g[i];
		wg += whole[i] * g[i];
		dd += d * d;
	}
	*cosine = wg / sqrt(ww * gg);
	*error = sqrt(dd / ww);
}
