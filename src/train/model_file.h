/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_file.h: files that hold a trained net, by whatever path a user names them: a run's folder,
 * a .safetensors file, or a graph in NIR.
 */
#ifndef NEAP_TRAIN_MODEL_FILE_H
#define NEAP_TRAIN_MODEL_FILE_H

#include "train/safetensors.h"

struct neap__nir_hints;

/*
 * Reads the tensors and metadata of a net; to be freed after 0. The detail line has the path.
 * `hints` are of a graph in NIR, and may be NULL.
 */
int neap__model_file_read(
	struct neap__safetensors *file, const char *path, const struct neap__nir_hints *hints);

#endif
