/* Status codes and error texts. Every fallible call of Reef returns a reef_status; the message that
 * says what is wrong and what is allowed goes to an optional reef_error owned by the caller.
 *
 * Passing NULL instead of a handle never crashes, in any function of these headers: calls that return a status return REEF_E_ARG; those that
 * return something else return 0, NaN, NULL, false, an empty text, or -1 if that means "none"; those that return nothing do nothing.
 * The exceptions are the few functions of rule.h that rules call with what the library has given them; these say "not NULL". */
#ifndef REEF_STATUS_H
#define REEF_STATUS_H

#if defined(__GNUC__)
/* Exported by the shared library. */
#define REEF_API __attribute__((visibility("default")))
/* The compiler warns if the result is ignored. */
#define REEF_MUST_CHECK __attribute__((warn_unused_result))
#else
#define REEF_API
#define REEF_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Code, number, words. Numbers never change their meaning; new ones are added at the end. */
#define REEF_STATUS_LIST(X)                                                                                            \
    X(REEF_OK, 0, "ok")                                                                                                \
    X(REEF_E_ARG, 1, "invalid argument")                                                                               \
    X(REEF_E_NOMEM, 2, "out of memory")                                                                                \
    X(REEF_E_OVERFLOW, 3, "sizes overflow")                                                                            \
    X(REEF_E_SYNTAX, 4, "malformed specification")                                                                     \
    X(REEF_E_NAME, 5, "unknown name")                                                                                  \
    X(REEF_E_RANGE, 6, "value out of range")                                                                           \
    X(REEF_E_MALICIOUS, 7, "more malicious inputs than the rule tolerates")                                            \
    X(REEF_E_WEIGHTS, 8, "unusable weights")                                                                           \
    X(REEF_E_NONFINITE, 9, "non-finite data")                                                                          \
    X(REEF_E_NO_ROWS, 10, "no usable input")                                                                           \
    X(REEF_E_FAR, 11, "distances overflow")                                                                            \
    X(REEF_E_ORDER, 12, "call out of order")                                                                           \
    X(REEF_E_FILE, 13, "file cannot be read or written")                                                               \
    X(REEF_E_FORMAT, 14, "malformed file")                                                                             \
    X(REEF_E_GRAPH, 15, "unusable graph")                                                                              \
    X(REEF_E_ENGINE, 16, "communication failed")                                                                       \
    X(REEF_E_NO_RULE, 17, "a rule is missing")                                                                         \
    X(REEF_E_NO_LINKS, 18, "links are missing")                                                                        \
    X(REEF_E_EXISTS, 19, "something else is in its place already")

/* The outcome of a call. */
typedef enum reef_status {
#define REEF_STATUS_ENUM(code, number, text) code = (number),
    REEF_STATUS_LIST(REEF_STATUS_ENUM)
#undef REEF_STATUS_ENUM
} reef_status;

/* Filled in when a call fails; untouched when it succeeds. */
typedef struct reef_error {
    reef_status status; /* as returned */
    char text[320];     /* the message */
} reef_error;

/* A few words for a status; never NULL. */
REEF_API const char *reef_status_text(reef_status status);

/* The version of the library, for instance "0.2.0". */
REEF_API const char *reef_version(void);
/* The REEF_ABI_VERSION (version.h) with which the library was built. */
REEF_API int reef_abi_version(void);

#ifdef __cplusplus
}
#endif
#endif
