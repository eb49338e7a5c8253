/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h: the return codes of neap.
 *
 * Every function that can fail returns an int: 0 for success, -errno for an error of the operating
 * system, or one of the codes below. In addition, the failing thread stores one line of detail,
 * with the file, the value and the accepted values:
 *
 *     int rc = neap_plan_make(&plan, &problem, "revolve", NULL);
 *     if (rc < 0)
 *             fprintf(stderr, "%s\n", neap_detail());
 */
#ifndef NEAP_STATUS_H
#define NEAP_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NEAP_API __attribute__((visibility("default")))
#else
#define NEAP_API
#endif

/*
 * The initial values of a structure are a table of X(field, value), from which its NAME_INIT is
 * defined: in C an initializer, in C++ the value of an inline function, since C++11 to C++17 have
 * no designated initializers.
 */
#ifdef __cplusplus
#define NEAP__INIT_FIELD(field, value) fresh.field = value;
#define NEAP__INIT_FUNCTION(name, TABLE)                                                           \
	static inline struct name name##_init_()                                                   \
	{                                                                                          \
		struct name fresh = name();                                                        \
		fresh.size = static_cast<uint32_t>(sizeof fresh);                                  \
		TABLE(NEAP__INIT_FIELD)                                                            \
		return fresh;                                                                      \
	}
#define NEAP__INIT(name, ...) name##_init_()
#else
#define NEAP__INIT_FIELD(field, value) .field = value,
#define NEAP__INIT_FUNCTION(name, TABLE)
#define NEAP__INIT(name, ...)                                                                      \
	{                                                                                          \
		.size = sizeof(struct name), __VA_ARGS__                                           \
	}
#endif

/* X(name, value, text): neap's own codes, which are below any -errno. */
#define NEAP_STATUS_TABLE(X)                                                                       \
	X(NEAP_EUSAGE, -5001, "bad argument")                                                      \
	X(NEAP_EFORMAT, -5002, "malformed input")                                                  \
	X(NEAP_EINFEASIBLE, -5003, "no plan fits the budget")                                      \
	X(NEAP_EILLEGAL, -5004, "illegal schedule")                                                \
	X(NEAP_ELOST, -5005, "record is missing from a slow tier")                                 \
	X(NEAP_ESHORT, -5006, "record on a slow tier is short")                                    \
	X(NEAP_ECORRUPT, -5007, "record on a slow tier is corrupt")                                \
	X(NEAP_EMODEL, -5008, "the model reported a failure")                                      \
	X(NEAP_EOVERFLOW, -5009, "number too large")                                               \
	X(NEAP_EINTERRUPTED, -5010, "interrupted")                                                 \
	X(NEAP_EDIVERGED, -5011, "loss or gradient is not finite")                                 \
	X(NEAP_EFORKED, -5012, "belongs to the process that forked this one")

/* Error codes: NEAP_STATUS_TABLE lists the values and their texts. */
enum neap_status {
	NEAP_OK = 0,
#define NEAP_X(name, value, text) name = (value),
	NEAP_STATUS_TABLE(NEAP_X)
#undef NEAP_X
};

/* Returns the text of a code: neap's own or, for -errno, the system's. Never NULL. */
NEAP_API const char *neap_strerror(int code);

/*
 * Returns one line, without a newline, about the last failure in the calling thread; empty if there
 * was none. Valid until the next failure in that thread.
 */
NEAP_API const char *neap_detail(void);

/*
 * Sets the detail line. For callbacks of models and tiers, which call it with the reason before
 * they return a negative code. Control characters become '?'; the line is cut after 511 bytes.
 * NULL: an empty line.
 */
NEAP_API void neap_detail_set(const char *line);

#ifdef __cplusplus
}
#endif
#endif
