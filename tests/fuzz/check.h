/* What must hold for every input; a harness ends with its line when it does not. */
#ifndef FUZZ_CHECK_H
#define FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s does not hold (%s)\n", __LINE__, #condition,              \
                    tri_error_text());                                                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The error that was just returned is one line that a terminal shows as it is. */
static inline void check_error(void)
{
    CHECK(tri_error_text()[0] != '\0');
    CHECK(!strpbrk(tri_error_text(), "\n\r\033"));
}

#endif
