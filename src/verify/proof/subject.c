#include "verify/proof/subject.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "ckpt/hf.h"
#include "train/machine.h"
#include "train/memory.h"
#include "verify/proof/pieces.h"
#include "verify/proof/way.h"

/* Floating-point operations of one forward and backward that a proof may take: a second or so for
 * the reference kernels on one core, and for fast ones on two. The same on every machine, so that
 * tables compare. */
static const double exact_flops = 5e8;
static const double fast_flops = 2e10;

/* Tokens of all documents: enough for every shard, tile and chunk to be cut unevenly. */
enum { MOST_TOKENS = 320, LEAST_TOKENS = 48, MOST_LAYERS = 8, MOST_RANKS = 4 };

/* ---- layers -----------------------------------------------------------------------------------
 */

/* Two layers, and as many more as it takes to see both kinds of attention. */
static int64_t first_layers(const struct tri_arch *arch)
{
    int64_t n = 2;
    for (int64_t i = 1; i < arch->num_layers && i < MOST_LAYERS; i++)
        if ((arch->window[i] > 0) != (arch->window[0] > 0)) {
            n = i + 1 > n ? i + 1 : n;
            break;
        }
    return n < arch->num_layers ? n : arch->num_layers;
}

/* `layer_types` has a word a layer: keep the first ones. */
static enum tri_status cut_layer_types(const json_t *config, int64_t layers, json_t *overrides)
{
    const json_t *types = json_object_get(overrides, "layer_types");
    if (types == NULL)
        types = json_object_get(config, "layer_types");
    if (types == NULL)
        return TRI_OK;
    json_t *first = json_array();
    for (int64_t i = 0; i < layers && first != NULL; i++)
        if (json_array_append(first, json_array_get(types, (size_t)i)) != 0)
            return json_decref(first), tri_fail(TRI_NOMEM, "no memory for layer_types");
    return json_object_set_new(overrides, "layer_types", first) == 0
               ? TRI_OK
               : tri_fail(TRI_NOMEM, "no memory for layer_types");
}

static enum tri_status open_first_layers(struct tri_subject *s, int64_t layers)
{
    json_t *config = NULL;
    char *path = tri_path_join(s->run->model_folder, "config.json");
    s->overrides = s->run->overrides != NULL ? json_deep_copy(s->run->overrides) : json_object();
    enum tri_status st = TRI_OK;
    if (path == NULL || s->overrides == NULL)
        st = tri_fail(TRI_NOMEM, "no memory for a smaller model");
    if (st == TRI_OK && layers < s->run->model->arch.num_layers) {
        st = tri_json_load(path, &config);
        if (st == TRI_OK &&
            json_object_set_new(s->overrides, "num_hidden_layers", json_integer(layers)) != 0)
            st = tri_fail(TRI_NOMEM, "no memory for a smaller model");
        if (st == TRI_OK)
            st = cut_layer_types(config, layers, s->overrides);
    }
    if (st == TRI_OK)
        st = tri_model_open(path, s->overrides, &s->model);
    json_decref(config);
    free(path);
    return st;
}

/* ---- weights ----------------------------------------------------------------------------------
 */

/* Rows of a parameter of the whole model go to the same one of the smaller model, if it is there.
 */
static enum tri_status keep_rows(void *ctx, int param, int64_t row, int64_t rows, const float *data)
{
    struct tri_subject *s = ctx;
    const struct tri_param *from = &s->run->model->params[param];
    if (from->layer >= s->model->arch.num_layers)
        return TRI_OK;
    int to = from->layer >= 0 ? s->model->layer_param[from->layer][from->role]
                              : s->model->outer_param[from->role];
    int64_t width = tri_param_width(from);
    memcpy(s->weights + s->model->params[to].offset + row * width, data,
           (size_t)(rows * width) * sizeof *data);
    return TRI_OK;
}

/* Random weights are drawn once; every trainer gets them from here. */
static enum tri_status draw(const struct tri_subject *s, struct tri_trainer *t,
                            const struct tri_mesh *mesh, void *ctx)
{
    float *weights = ctx;
    struct tri_flat flat = tri_flat_weights(t);
    (void)mesh;
    TRI_TRY(tri_trainer_init(t, (uint64_t)s->run->recipe->train.seed, NULL));
    for (int p = 0; p < s->model->num_params; p++)
        TRI_TRY(tri_flat_source(&flat, p, 0, s->model->params[p].dim[0],
                                weights + s->model->params[p].offset));
    return TRI_OK;
}

static enum tri_status load_weights(struct tri_subject *s)
{
    float *weights = calloc((size_t)s->model->num_elements, sizeof *weights);
    if (weights == NULL)
        return tri_fail(TRI_NOMEM, "no memory for %s of weights",
                        tri_bytes(4.0 * (double)s->model->num_elements).s);
    s->is_random = strcmp(s->run->recipe->model.init, "random") == 0;
    if (!s->is_random) {
        s->weights = weights;
        tri_progress("verify: reading weights from %s", s->run->model_folder);
        return tri_hf_load(s->run->model, s->run->model_folder, keep_rows, s);
    }
    struct tri_way plain = tri_way_plain();
    struct tri_way_use use = {.act = s->run_act};
    enum tri_status st = tri_way_run(s, &plain, &use, draw, weights);
    s->weights = weights; /* now they are there for others */
    return st;
}

enum tri_status tri_subject_weights(const struct tri_subject *s, struct tri_trainer *trainer)
{
    if (s->weights == NULL)
        return TRI_OK;
    struct tri_flat flat = tri_flat_weights(trainer);
    for (int p = 0; p < s->model->num_params; p++)
        TRI_TRY(tri_flat_sink(&flat, p, 0, s->model->params[p].dim[0],
                              s->weights + s->model->params[p].offset));
    return tri_trainer_weights_loaded(trainer);
}

/* ---- size -------------------------------------------------------------------------------------
 */

/* Operations of forward and backward for a token, attention aside: it is nothing at these lengths.
 */
static double token_flops(const struct tri_model *model)
{
    const struct tri_arch *a = &model->arch;
    double embedding = (double)a->vocab * (double)a->hidden;
    return 6.0 * ((double)model->num_weights - (a->tied_embeddings ? 0.0 : embedding));
}

static int64_t tokens_for(double flops, const struct tri_model *model)
{
    double tokens = flops / token_flops(model);
    return tokens > MOST_TOKENS ? MOST_TOKENS : tokens > 0 ? (int64_t)tokens : 0;
}

/* Bytes that a rank takes: with gradients in stage 0 of ZeRO, or alone with an optimizer. */
static enum tri_status count_bytes(const struct tri_subject *s, size_t *split, size_t *alone,
                                   size_t *capacity)
{
    const struct tri_recipe *r = s->run->recipe;
    struct tri_backend *backend = NULL;
    struct tri_memory_plan plans[2];
    TRI_TRY(tri_machine_open(&r->pass, &backend));
    struct tri_trainer_config config = {
        .model = s->model, .backend = backend, .act = s->act, .pass = &r->pass, .gradients = true};
    enum tri_status st = tri_memory_count(&config, s->tokens, 1, &plans[0]);
    config.act = s->run_act;
    config.optimizer = &r->optimizer;
    if (st == TRI_OK)
        st = tri_memory_count(&config, s->tokens, 1, &plans[1]);
    *capacity = tri_machine_capacity(backend, &r->pass);
    tri_machine_close(backend);
    TRI_TRY(st);
    *split = plans[0].total;
    *alone = plans[1].total;
    return TRI_OK;
}

/* How many ranks there is memory for. Beside them every process holds the weights, and the
 * gradients of the plainest way, in host memory. */
static enum tri_status count_ranks(struct tri_subject *s)
{
    size_t split, alone, capacity;
    size_t held = (size_t)s->model->num_elements * (sizeof(float) + sizeof(double));
    size_t processes = s->world != NULL ? (size_t)s->world->size : 1;
    TRI_TRY(count_bytes(s, &split, &alone, &capacity));
    size_t share = s->cuda ? capacity : capacity / processes;
    size_t room = s->cuda ? share : share > held ? share - held : 0;
    if (room < split || room < alone)
        return tri_fail(
            TRI_NOMEM,
            "verify: %" PRId64 " layers take %s and %s are available: use a machine "
            "with more memory, or verify a smaller model of this family",
            s->model->arch.num_layers,
            tri_bytes((double)((split > alone ? split : alone) + (s->cuda ? 0 : held))).s,
            tri_bytes((double)share).s);
    s->max_ranks = room / split < MOST_RANKS ? (int)(room / split) : MOST_RANKS;
    if (s->cuda)
        s->max_ranks = 1; /* threads would share the card; processes come as `world` */
    if (s->world != NULL)
        s->max_ranks = s->world->size;
    return TRI_OK;
}

/* Where two layers or more do not fit, one fewer may. */
static enum tri_status fit(struct tri_subject *s)
{
    for (;;) {
        enum tri_status st = count_ranks(s);
        int64_t short_of = st == TRI_NOMEM; /* ranks of one job take the same layers */
        if (st != TRI_OK && st != TRI_NOMEM)
            return st;
        if (s->world != NULL)
            TRI_TRY(tri_comm_max_int(s->world, &short_of, 1));
        int64_t layers = s->model->arch.num_layers;
        if (short_of == 0 || layers == 1)
            return st;
        tri_model_close(s->model);
        json_decref(s->overrides);
        s->model = NULL;
        s->overrides = NULL;
        TRI_TRY(open_first_layers(s, layers - 1));
    }
}

static enum tri_status shrink(struct tri_subject *s)
{
    const struct tri_recipe *r = s->run->recipe;
    struct tri_backend *backend = NULL;
    TRI_TRY(tri_machine_open(&r->pass, &backend));
    enum tri_status st = tri_machine_dtype(backend, r->model.dtype, &s->run_act);
    s->cuda = strcmp(backend->name, "cuda") == 0;
    tri_machine_close(backend);
    TRI_TRY(st);
    TRI_TRY(open_first_layers(s, first_layers(&s->run->model->arch)));
    int64_t tokens = tokens_for(exact_flops, s->model);
    s->act = s->cuda || tokens < LEAST_TOKENS ? s->run_act : TRI_F64;
    if (s->run_act == TRI_F64) /* nobody trains in it */
        s->run_act = TRI_F32;
    if (s->act != TRI_F64)
        tokens = tokens_for(fast_flops, s->model);
    return tri_pieces_take(s, tokens < LEAST_TOKENS ? LEAST_TOKENS : tokens);
}

enum tri_status tri_subject_open(struct tri_recipe *recipe, struct tri_comm *world,
                                 struct tri_subject *out)
{
    struct tri_subject s = {.world = world};
    TRI_TRY(tri_run_open_data(recipe, &s.run));
    enum tri_status st = shrink(&s);
    if (st == TRI_OK)
        st = fit(&s);
    if (st == TRI_OK)
        st = load_weights(&s);
    if (st != TRI_OK) {
        tri_subject_close(&s);
        return st;
    }
    *out = s;
    return TRI_OK;
}

void tri_subject_close(struct tri_subject *s)
{
    for (int i = 0; i < TRI_SUBJECT_DOCS; i++)
        tri_batch_close(&s->docs[i]);
    free(s->weights);
    tri_model_close(s->model);
    json_decref(s->overrides);
    tri_run_close(s->run);
    memset(s, 0, sizeof *s);
}

void tri_subject_print(const struct tri_subject *s, FILE *to)
{
    const struct tri_arch *whole = &s->run->model->arch;
    fprintf(to, "%s: %s, %" PRId64 " of %" PRId64 " layers, %s weights\n", s->run->recipe->path,
            whole->family, s->model->arch.num_layers, whole->num_layers,
            s->is_random ? "random" : "its own");
    fprintf(to, "  %" PRId64 " tokens of %d documents:", s->tokens, TRI_SUBJECT_DOCS);
    for (int i = 0; i < TRI_SUBJECT_DOCS; i++)
        fprintf(to, "%s %" PRId64 " (%" PRId64 " trained)", i > 0 ? "," : "", s->docs[i].num_tokens,
                s->docs[i].num_trained);
    if (s->shortened > 0)
        fprintf(to, "; %" PRId64 " of them shortened", s->shortened);
    fprintf(to, "\n  computed in %s", tri_dtype_name(s->act));
    fprintf(to, s->act == TRI_F64 ? " by the reference kernels, so that rounding hides nothing\n"
                                  : ": bounds allow for its rounding, see `trireme help verify`\n");
    if (s->max_ranks == 1)
        fprintf(to, "  one rank, so ranks and ZeRO are not verified: %s\n",
                s->cuda ? "take more cards, or --backend cpu, where they are threads"
                        : "there is no memory for more");
}
