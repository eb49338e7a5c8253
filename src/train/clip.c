/* SPDX-License-Identifier: Apache-2.0 */
/* clip.c: the norm of all gradients, and scaling them down to a limit. */
#include "train/optimizer.h"
#include "nn/core/net_state.h"

#include <math.h>

double neap__clip(const struct neap_net *net, double limit)
{
	struct neap_param param;
	double sum = 0, lost = 0; /* Kahan summation: there may be millions of squares */

	for (int i = 0; i < neap_net_params(net); i++) {
		if (neap_net_param(net, i, &param) < 0)
			continue;
		double unit = net->tensors[i].unit;
		for (int64_t k = 0; k < param.count; k++) {
			double g = param.grad[k] * unit;
			double term = g * g - lost, next = sum + term;
			lost = (next - sum) - term;
			sum = next;
		}
	}
	double norm = sqrt(sum);
	if (!(limit > 0) || !isfinite(norm) || norm <= limit)
		return norm;
	for (int i = 0; i < neap_net_params(net); i++) {
		if (neap_net_param(net, i, &param) < 0)
			continue;
		for (int64_t k = 0; k < param.count; k++)
			param.grad[k] *= limit / norm;
	}
	return norm;
}
