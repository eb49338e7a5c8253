/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c: the table of cells as an array, and the search in it. */
#include "nn/cells/cells.h"
#include "base/fail.h"
#include "base/suggest.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct neap__cell cells[] = {
#define NEAP__X(cell, traits)                                                                      \
	{#cell, traits, ((traits)&NEAP__READOUT) != 0,                                             \
		{&neap__##cell##_float, &neap__##cell##_double}},
	NEAP__CELLS(NEAP__X)
#undef NEAP__X
};

const struct neap__cell *neap__cell_find(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
		if (strlen(cells[i].name) == length && memcmp(cells[i].name, name, length) == 0)
			return &cells[i];
	return NULL;
}

/* NULL beyond the end. */
static const struct neap__cell *cell_at(int index)
{
	return index >= 0 && (size_t)index < sizeof cells / sizeof cells[0] ? &cells[index] : NULL;
}

/* Names of other libraries, and of kinds of nets, whose spelling is closer to another cell. */
static const struct {
	const char *name, *cell;
} known_as[] = {{"snn", "lif"}, {"spiking", "lif"}, {"leaky", "lif"}, {"synaptic", "cubalif"},
	{"iaf", "lif"}, {"if", "lif"}, {"srnn", "lif"}, {"rsnn", "lif"}, {"lsnn", "alif"},
	{"elman", "rnn"}, {"dense", "li"}, {"linear", "li"}, {"fc", "li"}};

/* What is not a cell here: how to get it. */
static const struct {
	const char *name, *instead;
} no_cell[] = {
#define CONVOLUTION "a convolution is a key of a layer, such as lif:conv=3:channels=8,li"
	{"conv", CONVOLUTION},
	{"conv1d", CONVOLUTION},
	{"conv2d", CONVOLUTION},
	{"cnn", CONVOLUTION},
	{"scnn", CONVOLUTION},
#undef CONVOLUTION
#define POOLING "pooling is a key of a layer, such as lif:64:pool=2,li"
	{"pool", POOLING},
	{"maxpool", POOLING},
	{"avgpool", POOLING},
#undef POOLING
#define NORM "batch normalisation is a key of a layer, such as lif:64:norm=batch,li"
	{"batchnorm", NORM},
	{"batchnorm1d", NORM},
	{"batchnorm2d", NORM},
	{"norm", NORM},
#undef NORM
	{"dropout", "--dropout P drops units of all hidden layers"},
};

static int is_name(const char *known, const char *name, int length)
{
	return strlen(known) == (size_t)length && strncasecmp(name, known, (size_t)length) == 0;
}

int neap__cell_unknown(const char *name, int length)
{
	struct neap__text names = {0};
	struct neap__suggestion meant = {.text = name, .length = (size_t)length};
	char room[80];
	int letters = length;

	while (letters > 0 && isdigit((unsigned char)name[letters - 1]))
		letters--;
	if (letters < length && neap__cell_find(name, (size_t)letters))
		return neap__fail(NEAP_EUSAGE,
			"--net: unknown cell '%.*s'. A colon precedes the size; did you mean "
			"'%.*s:%.*s'? "
			"Example: gru:64,li",
			length, name, letters, name, length - letters, name + letters);
	size_t digits = strspn(name, "0123456789");
	if (digits > 0 &&
		(digits == (size_t)length || (digits + 1 == (size_t)length && name[digits] == 'r')))
		return neap__fail(NEAP_EUSAGE,
			"--net: '%.*s' is a size without a cell. Write the cell in front of it, "
			"such as "
			"lif:%.*s,li",
			length, name, length, name);
	for (size_t i = 0; i < sizeof no_cell / sizeof no_cell[0]; i++)
		if (is_name(no_cell[i].name, name, length))
			return neap__fail(NEAP_EUSAGE, "--net: unknown cell '%.*s': %s", length,
				name, no_cell[i].instead);
	for (int i = 0; cell_at(i); i++) {
		neap__suggest(&meant, cell_at(i)->name);
		neap__text_add(&names, "%s%s", i ? ", " : "", cell_at(i)->name);
	}
	for (size_t i = 0; i < sizeof known_as / sizeof known_as[0]; i++)
		if (is_name(known_as[i].name, name, length))
			meant.name = known_as[i].cell;
	int rc = neap__fail(NEAP_EUSAGE,
		"--net: unknown cell '%.*s'; choose one of %s%s Example: gru:64,li", length, name,
		names.data ? names.data : "", *neap__did_you_mean(room, &meant, "") ? room : ".");
	neap__text_free(&names);
	return rc;
}
