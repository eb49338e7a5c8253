/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units, wherever they are read; text made fit for a line of a terminal. */
#include "test.h"
#include "base/text.h"
#include "base/units.h"

#include <neap/tier.h>

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"0", 0}, {"4096", 4096}, {"4096B", 4096}, {"64K", 65536}, {"64k", 65536},
		{"64KB", 65536}, {"64KiB", 65536}, {"1.5M", 1572864}, {"1e3", 1000},
		{"2G", 2147483648u}, {"1T", UINT64_C(1) << 40}, {"1P", UINT64_C(1) << 50},
		{"9007199254740993", 9007199254740993}, {"9223372036854775807", INT64_MAX}};
	static const char *const bad[] = {"", " 1", "1 ", "-1", "-0", "1 K", "1KK", "1Ki", "1iB",
		"0x10", "nan", "inf", "K", "1e400", "9223372036854775808", "9P9", "16E", ".", "e5",
		"1,5M", "8192P"};
	uint64_t bytes;
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		if (neap__units_size(&bytes, good[i].text) < 0 || bytes != good[i].bytes)
			fail_msg("'%s'", good[i].text);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		bytes = 77;
		if (neap__units_size(&bytes, bad[i]) == 0 || bytes != 77)
			fail_msg("'%s' is no size", bad[i]);
	}
}

static void times_and_rates(void **state)
{
	static const struct {
		const char *text;
		double value;
	} times[] = {{"0", 0}, {"2", 2}, {"2s", 2}, {"20ms", 0.02}, {"100us", 1e-4}, {"7ns", 7e-9},
		{"1min", 60}, {"1.5h", 5400}},
	  rates[] = {{"1", 1}, {"0.5", 0.5}, {"0.001B/s", 0.001}, {"500K/s", 512000},
		  {"1MiB/s", 1048576}, {"2GB", 2147483648.0}, {"inf", 0}},
	  frequencies[] = {{"20Hz", 20}, {"0.02", 20}, {"0", 0}, {"0.2kHz", 200}, {"5/s", 5},
		  {"1/ms", 1000}};
	static const char *const bad_frequencies[] = {
		"", "-1Hz", "-0", "20 Hz", "20hz", "Hz", "20ms", "inf", "nan", "1e308", "1/min"};
	static const char *const bad_times[] = {
		"", "-1s", "-0", "1 s", "1sec", "1m", "0x1s", "inf", "nan", "1e308h", "s"};
	static const char *const bad_rates[] = {
		"", "0", "-1", "0K", "1/", "1/h", "nan", "Inf", "1e300P/s/s", "1e307P"};
	double value;
	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
		if (neap__units_time(&value, times[i].text) < 0 || value != times[i].value)
			fail_msg("'%s'", times[i].text);
	for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
		if (neap__units_rate(&value, rates[i].text) < 0 || value != rates[i].value)
			fail_msg("'%s'", rates[i].text);
	for (size_t i = 0; i < sizeof bad_times / sizeof bad_times[0]; i++)
		if (neap__units_time(&value, bad_times[i]) == 0)
			fail_msg("'%s' is no time", bad_times[i]);
	for (size_t i = 0; i < sizeof bad_rates / sizeof bad_rates[0]; i++)
		if (neap__units_rate(&value, bad_rates[i]) == 0)
			fail_msg("'%s' is no rate", bad_rates[i]);
	for (size_t i = 0; i < sizeof frequencies / sizeof frequencies[0]; i++)
		if (neap__units_frequency(&value, frequencies[i].text) < 0 ||
			value != frequencies[i].value)
			fail_msg("'%s'", frequencies[i].text);
	for (size_t i = 0; i < sizeof bad_frequencies / sizeof bad_frequencies[0]; i++)
		if (neap__units_frequency(&value, bad_frequencies[i]) == 0)
			fail_msg("'%s' is no frequency", bad_frequencies[i]);
}

static void counts(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} good[] = {{"0", 0}, {"-5", -5}, {"1000", 1000}, {"1e6", 1000000}, {"1K", 1000},
		{"1.5k", 1500}, {"2M", 2000000}, {"3G", INT64_C(3000000000)},
		{"9007199254740993", 9007199254740993}};
	static const char *const bad[] = {"", "1.5", "1KB", "1KK", "0x1", "1e16", "5-", "--5", "-",
		"9223372036854775808", "1T", "inf"};
	int64_t value;
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (neap__units_count(&value, good[i].text) < 0 || value != good[i].value)
			fail_msg("'%s'", good[i].text);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (neap__units_count(&value, bad[i]) == 0)
			fail_msg("'%s' is no count", bad[i]);
}

/* Lists of tiers take the sizes that options take. */
static void tiers_take_sizes(void **state)
{
	static const char *const lists[] = {"mem:64K", "mem:64KiB", "mem:64KB", "mem:65536B"};
	uint64_t first = 0;
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct neap_file_options options = {.size = sizeof options};
		struct neap_tier *tier[NEAP_TIERS_MAX];
		struct neap_tier_spec spec;
		int count = 0;
		assert_int_equal(neap_tiers_open(tier, &count, lists[i], &options), 0);
		neap_tier_describe(tier[0], 4096, &spec);
		if (i == 0)
			first = spec.capacity;
		assert_int_equal(spec.capacity, first);
		neap_tier_close(tier[0]);
	}
}

static void plain(void **state)
{
	static const struct {
		const char *text, *plain;
	} rows[] = {{"", ""}, {"plain text", "plain text"}, {"a\033[31mb", "a?[31mb"},
		{"a\nb\tc\rd", "a?b?c?d"}, {"\x7f", "?"}, {"a\xc2\x9b z", "a? z"}, {"\x9b", "?"},
		{"\xc3\xa9", "\xc3\xa9"}, {"\xc2\xa0", "\xc2\xa0"},
		{"\xe2\x82\xac\xe2\x82", "\xe2\x82\xac??"}, {"\xc0\x80", "??"},
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char room[NEAP__PLAIN_TEXT];
		assert_string_equal(neap__plain_text(room, rows[i].text), rows[i].plain);
	}
}

static void escaped(void **state)
{
	static const struct {
		const char *text, *escaped;
	} rows[] = {{"", ""}, {"\\", "\\"}, {"a\\n", "a\\\\n"}, {"\n", "\\n"}, {"a\tb", "a\\tb"},
		{"\x7f\x01", "\\x7f\\x01"}, {"\xc2\x9bz", "\\xc2\\x9bz"}, {"\xff", "\\xff"},
		{"\xc3\xa9 \xe2\x82\xac", "\xc3\xa9 \xe2\x82\xac"}};
	char room[NEAP__PLAIN_TEXT], text[2 * NEAP__PLAIN_TEXT];
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_string_equal(neap__escaped_text(room, rows[i].text), rows[i].escaped);
	for (size_t n = NEAP__PLAIN_TEXT - 16; n < NEAP__PLAIN_TEXT; n++) {
		memset(text, 'a', n);
		for (size_t i = n; i < sizeof text - 1; i++)
			text[i] = i % 2 ? '\x85' : '\xc2';
		text[sizeof text - 1] = '\0';
		assert_true(strlen(neap__escaped_text(room, text)) < NEAP__PLAIN_TEXT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(times_and_rates),
		cmocka_unit_test(counts),
		cmocka_unit_test(tiers_take_sizes),
		cmocka_unit_test(plain),
		cmocka_unit_test(escaped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
