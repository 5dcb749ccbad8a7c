#include "base/clock.h"

#include <stdio.h>
#include <time.h>

double tri_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

char *tri_duration_text(double seconds, char *text)
{
    if (!(seconds >= 0) || seconds > 1e9) {
        snprintf(text, 24, "?");
        return text;
    }
    long long s = (long long)seconds;
    if (s >= 86400)
        snprintf(text, 24, "%lldd%02lldh", s / 86400, s % 86400 / 3600);
    else if (s >= 3600)
        snprintf(text, 24, "%lldh%02lldm", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        snprintf(text, 24, "%lldm%02llds", s / 60, s % 60);
    else if (s >= 10)
        snprintf(text, 24, "%llds", s);
    else
        snprintf(text, 24, "%.1fs", seconds);
    return text;
}
