#include "base/job.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

static const double quiet_seconds = 2; /* shorter work says nothing */

static void show(const struct tri_job *job)
{
    char text[sizeof job->doing + 64], left[24];
    const double seconds = tri_clock() - job->begin;
    const double part = job->total > 0 ? fmin(job->done / job->total, 1) : 0;
    if (job->show == NULL && seconds < quiet_seconds)
        return;
    if (part > 0)
        snprintf(text, sizeof text, "%s: %.0f%%, %s left", job->doing, 100 * part,
                 tri_duration_text(seconds * (1 - part) / part, left));
    else
        snprintf(text, sizeof text, "%s", job->doing);
    if (job->show != NULL)
        job->show(job->ctx, text);
    else
        tri_progress("%s", text);
}

void tri_job_begin(struct tri_job *job, double total, const char *format, ...)
{
    if (job == NULL)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(job->doing, sizeof job->doing, format, args);
    va_end(args);
    job->total = total;
    job->done = 0;
    job->begin = tri_clock();
    show(job);
}

void tri_job_add(struct tri_job *job, double amount)
{
    if (job == NULL)
        return;
    job->done += amount;
    show(job);
}

void tri_job_end(struct tri_job *job)
{
    if (job != NULL && (job->show != NULL || tri_clock() - job->begin >= quiet_seconds))
        tri_progress_end();
}
