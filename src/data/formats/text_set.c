/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_set.c: a text to be predicted character by character: "text:FILE", or "text:steps=N:FILE".
 * Characters are the code points of UTF-8; they are numbered in ascending order, and each is a
 * channel and a class. A sample is N characters of the text (256), the next sample the N after; a
 * step has a spike of its character, and the character after it as its label.
 */
#include "data/dataset.h"
#include "data/missing_file.h"
#include "data/recordings.h"
#include "data/step_rows.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"
#include "base/text.h"
#include "sys/atomic_file.h"
#include "base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_BYTES ((size_t)1 << 30)
enum {
	STEPS = 256,
	POINTS = 0x110000,
	MOST_SYMBOLS = 65535,
	SHOWN = 30 /* characters in a line */
};

struct text_set {
	struct neap_dataset set;
	uint16_t *symbol; /* [count] */
	int64_t count, steps;
	int goes_on; /* 1: the last sample has a step for the last character, without a label */
};

/* Reads a code point at p, before end; moves p behind it. -1: no UTF-8. */
static int32_t code_point(const unsigned char **p, const unsigned char *end)
{
	const unsigned char *at = *p;
	int more = *at < 0x80 ? 0 : *at >= 0xF0 ? 3 : *at >= 0xE0 ? 2 : *at >= 0xC2 ? 1 : -1;
	static const int32_t least[] = {0, 0x80, 0x800, 0x10000};

	if (more < 0 || *at > 0xF4 || end - at <= more)
		return -1;
	int32_t c = more ? *at & (0x3F >> more) : *at;
	for (int i = 1; i <= more; i++) {
		if ((at[i] & 0xC0) != 0x80)
			return -1;
		c = c << 6 | (at[i] & 0x3F);
	}
	*p = at + more + 1;
	return c < least[more] || c >= POINTS || (c >= 0xD800 && c < 0xE000) ? -1 : c;
}

static char *name_of(int32_t c)
{
	char s[5] = {0};

	if (c < 0x80)
		s[0] = (char)c;
	else if (c < 0x800)
		s[0] = (char)(0xC0 | c >> 6), s[1] = (char)(0x80 | (c & 0x3F));
	else if (c < 0x10000)
		s[0] = (char)(0xE0 | c >> 12), s[1] = (char)(0x80 | (c >> 6 & 0x3F)),
		s[2] = (char)(0x80 | (c & 0x3F));
	else
		s[0] = (char)(0xF0 | c >> 18), s[1] = (char)(0x80 | (c >> 12 & 0x3F)),
		s[2] = (char)(0x80 | (c >> 6 & 0x3F)), s[3] = (char)(0x80 | (c & 0x3F));
	return strdup(s);
}

static int64_t text_length(const struct neap_dataset *set, int64_t index)
{
	const struct text_set *s = (const struct text_set *)set;
	int64_t left = s->count - 1 - index * s->steps;
	if (left <= s->steps) /* the last one */
		return left + s->goes_on;
	return s->steps;
}

/* Events have their times in steps. */
static int add_steps(struct neap_dataset *set, int64_t index, int64_t from, int64_t to,
	struct neap__event_buffer *buffer)
{
	const struct text_set *s = (const struct text_set *)set;
	const uint16_t *symbol = s->symbol + index * s->steps;

	buffer->events.count = to > from ? to - from : 0;
	buffer->events.duration = (double)text_length(set, index);
	for (int64_t t = from; t < to; t++) {
		buffer->events.time[t - from] = (double)t + 0.5;
		buffer->events.unit[t - from] = symbol[t];
	}
	return 0;
}

static int text_read(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer)
{
	int64_t length = text_length(set, index);
	NEAP_TRY(neap__event_buffer_reserve(buffer, (size_t)length));
	return add_steps(set, index, 0, length, buffer);
}

static int text_extent(struct neap_dataset *set, int64_t index, struct neap__sample_extent *extent)
{
	int64_t length = text_length(set, index);
	*extent = (struct neap__sample_extent){length, (double)length, 0};
	return 0;
}

static int text_part(struct neap_dataset *set, int64_t index, double from, double to, size_t most,
	struct neap__event_buffer *buffer)
{
	int64_t length = text_length(set, index);
	int64_t first = neap__step_at(from, length), last = neap__step_at(to, length);

	NEAP_TRY(neap__event_buffer_reserve(buffer, most));
	buffer->events.count = 0;
	if (last - first > (int64_t)most)
		return 1;
	return add_steps(set, index, first, last, buffer);
}

static int text_targets(struct neap_dataset *set, int64_t index, int64_t from, int64_t to,
	int32_t *labels, float *series)
{
	const struct text_set *s = (const struct text_set *)set;

	(void)series;
	for (int64_t t = from; t < to; t++)
		labels[t - from] = index * s->steps + t + 1 < s->count
					   ? s->symbol[index * s->steps + t + 1]
					   : -1;
	return 0;
}

/* "it: tr -d ... > known.txt", which removes the characters from the file of the text. tr is of
 * bytes, so that characters beyond ASCII need another command. */
static void removal(
	char *room, size_t size, const struct neap_dataset *set, const struct neap__text *strange)
{
	const unsigned char *at = (const unsigned char *)strange->data, *end = at + strange->length;
	const char *path = set->name + strlen("text:");
	struct neap__text list = {0};
	int ascii = 1, count = 0;

	if (strncmp(path, "steps=", 6) == 0)
		path = strchr(path, ':') + 1;
	for (const unsigned char *p = at; p < end; p++)
		ascii &= *p < 0x80;
	for (; at < end; count++) {
		int32_t c = code_point(&at, end);
		if (c < 0)
			break;
		if (!ascii)
			neap__text_add(&list, "%s%d", count ? ", " : "", c);
		else if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
			neap__text_add(&list, "%c", (char)c);
		else
			neap__text_add(&list, "\\%03o", (unsigned)c);
	}
	if (list.data && ascii)
		neap__print(room, size, "%s: tr -d '%s' < %s > known.txt",
			count == 1 ? "it" : "them", list.data, neap__quoted(path));
	else if (list.data)
		neap__print(room, size,
			"%s: python3 -c \"t = open(%s, encoding='utf-8', newline='').read(); "
			"open('known.txt', 'w', encoding='utf-8', newline='').write(''.join(c for "
			"c in t if ord(c) not in {%s}))\"",
			count == 1 ? "it" : "them", neap__python_quoted(path), list.data);
	neap__text_free(&list);
}

/* now[i]: the number that `names` gives the set's character i. One that is not there is refused. */
static int number_characters(
	const struct neap_dataset *set, const char *const *names, int count, uint16_t *now)
{
	struct neap__text shown = {0}, strange = {0};
	char room[NEAP__PLAIN_TEXT], command[NEAP__DETAIL_BYTES - 700] = "";
	int strangers = 0, rc = 0;

	for (int i = 0; i < set->nclass_names; i++) {
		int k = 0;
		while (k < count && (!names[k] || strcmp(names[k], set->class_names[i]) != 0))
			k++;
		if (k == count && strangers++ < SHOWN)
			neap__text_add(&shown, "%s'%s'", shown.length ? ", " : "",
				neap__escaped_text(room, set->class_names[i]));
		if (k == count && strangers <= SHOWN)
			neap__text_add(&strange, "%s", set->class_names[i]);
		else if (k < count)
			now[i] = (uint16_t)k;
	}
	if (strangers && strangers <= SHOWN)
		removal(command, sizeof command, set, &strange);
	if (strangers)
		rc = neap__fail(NEAP_EUSAGE,
			"'%.300s' contains %d character%s that the training text does not: %s%s. "
			"Remove %s, or train on a text that has %s%s%s",
			set->name, strangers, strangers == 1 ? "" : "s",
			shown.data ? shown.data : "?", strangers > SHOWN ? ", ..." : "",
			strangers == 1 ? "it" : "them", strangers == 1 ? "it" : "them",
			command[0] ? ". This command writes known.txt without " : "", command);
	neap__text_free(&strange);
	neap__text_free(&shown);
	return rc;
}

static int text_adopt(struct neap_dataset *set, const char *const *names, int count)
{
	struct text_set *s = (struct text_set *)set;
	int known = set->nclass_names;
	uint16_t *now = calloc((size_t)known + 1, sizeof *now);
	char **mine = calloc((size_t)count + 1, sizeof *mine);
	int rc = now && mine ? 0 : neap__fail_errno(ENOMEM, "'%s'", set->name);

	for (int i = 0; rc == 0 && i < count; i++)
		if (names[i] && !(mine[i] = strdup(names[i])))
			rc = neap__fail_errno(ENOMEM, "'%s'", set->name);
	if (rc == 0)
		rc = number_characters(set, names, count, now);
	for (int64_t i = 0; rc == 0 && i < s->count; i++)
		s->symbol[i] = now[s->symbol[i]];
	free(now);
	if (rc < 0) {
		neap__names_free(mine, count);
		return rc;
	}
	neap__names_free(set->class_names, known);
	set->class_names = mine;
	set->nclass_names = count;
	set->info.inputs = set->info.classes = count;
	return 0;
}

void neap__text_go_on(struct neap_dataset *set)
{
	struct text_set *s = (struct text_set *)set;

	if (!set->ops->adopt || s->goes_on)
		return;
	s->goes_on = 1;
	set->info.events++;
	int64_t last = text_length(set, set->info.samples - 1);
	set->info.steps = last > set->info.steps ? last : set->info.steps;
}

static void text_close(struct neap_dataset *set)
{
	free(((struct text_set *)set)->symbol);
}

static const struct neap__dataset_ops ops = {.read = text_read,
	.close = text_close,
	.extent = text_extent,
	.part = text_part,
	.length = text_length,
	.targets = text_targets,
	.adopt = text_adopt};

/* 1: the last bytes begin a character whose rest is missing. */
static int is_cut(const unsigned char *last, size_t bytes)
{
	size_t whole = last[0] >= 0xF0 ? 4 : last[0] >= 0xE0 ? 3 : 2;
	int is = last[0] >= 0xC2 && last[0] <= 0xF4 && bytes < whole;

	for (size_t i = 1; is && i < bytes; i++)
		is = (last[i] & 0xC0) == 0x80;
	return is;
}

/* Refuses a file that is no text by its name or its first bytes; 0: it may be one. */
static int refuse_other(const char *path, const unsigned char *data, size_t bytes)
{
	static const struct {
		const char *head, *what, *fix;
	} binary[] = {
		{"%PDF", "a PDF document", "Save its text as UTF-8, for example with pdftotext"},
		{"PK\3\4", "a document or a zip archive",
			"Save the document as plain text in UTF-8, or unpack the archive"},
		{"\x1f\x8b", "compressed", "Unpack it with gunzip"}};

	if (neap__recording_named(path))
		return neap__fail(NEAP_EFORMAT,
			"'%s' is a recording, not a text. Put the recordings into one folder per "
			"class, and encode them: neap encode FOLDER --out FILE.h5",
			path);
	if (neap__recordings_read(path))
		return neap__fail(NEAP_EFORMAT,
			"'%s' is a data set, not a text. Pass it without --text and text:", path);
	for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
		if (bytes > 4 && memcmp(data, binary[i].head, strlen(binary[i].head)) == 0)
			return neap__fail(NEAP_EFORMAT,
				"'%s' is %s by its first bytes, not plain text. %s", path,
				binary[i].what, binary[i].fix);
	return 0;
}

/* The line about a text whose first character beyond ASCII, at byte `mixed`, is UTF-8, but not the
 * bytes from `at` on. */
static int half_utf8(
	const char *path, const unsigned char *data, size_t bytes, size_t at, size_t mixed)
{
	if (is_cut(data + at, bytes - at))
		return neap__fail(NEAP_EFORMAT,
			"'%s' ends in the middle of a character, at byte %zu. Cut it there: head "
			"-c %zu %s > whole.txt",
			path, at, at, neap__quoted(path));
	return neap__fail(NEAP_EFORMAT,
		"'%s': byte %zu is not valid UTF-8, but the text in front of it is, with "
		"the first character beyond ASCII at byte %zu: texts in two encodings were "
		"joined. Convert those that are not UTF-8, perhaps Latin-1, each with "
		"iconv "
		"-f LATIN1 -t UTF-8 FILE > NEW, and join them again",
		path, at, mixed);
}

/* No UTF-8 at byte `at`: UTF-16 begins with a mark, or has zero bytes. */
static int not_utf8(const char *path, const unsigned char *data, size_t bytes, size_t at)
{
	char advice[NEAP__ICONV_TEXT];

	NEAP_TRY(refuse_other(path, data, bytes));
	int marked = bytes > 1 && (data[0] ^ data[1]) == 1 && data[0] >= 0xFE;
	size_t zeros = 0, looked = bytes < 1000 ? bytes : 1000;
	for (size_t i = 0; i < looked; i++)
		zeros += data[i] == 0;
	if (data[at] == 0 && !marked && zeros < looked / 4) /* UTF-16 has more */
		return neap__fail(NEAP_EFORMAT,
			"'%s': byte %zu is zero, so it is a binary file, not a text. Pass a text "
			"file in UTF-8",
			path, at);
	int wide = marked || data[at] == 0;
	size_t mixed = 0;
	while (!wide && mixed < at && data[mixed] < 0x80)
		mixed++;
	if (!wide && mixed < at)
		return half_utf8(path, data, bytes, at, mixed);
	const char *code = !wide ? "LATIN1" : marked ? "UTF-16" : at % 2 ? "UTF-16LE" : "UTF-16BE";
	return neap__fail(NEAP_EFORMAT,
		"'%s': byte %zu is %s, so it is not UTF-8 text, but perhaps %s. %s", path, at,
		marked ? "part of a UTF-16 byte order mark"
		: wide ? "zero"
		       : "not valid UTF-8",
		wide ? "UTF-16" : "Latin-1", neap__iconv_text(advice, path, code));
}

/* Numbers the characters of the text; `number` [POINTS] is scratch, all zero. */
static int number_all(struct text_set *s, const char *path, const unsigned char *data, size_t bytes,
	int32_t *number)
{
	const unsigned char *end = data + bytes;
	int symbols = 0;

	for (const unsigned char *p = data; p < end; s->count++) {
		const unsigned char *at = p;
		int32_t c = code_point(&p, end);
		if (c <= 0)
			return not_utf8(path, data, bytes, (size_t)(at - data));
		number[c] = 1;
	}
	for (int32_t c = 0; c < POINTS; c++)
		symbols += number[c];
	if (s->count < 2 || symbols > MOST_SYMBOLS)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has %lld characters, %d of them different; at least 2 characters and "
			"at most 65535 different ones are supported. Pass another text",
			path, (long long)s->count, symbols);
	s->set.class_names = calloc((size_t)symbols + 1, sizeof *s->set.class_names);
	s->symbol = malloc((size_t)s->count * sizeof *s->symbol);
	if (!s->set.class_names || !s->symbol)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	for (int32_t c = 0; c < POINTS; c++) {
		if (!number[c])
			continue;
		if (!(s->set.class_names[s->set.nclass_names] = name_of(c)))
			return neap__fail_errno(ENOMEM, "'%s'", path);
		number[c] = s->set.nclass_names++;
	}
	int64_t k = 0;
	for (const unsigned char *p = data; p < end;)
		s->symbol[k++] = (uint16_t)number[code_point(&p, end)];
	return 0;
}

static int read_text(struct text_set *s, const char *path)
{
	struct neap_dataset_info *info = &s->set.info;
	char *data = NULL;
	size_t bytes = 0;

	NEAP_TRY(neap__read_file(&data, &bytes, path, MOST_BYTES));
	int32_t *number = calloc(POINTS, sizeof *number);
	int rc = number ? number_all(s, path, (const unsigned char *)data, bytes, number)
			: neap__fail_errno(ENOMEM, "'%s'", path);
	free(number);
	free(data);
	NEAP_TRY(rc);
	info->inputs = info->classes = s->set.nclass_names;
	info->samples = (s->count - 2) / s->steps + 1;
	info->steps = s->count - 1 < s->steps ? s->count - 1 : s->steps;
	info->target = NEAP_TARGET_LABELS;
	info->events = s->count - 1;
	return 0;
}

static int is_number(const char *text, size_t length)
{
	return length > 0 && strspn(text, "0123456789") >= length;
}

/* There is no such file: perhaps the length of a sample is written in another way. */
static int no_text(const char *name, const char *path)
{
	size_t key = strspn(path, "abcdefghijklmnopqrstuvwxyz_-"), digits;
	const char *number = path[key] == '=' || path[key] == ':' ? path + key + 1 : path;
	const char *colon = strchr(number, ':'), *last = strrchr(path, ':');

	if (!*path)
		return neap__fail(NEAP_EUSAGE,
			"'%s' has no file. Pass the file of the text: text:FILE", name);
	digits = colon ? (size_t)(colon - number) : 0;
	if (is_number(number, digits) && path[key] == '=')
		return neap__fail(NEAP_EUSAGE,
			"'%s': a text has no key '%.*s'. The length of a sample is steps: "
			"text:steps=%s",
			name, (int)(key < 40 ? key : 40), path, number);
	if (is_number(number, digits))
		return neap__fail(NEAP_EUSAGE,
			"'%s': there is no file '%s'. If %.*s is the length of a sample, pass "
			"text:steps=%s",
			name, path, (int)digits, number, number);
	if (last && is_number(last + 1, strlen(last + 1)))
		return neap__fail(NEAP_EUSAGE,
			"'%s': there is no file '%s'. If %s is the length of a sample, pass "
			"text:steps=%s:%.*s",
			name, path, last + 1, last + 1, (int)(last - path), path);
	return neap__missing_file(ENOENT, path);
}

/* The file in text:FILE or text:steps=N:FILE; *steps: N, if it is there. NULL after the line about
 * another N. */
static const char *file_of(const char *name, int64_t *steps)
{
	const char *path = name + strlen("text:"), *colon = strchr(path, ':');
	char number[24] = "";

	if (strncmp(path, "steps=", 6) != 0)
		return path;
	if (colon && colon - path - 6 < (int)sizeof number)
		memcpy(number, path + 6, (size_t)(colon - path - 6));
	if (neap__units_count(steps, number) < 0 || *steps < 1 || *steps > 100000000) {
		neap__fail(NEAP_EUSAGE,
			"'%s' is not valid; expected text:FILE or text:steps=N:FILE with N "
			"between 1 and 100000000",
			name);
		return NULL;
	}
	return colon + 1;
}

static int text_open(struct neap_dataset **set, const char *name)
{
	int64_t steps = STEPS;
	const char *path = file_of(name, &steps);
	struct stat st;

	if (!path)
		return NEAP_EUSAGE;
	if (stat(path, &st) < 0)
		return no_text(name, path);
	char command[NEAP__DETAIL_BYTES];
	if (S_ISDIR(st.st_mode) && neap__join_texts(command, sizeof command, path))
		return neap__fail(NEAP_EUSAGE,
			"'%s' is a folder, and a text is one file. Join its files, and pass "
			"text:all.txt: %s",
			path, command);
	if (S_ISDIR(st.st_mode))
		return neap__fail(NEAP_EUSAGE,
			"'%s' is a folder without texts, and a text is one file. Pass the file: "
			"text:FILE",
			path);
	struct text_set *s = calloc(1, sizeof *s);
	if (!s)
		return neap__fail_errno(ENOMEM, "%s", name);
	s->set.ops = &ops;
	s->steps = steps;
	int rc = read_text(s, path);
	if (rc < 0) {
		neap__names_free(s->set.class_names, s->set.nclass_names);
		free(s->symbol);
		free(s);
		return rc;
	}
	*set = &s->set;
	return 0;
}

static int takes_text(const char *name)
{
	return strncmp(name, "text:", 5) == 0;
}

const struct neap__dataset_format neap__format_text = {"text", takes_text, text_open};
