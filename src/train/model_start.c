/* SPDX-License-Identifier: Apache-2.0 */
/* model_start.c: copies the parameters of a file into a net that need not be the one it was written
 * from. */
#include "train/model.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOMENTS "optimizer." /* prefix of tensors that are no parameters */
#define READOUT "readout."

static double number_of(const struct neap__file_tensor *tensor, int64_t i)
{
	float single;
	double wide;

	if (tensor->dtype == NEAP__F64) {
		memcpy(&wide, (const char *)tensor->data + (size_t)i * sizeof wide, sizeof wide);
		return wide;
	}
	memcpy(&single, (const char *)tensor->data + (size_t)i * sizeof single, sizeof single);
	return (double)single;
}

/* A sparse parameter has to connect the same units. */
static int check_pattern(const struct neap_param *param, const struct neap__safetensors *file)
{
	const struct {
		const char *name;
		enum neap__dtype dtype;
		const void *own;
		uint64_t count;
		size_t width;
	} lists[] = {{".row_start", NEAP__U32, param->row_start, (uint64_t)param->rows + 1,
			     sizeof *param->row_start},
		{".column", NEAP__U16, param->column, (uint64_t)param->count,
			sizeof *param->column}};

	for (size_t i = 0; param->column && i < 2; i++) {
		char name[160];
		neap__print(name, sizeof name, "%s%s", param->name, lists[i].name);
		const struct neap__file_tensor *t = neap__safetensors_find(file, name);
		if (!t || t->dtype != lists[i].dtype || t->dims != 1 ||
			t->shape[0] != lists[i].count ||
			memcmp(t->data, lists[i].own, (size_t)lists[i].count * lists[i].width) != 0)
			return neap__fail(NEAP_EUSAGE,
				"the sparse connections of '%s' differ from those of the network, "
				"which follow from its density and --seed. Use the density and "
				"--seed of the file",
				param->name);
	}
	return 0;
}

static int take(const struct neap_param *param, const struct neap__safetensors *file)
{
	const struct neap__file_tensor *t = neap__safetensors_find(file, param->name);

	if (!t && param->is_leak)
		return 0;
	if (!t)
		return neap__fail(NEAP_EUSAGE,
			"the network has a tensor '%s', but the file has none. Use a --net that "
			"matches the file",
			param->name);
	if (t->dtype != NEAP__F32 && t->dtype != NEAP__F64)
		return neap__fail(NEAP_EFORMAT, "tensor '%s' has dtype %s; save it as F32 or F64",
			param->name, neap__dtype_name(t->dtype));
	NEAP_TRY(check_pattern(param, file));
	if (param->column ? t->dims != 1 : t->dims != 2)
		return neap__fail(NEAP_EUSAGE,
			"tensor '%s' is %s in the file, but %s in the network. Use a --net with "
			"the density of the file",
			param->name, param->column ? "dense" : "sparse",
			param->column ? "sparse" : "dense");
	if (!param->column &&
		(t->shape[0] != (uint64_t)param->rows || t->shape[1] != (uint64_t)param->columns))
		return neap__fail(NEAP_EUSAGE,
			"tensor '%s' is %llu x %llu in the file, but %lld x %lld in the network%s",
			param->name, (unsigned long long)t->shape[0],
			(unsigned long long)t->shape[1], (long long)param->rows,
			(long long)param->columns,
			strncmp(param->name, READOUT, strlen(READOUT)) == 0
				? ". Add --fresh-readout to train a new readout"
				: ". Use a --net with the sizes of the file");
	for (int64_t i = 0; i < param->count; i++) {
		double v = number_of(t, i);
		if (param->precision == NEAP_DOUBLE)
			((double *)param->data)[i] = v;
		else
			((float *)param->data)[i] = (float)v;
	}
	return 0;
}

/* Does a tensor of the file belong to a parameter of the net: by name, or by its connections? */
static int is_known(const struct neap_net *net, const char *name)
{
	struct neap_param param;

	for (int i = 0; i < neap_net_params(net); i++) {
		if (neap_net_param(net, i, &param) < 0)
			continue;
		size_t n = strlen(param.name);
		if (strncmp(name, param.name, n) == 0 &&
			(!name[n] || strcmp(name + n, ".row_start") == 0 ||
				strcmp(name + n, ".column") == 0))
			return 1;
	}
	return 0;
}

int neap__model_start(struct neap_net *net, const struct neap__safetensors *file, int fresh_readout)
{
	struct neap_param param;

	for (int i = 0; i < file->tensors; i++) {
		const char *name = file->tensor[i].name;
		if (strncmp(name, MOMENTS, strlen(MOMENTS)) == 0 ||
			(fresh_readout && strncmp(name, READOUT, strlen(READOUT)) == 0))
			continue;
		if (!is_known(net, name))
			return neap__fail(NEAP_EUSAGE,
				"the file has a tensor '%.80s', but the network has none. Use a "
				"--net that matches the file",
				name);
	}
	for (int i = 0; i < neap_net_params(net); i++) {
		NEAP_TRY(neap_net_param(net, i, &param));
		if (fresh_readout && strncmp(param.name, READOUT, strlen(READOUT)) == 0)
			continue;
		NEAP_TRY(take(&param, file));
	}
	return 0;
}
