/* cmocka with what it needs, and checks that say what they saw. */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Fails with a formatted message unless the condition holds. */
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fail_msg(__VA_ARGS__);                                                                                     \
        }                                                                                                              \
    } while (0)

/* |got - want| <= tol; NaN fails. `what` is a text. */
#define CHECK_CLOSE(got, want, tol, what)                                                                              \
    do {                                                                                                               \
        const double got_ = (got), want_ = (want), tol_ = (tol);                                                       \
        const double miss_ = got_ > want_ ? got_ - want_ : want_ - got_;                                               \
        CHECK(miss_ <= tol_, "%s: %.17g instead of %.17g (off by %g, allowed %g)", what, got_, want_, miss_, tol_);    \
    } while (0)

#define COUNT(array) ((ptrdiff_t)(sizeof(array) / sizeof((array)[0])))

/* Monte Carlo is cut down where a sanitizer or an emulator (TEST_EMULATED, from the build) makes each run ten times
 * slower: there it serves to find errors, not to measure. MONTE_CARLO(full, short) picks the number of runs. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#if defined(TEST_SANITIZED) || defined(TEST_EMULATED)
#define MONTE_CARLO(full, few) (few)
#else
#define MONTE_CARLO(full, few) (full)
#endif

/* ThreadSanitizer and qemu fail when a child of fork() starts threads. */
#if defined(__SANITIZE_THREAD__) || defined(TEST_EMULATED)
#define TEST_NO_THREADS_AFTER_FORK 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_NO_THREADS_AFTER_FORK 1
#endif
#endif

#endif
