/* Opening and closing passes; the memory of one micro-batch. */
#include "pass/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/minmax.h"
#include "pass/slots.h"

enum tri_status tri_pass_open(const struct tri_pass_config *config, struct tri_pass **out)
{
    enum tri_status st;
    void *loss_sum;
    if (config->sequence != NULL)
        TRI_TRY(tri_heads_check(config->model->arch.num_heads, config->model->arch.num_kv_heads,
                                config->sequence->size));
    struct tri_pass *pass = calloc(1, sizeof *pass);
    if (pass == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a pass");
    const struct tri_arch *arch = &config->model->arch;
    const struct tri_pass_options *o = config->options;
    /* By name: a dry backend stands for another one, but has memory of its own. */
    bool cpu = strcmp(config->exec.backend->name, "cpu") == 0;
    double loss_bytes = 0x1p30 * (o->loss_slice_gb > 0 ? o->loss_slice_gb : cpu ? 0.0625 : 1.0);
    double row_bytes = (double)arch->vocab * (double)tri_dtype_bytes(config->act);
    int64_t loss_rows = (int64_t)fmin(loss_bytes / row_bytes, 0x1p40);
    pass->net = (struct tri_net){.exec = config->exec,
                                 .model = config->model,
                                 .act = config->act,
                                 .stat = config->stat,
                                 .weights = config->zero->unit_weights,
                                 .grads = config->zero->unit_grads,
                                 .exchange = {.exec = config->exec,
                                              .comm = config->sequence,
                                              .num_heads = arch->num_heads,
                                              .num_kv_heads = arch->num_kv_heads,
                                              .head_dim = arch->head_dim},
                                 .loss_rows = loss_rows > 0 ? loss_rows : 1,
                                 .deterministic = o->deterministic};
    pass->zero = config->zero;
    pass->remat = (enum tri_remat)o->activation_checkpointing;
    pass->chunk_size = o->chunk_size;
    pass->tiled_mlp = o->tiled_mlp_compute;
    pass->mlp_tiles = o->tiled_mlp_num_shards;
    pass->progress = config->progress;
    pass->slots = calloc((size_t)(arch->num_layers + 1) * TRI_NUM_SLOTS, sizeof *pass->slots);
    if (pass->slots == NULL) {
        st = tri_fail(TRI_NOMEM, "no memory for the slots of %lld layers",
                      (long long)arch->num_layers);
        goto free_pass;
    }
    TRI_TRY_GOTO(st, tri_store_open(config->exec, &pass->net.store), free_slots);
    TRI_TRY_GOTO(st, tri_arena_alloc(config->exec.arena, "loss sum", sizeof(double), &loss_sum),
                 close_store);
    pass->loss_sum = loss_sum;
    *out = pass;
    return TRI_OK;

close_store:
    tri_store_close(pass->net.store);
free_slots:
    free(pass->slots);
free_pass:
    free(pass);
    return st;
}

void tri_pass_close(struct tri_pass *pass)
{
    if (pass == NULL)
        return;
    tri_store_close(pass->net.store);
    free(pass->slots);
    free(pass);
}

/* Copy this rank's tokens of a host array of the whole sequence to the device, chunk by chunk. */
static enum tri_status upload_rows(struct tri_pass *pass, struct tri_view to, const void *host)
{
    struct tri_exec *x = &pass->net.exec;
    const struct tri_layout *layout = &pass->net.exchange.layout;
    size_t size = tri_dtype_bytes(to.dtype);
    for (int64_t i = 0; i < tri_pass_chunks(pass); i++) {
        struct tri_range rows = tri_pass_chunk(pass, i).rows;
        struct tri_range part = tri_layout_part(layout, i, tri_pass_rank(pass));
        TRI_TRY(x->ops->upload(x->stream, tri_view_rows(to, rows.begin, rows.count),
                               (const char *)host + (size_t)part.begin * size));
    }
    return TRI_OK;
}

/* The frequencies of the document with token t, and the first token that does not share them. Only
 * dynamic ones depend on a document: on its own length, so that it never feels its neighbours. */
static int64_t document_frequencies(const struct tri_pass *pass, int64_t *doc, int64_t t,
                                    double *inv_freq, double *scale)
{
    const struct tri_arch *arch = &pass->net.model->arch;
    const struct tri_batch *batch = pass->net.batch;
    int64_t length = arch->max_positions;
    int64_t end = batch->num_tokens;
    if (arch->rope.type == TRI_ROPE_DYNAMIC) {
        while (batch->doc_begin[*doc + 1] <= t)
            (*doc)++;
        end = batch->doc_begin[*doc + 1];
        length = batch->positions[end - 1] + 1;
    }
    tri_rope_frequencies(&arch->rope, arch->max_positions, length, inv_freq, scale);
    return end;
}

/* The rotary table of this rank's positions. */
static enum tri_status build_rope(struct tri_pass *pass, const struct tri_batch *batch)
{
    struct tri_net *net = &pass->net;
    const struct tri_arch *arch = &net->model->arch;
    enum { MAX_PAIRS = 512 };
    double inv_freq[MAX_PAIRS];
    double scale;
    void *data;
    if (arch->rope.rotary_dim / 2 > MAX_PAIRS)
        return tri_fail(TRI_UNSUPPORTED,
                        "rotary embedding over %lld elements of a head; at most %d",
                        (long long)arch->rope.rotary_dim, 2 * MAX_PAIRS);
    TRI_TRY(tri_net_scratch(net, "rotary table", net->stat, net->num_rows, arch->rope.rotary_dim,
                            &net->rope));
    size_t mark = tri_arena_mark(net->exec.arena);
    TRI_TRY(tri_arena_alloc(net->exec.arena, "positions",
                            (size_t)net->num_rows * sizeof *batch->positions, &data));
    const int64_t *positions = data;
    TRI_TRY(upload_rows(pass, tri_view1(data, TRI_I64, net->num_rows), batch->positions));
    int64_t doc = 0;
    for (int64_t i = 0; i < tri_pass_chunks(pass); i++) {
        struct tri_range part = tri_layout_part(&net->exchange.layout, i, tri_pass_rank(pass));
        int64_t row = tri_layout_rows(&net->exchange.layout, i, tri_pass_rank(pass)).begin;
        while (part.count > 0) {
            int64_t end = document_frequencies(pass, &doc, part.begin, inv_freq, &scale);
            int64_t rows = tri_min(end - part.begin, part.count);
            TRI_TRY(net->exec.ops->rope_table(net->exec.stream, tri_view_rows(net->rope, row, rows),
                                              positions + row, inv_freq, scale));
            part.begin += rows;
            part.count -= rows;
            row += rows;
        }
    }
    tri_arena_release(net->exec.arena, mark);
    return TRI_OK;
}

static enum tri_status upload_tokens(struct tri_pass *pass, const char *name, const int32_t *host,
                                     int32_t **out)
{
    struct tri_exec *x = &pass->net.exec;
    int64_t n = pass->net.num_rows;
    void *data;
    TRI_TRY(tri_arena_alloc(x->arena, name, (size_t)n * sizeof *host, &data));
    *out = data;
    return upload_rows(pass, tri_view1(data, TRI_I32, n), host);
}

enum tri_status tri_pass_begin(struct tri_pass *pass, const struct tri_batch *batch, bool training)
{
    struct tri_net *net = &pass->net;
    int64_t hidden = net->model->arch.hidden;
    struct tri_comm *sequence = net->exchange.comm;
    pass->mark = tri_arena_mark(net->exec.arena);
    pass->training = training;
    net->batch = batch;
    net->exchange.layout =
        (struct tri_layout){.tokens = batch->num_tokens,
                            .chunk = batch->chunk > 0 ? batch->chunk : pass->chunk_size,
                            .ranks = sequence != NULL ? sequence->size : 1};
    net->num_rows = tri_layout_local(&net->exchange.layout, tri_pass_rank(pass));
    net->mlp_tiles = !pass->tiled_mlp      ? 1
                     : pass->mlp_tiles > 0 ? pass->mlp_tiles
                                           : (net->num_rows + hidden - 1) / hidden;
    TRI_TRY(upload_tokens(pass, "token ids", batch->ids, &pass->ids));
    TRI_TRY(upload_tokens(pass, "labels", batch->labels, &pass->labels));
    TRI_TRY(build_rope(pass, batch));
    TRI_TRY(tri_slots_add(pass));
    if (training)
        TRI_TRY(tri_net_scratch(net, "d residual", net->act, net->num_rows, hidden, &pass->d));
    int64_t chunks = tri_pass_chunks(pass);
    pass->units = (double)(chunks * net->model->arch.num_layers) * (training ? 4 : 1);
    pass->units_done = 0;
    return TRI_OK;
}

void tri_pass_end(struct tri_pass *pass)
{
    tri_store_clear(pass->net.store);
    tri_arena_release(pass->net.exec.arena, pass->mark);
    pass->net.batch = NULL;
}

enum tri_status tri_pass_loss_reset(struct tri_pass *pass)
{
    struct tri_exec *x = &pass->net.exec;
    return x->ops->zero(x->stream, tri_view1(pass->loss_sum, TRI_F64, 1));
}

enum tri_status tri_pass_loss_read(struct tri_pass *pass, double *sum)
{
    struct tri_exec *x = &pass->net.exec;
    return x->ops->read_scalars(x->stream, sum, pass->loss_sum, 1);
}
