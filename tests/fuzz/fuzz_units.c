/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_units.c: numbers with units. What is refused leaves the value as it was. */
#include "base/units.h"
#include "fuzz.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	double number = -7, seconds = -7, rate = -7, hertz = -7;
	int64_t count = -7;
	uint64_t bytes = 7;

	int rc = neap__units_number(&number, text);
	FUZZ_CHECK(rc == 0 ? isfinite(number) : number == -7, "number %g", number);
	rc = neap__units_count(&count, text);
	FUZZ_CHECK(rc == 0 || count == -7, "count %lld", (long long)count);
	rc = neap__units_size(&bytes, text);
	FUZZ_CHECK(rc == 0 || bytes == 7, "size %llu", (unsigned long long)bytes);
	rc = neap__units_time(&seconds, text);
	FUZZ_CHECK(rc == 0 ? seconds >= 0 && isfinite(seconds) : seconds == -7, "time %g", seconds);
	rc = neap__units_rate(&rate, text);
	FUZZ_CHECK(rc == 0 ? rate >= 0 && isfinite(rate) : rate == -7, "rate %g", rate);
	rc = neap__units_frequency(&hertz, text);
	FUZZ_CHECK(rc == 0 ? hertz >= 0 && isfinite(hertz) : hertz == -7, "frequency %g", hertz);
	free(text);
	return 0;
}
