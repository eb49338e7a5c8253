/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h: what a call of neap can answer.
 *
 * Every call that can fail returns an int: 0 is success, -errno is the
 * operating system's answer, and the codes below are neap's own. Beside the
 * code, the failing thread keeps one line of detail that names the file, the
 * value and what would have been accepted:
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
 * Initial values of a structure are a table of X(field, value), from which its NAME_INIT is made:
 * in C an initializer, in C++ the value of an inline function, since C++11 to C++17 have no
 * designated initializers.
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

/* X(name, value, text): neap's own codes, below any errno. */
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

/* Text of a code: neap's own or, for -errno, the system's. Never NULL. */
NEAP_API const char *neap_strerror(int code);

/*
 * One line about the calling thread's last failure, without a newline. Empty
 * when nothing failed yet. Valid until the thread's next failing call.
 */
NEAP_API const char *neap_detail(void);

/*
 * Sets that line, for callbacks of models and tiers of one's own: called before a negative code
 * is returned, it says what went wrong. Control characters become '?', what is beyond 511 bytes
 * is cut off. NULL: an empty line.
 */
NEAP_API void neap_detail_set(const char *line);

#ifdef __cplusplus
}
#endif
#endif
