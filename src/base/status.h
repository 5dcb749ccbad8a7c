/* Failing well: the first function that knows the cause says so, its callers only pass it on. */
#ifndef TRI_BASE_STATUS_H
#define TRI_BASE_STATUS_H

#include "trireme/status.h"

/* Record a one-line description of a failure and return `status`.
 * Say what happened, where (file, line, key), and what to do next. */
enum tri_status tri_fail(enum tri_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, with ": <text of errno value>" appended. Maps ENOMEM to TRI_NOMEM, the rest to TRI_IO.
 */
enum tri_status tri_fail_errno(int errno_value, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Put "prefix: " before the current error text, so that a caller can add where. */
void tri_error_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Forget the current error text (for callers that handle a failure). */
void tri_error_clear(void);

#define TRI_TRY(expr)                                                                              \
    do {                                                                                           \
        enum tri_status tri_try_status_ = (expr);                                                  \
        if (tri_try_status_ != TRI_OK)                                                             \
            return tri_try_status_;                                                                \
    } while (0)

/* For functions that must undo something: `st` keeps the first failure. */
#define TRI_TRY_GOTO(st, expr, label)                                                              \
    do {                                                                                           \
        (st) = (expr);                                                                             \
        if ((st) != TRI_OK)                                                                        \
            goto label;                                                                            \
    } while (0)

#endif
