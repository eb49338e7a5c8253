/* SPDX-License-Identifier: Apache-2.0 */
/*
 * corpus_main.c: drives a fuzz target without libFuzzer: each file of a corpus, then
 * inputs mutated from them in an order that is always the same. Prints TAP.
 *   fuzz_NAME CORPUS [INPUTS]
 */
#include "fuzz.h"
#include "base/philox.h"

#include <dirent.h>
#include <string.h>

#define FILES_MOST 1000
#define INPUT_MOST 4096

struct input {
	uint8_t data[INPUT_MOST];
	size_t size;
};

struct corpus {
	char path[4096];
	struct dirent **names;
	int count;
};

struct dice {
	uint64_t n;
};

static size_t below(struct dice *d, size_t n)
{
	return (size_t)neap__random_below(1, NEAP__STREAM_TEST, 0, d->n++, n ? n : 1);
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int load(struct input *in, const struct corpus *corpus, int index)
{
	char path[8192];
	snprintf(path, sizeof path, "%s/%s", corpus->path, corpus->names[index]->d_name);
	FILE *file = fopen(path, "re");
	if (!file)
		return -1;
	in->size = fread(in->data, 1, sizeof in->data, file);
	fclose(file);
	return 0;
}

/* Puts `n` bytes in place of [at, at + old), as far as there is room. */
static void replace(struct input *in, size_t at, size_t old, const void *bytes, size_t n)
{
	if (at + old > in->size || in->size - old + n > INPUT_MOST)
		return;
	memmove(in->data + at + n, in->data + at + old, in->size - at - old);
	if (n)
		memcpy(in->data + at, bytes, n);
	in->size = in->size - old + n;
}

static void mutate(struct input *in, const struct corpus *corpus, struct dice *dice)
{
	static const char *const words[] = {"0", "1", "-1", "1e308", "1e-320", "nan", "inf", "99",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "1e999",
		"0x1p62", "1152921504606846976", "\n", ",", ":", "=", "[", "]", "{", "}", "\"", "K",
		"P", "ms", "h", "sync", "duplex", "1000000000000", "0.5", "-", " ", "null"};
	struct input other;
	size_t at = below(dice, in->size + 1), n = 1 + below(dice, 8);
	uint8_t byte = (uint8_t)below(dice, 256);
	const char *word = words[below(dice, sizeof words / sizeof words[0])];
	switch (below(dice, 6)) {
	case 0:
		replace(in, at, 1, &byte, 1);
		break;
	case 1:
		replace(in, at, n, NULL, 0);
		break;
	case 2:
		replace(in, at, 0, word, strlen(word));
		break;
	case 3: { /* a number becomes another one */
		size_t digits = 0;
		while (at < in->size && !strchr("0123456789", in->data[at]))
			at++;
		while (at + digits < in->size && strchr("0123456789.e", in->data[at + digits]))
			digits++;
		replace(in, at, digits, word, strlen(word));
		break;
	}
	case 4: /* a piece comes twice */
		if (at + n <= in->size)
			replace(in, below(dice, at + 1), 0, memcpy(&other, in->data + at, n), n);
		break;
	default: /* the end of another file */
		if (load(&other, corpus, (int)below(dice, (size_t)corpus->count)) == 0) {
			size_t from = below(dice, other.size + 1);
			replace(in, at, in->size - at, other.data + from, other.size - from);
		}
		break;
	}
}

static int open_corpus(struct corpus *corpus, const char *path)
{
	snprintf(corpus->path, sizeof corpus->path, "%s", path);
	corpus->count = scandir(path, &corpus->names, visible, alphasort);
	return corpus->count > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct corpus corpus;
	struct dice dice = {0};
	struct input in;
	long inputs = argc > 2 ? strtol(argv[2], NULL, 10) : 2000;
	if (argc < 2 || open_corpus(&corpus, argv[1]) < 0) {
		printf("1..1\nnot ok 1 - no corpus\n");
		return 1;
	}
	printf("1..2\n");
	for (int i = 0; i < corpus.count; i++)
		if (load(&in, &corpus, i) == 0)
			LLVMFuzzerTestOneInput(in.data, in.size);
	printf("ok 1 - %d files\n", corpus.count);
	fflush(stdout);
	for (long i = 0; i < inputs; i++) {
		if (load(&in, &corpus, (int)below(&dice, (size_t)corpus.count)) < 0)
			continue;
		for (size_t k = 1 + below(&dice, 4); k > 0; k--)
			mutate(&in, &corpus, &dice);
		LLVMFuzzerTestOneInput(in.data, in.size);
	}
	printf("ok 2 - %ld inputs made from them\n", inputs);
	for (int i = 0; i < corpus.count; i++)
		free(corpus.names[i]);
	free(corpus.names);
	return 0;
}
