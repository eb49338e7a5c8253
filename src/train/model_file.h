/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_file.h: files that hold a trained net, by whatever path a user names them: a run's folder
 * or a .safetensors file.
 */
#ifndef NEAP_TRAIN_MODEL_FILE_H
#define NEAP_TRAIN_MODEL_FILE_H

#include "train/safetensors.h"

/* Reads the tensors and metadata of a net; to be freed after 0. The detail line has the path. */
int neap__model_file_read(struct neap__safetensors *file, const char *path);

#endif
