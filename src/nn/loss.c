/* SPDX-License-Identifier: Apache-2.0 */
/* loss.c: the losses on an answer, and their table. */
#include <neap/net.h>

#include <math.h>
#include <string.h>

/* -log softmax(z)[label]; dz = softmax(z) - one-hot. Without a label: nothing to learn. */
static double cross_entropy(
	int classes, const double *z, int label, const float *target, double *dz)
{
	double top = z[0], sum = 0;

	(void)target;
	memset(dz, 0, (size_t)classes * sizeof *dz);
	if (label < 0 || label >= classes)
		return 0;
	for (int c = 1; c < classes; c++)
		top = z[c] > top ? z[c] : top;
	for (int c = 0; c < classes; c++)
		sum += dz[c] = exp(z[c] - top);
	for (int c = 0; c < classes; c++)
		dz[c] /= sum;
	dz[label] -= 1.0;
	return log(sum) + top - z[label];
}

/* Mean over outputs of (z - y)^2; y is the target, or one-hot where there is a label only. */
static double mse(int classes, const double *z, int label, const float *target, double *dz)
{
	double sum = 0;

	for (int c = 0; c < classes; c++) {
		double y = target ? (double)target[c] : c == label, d = z[c] - y;
		if (!target && label < 0)
			d = 0;
		sum += d * d;
		dz[c] = 2 * d / classes;
	}
	return sum / classes;
}

static double mse_in_units(
	int classes, const double *z, const float *target, const double *deviation)
{
	double sum = 0;

	for (int c = 0; c < classes; c++) {
		double d = deviation[c] * (z[c] - (double)target[c]);
		sum += d * d;
	}
	return sum / classes;
}

static const struct neap_loss losses[] = {
	{"cross-entropy", cross_entropy, 0, NULL},
	{"mse", mse, 1, mse_in_units},
};

const struct neap_loss *neap_loss_at(int index)
{
	return index >= 0 && (size_t)index < sizeof losses / sizeof losses[0] ? &losses[index]
									      : NULL;
}

const struct neap_loss *neap_loss_find(const char *name)
{
	const struct neap_loss *loss;

	for (int i = 0; (loss = neap_loss_at(i)) != NULL; i++)
		if (name && strcmp(loss->name, name) == 0)
			return loss;
	return NULL;
}
