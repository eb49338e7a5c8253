/* SPDX-License-Identifier: Apache-2.0 */
/* array_out.c: arrays of samples, written a chunk of steps at a time (array_out.h). */
#include "data/formats/array_out.h"
#include "base/checked.h"
#include "base/fail.h"
#include "data/formats/h5_out.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * A chunk holds steps of one sample: so that samples are read in any order. It is not much smaller
 * than the longest sample: readers refuse arrays that claim far more than what is stored.
 */
enum { CHUNK_NUMBERS = 8192, CHUNKS_A_SAMPLE = 256 };

/* An array of steps that is written, and the chunk that is being filled. */
struct stepwise {
	hid_t set; /* -1: none */
	int64_t width;
	double *piece; /* [chunk][width] */
};

struct neap__array_out {
	struct neap__h5_out out;
	struct neap__array_shape shape;
	char *path;
	struct stepwise x, y;
	int64_t chunk;	/* steps */
	int64_t sample; /* that is written; -1: none yet */
	int64_t step, filled;
	int64_t *length; /* [samples] */
	double *target;	 /* [samples][width] where targets are of samples */
};

static int of_steps(const struct neap__array_shape *shape)
{
	return shape->target == NEAP_TARGET_LABELS || shape->target == NEAP_TARGET_SERIES;
}

static int failed(const struct neap__array_out *out, int err)
{
	return neap__h5_out_failed(&out->out, err);
}

/* (samples, steps, width), or (samples, steps) of integers. Padding is -1 or NaN in targets. */
static hid_t create_steps(const struct neap__array_out *out, const char *name, int64_t width,
	hid_t type, double padding)
{
	const struct neap__array_shape *s = &out->shape;
	hsize_t size[3] = {(hsize_t)s->samples, (hsize_t)s->steps, (hsize_t)width};
	hsize_t chunk[3] = {1, (hsize_t)out->chunk, (hsize_t)width};
	int dims = H5Tget_class(type) == H5T_INTEGER ? 2 : 3;
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(dims, size, NULL);
	H5Pset_obj_track_times(creation, 0);
	H5Pset_chunk(creation, dims, chunk);
	H5Pset_fill_value(creation, H5T_NATIVE_DOUBLE, &padding);
	hid_t set =
		H5Dcreate2(out->out.file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
	H5Pclose(creation);
	H5Sclose(space);
	return set;
}

static int create_arrays(struct neap__array_out *out)
{
	const struct neap__array_shape *s = &out->shape;
	NEAP_TRY(neap__h5_out_open(&out->out, out->path));
	uint64_t chunks = (uint64_t)(s->rows / out->chunk + s->samples);
	uint64_t width = (uint64_t)s->features + (of_steps(s) ? (uint64_t)s->width : 0);
	/* All chunks, their index, and what is known of each sample. */
	NEAP_TRY(neap__h5_out_reserve(&out->out,
		chunks * ((uint64_t)out->chunk * width * 8 + 64) +
			(uint64_t)s->samples * (64 + (uint64_t)s->width * 8) + (1 << 20)));
	errno = 0;
	out->x.set = create_steps(out, "x", s->features, H5T_IEEE_F64LE, 0);
	if (out->x.set < 0)
		return failed(out, errno);
	if (!of_steps(s))
		return 0;
	out->y.set = create_steps(out, "y", s->width, s->classes ? H5T_STD_I32LE : H5T_IEEE_F64LE,
		s->classes ? -1 : (double)NAN);
	return out->y.set < 0 ? failed(out, errno) : 0;
}

static int make_room(struct neap__array_out *out, const struct neap__array_shape *s)
{
	size_t targets;
	int64_t widest = s->features > s->width ? s->features : s->width;
	out->chunk = CHUNK_NUMBERS / widest;
	if (out->chunk < s->steps / CHUNKS_A_SAMPLE)
		out->chunk = s->steps / CHUNKS_A_SAMPLE;
	out->chunk = out->chunk < 1 ? 1 : out->chunk < s->steps ? out->chunk : s->steps;
	if (neap__mul_size(&targets, (size_t)s->samples, (size_t)s->width) < 0 || of_steps(s))
		targets = 0;
	out->x.piece = calloc((size_t)(out->chunk * s->features), sizeof(double));
	out->y.piece = calloc((size_t)(out->chunk * s->width) + 1, sizeof(double));
	out->length = calloc((size_t)s->samples, sizeof *out->length);
	out->target = calloc(targets + 1, sizeof *out->target);
	return out->x.piece && out->y.piece && out->length && out->target
		       ? 0
		       : neap__fail_errno(ENOMEM, "cannot write '%s'", out->path);
}

int neap__array_out_open(
	struct neap__array_out **to, const char *path, const struct neap__array_shape *shape)
{
	struct neap__h5_guard guard;
	struct neap__array_out *out = calloc(1, sizeof *out);
	*to = NULL;
	if (!out)
		return neap__fail_errno(ENOMEM, "cannot write '%s'", path);
	out->shape = *shape;
	out->sample = -1;
	out->out = (struct neap__h5_out){.fd = -1, .file = -1};
	out->x = (struct stepwise){.set = -1, .width = shape->features};
	out->y = (struct stepwise){.set = -1, .width = shape->width};
	out->path = strdup(path);
	int rc = out->path ? make_room(out, shape)
			   : neap__fail_errno(ENOMEM, "cannot write '%s'", path);
	if (rc == 0) {
		neap__h5_enter(&guard);
		rc = create_arrays(out);
		neap__h5_leave(&guard);
	}
	if (rc < 0)
		neap__array_out_abort(out);
	else
		*to = out;
	return rc;
}

/* Writes the filled steps of the chunk, which end in front of out->step. */
static int write_piece(const struct neap__array_out *out, const struct stepwise *array)
{
	hsize_t start[3] = {(hsize_t)out->sample, (hsize_t)(out->step - out->filled), 0};
	hsize_t count[3] = {1, (hsize_t)out->filled, (hsize_t)array->width};
	hsize_t all = count[1] * count[2];
	if (array->set < 0)
		return 0;
	hid_t file = H5Dget_space(array->set), memory = H5Screate_simple(1, &all, NULL);
	int rc = H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL);
	if (rc >= 0)
		rc = H5Dwrite(
			array->set, H5T_NATIVE_DOUBLE, memory, file, H5P_DEFAULT, array->piece);
	H5Sclose(memory);
	H5Sclose(file);
	return rc;
}

static int flush(struct neap__array_out *out)
{
	struct neap__h5_guard guard;
	if (out->filled == 0)
		return 0;
	neap__h5_enter(&guard);
	errno = 0;
	int rc = write_piece(out, &out->x) < 0 || write_piece(out, &out->y) < 0;
	int err = errno;
	neap__h5_leave(&guard);
	out->filled = 0;
	return rc ? failed(out, err) : 0;
}

int neap__array_out_step(
	struct neap__array_out *out, int begins, const double *value, const double *target)
{
	const struct neap__array_shape *s = &out->shape;
	size_t width = (size_t)s->width;
	if (begins || out->filled == out->chunk)
		NEAP_TRY(flush(out));
	if (begins) {
		out->sample++;
		out->step = 0;
	}
	if (out->sample < 0 || out->sample >= s->samples || out->step >= s->steps)
		return neap__fail(NEAP_EUSAGE, "'%s': more steps than were counted", out->path);
	memcpy(out->x.piece + out->filled * s->features, value,
		(size_t)s->features * sizeof *value);
	if (width && of_steps(s))
		for (size_t k = 0; k < width; k++) {
			double number = s->classes && isnan(target[k]) ? -1 : target[k];
			out->y.piece[(size_t)out->filled * width + k] = number;
		}
	else if (width && begins)
		memcpy(out->target + (size_t)out->sample * width, target, width * sizeof *target);
	out->filled++;
	out->step++;
	out->length[out->sample]++;
	return 0;
}

/* A target a sample: (samples), or (samples, width). */
static int write_targets(const struct neap__array_out *out)
{
	const struct neap__array_shape *s = &out->shape;
	hsize_t size[2] = {(hsize_t)s->samples, (hsize_t)s->width};
	hid_t space = H5Screate_simple(s->width > 1 ? 2 : 1, size, NULL);
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_obj_track_times(creation, 0);
	hid_t set = H5Dcreate2(out->out.file, "y", s->classes ? H5T_STD_I32LE : H5T_IEEE_F64LE,
		space, H5P_DEFAULT, creation, H5P_DEFAULT);
	int rc = set >= 0 ? H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
				    out->target)
			  : -1;
	if (set >= 0)
		H5Dclose(set);
	H5Pclose(creation);
	H5Sclose(space);
	return rc;
}

static int close_hdf5(struct neap__array_out *out)
{
	int rc = 0;
	if (out->x.set >= 0 && H5Dclose(out->x.set) < 0)
		rc = -1;
	if (out->y.set >= 0 && H5Dclose(out->y.set) < 0)
		rc = -1;
	out->x.set = out->y.set = -1;
	return neap__h5_out_close(&out->out) < 0 ? -1 : rc;
}

static int write_rest(struct neap__array_out *out, const char *const *classes, int count)
{
	const struct neap__array_shape *s = &out->shape;
	int rc = neap__h5_out_vector(
		out->out.file, "lengths", H5T_STD_I64LE, H5T_NATIVE_INT64, s->samples, out->length);
	if (rc >= 0 && s->width && !of_steps(s))
		rc = write_targets(out);
	if (rc >= 0 && count)
		rc = neap__h5_out_names(out->out.file, "classes", classes, count);
	if (rc >= 0 && s->feature_names)
		rc = neap__h5_out_names(out->out.file, "features", s->feature_names, s->features);
	if (rc >= 0 && s->output_names)
		rc = neap__h5_out_names(out->out.file, "outputs", s->output_names, s->width);
	if (rc >= 0 && s->sample_column)
		rc = neap__h5_out_names(out->out.file, "sample_column", &s->sample_column, 1);
	if (rc >= 0 && s->missing)
		rc = neap__h5_out_names(out->out.file, "missing", &s->missing, 1);
	return close_hdf5(out) < 0 ? -1 : rc;
}

int neap__array_out_finish(struct neap__array_out *out, const char *const *classes, int count)
{
	struct neap__h5_guard guard;
	int rc = flush(out);
	if (rc == 0 && out->sample + 1 != out->shape.samples)
		rc = neap__fail(NEAP_EUSAGE, "'%s': fewer samples than were counted", out->path);
	if (rc == 0)
		rc = neap__h5_out_reserve(&out->out, neap__h5_out_text_bytes(classes, count));
	if (rc == 0 && out->shape.feature_names)
		rc = neap__h5_out_reserve(&out->out,
			neap__h5_out_text_bytes(out->shape.feature_names, out->shape.features));
	if (rc == 0 && out->shape.output_names)
		rc = neap__h5_out_reserve(&out->out,
			neap__h5_out_text_bytes(out->shape.output_names, out->shape.width));
	if (rc == 0 && out->shape.sample_column)
		rc = neap__h5_out_reserve(
			&out->out, neap__h5_out_text_bytes(&out->shape.sample_column, 1));
	if (rc == 0 && out->shape.missing)
		rc = neap__h5_out_reserve(
			&out->out, neap__h5_out_text_bytes(&out->shape.missing, 1));
	if (rc == 0) {
		neap__h5_enter(&guard);
		errno = 0;
		int bad = write_rest(out, classes, count) < 0, err = errno;
		neap__h5_leave(&guard);
		rc = bad ? failed(out, err) : neap__h5_out_commit(&out->out);
	}
	neap__array_out_abort(out);
	return rc;
}

void neap__array_out_abort(struct neap__array_out *out)
{
	struct neap__h5_guard guard;
	if (!out)
		return;
	neap__h5_enter(&guard);
	(void)close_hdf5(out);
	neap__h5_leave(&guard);
	neap__h5_out_abort(&out->out);
	free(out->x.piece);
	free(out->y.piece);
	free(out->length);
	free(out->target);
	free(out->path);
	free(out);
}
