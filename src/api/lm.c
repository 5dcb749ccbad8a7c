/* A model in somebody else's training loop: the trainer without its data and its loop. */
#include "trireme/lm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/device.h"
#include "api/lm_batch.h"
#include "base/file.h"
#include "base/hash.h"
#include "ckpt/hf.h"
#include "comm/gather.h"
#include "shard/mesh.h"
#include "train/machine.h"
#include "train/trainer.h"

struct tri_lm {
    struct tri_device *device;
    struct tri_comm *world;
    char *folder;
    struct tri_model *model;
    struct tri_trainer *trainer;
    struct tri_lm_batches batches; /* of the step at hand */
    struct tri_step_stats stats;   /* of gradients that are not spent yet; else loss is NaN */
};

static struct tri_pass_options options_of(const struct tri_lm_config *config)
{
    return (struct tri_pass_options){
        .activation_checkpointing = config->keep == TRI_LM_KEEP_INPUT       ? TRI_REMAT_FULL
                                    : config->keep == TRI_LM_KEEP_ATTENTION ? TRI_REMAT_SELECTIVE
                                                                            : TRI_REMAT_NONE,
        .tiled_mlp_compute = true,
        .tiled_mlp_num_shards = config->mlp_tiles,
        .loss_slice_gb = config->loss_gb,
        .memory_limit_gb = (double)config->memory_bytes / 0x1p30};
}

static enum tri_status open_model(struct tri_lm *lm, const char *name)
{
    char path[4096];
    if (lm->device == NULL || name == NULL)
        return tri_fail(TRI_INVALID, "a model needs a device and the name of its folder");
    TRI_TRY(tri_hf_find(name, &lm->folder));
    int n = snprintf(path, sizeof path, "%s/config.json", lm->folder);
    if (n < 0 || (size_t)n >= sizeof path)
        return tri_fail(TRI_INVALID, "the name of the model folder is too long: %.80s...", name);
    return tri_model_open(path, NULL, &lm->model);
}

static enum tri_status open_trainer(struct tri_lm *lm, const struct tri_lm_config *config)
{
    struct tri_pass_options options = options_of(config);
    struct tri_optim_options adamw = {.type = NULL};
    struct tri_trainer_config t = {.model = lm->model,
                                   .backend = lm->device->backend,
                                   .pass = &options,
                                   .gradients = !config->forward_only,
                                   .world = lm->world,
                                   .zero_stage = config->zero_stage};
    if (config->zero_stage < 0 || config->zero_stage > 3)
        return tri_fail(TRI_INVALID, "zero_stage %d: 0 to 3", config->zero_stage);
    if (config->adamw != NULL && config->forward_only)
        return tri_fail(TRI_INVALID, "a model that goes only forward has nothing to update");
    if (config->adamw != NULL) {
        adamw = (struct tri_optim_options){.weight_decay = config->adamw->weight_decay,
                                           .beta1 = config->adamw->beta1,
                                           .beta2 = config->adamw->beta2,
                                           .eps = config->adamw->eps};
        t.optimizer = &adamw;
    }
    t.sequence = config->mesh != NULL ? config->mesh->sequence : NULL;
    TRI_TRY(tri_machine_dtype(lm->device->backend, tri_dtype_name(config->dtype), &t.act));
    t.capacity = tri_machine_capacity(lm->device->backend, &options);
    return tri_trainer_open(&t, &lm->trainer);
}

static uint64_t mix(uint64_t hash, double number)
{
    return tri_hash_bytes(hash, &number, sizeof number);
}

/* What has to be equal on all ranks: names of folders may differ. */
static enum tri_status agree(const struct tri_lm *lm, const struct tri_lm_config *c)
{
    const struct tri_arch *a = &lm->model->arch;
    const int64_t whole[] = {a->vocab,        a->hidden,
                             a->num_layers,   a->num_heads,
                             a->num_kv_heads, a->head_dim,
                             a->mlp_width,    a->max_positions,
                             a->activation,   a->norm.kind,
                             a->rope.type,    a->rope.rotary_dim,
                             a->padding_row,  lm->model->num_elements,
                             c->dtype,        c->keep,
                             c->mlp_tiles,    c->zero_stage,
                             c->forward_only, c->adamw != NULL};
    uint64_t hash = tri_hash_bytes(TRI_HASH_START, whole, sizeof whole);
    hash = tri_hash_bytes(hash, a->window, (size_t)a->num_layers * sizeof *a->window);
    hash = mix(mix(mix(hash, a->norm.eps), a->rope.theta), a->rope.factor);
    hash = mix(hash, c->loss_gb);
    if (c->adamw != NULL)
        hash = mix(mix(mix(mix(hash, c->adamw->beta1), c->adamw->beta2), c->adamw->eps),
                   c->adamw->weight_decay);
    return lm->world != NULL
               ? tri_comm_agree(lm->world, "the model, or how it is trained", (int64_t)hash)
               : TRI_OK;
}

enum tri_status tri_lm_open(const struct tri_lm_config *config, struct tri_lm **out)
{
    struct tri_lm *lm = calloc(1, sizeof *lm);
    if (lm == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a model");
    lm->device = config->device;
    lm->world = config->mesh != NULL ? config->mesh->world : NULL;
    lm->stats.loss = NAN;
    enum tri_status st = tri_comm_all_well(lm->world, open_model(lm, config->model));
    if (st == TRI_OK)
        st = agree(lm, config);
    if (st == TRI_OK)
        st = tri_comm_all_well(lm->world, open_trainer(lm, config));
    if (st != TRI_OK) {
        tri_lm_close(lm);
        return st;
    }
    *out = lm;
    return TRI_OK;
}

void tri_lm_close(struct tri_lm *lm)
{
    if (lm == NULL)
        return;
    tri_lm_batches_close(&lm->batches);
    tri_trainer_close(lm->trainer);
    tri_model_close(lm->model);
    free(lm->folder);
    free(lm);
}

/* ---- weights -----------------------------------------------------------------------------------
 */

enum tri_status tri_lm_load(struct tri_lm *lm)
{
    struct tri_flat weights = tri_flat_weights(lm->trainer);
    TRI_TRY(tri_hf_load(lm->model, lm->folder, tri_flat_sink, &weights));
    return tri_trainer_weights_loaded(lm->trainer);
}

enum tri_status tri_lm_init(struct tri_lm *lm, uint64_t seed)
{
    return tri_trainer_init(lm->trainer, seed, NULL);
}

enum tri_status tri_lm_save(struct tri_lm *lm, const char *folder)
{
    struct tri_flat weights = tri_flat_weights(lm->trainer);
    struct tri_hf_export how = {.source_folder = lm->folder,
                                .dtype = lm->trainer->act == TRI_BF16 ? TRI_BF16 : TRI_F32};
    weights.reader = 0;
    if (lm->world != NULL && lm->world->rank > 0)
        return tri_flat_give(&weights);
    if (!tri_path_is_folder(folder))
        TRI_TRY(tri_make_folder(folder));
    return tri_hf_save(lm->model, folder, &how, tri_flat_source, &weights);
}

int64_t tri_lm_num_weights(const struct tri_lm *lm)
{
    return lm->model->num_weights;
}

/* ---- a step ------------------------------------------------------------------------------------
 */

enum tri_status tri_lm_add(struct tri_lm *lm, const struct tri_shard *shard)
{
    const struct tri_comm *sequence = lm->trainer->sequence;
    return tri_lm_batches_add(&lm->batches, shard, lm->model->arch.vocab,
                              sequence != NULL ? sequence->size : 1,
                              sequence != NULL ? sequence->rank : 0);
}

enum tri_status tri_lm_gradients(struct tri_lm *lm, struct tri_lm_result *out)
{
    struct tri_step_stats stats;
    struct tri_lm_batches *b = &lm->batches;
    if (lm->trainer->zero->grads == NULL)
        return tri_fail(TRI_INVALID, "this model goes only forward");
    enum tri_status st = tri_train_gradients(lm->trainer, b->list, b->count, &stats);
    b->count = 0;
    lm->stats.loss = NAN;
    TRI_TRY(st);
    lm->stats = stats;
    *out = (struct tri_lm_result){.loss = stats.loss,
                                  .grad_norm = stats.grad_norm,
                                  .tokens = stats.tokens,
                                  .trained = stats.trained};
    return TRI_OK;
}

enum tri_status tri_lm_evaluate(struct tri_lm *lm, struct tri_lm_result *out)
{
    struct tri_lm_batches *b = &lm->batches;
    struct tri_loss_sum total = {0, 0};
    struct tri_lm_result result = {.loss = 0};
    int copies = lm->trainer->sequence != NULL ? lm->trainer->sequence->size : 1;
    static const int64_t no_documents[] = {0};
    const struct tri_batch empty = {.doc_begin = (int64_t *)(uintptr_t)no_documents};
    int64_t count = b->count;
    int64_t rounds = count;
    b->count = 0;
    if (lm->world != NULL) /* replicas with fewer batches may be needed by the others */
        TRI_TRY(tri_comm_max_int(lm->world, &rounds, 1));
    for (int64_t i = 0; i < rounds; i++) {
        struct tri_loss_sum sum;
        const struct tri_batch *batch = i < count ? &b->list[i] : &empty;
        TRI_TRY(tri_train_eval(lm->trainer, batch, &sum.sum, &sum.count));
        tri_loss_add(&total, sum);
        result.tokens += batch->num_tokens;
    }
    /* Every rank of a sequence group has the sums of the group. */
    TRI_TRY(tri_loss_reduce(lm->world, &total));
    if (lm->world != NULL)
        TRI_TRY(tri_comm_sum_int(lm->world, &result.tokens, 1));
    result.loss = tri_loss_mean(total);
    result.trained = total.count / copies;
    result.tokens /= copies;
    *out = result;
    return TRI_OK;
}

enum tri_status tri_lm_update(struct tri_lm *lm, double lr, double clip)
{
    struct tri_trainer *t = lm->trainer;
    if (t->optimizer.m == NULL)
        return tri_fail(TRI_INVALID, "this model was opened without adamw: update its runs "
                                     "(tri_lm_next_run), then call tri_lm_updated");
    t->clip = clip;
    TRI_TRY(tri_train_update(t, lr, &lm->stats));
    lm->stats.loss = NAN;
    return TRI_OK;
}

bool tri_lm_next_run(const struct tri_lm *lm, int *cursor, struct tri_lm_run *run)
{
    const struct tri_zero *z = lm->trainer->zero;
    struct tri_own_run own;
    if (z->grads == NULL || !tri_partition_next_run(&z->partition, cursor, &own))
        return false;
    char *weights =
        (char *)z->weights + (size_t)tri_zero_weights_at(z, &own) * tri_dtype_bytes(z->act);
    char *grads = (char *)z->grads + (size_t)tri_zero_grads_at(z, &own) * tri_dtype_bytes(z->stat);
    run->weights = tri_tensor_make(weights, z->act, 1, &own.count);
    run->grads = tri_tensor_make(grads, z->stat, 1, &own.count);
    run->decay = own.decay;
    return true;
}

enum tri_status tri_lm_updated(struct tri_lm *lm)
{
    return tri_zero_share_weights(lm->trainer->zero);
}
