/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigmoid_formula.h: sigmoid and tanh from one exp(x) - 1, in operations that round alike in every
 * table. With x log2(e) = k + f, k whole and |f| <= 1/2,
 *     exp(x) - 1 = 2^k (2^f - 1) + (2^k - 1)
 * where 2^f - 1 is its Taylor series, which keeps the digits of a small x. Errors stay within 4
 * units in the last place of 1.
 *
 * Written for a number or a vector: the file that includes it defines before `number`, a `word` of
 * unsigned integers as wide, and within(x, most), x brought into [-most, most].
 */
#ifndef NEAP_KERN_SIGMOID_FORMULA_H
#define NEAP_KERN_SIGMOID_FORMULA_H

#include <string.h>

#ifdef NEAP_REAL_DOUBLE
/* Bits of a fraction, bias of an exponent, terms of the series; MOST: exp(MOST) is finite. */
enum { MANTISSA = 52, BIAS = 1023, TERMS = 14 };
#define MOST ((real)700)
#define WHOLE ((real)6755399441055744.0) /* 1.5 2^52: what is added to it loses its fraction */
#else
enum { MANTISSA = 23, BIAS = 127, TERMS = 8 };
#define MOST ((real)85)
#define WHOLE ((real)12582912.0)
#endif

/* [k] ln(2)^k / k!: TERMS of them reach the last place. */
static const double series[] = {0, 0.693147180559945309, 0.240226506959100712,
	0.0555041086648215800, 0.00961812910762847716, 0.00133335581464284434,
	0.000154035303933816099, 0.0000152527338040598403, 0.00000132154867901443095,
	1.01780860092396997e-7, 7.05491162080112333e-9, 4.44553827187081150e-10,
	2.56784359934882051e-11, 1.36914888539041289e-12, 6.77872635482254563e-14};

#define LOG2_E ((real)1.44269504088896341)
/* tanh x rounds to 1 where 2 x is more, in either precision. */
#define TANH_MOST 50

/* exp(x) - 1 for |x| <= MOST */
static inline number less_one(number x)
{
	number shifted = x * LOG2_E + WHOLE;
	number k = shifted - WHOLE;
	/* ln(2) in two parts, the first with few digits, so that x - k ln(2) loses none */
	real high = (real)0.693145751953125, low = (real)1.42860682030941723e-6;
	number f = ((x - k * high) - k * low) * LOG2_E;
	number p = f * (real)series[TERMS], scale;
	word b;

	for (int i = TERMS - 1; i >= 1; i--)
		p = (p + (real)series[i]) * f;
	memcpy(&b, &shifted, sizeof b);
	b = (b + BIAS) << MANTISSA;
	memcpy(&scale, &b, sizeof scale);
	return p * scale + (scale - (real)1);
}

static inline number sigmoid(number x)
{
	return (real)1 / ((real)2 + less_one(within(-x, MOST)));
}

static inline number hyperbolic(number x)
{
	number e = less_one(within((real)2 * x, TANH_MOST));
	return e / (e + (real)2);
}

#endif
