#include "model/net.h"

#include <assert.h>

static struct tri_view view_of(const struct tri_net *net, int64_t layer, enum tri_role role,
                               void *const *units, enum tri_dtype dtype)
{
    int param = tri_model_param(net->model, layer, role);
    if (param < 0)
        return tri_view_none();
    void *unit = units[tri_model_unit(net->model, param)];
    assert(unit != NULL); /* the pass has to enter a unit before its layers are called */
    return tri_param_view(net->model, param, unit, dtype);
}

struct tri_view tri_net_weight(const struct tri_net *net, int64_t layer, enum tri_role role)
{
    return view_of(net, layer, role, net->weights, net->act);
}

struct tri_view tri_net_grad(const struct tri_net *net, int64_t layer, enum tri_role role)
{
    return view_of(net, layer, role, net->grads, net->stat);
}

enum tri_status tri_net_scratch(const struct tri_net *net, const char *name, enum tri_dtype dtype,
                                int64_t rows, int64_t cols, struct tri_view *out)
{
    return tri_exec_scratch(&net->exec, name, dtype, rows, cols, out);
}

int64_t tri_net_mlp_tiles(const struct tri_net *net, int64_t rows)
{
    if (net->num_rows == 0 || net->mlp_tiles <= 1)
        return 1;
    /* More tiles than rows would only add empty ones. */
    int64_t all = net->mlp_tiles < net->num_rows ? net->mlp_tiles : net->num_rows;
    int64_t tiles = (all * rows + net->num_rows - 1) / net->num_rows;
    return tiles > 0 ? tiles : 1;
}
