/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coding.h: codings: rules that make spikes of rows of numbers. Each kind is one file
 * (delta_coding.c, ...) and one row in the table of coding.c. The spikes of a step are a function
 * of (coding, seed, sample, step) and of the rows that it looks at, so that order, batch, window
 * and thread do not matter. A coding is written "KIND" or "KIND:KEY=VALUE,...".
 */
#ifndef NEAP_DATA_CODING_CODING_H
#define NEAP_DATA_CODING_CODING_H

#include <stddef.h>
#include <stdint.h>

/* Values of all keys; a kind looks at its own. Flags are 0 or 1. */
struct neap__coding_values {
	double threshold; /* of a change (delta), or of numbers that spike at all (latency) */
	double off;	  /* 1: what falls has a channel of its own, behind those of what rises */
	double padding;	  /* 1: the first row has no change; 0: it is compared with zeros */
	double level;	  /* that is crossed */
	double gain, offset; /* gain x + offset, clipped to [0, 1], is a chance or a strength */
	double linear;	     /* 1: a strength delays linearly; 0: logarithmically */
	double tau;	     /* steps of the delay; 0: the weakest is at the end of the period */
	double clip;	     /* 1: below `threshold` there is no spike; 0: it is the last */
	double period;	     /* steps, each begun by a row that is coded; 0: a sample's */
	double repeat;	     /* steps that a row lasts */
	double seed;	     /* of random numbers; -1: the run's */
};

struct neap__coding {
	const struct neap__coding_kind *kind; /* NULL: numbers stay numbers */
	struct neap__coding_values values;
};

struct neap__coding_key {
	const char *name;
	size_t offset; /* in struct neap__coding_values */
	double usual, least, most;
	int whole;
};
#define NEAP__CODING_KEY(field) #field, offsetof(struct neap__coding_values, field)
/* Of every kind. */
#define NEAP__CODING_REPEAT                                                                        \
	{                                                                                          \
		NEAP__CODING_KEY(repeat), 1, 1, 1e8, 1                                             \
	}

/* A step whose spikes are wanted. */
struct neap__coding_step {
	int64_t sample;
	int64_t step;	/* of the sample */
	int64_t within; /* steps since the period began */
	int features;
	const float *now;    /* [features] the row of this step, or of the period's first */
	const float *before; /* [features] that of the step before; NULL: there is none */
};

struct neap__coding_kind {
	const char *name;
	const struct neap__coding_key *keys; /* a row without a name ends them */
	int looks_back;			     /* 1: `before` is looked at */
	int has_periods;		     /* 1: `now` is the row that began the period */
	/* 0, or NEAP_EUSAGE where keys do not go together; NULL: they do. */
	int (*check)(const struct neap__coding_values *values);
	/* Changes a row, once it is read, into what `spikes` wants as `now`. NULL: no change. */
	void (*prepare)(
		const struct neap__coding_values *values, int64_t period, int features, float *row);
	/* Sets spike[features]: 1 a spike, -1 one of what falls, 0 none. */
	void (*spikes)(const struct neap__coding_values *values,
		const struct neap__coding_step *step, int8_t *spike);
};

extern const struct neap__coding_kind neap__coding_delta, neap__coding_latency, neap__coding_rate,
	neap__coding_threshold;

/*
 * Reads a coding. NULL, "" and "none" have no kind. 0, or NEAP_EUSAGE with a line that begins with
 * the option and says what is accepted.
 */
int neap__coding_parse(struct neap__coding *coding, const char *text);
/* Writes a coding with all its keys, so that it reads back to the same; "" without a kind. The
 * seed is left out while it is the run's. */
#define NEAP__CODING_TEXT 400
const char *neap__coding_text(char room[NEAP__CODING_TEXT], const struct neap__coding *coding);
/* Sets the seed where none is given: the lowest 53 bits of `seed`, which a key can hold. */
void neap__coding_seed(struct neap__coding *coding, uint64_t seed);
/* Channels of a feature: 2 where what falls has one of its own. */
int neap__coding_channels(const struct neap__coding *coding);

#endif
