/* SPDX-License-Identifier: Apache-2.0 */
/* text_loss.c: reads the loss and the kind of inputs from a model's metadata (text_loss.h). */
#include "train/reports/text_loss.h"
#include "train/model.h"
#include "train/model_file.h"

#include <string.h>

int neap__text_loss(const char *path)
{
	struct neap__safetensors file = {0};
	int is = 0;

	if (neap__model_file_read(&file, path, NULL) == 0) {
		const char *loss = neap__safetensors_meta(&file, "neap.loss");
		is = neap__model_kind(&file) == NEAP__OF_TEXT &&
		     (!loss || strcmp(loss, "cross-entropy") == 0);
	}
	neap__safetensors_free(&file);
	return is;
}
