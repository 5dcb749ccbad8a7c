/* A config.json from a stranger: accepted models must hold together, refusals must say why. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/check.h"
#include "model/arch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Do the parts of a checkpoint's tensor cover each of its rows once, inside the parameters? */
static void check_tensor(const struct tri_model *model, const struct tri_hf_tensor *hf)
{
    int64_t rows = 0;
    for (int p = 0; p < hf->num_parts; p++) {
        const struct tri_hf_part *part = &hf->part[p];
        if (part->param < 0 || part->param >= model->num_params || part->blocks < 1)
            abort();
        int64_t last = part->blocks - 1;
        if (part->src_row + last * part->src_step + part->rows > hf->dim[0] ||
            part->dst_row + last * part->dst_step + part->rows > model->params[part->param].dim[0])
            abort();
        rows += part->blocks * part->rows;
    }
    if (rows != hf->dim[0] || memchr(hf->name, '\0', sizeof hf->name) == NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tri_model *model = NULL;
    if (tri_model_parse("fuzz", (const char *)data, bytes, NULL, &model) == TRI_OK) {
        int64_t end = 0;
        for (int i = 0; i < model->num_params; i++) {
            const struct tri_param *p = &model->params[i];
            if (p->offset < end || p->offset % 64 != 0)
                abort();
            end = p->offset + p->dim[0] * (p->num_dims == 2 ? p->dim[1] : 1);
        }
        if (end > model->num_elements)
            abort();
        for (int i = 0; i < model->num_hf; i++)
            check_tensor(model, &model->hf[i]);
        tri_model_close(model);
    } else {
        check_error();
    }
    tri_error_clear();
    return 0;
}
