#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trireme/trireme.h"

enum { ERROR_TEXT_BYTES = 1024 };

static _Thread_local char error_text[ERROR_TEXT_BYTES];

const char *tri_version(void)
{
    return TRI_VERSION;
}

const char *tri_status_text(enum tri_status status)
{
    switch (status) {
#define XX(name, value, text)                                                                      \
    case TRI_##name:                                                                               \
        return text;
        TRI_STATUS_MAP(XX)
#undef XX
    }
    return "unknown status";
}

const char *tri_error_text(void)
{
    return error_text;
}

void tri_error_clear(void)
{
    error_text[0] = '\0';
}

/* What an error quotes comes from files and command lines: it must not break the line, or move the
 * cursor of a terminal. */
static void keep_one_line(void)
{
    for (char *p = error_text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            *p = '?';
}

enum tri_status tri_fail(enum tri_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error_text, sizeof error_text, format, args);
    va_end(args);
    keep_one_line();
    return status;
}

enum tri_status tri_fail_errno(int errno_value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int used = vsnprintf(error_text, sizeof error_text, format, args);
    va_end(args);
    if (used >= 0 && used < ERROR_TEXT_BYTES)
        snprintf(error_text + used, sizeof error_text - (size_t)used, ": %s",
                 strerror(errno_value));
    keep_one_line();
    return errno_value == ENOMEM ? TRI_NOMEM : TRI_IO;
}

void tri_error_prefix(const char *format, ...)
{
    char old[ERROR_TEXT_BYTES];
    memcpy(old, error_text, sizeof old);
    va_list args;
    va_start(args, format);
    int used = vsnprintf(error_text, sizeof error_text, format, args);
    va_end(args);
    if (used >= 0 && used < ERROR_TEXT_BYTES)
        snprintf(error_text + used, sizeof error_text - (size_t)used, ": %.900s", old);
    keep_one_line();
}
