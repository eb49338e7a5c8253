/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vlen_numbers.c: numbers of a row as doubles or 64-bit integers. HDF5 converts half precision bit
 * by bit, which takes several times as long as all other work of reading a spike. So the usual
 * layouts (IEEE 754-2019, 3.4; two's complement; little-endian) are converted here, with the same
 * results, and HDF5 converts any other.
 */
#include "data/formats/h5.h"
#include "base/fail.h"

#include <math.h>
#include <string.h>

enum { HALF_MANTISSA = 10, HALF_EXPONENT = 0x7c00, HALF_SIGN = 0x8000 };
enum { DOUBLE_MANTISSA = 52, BIAS_HALF = 15, BIAS_DOUBLE = 1023 };

/* The value of bits in half precision; it is one in double precision, too. */
static double from_half(uint16_t half)
{
	uint64_t bits = (uint64_t)(half & ~HALF_SIGN);
	double value;

	if ((half & HALF_EXPONENT) == HALF_EXPONENT)
		value = half & ((1 << HALF_MANTISSA) - 1) ? NAN : INFINITY;
	else if ((half & HALF_EXPONENT) == 0)
		value = (double)bits * 0x1p-24;
	else {
		bits = (bits << (DOUBLE_MANTISSA - HALF_MANTISSA)) +
		       ((uint64_t)(BIAS_DOUBLE - BIAS_HALF) << DOUBLE_MANTISSA);
		memcpy(&value, &bits, sizeof value);
	}
	return half & HALF_SIGN ? -value : value;
}

/* Whether a type is IEEE 754's half precision, for which HDF5 1.10 has no name. */
static int is_half(hid_t type)
{
	size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;

	return H5Tget_size(type) == 2 && H5Tget_order(type) == H5T_ORDER_LE &&
	       H5Tget_precision(type) == 16 && H5Tget_offset(type) == 0 &&
	       H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >=
		       0 &&
	       sign == 15 && exponent == HALF_MANTISSA && exponent_bits == 5 && mantissa == 0 &&
	       mantissa_bits == HALF_MANTISSA && H5Tget_ebias(type) == BIAS_HALF &&
	       H5Tget_norm(type) == H5T_NORM_IMPLIED;
}

enum neap__vlen_layout neap__vlen_layout_of(hid_t type)
{
	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		return NEAP__VLEN_OTHER;
	if (H5Tget_class(type) == H5T_FLOAT)
		return is_half(type)			    ? NEAP__VLEN_HALF
		       : H5Tequal(type, H5T_IEEE_F32LE) > 0 ? NEAP__VLEN_FLOAT
		       : H5Tequal(type, H5T_IEEE_F64LE) > 0 ? NEAP__VLEN_DOUBLE
							    : NEAP__VLEN_OTHER;
	return H5Tequal(type, H5T_STD_U8LE) > 0	   ? NEAP__VLEN_U8
	       : H5Tequal(type, H5T_STD_U16LE) > 0 ? NEAP__VLEN_U16
	       : H5Tequal(type, H5T_STD_I32LE) > 0 ? NEAP__VLEN_I32
	       : H5Tequal(type, H5T_STD_I64LE) > 0 ? NEAP__VLEN_I64
						   : NEAP__VLEN_OTHER;
}

/* Converts from the last on, so that numbers may grow where they are. */
#define CONVERT(from, to, value)                                                                   \
	for (size_t i = count; i-- > 0;) {                                                         \
		from x;                                                                            \
		memcpy(&x, (const char *)bytes + i * sizeof x, sizeof x);                          \
		((to *)out)[i] = (value);                                                          \
	}

int neap__vlen_numbers(const struct neap__vlen *vlen, size_t count, const void *bytes, void *out)
{
	hid_t type = H5Tget_class(vlen->base) == H5T_FLOAT ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64;

	if (count == 0)
		return 0;
	switch (vlen->layout) {
	case NEAP__VLEN_HALF:
		CONVERT(uint16_t, double, from_half(x));
		return 0;
	case NEAP__VLEN_FLOAT:
		CONVERT(float, double, x);
		return 0;
	case NEAP__VLEN_U8:
		CONVERT(uint8_t, int64_t, x);
		return 0;
	case NEAP__VLEN_U16:
		CONVERT(uint16_t, int64_t, x);
		return 0;
	case NEAP__VLEN_I32:
		CONVERT(int32_t, int64_t, x);
		return 0;
	case NEAP__VLEN_DOUBLE:
	case NEAP__VLEN_I64:
	case NEAP__VLEN_OTHER:
		break;
	}
	if (bytes != out)
		memcpy(out, bytes, count * vlen->base_bytes);
	if (vlen->layout == NEAP__VLEN_OTHER &&
		H5Tconvert(vlen->base, type, count, out, NULL, H5P_DEFAULT) < 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s': '%s' has a type that HDF5 cannot convert to numbers",
			vlen->file->path, vlen->name);
	return 0;
}
