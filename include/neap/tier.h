/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier.h: slow memory, such as a disk, that stores records (states or tapes) by place number.
 *
 *     struct neap_tier *disk;
 *     neap_tier_open_file(&disk, "/scratch", NULL);
 *     neap_tier_format(disk, bytes_of_largest_record, number_of_places, NULL);
 *     int64_t ticket;
 *     neap_tier_put(disk, place, tag, state, bytes, &ticket);   returns at once
 *     neap_tier_wait(disk, ticket);                 returns the request's error, once
 *     neap_tier_close(disk);
 *
 * A record is stored with its tag (kind and first step), its length and an XXH3 checksum, which are
 * checked when it is read.
 *
 * Threads: a tier may be used by any thread, but only by one at a time. A call during another call
 * of the tier, or while a sweep runs over it (also in the sweep's callbacks), returns NEAP_EUSAGE
 * and changes nothing; lend and set_patience then do nothing. A ticket may be waited for by a
 * different thread than the one that started the transfer. Different tiers are independent.
 * neap_tier_about, neap_tier_takes_tapes, neap_tier_describe, neap_tier_set_rates,
 * neap_tier_set_cpu and neap_tier_seconds may be called at any time. After fork, a tier belongs to
 * the process that opened it, where it works as before. In the child, functions that return a code
 * return NEAP_EFORKED at once, and neap_tier_abandon frees what was inherited.
 */
#ifndef NEAP_TIER_H
#define NEAP_TIER_H

#include <neap/chain.h>
#include <neap/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct neap_tier;

/* A piece of memory; a list of spans is the source or destination of a record. */
struct neap_span {
	void *at;
	uint64_t bytes;
};

/*
 * The functions of a kind of tier. neap_tier_wrap creates a tier from them (for other machines,
 * devices, fault injection); neap's own tiers use the same struct. All calls for one `self` come
 * from one thread at a time, the one that runs the sweep. put and get return at once with a ticket;
 * wait returns the result of the request exactly once. Up to 320 requests are in flight. A get
 * takes effect after the puts issued before it, and fails (NEAP_ELOST) if the place does not
 * contain a complete record with that tag; tags differ between sweeps. Functions that return int
 * return 0 or a negative code; set the reason with neap_detail_set. Optional functions may be NULL;
 * the default is in brackets.
 */
struct neap_tier_ops {
	uint32_t size; /* sizeof(struct neap_tier_ops) */
	/* Makes room for `places` records of at most `bytes` each and drops all records. */
	int (*format)(void *self, uint64_t bytes, int64_t places, void *staging);
	int (*put)(void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes,
		int64_t *ticket);
	int (*get)(void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes,
		int64_t *ticket);
	int (*wait)(void *self, int64_t ticket);
	/* Optional [nothing]: the record at the place is no longer needed. */
	int (*forget)(void *self, int64_t place);
	/* Optional [0]: bytes of tier 0 required for records of `bytes`; see format. */
	uint64_t (*staging)(void *self, uint64_t bytes);
	void (*close)(void *self);
	/*
	 * Optional, all three or none [tapes stay in tier 0]: records of tapes, each the
	 * concatenation of some spans, at their own places. A record is read with the number of
	 * bytes that was written, at most that of the format, possibly into differently divided
	 * spans. The spans are borrowed until the wait. format_tapes is called after format, which
	 * drops them; `staging` is the size of the staging passed to format.
	 */
	int (*format_tapes)(void *self, uint64_t bytes, int64_t places, uint64_t staging);
	int (*put_tapes)(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
		int count, int64_t *ticket);
	int (*get_tapes)(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
		int count, int64_t *ticket);
	/*
	 * Optional, both or none [records end with the process]: for journals. sync: makes every
	 * put that was waited for durable. adopt: called after the formats; from now on records
	 * belong to `epoch`, and those that an earlier process put under that epoch are available
	 * again, if its formats were the same. epoch 0: records no longer need to outlive the
	 * process, and existing ones are dropped.
	 */
	int (*sync)(void *self);
	int (*adopt)(void *self, uint64_t epoch);
	/*
	 * Optional [waits have no limit]: from now on a wait ends after no byte was transferred for
	 * `seconds`; 0: never. The wait then returns -ETIMEDOUT: the request is over, and its
	 * memory and spans are no longer accessed.
	 */
	void (*set_patience)(void *self, double seconds);
	/* Optional [0]: 1 while an abandoned request may still access the staging. */
	int (*holds_staging)(void *self);
	/*
	 * Optional [bytes]: bytes of the capacity that a record of `bytes` needs, including
	 * everything that the tier stores with it; never 0. May be called before format.
	 */
	uint64_t (*footprint)(void *self, uint64_t bytes);
	/*
	 * Optional, both or none [formats pass the size of `staging`]. staging_most: bytes of
	 * staging for records of `bytes` beyond which the tier does not get faster; at least those
	 * of `staging`. A sweep with enough memory provides them. lend: called before format: the
	 * staging passed to formats has this number of bytes from now on; 0: that of `staging`.
	 */
	uint64_t (*staging_most)(void *self, uint64_t bytes);
	void (*lend)(void *self, uint64_t bytes);
	/* Optional [0 bytes]: sets *bytes to the bytes of the tier's data in the page cache now. */
	int (*cached)(void *self, uint64_t *bytes);
	/*
	 * Optional [from put or get to the end of wait]: when the request waited for last started
	 * and ended, in seconds of neap_clock (machine.h). For traces.
	 */
	void (*times)(void *self, double *start, double *end);
	/*
	 * Optional [0]: cancels a request. Returns 1 if it had not started and will not run; its
	 * ticket is then invalid. Returns 0 if it must be waited for as usual.
	 */
	int (*cancel)(void *self, int64_t ticket);
	/*
	 * Optional, both or none [one place per record, as large as the largest]: records of tapes
	 * of any size. unit: bytes of capacity per place. format_units: as format_tapes, for
	 * records of at most `bytes`; a record occupies as many consecutive places, from the given
	 * one, as its footprint has units.
	 */
	uint64_t (*unit)(void *self);
	int (*format_units)(void *self, uint64_t bytes, int64_t units, uint64_t staging);
	/*
	 * Optional, both or none [states are contiguous]: records of states, each the concatenation
	 * of some spans, at the places of states. As put and get, which may read what put_spans
	 * wrote. The spans are borrowed until the wait.
	 */
	int (*put_spans)(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
		int count, int64_t *ticket);
	int (*get_spans)(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
		int count, int64_t *ticket);
	/*
	 * Optional, both or none [1, and a wait without a limit]. done: 1 if a wait would return at
	 * once, else 0. wait_for: as wait, for at most `seconds`. Returns 1 if the request is
	 * complete with result 0; its negative result; or 0 if it is not complete, and its ticket
	 * stays valid.
	 */
	int (*done)(void *self, int64_t ticket);
	int (*wait_for)(void *self, int64_t ticket, double seconds);
	/*
	 * Optional [nothing is freed]: close in a child process that inherited the tier, in which
	 * no thread of the tier runs and whose parent continues to use it. Must not change the
	 * medium.
	 */
	void (*abandon)(void *self);
	/*
	 * Optional [ordinary memory]: the memory that records are in, as of neap_step_ops; the
	 * addresses passed to put and get are in it. Borrowed until close. A sweep over other
	 * memory rejects the tier.
	 */
	const struct neap_memory_ops *memory;
	/*
	 * Optional [0]: 1 if transfers are done in the order of the calls of the models that use
	 * the tier, after the work of calls that returned before it was done (`fence` of
	 * neap_step_ops). A sweep then does not wait for that work before put and get.
	 */
	int in_order;
};

/*
 * Creates a tier from `ops`, which are copied. Takes ownership of `self`: neap_tier_close passes it
 * to ops.close. spec: name, capacity in bytes, rates. NEAP_EUSAGE if a required function is
 * missing.
 */
NEAP_API int neap_tier_wrap(struct neap_tier **tier, const struct neap_tier_ops *ops,
	const struct neap_tier_spec *spec, void *self);

/* Opens a tier in ordinary memory of at most `capacity` bytes, allocated on demand. */
NEAP_API int neap_tier_open_memory(struct neap_tier **tier, uint64_t capacity);

/* How neap_tier_open_file opens its file. */
struct neap_file_options {
	uint32_t size;	     /* sizeof(struct neap_file_options) */
	uint32_t page_cache; /* 1: use the page cache instead of O_DIRECT */
	uint32_t in_memory;  /* 1: allow a directory in RAM (tmpfs) */
	uint32_t keep;	     /* 1: the file outlives the process, for journals */
	uint64_t capacity;   /* bytes; 0: the free space of the file system */
	/* With keep: suffix of the name after neap.slow, such as ".3" for rank 3. NULL: none. */
	const char *suffix;
};

/*
 * Opens a file in directory `dir` (or in the directory of a file path): unnamed, private,
 * preallocated by format, opened with O_DIRECT. "DIR+DIR..." distributes records over files in
 * several directories, all with the capacity of the smallest; an existing path is used as a whole,
 * even if it contains "+". Transfers run in the background, with io_uring if it works, else with a
 * pool of threads; the environment variable NEAP_IO (uring, threads, or sync: within the calls)
 * forces one. The detail line has the reason if a directory, or NEAP_IO, is rejected.
 *
 * With `keep` the file is named neap.slow, has a header and a lock, and remains when the process
 * dies, until a journalled sweep (sweep.h) over it is finished. NEAP_EUSAGE if a file of that name
 * was not written by neap, is a link, or is open in another process.
 */
NEAP_API int neap_tier_open_file(
	struct neap_tier **tier, const char *dir, const struct neap_file_options *options);

/*
 * Opens the tiers of a list, fastest first: "DIR[+DIR...]|FILE|mem:SIZE[,...]", at most
 * NEAP_TIERS_MAX; sizes have the suffixes K M G T. options (may be NULL) apply to the files.
 */
NEAP_API int neap_tiers_open(struct neap_tier **tiers, int *count, const char *list,
	const struct neap_file_options *options);

/*
 * Makes room for `places` records of at most `bytes` each and drops all records; -ENOSPC if that
 * exceeds the capacity. `staging`, of the size that neap_tier_describe returns and aligned to 4096
 * bytes, is borrowed until the next format or close; with NULL the engine allocates it. A sweep
 * that runs over the tier formats it for itself: format it again before you use your own records,
 * which are NEAP_EUSAGE otherwise.
 */
NEAP_API int neap_tier_format(
	struct neap_tier *tier, uint64_t bytes, int64_t places, void *staging);
/*
 * Sets the size of the staging that is passed to later formats. Required if it is larger than the
 * size that neap_tier_describe returns; with staging NULL the engine allocates that size. 0: the
 * minimum.
 */
NEAP_API void neap_tier_lend(struct neap_tier *tier, uint64_t bytes);
/* Starts to write a record; `from` must not change until the wait. */
NEAP_API int neap_tier_put(struct neap_tier *tier, int64_t place, uint64_t tag, const void *from,
	uint64_t bytes, int64_t *ticket);
/* Starts to read a record; `into` must not be used until the wait. */
NEAP_API int neap_tier_get(struct neap_tier *tier, int64_t place, uint64_t tag, void *into,
	uint64_t bytes, int64_t *ticket);
/* Waits for a transfer and returns its result, once per ticket. */
NEAP_API int neap_tier_wait(struct neap_tier *tier, int64_t ticket);
/*
 * Waits for a transfer as neap_tier_wait, for a limited time: at most `seconds`. Returns 1 if the
 * request is complete with result 0; 0 if it is not complete, and the ticket stays valid; the
 * negative result, once; or NEAP_EUSAGE for an invalid ticket. Patience applies as in
 * neap_tier_wait, over all waits for the request.
 */
NEAP_API int neap_tier_wait_for(struct neap_tier *tier, int64_t ticket, double seconds);
/*
 * Returns 1 if neap_tier_wait would return at once, 0 while the transfer is in progress,
 * NEAP_EUSAGE for an invalid ticket. Never blocks, and leaves the result for the wait. Always 1 for
 * a tier of neap_tier_wrap without `done`.
 */
NEAP_API int neap_tier_done(struct neap_tier *tier, int64_t ticket);
/*
 * As neap_tier_put, for a state in several pieces of memory: `count` spans, concatenated in the
 * record. The spans and their memory are borrowed until the wait. A state may be read into
 * differently divided spans, or in one piece. NEAP_EUSAGE for a tier of neap_tier_wrap without
 * put_spans and get_spans.
 */
NEAP_API int neap_tier_put_spans(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
/* Starts to read a record into spans; otherwise as neap_tier_put_spans. */
NEAP_API int neap_tier_get_spans(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);

/*
 * Limits waits: those for one request, and those of format, sync and close for all requests. A wait
 * ends, with -ETIMEDOUT for a request, after the tier has transferred no byte for `seconds`, for
 * example because a disk hangs or the server of a network file system is down; a slow tier still
 * transfers some. After each abandoned request the limit of the next is halved, until a byte is
 * transferred. The memory of an abandoned request is no longer accessed. seconds 0 or infinite (the
 * initial setting): no limit. System calls on the caller's thread (NEAP_IO=sync, preallocation,
 * fsync) are not limited.
 */
NEAP_API void neap_tier_set_patience(struct neap_tier *tier, double seconds);
/*
 * Returns 1 while abandoned requests may still access the staging, which must stay mapped; forever,
 * if this is so when the tier is closed. Else 0.
 */
NEAP_API int neap_tier_holds_staging(struct neap_tier *tier);

/* Records of tapes (neap_tier_ops). */

/* Returns 1 if the tier stores records of tapes, else 0. */
NEAP_API int neap_tier_takes_tapes(const struct neap_tier *tier);
/*
 * Makes room for `places` records of tapes of at most `bytes` each. Call it after neap_tier_format,
 * whose staging had `staging` bytes (0: the size that neap_tier_describe returns).
 */
NEAP_API int neap_tier_format_tapes(
	struct neap_tier *tier, uint64_t bytes, int64_t places, uint64_t staging);
/* Starts to write a record of tapes; the spans are borrowed until the wait. */
NEAP_API int neap_tier_put_tapes(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
/* Starts to read a record of tapes; the spans are borrowed until the wait. */
NEAP_API int neap_tier_get_tapes(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
/* Marks the record at a place as no longer needed. */
NEAP_API int neap_tier_forget(struct neap_tier *tier, int64_t place);

/*
 * Fills in `spec` for the planner: staging for records of `bytes`, and the capacity in bytes of
 * such records (without trailers and padding).
 */
NEAP_API void neap_tier_describe(
	struct neap_tier *tier, uint64_t bytes, struct neap_tier_spec *spec);
/* Sets the rates that the planner uses, for example from a measurement. */
NEAP_API void neap_tier_set_rates(
	struct neap_tier *tier, double write_rate, double read_rate, double latency);
/* Sets the cost of transfers for overlapping computation (cpu of struct neap_tier_spec). */
NEAP_API void neap_tier_set_cpu(
	struct neap_tier *tier, double seconds_a_byte, double seconds_a_transfer);
/*
 * Measures and sets the write and read rates of a tier. Uses records of `bytes` for about
 * `seconds`, and sets latency 0 (it is included in the rates). Drops all records; format the tier
 * afterwards. If the tier has records of an interrupted sweep, measures nothing and keeps the
 * rates. NEAP_EINFEASIBLE if it has no room for two records.
 */
NEAP_API int neap_tier_measure(struct neap_tier *tier, uint64_t bytes, double seconds);
/* Median of several measurements; spread: largest minus smallest, divided by the median. */
struct neap_timing {
	double median, spread;
};

/* Measured costs of a tier, from neap_calibrate and neap_sweep_calibrate. */
struct neap_calibrated_tier {
	char about[320];
	struct neap_timing write, read; /* bytes per second, without the fixed time of a record */
	double write_fixed, read_fixed; /* fixed seconds per record */
	double cpu, cpu_fixed;		/* seconds of computation lost per byte, and per record */
	double slowed;			/* rate during computation / rate without, at most 1 */
	uint64_t record_bytes;
};

/*
 * Returns a one-line description, such as "O_DIRECT file in DIR, uring", "memory"; owned by the
 * tier.
 */
NEAP_API const char *neap_tier_about(const struct neap_tier *tier);
/*
 * Abandons requests in flight and frees the tier; in a child process as neap_tier_abandon. Free
 * sweeps first: a sweep that runs over the tier keeps it until the run ends, and a later run
 * returns NEAP_EUSAGE.
 */
NEAP_API void neap_tier_close(struct neap_tier *tier);
/*
 * Frees the memory, mappings and descriptors of a tier that a child process inherited. Waits for
 * nothing, and affects neither the medium nor the parent's requests in flight. In the process that
 * opened the tier, as neap_tier_close. NULL is allowed.
 */
NEAP_API void neap_tier_abandon(struct neap_tier *tier);

#ifdef __cplusplus
}
#endif
#endif
