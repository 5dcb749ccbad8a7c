/* The hash of what a run or a rehearsal asked of memory, in what the program printed. */
#ifndef TESTS_UNIT_VERIFY_TRACE_H
#define TESTS_UNIT_VERIFY_TRACE_H

#include "program.h"

/* The hexadecimal number behind `words`. */
static inline void read_trace(const char *text, const char *words, char trace[17])
{
    const char *at = strstr(text, words);
    if (at == NULL || sscanf(at + strlen(words), "%16[0-9a-f]", trace) != 1 || strlen(trace) != 16)
        fail_msg("no trace behind \"%s\" in: %s", words, text);
}

#endif
