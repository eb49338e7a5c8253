/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier.h: slow memory that holds records (states or tapes) by place number.
 *
 *     struct neap_tier *disk;
 *     neap_tier_open_file(&disk, "/scratch", NULL);
 *     neap_tier_format(disk, bytes_of_largest_record, number_of_places, NULL);
 *     int64_t ticket;
 *     neap_tier_put(disk, place, tag, state, bytes, &ticket);   returns at once
 *     neap_tier_wait(disk, ticket);                 the request's error, once
 *     neap_tier_close(disk);
 *
 * A record carries its tag (kind and first step), its length and an XXH3
 * checksum, all checked when it is read.
 *
 * Threads: the calls of one tier come one at a time, from any thread. A call that comes while
 * another one lasts, or while a sweep runs over the tier, in its callbacks too, answers NEAP_EUSAGE
 * and changes nothing; lend and set_patience do nothing then. A ticket may be waited for by
 * another thread than the one that asked for the transfer. Several tiers do not meet.
 * neap_tier_about, neap_tier_takes_tapes, neap_tier_describe, neap_tier_set_rates,
 * neap_tier_set_cpu and neap_tier_seconds may be called at any time. After fork, a tier belongs to
 * the process that opened it, where it goes on as before. In the child every call that answers a
 * code answers NEAP_EFORKED at once, and neap_tier_abandon frees what was inherited.
 */
#ifndef NEAP_TIER_H
#define NEAP_TIER_H

#include <neap/chain.h>

#ifdef __cplusplus
extern "C" {
#endif

struct neap_tier;

/* A piece of memory that a record of tapes is gathered from or scattered to. */
struct neap_span {
	void *at;
	uint64_t bytes;
};

/*
 * What a kind of tier provides; neap_tier_wrap makes a tier of it (other machines, devices,
 * fault injection). neap's own tiers fill the same struct. All calls for one `self` come from one
 * thread at a time, the one that runs the sweep. put and get return at once with a ticket; wait
 * delivers the request's answer exactly once. Up to 320 requests are in flight. A get takes effect
 * after the puts issued before it, and fails (NEAP_ELOST) where the place does not hold a whole
 * record of that tag: tags differ between sweeps. Calls that return int answer 0 or a negative
 * code; neap_detail_set says what went wrong. Optional slots may be NULL; the brackets say what
 * holds then.
 */
struct neap_tier_ops {
	uint32_t size; /* sizeof(struct neap_tier_ops) */
	/* Makes room for `places` records of at most `bytes` each; drops what was there. */
	int (*format)(void *self, uint64_t bytes, int64_t places, void *staging);
	int (*put)(void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes,
		int64_t *ticket);
	int (*get)(void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes,
		int64_t *ticket);
	int (*wait)(void *self, int64_t ticket);
	/* Optional [nothing]: says that the record at the place is not needed any more. */
	int (*forget)(void *self, int64_t place);
	/* Optional [0]: bytes of tier 0 needed for records of `bytes`; see format. */
	uint64_t (*staging)(void *self, uint64_t bytes);
	void (*close)(void *self);
	/*
	 * Optional, all three or none [tapes stay in tier 0]: records of tapes, each
	 * the bytes of some spans one after the other, at places of their own. They are
	 * as many bytes as were put, at most those of the format, and come back into
	 * spans that may be cut elsewhere. The spans are borrowed until the wait.
	 * format_tapes comes after format, which drops them; `staging` bytes were given
	 * to that one.
	 */
	int (*format_tapes)(void *self, uint64_t bytes, int64_t places, uint64_t staging);
	int (*put_tapes)(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
		int count, int64_t *ticket);
	int (*get_tapes)(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
		int count, int64_t *ticket);
	/*
	 * Optional, both or none [records end with the process]: for journals. sync:
	 * every put that was waited for is on the medium for good. adopt: after the
	 * formats; from now on records are of `epoch`, and those that an earlier process
	 * put under that epoch are there again, if its formats were the same. 0: nothing
	 * needs to outlive the process any more, and what is there is dropped.
	 */
	int (*sync)(void *self);
	int (*adopt)(void *self, uint64_t epoch);
	/*
	 * Optional [waits have no limit]: from now on a wait ends once no byte was moved for
	 * `seconds`; 0: never. It answers -ETIMEDOUT then: the request is over, and its memory
	 * and spans are not touched any more.
	 */
	void (*set_patience)(void *self, double seconds);
	/* Optional [0]: 1 while a request that was given up may still touch the staging. */
	int (*holds_staging)(void *self);
	/*
	 * Optional [bytes]: bytes of the capacity that a record of `bytes` takes, with all that
	 * the tier stores beside it; never 0. Called before format, too.
	 */
	uint64_t (*footprint)(void *self, uint64_t bytes);
	/*
	 * Optional, both or none [formats bring what `staging` asks for].
	 * staging_most: bytes of staging for records of `bytes` beyond which the tier gets no
	 * faster; at least what `staging` asks for. A sweep that can spare them gives as many.
	 * lend: called before format: the staging that formats bring has so many bytes from now
	 * on; 0: as many as `staging` asks for.
	 */
	uint64_t (*staging_most)(void *self, uint64_t bytes);
	void (*lend)(void *self, uint64_t bytes);
	/* Optional [0 bytes]: bytes of the tier's data that are in the page cache now. */
	int (*cached)(void *self, uint64_t *bytes);
	/*
	 * Optional [from put or get to the end of wait]: when the request waited for last was
	 * begun and done, in seconds of neap_clock (machine.h). For traces.
	 */
	void (*times)(void *self, double *start, double *end);
	/*
	 * Optional [0]: a request that is not wanted any more. 1: it was not begun and will not
	 * be made; its ticket is gone. 0: it must be waited for, as ever.
	 */
	int (*cancel)(void *self, int64_t ticket);
	/*
	 * Optional, both or none [a place for each record, as large as the largest]: records of
	 * tapes of any size. unit: bytes of the capacity that a place has. format_units: as
	 * format_tapes, for records of at most `bytes`; one takes as many places as its footprint
	 * has units, from the one on that is named.
	 */
	uint64_t (*unit)(void *self);
	int (*format_units)(void *self, uint64_t bytes, int64_t units, uint64_t staging);
	/*
	 * Optional, both or none [states are in one piece]: records of states, each the bytes of
	 * some spans one after the other, at the places of states. As put and get, which may read
	 * what put_spans wrote. The spans are borrowed until the wait.
	 */
	int (*put_spans)(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
		int count, int64_t *ticket);
	int (*get_spans)(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
		int count, int64_t *ticket);
	/*
	 * Optional, both or none [1, and a wait without a limit]. done: 1 where a wait would
	 * return at once, 0 where not. wait_for: as wait, for `seconds` at most: 1 where the
	 * request is over and its answer 0, its negative answer, or 0 where it is not over and
	 * its ticket holds.
	 */
	int (*done)(void *self, int64_t ticket);
	int (*wait_for)(void *self, int64_t ticket, double seconds);
	/*
	 * Optional [nothing is freed]: close in a child process that inherited the tier, where no
	 * thread of it runs and whose parent goes on with it. The medium stays as it is.
	 */
	void (*abandon)(void *self);
};

/*
 * Makes a tier of `ops`, which are copied. Takes `self`: neap_tier_close passes it to ops.close.
 * spec: name, capacity in bytes, rates. NEAP_EUSAGE where a slot is missing.
 */
NEAP_API int neap_tier_wrap(struct neap_tier **tier, const struct neap_tier_ops *ops,
	const struct neap_tier_spec *spec, void *self);

/* A pool of ordinary memory of at most `capacity` bytes, filled on demand. */
NEAP_API int neap_tier_open_memory(struct neap_tier **tier, uint64_t capacity);

/* How neap_tier_open_file opens its file. */
struct neap_file_options {
	uint32_t size;	     /* sizeof(struct neap_file_options) */
	uint32_t page_cache; /* 1: go through the page cache instead of O_DIRECT */
	uint32_t in_memory;  /* 1: allow a directory in memory (tmpfs) */
	uint32_t keep;	     /* 1: a file that outlives the process, for journals */
	uint64_t capacity;   /* bytes; 0: what the file system has free */
	/* With keep: what follows neap.slow in the name, such as ".3" of rank 3. NULL: nothing. */
	const char *suffix;
};

/*
 * A file in directory `dir` (or a file path, whose directory is used): unnamed,
 * private, preallocated by format, opened with O_DIRECT. "DIR+DIR..." deals records
 * out over files in several directories, each as large as the others allow; a path
 * that exists is one, whatever its name. Transfers run in the background, through
 * io_uring where it works, else a pool of threads; the environment variable NEAP_IO
 * (uring, threads, or sync: within the calls) forces one. The detail line says why a
 * directory, or NEAP_IO, is refused.
 *
 * With `keep` it is named neap.slow, carries a header and a lock and stays when the
 * process dies, until a journalled sweep (sweep.h) over it is done. A file of that name
 * that is not ours, a link, or one that another process has open is NEAP_EUSAGE.
 */
NEAP_API int neap_tier_open_file(
	struct neap_tier **tier, const char *dir, const struct neap_file_options *options);

/*
 * Opens the tiers of a list "DIR[+DIR...]|FILE|mem:SIZE[,...]", fastest first: at most
 * NEAP_TIERS_MAX; sizes take K M G T. options (may be NULL) hold for the files.
 */
NEAP_API int neap_tiers_open(struct neap_tier **tiers, int *count, const char *list,
	const struct neap_file_options *options);

/*
 * Makes room for `places` records of at most `bytes` each and drops what was
 * there; -ENOSPC where that exceeds the capacity. `staging` is aligned to 4096
 * bytes, as many as neap_tier_describe says, borrowed until the next format or
 * close; with NULL the engine takes memory of its own. A sweep that runs over the tier formats it
 * for itself: format it again before records of your own, which answer NEAP_EUSAGE otherwise.
 */
NEAP_API int neap_tier_format(
	struct neap_tier *tier, uint64_t bytes, int64_t places, void *staging);
/*
 * Says how many bytes of staging the formats from now on bring, where that is more than
 * neap_tier_describe says; with staging NULL the engine takes as many of its own. 0: the least.
 */
NEAP_API void neap_tier_lend(struct neap_tier *tier, uint64_t bytes);
/* Starts to write a record; `from` may not change until the wait. */
NEAP_API int neap_tier_put(struct neap_tier *tier, int64_t place, uint64_t tag, const void *from,
	uint64_t bytes, int64_t *ticket);
/* Starts to read a record; `into` may not be used until the wait. */
NEAP_API int neap_tier_get(struct neap_tier *tier, int64_t place, uint64_t tag, void *into,
	uint64_t bytes, int64_t *ticket);
/* Waits for a transfer and returns its result, once. */
NEAP_API int neap_tier_wait(struct neap_tier *tier, int64_t ticket);
/*
 * The same for `seconds` at most. 1: the request is over and its answer 0; 0: it is not over, and
 * the ticket holds; negative: the request's error, once, or NEAP_EUSAGE for a number that is no
 * ticket. Patience counts as in neap_tier_wait, over all waits for the request.
 */
NEAP_API int neap_tier_wait_for(struct neap_tier *tier, int64_t ticket, double seconds);
/*
 * 1 where neap_tier_wait would return at once, 0 where the transfer goes on, NEAP_EUSAGE for a
 * number that is no ticket. Never blocks, and takes no answer away. 1 of a tier of one's own that
 * cannot tell.
 */
NEAP_API int neap_tier_done(struct neap_tier *tier, int64_t ticket);
/*
 * As neap_tier_put and neap_tier_get, with a state that lies in several pieces of memory: `count`
 * spans, one after the other in the record. They and what they name are borrowed until the wait.
 * A state may come back into spans that are cut elsewhere, or in one piece. NEAP_EUSAGE from a
 * tier of one's own without put_spans and get_spans.
 */
NEAP_API int neap_tier_put_spans(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
/* Starts to read such a record. */
NEAP_API int neap_tier_get_spans(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);

/*
 * Limits waits: for a request, and those of format, sync and close for all requests. A wait ends,
 * for a request with -ETIMEDOUT, once the tier has moved no byte for `seconds`, as where a disk
 * hangs or the server of a network file system is away; a slow tier moves some. After each request
 * that is given up the next has half the time, until a byte is moved. The memory of a request that
 * was given up is not touched any more. seconds 0 or infinite, as at first: no limit. Calls of the
 * system that the tier makes on the caller's thread (NEAP_IO=sync, preallocation, fsync) have none.
 */
NEAP_API void neap_tier_set_patience(struct neap_tier *tier, double seconds);
/*
 * 1 while requests that were given up may still touch the staging, which must stay mapped; for
 * ever, where this is so when the tier is closed.
 */
NEAP_API int neap_tier_holds_staging(struct neap_tier *tier);

/*
 * Records of tapes (neap_tier_ops). takes_tapes: 1 where the tier takes them. format_tapes: makes
 * room for `places` records of at most `bytes`, after neap_tier_format, whose staging had
 * `staging` bytes (0: as many as neap_tier_describe says).
 */

/* 1 if the tier stores records of tapes (neap_tier_ops), else 0. */
NEAP_API int neap_tier_takes_tapes(const struct neap_tier *tier);
/* Makes room for records of tapes. */
NEAP_API int neap_tier_format_tapes(
	struct neap_tier *tier, uint64_t bytes, int64_t places, uint64_t staging);
/* Starts to write a record of tapes. */
NEAP_API int neap_tier_put_tapes(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
/* Starts to read a record of tapes. */
NEAP_API int neap_tier_get_tapes(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
/* Marks the record at a place as no longer needed. */
NEAP_API int neap_tier_forget(struct neap_tier *tier, int64_t place);

/*
 * What the planner needs to know: staging for records of `bytes`, capacity in
 * bytes of such records (what trailers and padding take is off it already).
 */
NEAP_API void neap_tier_describe(
	struct neap_tier *tier, uint64_t bytes, struct neap_tier_spec *spec);
/* Sets the rates the planner is told (after a measurement). */
NEAP_API void neap_tier_set_rates(
	struct neap_tier *tier, double write_rate, double read_rate, double latency);
/* Sets what transfers cost the computation beside them (cpu of struct neap_tier_spec). */
NEAP_API void neap_tier_set_cpu(
	struct neap_tier *tier, double seconds_a_byte, double seconds_a_transfer);
/*
 * Measures write and read rate with records of `bytes` for about `seconds`; sets
 * them, latency 0 (it is in the rates). Drops what the tier held: format it after.
 * Where that is of an interrupted sweep, nothing is measured and the rates stay.
 * NEAP_EINFEASIBLE where it has no room for two records.
 */
NEAP_API int neap_tier_measure(struct neap_tier *tier, uint64_t bytes, double seconds);
/* The median of several measurements, and the width of their middle half over it. */
struct neap_timing {
	double median, spread;
};

/* What a tier costs, as neap_calibrate and neap_sweep_calibrate measure it. */
struct neap_calibrated_tier {
	char about[320];
	struct neap_timing write, read; /* bytes a second, beside what a record takes anyway */
	double write_fixed, read_fixed; /* seconds that a record takes whatever its bytes */
	double cpu, cpu_fixed;		/* seconds of computing lost a byte moved, and a record */
	double slowed; /* rate while steps are computed over the rate alone, at most 1 */
	uint64_t record_bytes;
};

/* "O_DIRECT file in DIR, uring", "memory", ...: one line, owned by the tier. */
NEAP_API const char *neap_tier_about(const struct neap_tier *tier);
/*
 * Gives up what is in flight and frees the tier; in a child process as neap_tier_abandon. Sweeps
 * are freed first: while one runs over the tier, that run keeps it, and a later run answers
 * NEAP_EUSAGE.
 */
NEAP_API void neap_tier_close(struct neap_tier *tier);
/*
 * Frees what a child process has inherited of a tier: memory, mappings and descriptors. Nothing
 * is waited for, and neither the medium nor what the parent has in flight is touched. In the
 * process that opened the tier it is neap_tier_close. NULL is fine.
 */
NEAP_API void neap_tier_abandon(struct neap_tier *tier);

#ifdef __cplusplus
}
#endif
#endif
