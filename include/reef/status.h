/* Status codes and error texts. Every fallible call of Reef returns a reef_status; the sentence that
 * says what is wrong and what is allowed goes to an optional reef_error owned by the caller. */
#ifndef REEF_STATUS_H
#define REEF_STATUS_H

#if defined(__GNUC__)
#define REEF_API __attribute__((visibility("default")))
#else
#define REEF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define REEF_STATUS_LIST(X)                                                                                            \
    X(REEF_OK, "ok")                                                                                                   \
    X(REEF_E_ARG, "invalid argument")                                                                                  \
    X(REEF_E_NOMEM, "out of memory")                                                                                   \
    X(REEF_E_OVERFLOW, "sizes overflow")                                                                               \
    X(REEF_E_SYNTAX, "malformed specification")                                                                        \
    X(REEF_E_NAME, "unknown name")                                                                                     \
    X(REEF_E_RANGE, "value out of range")                                                                              \
    X(REEF_E_LIARS, "more liars than the rule can bear")                                                               \
    X(REEF_E_WEIGHTS, "unusable weights")                                                                              \
    X(REEF_E_NONFINITE, "non-finite data")                                                                             \
    X(REEF_E_NO_ROWS, "no usable row")                                                                                 \
    X(REEF_E_FAR, "distances overflow")                                                                                \
    X(REEF_E_ORDER, "call out of order")                                                                               \
    X(REEF_E_FILE, "file cannot be read or written")                                                                   \
    X(REEF_E_FORMAT, "malformed file")                                                                                 \
    X(REEF_E_GRAPH, "unusable graph")                                                                                  \
    X(REEF_E_ENGINE, "communication failed")

typedef enum reef_status {
#define REEF_STATUS_ENUM(code, text) code,
    REEF_STATUS_LIST(REEF_STATUS_ENUM)
#undef REEF_STATUS_ENUM
} reef_status;

/* Filled in when a call fails; untouched when it succeeds. */
typedef struct reef_error {
    reef_status status;
    char text[320];
} reef_error;

/* A few words for a status; never NULL. */
REEF_API const char *reef_status_text(reef_status status);

/* The version of the library, for instance "0.1.0". */
REEF_API const char *reef_version(void);

#ifdef __cplusplus
}
#endif
#endif
