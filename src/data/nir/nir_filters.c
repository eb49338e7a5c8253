/* SPDX-License-Identifier: Apache-2.0 */
/* nir_filters.c: parameters of convolutions and pools, and sizes of images (nir_filters.h). */
#include "data/nir/nir_filters.h"

#include <math.h>

enum { SIZE_MOST = 65536 };

int neap__nir_is_filter(enum neap__nir_type type)
{
	return type == NEAP__NIR_CONV1D || type == NEAP__NIR_CONV2D || type == NEAP__NIR_SUMPOOL ||
	       type == NEAP__NIR_AVGPOOL;
}

/* Element i of a parameter, one number for all; -2: missing, or not a whole number in range. */
static int whole(const struct neap__nir_array *a, int64_t i, int fallback)
{
	double v = !a->data || a->count == 0 ? fallback : a->data[a->count > 1 ? i : 0];

	return a->count > 2 || !(v >= -1 && v <= SIZE_MOST) || v != floor(v) ? -2 : (int)v;
}

struct neap__nir_image neap__nir_input_image(const struct neap__nir_array *shape)
{
	struct neap__nir_image image = {0};

	if (shape->count != 2 && shape->count != 3)
		return image;
	image.channels = (int64_t)shape->data[0];
	image.height = shape->count == 3 ? (int64_t)shape->data[1] : 1;
	image.width = (int64_t)shape->data[shape->count - 1];
	return image;
}

struct neap__nir_image neap__nir_said_image(const struct neap__nir_node *node)
{
	const struct neap__nir_array *said = neap__nir_param(node, "input_shape");
	const struct neap__nir_array *weight = neap__nir_param(node, "weight");
	int groups = whole(neap__nir_param(node, "groups"), 0, 1);
	int is_line = node->type == NEAP__NIR_CONV1D;
	int high = is_line ? 1 : whole(said, 0, 0), wide = whole(said, is_line ? 0 : 1, 0);

	if (said->count != (is_line ? 1 : 2) || groups < 1 || high < 1 || wide < 1 ||
		weight->dims < 2 || weight->size[1] < 1 || weight->size[1] > SIZE_MOST)
		return (struct neap__nir_image){0};
	return (struct neap__nir_image){weight->size[1] * groups, high, wide};
}

/* Fills in a row of sizes, vertical and horizontal; what an axis of a line lacks is `none`. */
static int take(
	int to[2], const struct neap__nir_node *node, const char *name, int fallback, int none)
{
	const struct neap__nir_array *a = neap__nir_param(node, name);
	int is_line = node->type == NEAP__NIR_CONV1D;

	to[0] = is_line ? none : whole(a, 0, fallback);
	to[1] = whole(a, is_line ? 0 : 1, fallback);
	return to[0] > -2 && to[1] > -2;
}

/* Padding -1 is "same": as many units leave as enter. */
static const char *find_pad(struct neap__nir_filter *f)
{
	for (int i = 0; i < 2; i++) {
		int64_t span = (int64_t)f->dilation[i] * (f->kernel[i] - 1);
		if (f->pad[i] >= 0)
			continue;
		if (f->stride[i] != 1 || span % 2)
			return "has the padding 'same', which neap supports with stride 1 and odd "
			       "kernels only";
		f->pad[i] = (int)(span / 2);
	}
	return NULL;
}

static const char *make_pool(struct neap__nir_filter *f, const struct neap__nir_node *node)
{
	f->is_pool = 1;
	f->is_average = node->type == NEAP__NIR_AVGPOOL;
	if (!take(f->kernel, node, "kernel_size", 0, 1) || !take(f->stride, node, "stride", 0, 1) ||
		!take(f->pad, node, "padding", 0, 0) || f->kernel[0] < 1 || f->kernel[1] < 1)
		return "has a kernel_size, stride or padding that is not a whole number";
	int64_t size[2];
	for (int i = 0; i < 2; i++) {
		if (f->stride[i] < 1 || f->pad[i] < 0 || 2 * f->pad[i] > f->kernel[i])
			return "has a stride below 1, or padding of more than half of kernel_size";
		int64_t room = (i ? f->from.width : f->from.height) + 2 * (int64_t)f->pad[i];
		size[i] = room < f->kernel[i] ? 0 : (room - f->kernel[i]) / f->stride[i] + 1;
	}
	f->to = (struct neap__nir_image){f->from.channels, size[0], size[1]};
	return neap__nir_image_size(&f->to) > 0 ? NULL : "has windows larger than what enters";
}

static const char *make_conv(struct neap__nir_filter *f, const struct neap__nir_node *node)
{
	const struct neap__nir_array *w = neap__nir_param(node, "weight");
	const struct neap__nir_array *bias = neap__nir_param(node, "bias");
	int is_line = node->type == NEAP__NIR_CONV1D,
	    groups = whole(neap__nir_param(node, "groups"), 0, 1);

	if (w->dims != (is_line ? 3 : 4))
		return is_line ? "has weights without the three dimensions of a Conv1d"
			       : "has weights without the four dimensions of a Conv2d";
	for (int i = 0; i < w->dims; i++)
		if (w->size[i] < 1 || w->size[i] > SIZE_MOST)
			return "has weights with a dimension of 0 or more than 65536";
	f->kernel[0] = is_line ? 1 : (int)w->size[2];
	f->kernel[1] = (int)w->size[w->dims - 1];
	if (groups < 1 || !take(f->stride, node, "stride", 1, 1) || f->stride[0] < 1 ||
		f->stride[1] < 1 || !take(f->pad, node, "padding", 0, 0) ||
		!take(f->dilation, node, "dilation", 1, 1) || f->dilation[0] < 1 ||
		f->dilation[1] < 1)
		return "has a stride, padding, dilation or groups that is not a whole number of "
		       "its "
		       "range";
	if (w->size[1] * groups != f->from.channels || w->size[0] % groups)
		return "has weights for another number of channels than enters";
	if (bias->data && bias->count != w->size[0])
		return "has a bias of another size than its channels";
	const char *wrong = find_pad(f);
	if (wrong)
		return wrong;
	int64_t size[2];
	for (int i = 0; i < 2; i++) {
		int64_t span = (int64_t)f->dilation[i] * (f->kernel[i] - 1) + 1;
		int64_t room = (i ? f->from.width : f->from.height) + 2 * (int64_t)f->pad[i] - span;
		if (room < 0)
			return "has a kernel larger than what enters";
		size[i] = room / f->stride[i] + 1;
	}
	f->groups = groups;
	f->weight = w->data;
	f->to = (struct neap__nir_image){w->size[0], size[0], size[1]};
	return NULL;
}

const char *neap__nir_filter_make(struct neap__nir_filter *filter,
	const struct neap__nir_node *node, struct neap__nir_image from)
{
	*filter = (struct neap__nir_filter){.from = from, .groups = 1, .dilation = {1, 1}};
	return node->type == NEAP__NIR_SUMPOOL || node->type == NEAP__NIR_AVGPOOL
		       ? make_pool(filter, node)
		       : make_conv(filter, node);
}
