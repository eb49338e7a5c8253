/* SPDX-License-Identifier: Apache-2.0 */
/* half.h: float16 (IEEE 754 binary16) as double, exactly; the bits of a float or double, and back.
 */
#ifndef NEAP_BASE_HALF_H
#define NEAP_BASE_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double neap__half_to_double(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double value = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
		       : exponent     ? ldexp(1024 + fraction, exponent - 25)
				      : ldexp(fraction, -24);
	return bits >> 15 ? -value : value;
}

static inline uint32_t neap__float_bits(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static inline float neap__bits_float(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static inline uint64_t neap__double_bits(double x)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static inline double neap__bits_double(uint64_t bits)
{
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

#endif
