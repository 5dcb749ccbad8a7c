#include "verify/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "verify/proof/proofs.h"
#include "verify/sweeper.h"

/* A folder among temporary files, made by the first rank: the others learn its name. (In a job of
 * several machines TMPDIR has to be on a disk that all of them see, as checkpoints have to be.) */
static enum tri_status make_scratch(struct tri_comm *world, char *path, size_t room)
{
    enum { LONGEST = 1024 };
    int64_t name[LONGEST] = {0};
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] == '\0')
        base = P_tmpdir;
    snprintf(path, room < LONGEST ? room : LONGEST, "%s/trireme-verify-XXXXXX", base);
    bool first = world == NULL || world->rank == 0;
    if (first && mkdtemp(path) == NULL)
        return tri_fail_errno(errno, "%s (TMPDIR names the place)", path);
    if (world == NULL)
        return TRI_OK;
    for (int i = 0; first && path[i] != '\0'; i++)
        name[i] = path[i];
    TRI_TRY(tri_comm_sum_int(world, name, LONGEST));
    for (int i = 0; i < LONGEST; i++)
        path[i] = (char)name[i];
    return TRI_OK;
}

static enum tri_status prove_files(struct tri_report *r, const struct tri_subject *s,
                                   const char *program)
{
    char folder[1024];
    struct tri_sweeper sweeper = {.stop = -1};
    TRI_TRY(make_scratch(s->world, folder, sizeof folder));
    bool owner = s->world == NULL || s->world->rank == 0;
    if (owner)
        tri_sweeper_open(folder, &sweeper);
    enum tri_status st = tri_prove_saves(r, s, folder);
    if (st == TRI_OK && program != NULL && s->world == NULL)
        st = tri_prove_kills(r, s, program, folder);
    else if (st == TRI_OK && r->to != NULL)
        fprintf(r->to, "left out: killing and resuming, which `trireme verify` without a launcher "
                       "does\n");
    if (!owner)
        return st;
    enum tri_status removed = tri_remove_folder(folder);
    tri_sweeper_close(&sweeper);
    return st != TRI_OK ? st : removed;
}

static enum tri_status prove_all(struct tri_report *r, const struct tri_subject *s,
                                 const char *program)
{
    if (r->to != NULL)
        tri_subject_print(s, r->to);
    TRI_TRY(tri_prove_splits(r, s));
    TRI_TRY(tri_prove_edges(r, s));
    TRI_TRY(tri_prove_sight(r, s));
    return prove_files(r, s, program);
}

static void print_end(const struct tri_report *r, double seconds)
{
    if (r->to == NULL)
        return;
    fprintf(r->to, "\n%d of %d ok in %.1f s\n", r->rows - r->failed, r->rows, seconds);
    fflush(r->to);
}

enum tri_status tri_verify(struct tri_recipe *recipe, struct tri_comm *world, const char *program,
                           FILE *to, struct tri_verify_result *out)
{
    struct tri_report report = {.to = to};
    struct tri_subject subject;
    double start = tri_clock();
    TRI_TRY(tri_subject_open(recipe, world, &subject));
    enum tri_status st = to != NULL ? tri_heartbeat_open(1.0, &report.heartbeat) : TRI_OK;
    if (st == TRI_OK)
        st = prove_all(&report, &subject, program);
    tri_heartbeat_close(report.heartbeat);
    tri_progress_end();
    tri_subject_close(&subject);
    TRI_TRY(st);
    print_end(&report, tri_clock() - start);
    *out = (struct tri_verify_result){.rows = report.rows, .failed = report.failed};
    snprintf(out->first, sizeof out->first, "%s", report.first);
    return TRI_OK;
}
