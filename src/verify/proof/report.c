#include "verify/proof/report.h"

#include "base/log.h"

void tri_report_doing(struct tri_report *r, const char *what)
{
    if (r->to != NULL)
        tri_heartbeat_say(r->heartbeat, "verify: %s", what);
}

static void quiet(struct tri_report *r)
{
    tri_heartbeat_rest(r->heartbeat);
    tri_progress_end();
}

void tri_report_splits_head(struct tri_report *r, const char *title)
{
    if (r->to != NULL)
        fprintf(r->to, "\n%-40s %12s %10s %12s %10s %10s %9s %8s\n", title, "loss", "off by",
                "grad norm", "off by", "gradients", "bound", "seconds");
}

void tri_report_values_head(struct tri_report *r, const char *title)
{
    if (r->to != NULL)
        fprintf(r->to, "\n%-58s %14s %10s %9s %8s\n", title, "value", "off by", "bound", "seconds");
}

void tri_report_reference(struct tri_report *r, const char *what,
                          const struct tri_reference *reference, double seconds)
{
    if (r->to == NULL)
        return;
    quiet(r);
    fprintf(r->to, "%-40s %12.7f %10s %12.7f %10s %10s %9s %8.2f\n", what, reference->loss, "",
            reference->grad_norm, "", "", "", seconds);
    fflush(r->to);
}

/* Count a row, and remember the first that failed. */
static void count(struct tri_report *r, const char *what, bool ok, double error, double bound)
{
    r->rows++;
    if (!ok && r->failed++ == 0)
        snprintf(r->first, sizeof r->first, "%s: off by %.2g, %.2g is allowed", what, error, bound);
}

void tri_report_split(struct tri_report *r, const char *what, const struct tri_difference *d,
                      double bound)
{
    /* Written so that a NaN fails. */
    bool loss = d->loss_error <= bound / 10;
    bool ok = loss && d->norm_error <= bound && d->grads_error <= bound;
    double worst = !loss                       ? d->loss_error
                   : !(d->norm_error <= bound) ? d->norm_error
                                               : d->grads_error;
    count(r, what, ok, worst, loss ? bound : bound / 10);
    if (r->to == NULL)
        return;
    quiet(r);
    fprintf(r->to, "%-40s %12.7f %10.1e %12.7f %10.1e %10.1e %9.1e %8.2f %s\n", what, d->loss,
            d->loss_error, d->grad_norm, d->norm_error, d->grads_error, bound, d->seconds,
            ok ? "ok" : "FAIL");
    fflush(r->to);
}

void tri_report_value(struct tri_report *r, const char *what, double value, double more_than,
                      double difference, double bound, double seconds)
{
    bool means = value > more_than;
    bool ok = means && difference <= bound;
    if (means)
        count(r, what, ok, difference, bound);
    else if (r->rows++, r->failed++ == 0)
        snprintf(r->first, sizeof r->first, "%s: %.2g, and more than %.2g is needed", what, value,
                 more_than);
    if (r->to == NULL)
        return;
    quiet(r);
    fprintf(r->to, "%-58s %14.6g %10.1e %9.1e %8.2f %s\n", what, value, difference, bound, seconds,
            ok ? "ok" : "FAIL");
    fflush(r->to);
}
