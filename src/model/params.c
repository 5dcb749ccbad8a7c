/* The parameters of a model in one flat buffer, and where the tensors of a checkpoint lie in it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/family.h"

/* Offsets are multiples of this many elements: 128 bytes even in a 16-bit type, so that vector
 * loads, cache lines and shards of the buffer meet no misaligned parameter. */
enum { OFFSET_ALIGN = 64 };

static int64_t align_up(int64_t n)
{
    return (n + OFFSET_ALIGN - 1) / OFFSET_ALIGN * OFFSET_ALIGN;
}

/* Shape of a role in this architecture. dim[1] == 0: one dimension. dim[0] == 0: absent. */
static void role_shape(const struct tri_arch *a, enum tri_role role, int64_t dim[2])
{
    int64_t q_rows = a->num_heads * a->head_dim;
    int64_t qkv_rows = q_rows + 2 * a->num_kv_heads * a->head_dim;
    int64_t in_rows = a->gated_mlp ? 2 * a->mlp_width : a->mlp_width;

    dim[0] = dim[1] = 0;
    switch (role) {
    case TRI_NORM1_W:
    case TRI_NORM2_W:
    case TRI_FINAL_NORM_W:
        dim[0] = a->hidden;
        break;
    case TRI_NORM1_B:
    case TRI_NORM2_B:
    case TRI_FINAL_NORM_B:
        dim[0] = a->norm_bias ? a->hidden : 0;
        break;
    case TRI_QKV_W:
        dim[0] = qkv_rows;
        dim[1] = a->hidden;
        break;
    case TRI_QKV_B:
        dim[0] = a->qkv_bias ? qkv_rows : 0;
        break;
    case TRI_Q_NORM:
    case TRI_K_NORM:
        dim[0] = a->qk_norm ? a->head_dim : 0;
        break;
    case TRI_ATTN_OUT_W:
        dim[0] = a->hidden;
        dim[1] = q_rows;
        break;
    case TRI_ATTN_OUT_B:
        dim[0] = a->out_bias ? a->hidden : 0;
        break;
    case TRI_MLP_IN_W:
        dim[0] = in_rows;
        dim[1] = a->hidden;
        break;
    case TRI_MLP_IN_B:
        dim[0] = a->mlp_bias ? in_rows : 0;
        break;
    case TRI_MLP_OUT_W:
        dim[0] = a->hidden;
        dim[1] = a->mlp_width;
        break;
    case TRI_MLP_OUT_B:
        dim[0] = a->mlp_bias ? a->hidden : 0;
        break;
    case TRI_EMBED:
        dim[0] = a->vocab;
        dim[1] = a->hidden;
        break;
    case TRI_HEAD_W:
        dim[0] = a->tied_embeddings ? 0 : a->vocab;
        dim[1] = a->tied_embeddings ? 0 : a->hidden;
        break;
    case TRI_NUM_ROLES:
        break;
    }
}

/* Append a parameter if the architecture has it. Returns its index, or -1. */
static int add_param(struct tri_model *m, enum tri_role role, int64_t layer)
{
    int64_t dim[2];
    role_shape(&m->arch, role, dim);
    if (dim[0] == 0)
        return -1;

    int64_t count = dim[0] * (dim[1] == 0 ? 1 : dim[1]);
    m->params[m->num_params] = (struct tri_param){
        .role = role,
        .layer = layer,
        .num_dims = dim[1] == 0 ? 1 : 2,
        .dim = {dim[0], dim[1]},
        .offset = m->num_elements,
        .decay = dim[1] != 0,
    };
    m->num_elements += align_up(count);
    m->num_weights += count;
    return m->num_params++;
}

static void end_unit(struct tri_model *m)
{
    m->unit_begin[++m->num_units] = m->num_elements;
}

static void add_params(struct tri_model *m)
{
    for (int role = 0; role < TRI_NUM_ROLES; role++)
        m->outer_param[role] = -1;

    m->outer_param[TRI_EMBED] = add_param(m, TRI_EMBED, -1);
    end_unit(m);
    for (int64_t layer = 0; layer < m->arch.num_layers; layer++) {
        for (int role = 0; role < TRI_NUM_LAYER_ROLES; role++)
            m->layer_param[layer][role] = add_param(m, (enum tri_role)role, layer);
        end_unit(m);
    }
    for (int role = TRI_EMBED + 1; role < TRI_NUM_ROLES; role++)
        m->outer_param[role] = add_param(m, (enum tri_role)role, -1);
    end_unit(m);
}

/* Our row of the first row of `map` within a fused parameter, and how many rows it has. */
static void map_rows(const struct tri_arch *a, enum tri_hf_map map, int64_t param_rows,
                     int64_t *first, int64_t *rows)
{
    int64_t q_rows = a->num_heads * a->head_dim;
    int64_t kv_rows = a->num_kv_heads * a->head_dim;

    *first = 0;
    *rows = param_rows;
    switch (map) {
    case TRI_HF_WHOLE:
    case TRI_HF_QKV_BY_HEAD:
        break;
    case TRI_HF_Q:
        *rows = q_rows;
        break;
    case TRI_HF_K:
        *first = q_rows;
        *rows = kv_rows;
        break;
    case TRI_HF_V:
        *first = q_rows + kv_rows;
        *rows = kv_rows;
        break;
    case TRI_HF_GATE:
        *rows = a->mlp_width;
        break;
    case TRI_HF_UP:
        *first = a->mlp_width;
        *rows = a->mlp_width;
        break;
    }
}

/* Append the tensor that `entry` names in this layer, if the model has its parameter. */
static void add_tensor(struct tri_model *m, const struct tri_hf_name *entry, int64_t layer)
{
    int index = layer < 0 ? m->outer_param[entry->role] : m->layer_param[layer][entry->role];
    if (index < 0)
        return;

    const struct tri_arch *a = &m->arch;
    const struct tri_param *param = &m->params[index];
    struct tri_hf_tensor *t = &m->hf[m->num_hf++];
    int64_t first, rows;
    map_rows(a, entry->map, param->dim[0], &first, &rows);

    *t = (struct tri_hf_tensor){.num_dims = param->num_dims, .dim = {rows, param->dim[1]}};
    const char *hash = strchr(entry->name, '#');
    if (hash == NULL)
        snprintf(t->name, sizeof t->name, "%s", entry->name);
    else
        snprintf(t->name, sizeof t->name, "%.*s%lld%s", (int)(hash - entry->name), entry->name,
                 (long long)layer, hash + 1);

    if (entry->map != TRI_HF_QKV_BY_HEAD) {
        t->num_parts = 1;
        t->part[0] =
            (struct tri_hf_part){.param = index, .dst_row = first, .rows = rows, .blocks = 1};
        return;
    }
    assert(a->num_heads == a->num_kv_heads);
    t->num_parts = 3;
    for (int i = 0; i < 3; i++)
        t->part[i] = (struct tri_hf_part){
            .param = index,
            .src_row = i * a->head_dim,
            .src_step = 3 * a->head_dim,
            .dst_row = i * a->num_heads * a->head_dim,
            .dst_step = a->head_dim,
            .rows = a->head_dim,
            .blocks = a->num_heads,
        };
}

/* The list has the outer tensors around the run of layer tensors, which repeats for each layer. */
static void add_tensors(struct tri_model *m, const struct tri_hf_name *names)
{
    const struct tri_hf_name *n = names;
    for (; n->name != NULL && n->role >= TRI_NUM_LAYER_ROLES; n++)
        add_tensor(m, n, -1);
    const struct tri_hf_name *end = n;
    for (int64_t layer = 0; layer < m->arch.num_layers; layer++)
        for (end = n; end->name != NULL && end->role < TRI_NUM_LAYER_ROLES; end++)
            add_tensor(m, end, layer);
    for (; end->name != NULL; end++)
        add_tensor(m, end, -1);
}

static size_t count_names(const struct tri_hf_name *names)
{
    size_t n = 0;
    while (names[n].name != NULL)
        n++;
    return n;
}

enum tri_status tri_model_build(const struct tri_arch *arch, const struct tri_family *family,
                                struct tri_model **out)
{
    size_t layers = (size_t)arch->num_layers;
    struct tri_model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the description of a model");
    m->params = calloc(layers * TRI_NUM_LAYER_ROLES + TRI_NUM_ROLES, sizeof *m->params);
    m->layer_param = calloc(layers, sizeof *m->layer_param);
    m->unit_begin = calloc(layers + 3, sizeof *m->unit_begin);
    m->hf = calloc((layers + 1) * count_names(family->names), sizeof *m->hf);
    if (m->params == NULL || m->layer_param == NULL || m->unit_begin == NULL || m->hf == NULL) {
        tri_model_close(m);
        return tri_fail(TRI_NOMEM, "no memory for the description of a model of %zu layers",
                        layers);
    }

    m->arch = *arch;
    add_params(m);
    add_tensors(m, family->names);
    *out = m;
    return TRI_OK;
}

void tri_model_close(struct tri_model *model)
{
    if (model == NULL)
        return;
    free(model->arch.window);
    free(model->params);
    free(model->layer_param);
    free(model->unit_begin);
    free(model->hf);
    free(model);
}

int tri_model_param(const struct tri_model *model, int64_t layer, enum tri_role role)
{
    if (role < TRI_NUM_LAYER_ROLES) {
        assert(layer >= 0 && layer < model->arch.num_layers);
        return model->layer_param[layer][role];
    }
    assert(role < TRI_NUM_ROLES);
    if (role == TRI_HEAD_W && model->arch.tied_embeddings)
        role = TRI_EMBED;
    return model->outer_param[role];
}

int tri_model_unit(const struct tri_model *model, int param)
{
    assert(param >= 0 && param < model->num_params);
    const struct tri_param *p = &model->params[param];
    if (p->layer >= 0)
        return 1 + (int)p->layer;
    return p->role == TRI_EMBED ? 0 : model->num_units - 1;
}

struct tri_view tri_param_view(const struct tri_model *model, int param, void *unit,
                               enum tri_dtype dtype)
{
    const struct tri_param *p = &model->params[param];
    int64_t first = p->offset - model->unit_begin[tri_model_unit(model, param)];
    void *data = (char *)unit + first * (int64_t)tri_dtype_bytes(dtype);
    if (p->num_dims == 1)
        return tri_view1(data, dtype, p->dim[0]);
    return tri_view2(data, dtype, p->dim[0], p->dim[1]);
}

double tri_model_linear_flops(const struct tri_model *model)
{
    double sum = 2.0 * (double)model->arch.vocab * (double)model->arch.hidden; /* the head */
    for (int i = 0; i < model->num_params; i++) {
        const struct tri_param *p = &model->params[i];
        if (p->layer >= 0 && p->num_dims == 2)
            sum += 2.0 * (double)p->dim[0] * (double)p->dim[1];
    }
    return sum;
}
