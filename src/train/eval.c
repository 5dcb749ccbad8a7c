/* Evaluation: the same forward as training, over every sequence of data.eval_sources.
 *
 * Each sequence is evaluated once in the whole job: sequence group g of G takes sequences g, g + G,
 * g + 2G and so on, one at a time. What comes out is a sum and a count over all of them, so that
 * neither the number of ranks nor the batches of training change it. */
#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/heartbeat.h"
#include "train/run.h"
#include "train/stop.h"

/* The ranks that work on a sequence together, and how many such groups there are. */
struct group {
    int64_t index, count;
    bool speaks; /* this rank counts for its group, whose ranks all know the same sums */
};

static struct group group_of(const struct tri_run *run)
{
    const struct tri_mesh *mesh = &run->mesh;
    if (mesh->world != NULL && run->recipe->train.disable_in_eval)
        return (struct group){mesh->world->rank, mesh->world->size, true};
    return (struct group){mesh->replica, mesh->num_replicas,
                          mesh->sequence == NULL || mesh->sequence->rank == 0};
}

/* What was found, to be summed over ranks. Counts of tokens are exact below 2^53. */
struct sums {
    double loss, trained, tokens;
};

/* A signal that one rank got, or 0: all ranks break off before the same sequence. */
static enum tri_status agree_on_stop(const struct tri_run *run, int64_t *stop)
{
    *stop = tri_stop_requested();
    return run->mesh.world == NULL ? TRI_OK : tri_comm_max_int(run->mesh.world, stop, 1);
}

static enum tri_status evaluate(struct tri_run *run, const struct group *group, int64_t sequences,
                                struct tri_batch *batch, struct sums *sums, int64_t *stop)
{
    /* Everybody goes through as many rounds, for in stage 3 of ZeRO they gather the weights
     * together; a group without a sequence goes through an empty one. */
    int64_t rounds = (sequences + group->count - 1) / group->count;
    tri_work_eval(run, sequences, rounds);
    for (int64_t round = 0; round < rounds; round++) {
        double loss;
        int64_t trained;
        int64_t i = round * group->count + group->index;
        TRI_TRY(agree_on_stop(run, stop));
        if (*stop != 0) {
            tri_info("evaluation broken off at sequence %" PRId64 "/%" PRId64
                     " by %s; it has no result and is not done again",
                     round * group->count + 1, sequences, tri_stop_name((int)*stop));
            return TRI_OK;
        }
        tri_work_sequence(run, i, round);
        tri_batch_clear(batch);
        if (i < sequences)
            TRI_TRY(tri_dataset_read(run->eval, 0, i, batch));
        TRI_TRY(tri_train_eval(run->trainer, batch, &loss, &trained));
        if (group->speaks) {
            sums->loss += loss;
            sums->trained += (double)trained;
            sums->tokens += (double)batch->num_tokens;
        }
    }
    return run->mesh.world == NULL ? TRI_OK : tri_comm_sum_double(run->mesh.world, &sums->loss, 3);
}

static enum tri_status check(const struct sums *sums)
{
    if (sums->trained == 0)
        return tri_fail(TRI_INVALID, "data.eval_sources hold no trained token");
    if (!isfinite(sums->loss))
        return tri_fail(TRI_NONFINITE,
                        "the loss on data.eval_sources is %g: lower optimizer.learning_rate, or "
                        "look at the weights and the data",
                        sums->loss);
    return TRI_OK;
}

/* Training has a heartbeat already; an evaluation alone takes one of its own. */
static enum tri_status begin_heartbeat(struct tri_run *run, struct tri_heartbeat **own)
{
    if (run->heartbeat != NULL || !tri_mesh_is_first(&run->mesh))
        return TRI_OK;
    TRI_TRY(tri_heartbeat_open(1.0, own));
    run->heartbeat = *own;
    return TRI_OK;
}

static void end_heartbeat(struct tri_run *run, struct tri_heartbeat *own)
{
    if (own == NULL)
        return;
    tri_heartbeat_close(own);
    run->heartbeat = NULL;
}

enum tri_status tri_run_eval(struct tri_run *run, struct tri_eval_result *out)
{
    struct tri_eval_result r = {.sequences = tri_dataset_sequences(run->eval, 0)};
    struct sums sums = {0};
    struct group group = group_of(run);
    struct tri_heartbeat *own = NULL;
    struct tri_batch batch;
    double start = tri_clock();
    TRI_TRY(tri_batch_open(tri_dataset_max_sequence(run->eval), &batch));
    enum tri_status st = begin_heartbeat(run, &own);
    if (st == TRI_OK)
        st = evaluate(run, &group, r.sequences, &batch, &sums, &r.stop);
    tri_work_end(run);
    end_heartbeat(run, own);
    tri_batch_close(&batch);
    TRI_TRY(st);
    if (r.stop != 0) {
        *out = (struct tri_eval_result){.stop = r.stop};
        return TRI_OK;
    }
    TRI_TRY(check(&sums));
    r.loss = sums.loss / sums.trained;
    r.trained = (int64_t)sums.trained;
    r.tokens = (int64_t)sums.tokens;
    r.seconds = tri_clock() - start;
    *out = r;
    return TRI_OK;
}
