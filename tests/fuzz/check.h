/* What must hold for every input; a harness ends with its line when it does not. */
#ifndef FUZZ_CHECK_H
#define FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s does not hold (%s)\n", __LINE__, #condition,              \
                    tri_error_text());                                                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
