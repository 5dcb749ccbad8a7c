/* How far a long piece of work is, for people who wait for it. */
#ifndef TRI_BASE_JOB_H
#define TRI_BASE_JOB_H

/* Functions that take a `struct tri_job *` take NULL as well: nobody wants to know. */
struct tri_job {
    char doing[256];
    double total, done; /* in any unit */
    double begin;       /* clock */
    /* Who shows the text. NULL: it becomes a progress line once the work has taken two seconds. */
    void (*show)(void *ctx, const char *text);
    void *ctx;
};

/* Begin work of `total`; the format names it: "drawing weights". What shows it stays as it is. */
void tri_job_begin(struct tri_job *job, double total, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* So much more is done: shown as "drawing weights: 34%, 5s left". */
void tri_job_add(struct tri_job *job, double amount);

/* No more is shown. */
void tri_job_end(struct tri_job *job);

#endif
