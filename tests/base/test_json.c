/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: numbers come back exactly, keys stand once, text stays text. */
#include "test.h"
#include "base/json.h"

#include "comma_locale.h"
#include <math.h>

static void texts_are_written(void **state)
{
	struct neap__json json = {0}, lines = {.lines = 1};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct neap__json *to = i ? &lines : &json;
		neap__json_begin(to, NULL, '{');
		neap__json_int(to, "least", INT64_MIN);
		neap__json_bytes(to, "most", UINT64_MAX);
		neap__json_begin(to, "list", '[');
		neap__json_number(to, NULL, 0.1);
		neap__json_number(to, NULL, 3);
		neap__json_number(to, NULL, NAN);
		neap__json_end(to, ']');
		neap__json_begin(to, "none", '[');
		neap__json_end(to, ']');
		neap__json_begin(to, "in", '{');
		neap__json_bool(to, "met", 1);
		neap__json_end(to, '}');
		neap__json_text(to, "t\n", "\"\\\x01{\xc3\xa9\xff\xe2\x82");
		neap__json_null(to, "no");
		neap__json_end(to, '}');
	}
	assert_string_equal(json.text.data,
		"{\"least\":-9223372036854775808,\"most\":18446744073709551615,"
		"\"list\":[0.1,3,null],\"none\":[],\"in\":{\"met\":true},"
		"\"t\\n\":\"\\\"\\\\\\u0001{\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\","
		"\"no\":null}");
	assert_non_null(
		strstr(lines.text.data, "{\n\t\"least\":\t-9223372036854775808,\n\t\"most\""));
	assert_non_null(strstr(lines.text.data, "\"list\":\t[0.1, 3, null],\n"));
	assert_non_null(strstr(lines.text.data, "\"in\":\t{\n\t\t\"met\":\ttrue\n\t},\n"));
	neap__json_free(&json);
	neap__json_free(&lines);
}

static void integers_of_64_bits_survive(void **state)
{
	static const int64_t values[] = {
		INT64_MAX, INT64_MIN, 9007199254740993, -9007199254740993, 0, -1};
	char why[NEAP__JSON_WHY];
	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		struct neap__json json = {0};
		neap__json_int(&json, NULL, values[i]);
		json_t *read = neap__json_read(json.text.data, json.text.length, why);
		assert_true(json_is_integer(read));
		assert_true(json_integer_value(read) == values[i]);
		json_decref(read);
		neap__json_free(&json);
	}
}

static void numbers_come_back(void **state)
{
	static const double values[] = {
		0.1, 1.0 / 3, 1e300, 5e-324, -2.5, 1e15, 123456789012345680};
	char room[40];
	double value;
	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		assert_int_equal(
			neap__json_read_number(&value, neap__json_exact(room, values[i])), 0);
		assert_true(value == values[i]);
	}
	assert_string_equal(neap__json_exact(room, 0.1), "0.1");
	assert_int_equal(neap__json_read_number(&value, ""), -1);
	assert_int_equal(neap__json_read_number(&value, "nan"), -1);
	assert_int_equal(neap__json_read_number(&value, "1x"), -1);
	assert_int_equal(neap__json_read_number(&value, "\"1\""), -1);
}

/* The decimal comma of a program's locale changes no text. */
static void locales_change_nothing(void **state)
{
	char room[40];
	double value = 0;
	(void)state;
	char folder[] = "/tmp/neap-json-XXXXXX", command[64];
	assert_non_null(mkdtemp(folder));
	take_comma_locale(folder);
	assert_string_equal(neap__json_exact(room, -1.25e-7), "-1.25e-07");
	assert_int_equal(neap__json_read_number(&value, "0.5"), 0);
	assert_true(value == 0.5);
	setlocale(LC_ALL, "C");
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

static void bad_texts_are_told(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "line 1: not valid JSON"},
		{"{\"a\":1,\n\"b\":}", "line 2: not valid JSON"},
		{"{\"a\":1,\n\n\"a\":1}", "line 3: the key is given twice: '\"a\"'"},
		{"[{\"a\":{\"b\":1,\"b\":2}}]", "twice"},
		{"{} {}", "not valid JSON"},
		{"[18446744073709551615]", "integer"},
		{"[1e999]", "real number"},
		{"[\"\xff\"]", "not valid JSON"},
		{"[\"\\u0000\"]", "not valid JSON"},
		{"\x01", "not valid JSON"},
	};
	char why[NEAP__JSON_WHY];
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_null(neap__json_read(bad[i].text, strlen(bad[i].text), why));
		if (!strstr(why, bad[i].says) || strchr(why, '\n'))
			fail_msg("%s: '%s' does not say '%s'", bad[i].text, why, bad[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_written),
		cmocka_unit_test(integers_of_64_bits_survive),
		cmocka_unit_test(numbers_come_back),
		cmocka_unit_test(locales_change_nothing),
		cmocka_unit_test(bad_texts_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
