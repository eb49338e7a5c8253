/* SPDX-License-Identifier: Apache-2.0 */
/* model_file.c: finds and reads the file of a net (model_file.h); neap_model_open. */
#include "train/model_file.h"
#include "train/model.h"
#include "train/nir/nir_model.h"
#include "train/settings.h"
#include "data/missing_file.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/struct_size.h"

#include <neap/train.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct neap_model {
	json_t *json; /* owns the texts of `net` */
	struct neap_net_options net;
	char coding[NEAP__CODING_TEXT];
};

/* 1: the folder of a run that was interrupted before its first epoch ended. */
static int is_begun(const char *folder)
{
	struct stat st;
	char *run;

	if (asprintf(&run, "%s/run.json", folder) < 0)
		return 0;
	int found = stat(run, &st) == 0;
	free(run);
	return found;
}

int neap__model_file_read(
	struct neap__safetensors *file, const char *path, const struct neap__nir_hints *hints)
{
	const struct neap__nir_hints none = {0};
	struct stat st;
	char *inside = NULL, near[1400];

	if (stat(path, &st) < 0) {
		int err = errno;
		if (err == ENOENT && !neap__missing_near(near, sizeof near, path) &&
			neap__runs_near(near, sizeof near, path))
			return neap__fail(-ENOENT,
				"cannot read '%s': No such file or directory. Pass the folder of a "
				"run, such as %s",
				path, near);
		return neap__missing_file(err, path);
	}
	if (neap__nir_takes(path))
		return neap__nir_model_read(file, path, hints ? hints : &none);
	if (!S_ISDIR(st.st_mode))
		return neap__safetensors_read(file, path);
	if (asprintf(&inside, "%s/model.safetensors", path) < 0)
		return neap__fail_errno(ENOMEM, "cannot read '%s'", path);
	if (stat(inside, &st) < 0 && errno == ENOENT) {
		free(inside);
		if (is_begun(path))
			return neap__fail(-ENOENT,
				"the run '%s' has no model before its first epoch ends. Continue "
				"it: neap "
				"train --out %s --resume",
				path, neap__quoted(path));
		int found = neap__runs_near(near, sizeof near, path);
		return neap__fail(-ENOENT,
			"'%s' is not the folder of a run: it has no model.safetensors. Pass the "
			"--out of 'neap train'%s%s",
			path, found ? ", such as " : "", near);
	}
	int rc = neap__safetensors_read(file, inside);
	free(inside);
	return rc;
}

static int describe(struct neap_model *model, const struct neap__safetensors *file)
{
	const char *text = neap__safetensors_meta(file, "neap.net");

	model->json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (!model->json)
		return neap__fail(NEAP_EFORMAT,
			"its metadata does not describe a network. Pass model.safetensors or "
			"last.safetensors of 'neap train', or a NIR graph");
	struct neap__coding coding;
	NEAP_TRY(neap__model_coding(&coding, neap__safetensors_meta(file, NEAP__MODEL_INPUTS)));
	neap__coding_text(model->coding, &coding);
	return neap__settings_take_net(&model->net, model->json);
}

int neap_model_open(struct neap_model **out, const struct neap_model_options *options)
{
	NEAP_NEED(out, options);
	struct neap__safetensors file = {0};
	struct neap_model_options o;

	*out = NULL;
	NEAP_TRY(neap__struct_take(&o, sizeof o, options, "neap_model_options"));
	if (!o.path || !*o.path)
		return neap__fail(NEAP_EUSAGE, "the file of weights is missing");
	struct neap_model *model = calloc(1, sizeof *model);
	if (!model)
		return neap__fail_errno(ENOMEM, "'%s'", o.path);
	const struct neap__nir_hints hints = {.dt = o.dt, .reset = o.reset};
	int rc = neap__model_file_read(&file, o.path, &hints);
	if (rc == 0) {
		rc = describe(model, &file);
		if (rc < 0)
			rc = neap__fail_in(rc, "%s: ", o.path);
		neap__safetensors_free(&file);
	}
	if (rc < 0) {
		neap_model_close(model);
		return rc;
	}
	*out = model;
	return 0;
}

const struct neap_net_options *neap_model_net(const struct neap_model *model)
{
	if (!model)
		return NULL;
	return &model->net;
}

const char *neap_model_coding(const struct neap_model *model)
{
	if (!model || !*model->coding)
		return NULL;
	return model->coding;
}

void neap_model_close(struct neap_model *model)
{
	if (!model)
		return;
	json_decref(model->json);
	free(model);
}
