/* optimizer.safetensors: moments and master weights under the names of the weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/fingerprint.h"
#include "base/minmax.h"
#include "ckpt/hf_rows.h"
#include "train/facts.h"
#include "train/state.h"

/* The flat buffers of an optimizer under the prefixes they are saved with. */
struct kind {
    const char *prefix;
    struct tri_flat flat;
};

static int num_kinds_of(const struct tri_run *run)
{
    return run->act == run->trainer->stat ? 2 : 3;
}

double tri_state_tensor_bytes(const struct tri_run *run)
{
    return (double)num_kinds_of(run) * (double)run->model->num_weights * sizeof(float);
}

static int kinds_of(struct tri_run *run, struct kind kinds[3])
{
    int count = num_kinds_of(run);
    kinds[0] = (struct kind){"m.", tri_flat_moment(run->trainer, 0)};
    kinds[1] = (struct kind){"v.", tri_flat_moment(run->trainer, 1)};
    kinds[2] = (struct kind){"master.", tri_flat_weights(run->trainer)};
    for (int k = 0; k < count; k++)
        kinds[k].flat.reader = 0;
    return count;
}

/* One file of all kinds, for its writer and for its readers. */
struct tensors {
    struct tri_run *run;
    struct kind kinds[3];
    int num_kinds;
    float *room; /* (tri_hf_piece_room) */
    struct tri_st_writer *writer;
    struct tri_job *job; /* that writing is a part of; or NULL */
    bool compare;        /* what the ranks were given */
};

static enum tri_status open_tensors(struct tri_run *run, struct tensors *out)
{
    struct tensors t = {.run = run};
    t.num_kinds = kinds_of(run, t.kinds);
    t.room = malloc((size_t)tri_hf_piece_room(run->model) * sizeof *t.room);
    if (t.room == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a piece of the optimizer");
    *out = t;
    return TRI_OK;
}

static enum tri_status write_piece(void *ctx, const struct tri_hf_tensor *hf, int64_t row,
                                   const float *piece, int64_t count)
{
    struct tensors *t = ctx;
    (void)hf;
    (void)row;
    size_t bytes = (size_t)count * sizeof *piece;
    TRI_TRY(tri_st_writer_append(t->writer, piece, bytes));
    tri_job_add(t->job, (double)bytes);
    return TRI_OK;
}

static enum tri_status write_tensors(struct tensors *t, const char *path, struct tri_st_decl *decl,
                                     char (*names)[128], struct tri_sums *sums)
{
    const struct tri_model *model = t->run->model;
    int64_t n = 0;
    for (int k = 0; k < t->num_kinds; k++)
        for (int i = 0; i < model->num_hf; i++, n++) {
            const struct tri_hf_tensor *hf = &model->hf[i];
            snprintf(names[n], sizeof names[n], "%s%s", t->kinds[k].prefix, hf->name);
            decl[n] = (struct tri_st_decl){.name = names[n],
                                           .dtype = TRI_F32,
                                           .num_dims = hf->num_dims,
                                           .dim = {hf->dim[0], hf->dim[1]}};
        }
    enum tri_status st;
    TRI_TRY(tri_st_writer_open_summed(path, decl, n, sums, &t->writer));
    for (int k = 0; k < t->num_kinds; k++)
        for (int i = 0; i < model->num_hf; i++)
            TRI_TRY_GOTO(st,
                         tri_hf_gather_pieces(model, i, tri_flat_source, &t->kinds[k].flat, t->room,
                                              write_piece, t),
                         abandon_writer);
    return tri_st_writer_commit(t->writer);
abandon_writer:
    tri_st_writer_abandon(t->writer);
    return st;
}

enum tri_status tri_state_save_tensors(struct tri_run *run, const char *folder,
                                       struct tri_sums *sums, struct tri_job *job)
{
    enum tri_status st;
    struct tensors tensors;
    TRI_TRY(open_tensors(run, &tensors));
    tensors.job = job;
    size_t most = 3 * (size_t)run->model->num_hf;
    char *path = tri_path_join(folder, "optimizer.safetensors");
    struct tri_st_decl *decl = malloc(most * sizeof *decl);
    char(*names)[128] = malloc(most * sizeof *names);
    if (path == NULL || decl == NULL || names == NULL)
        st = tri_fail(TRI_NOMEM, "no memory to save the optimizer");
    else
        st = write_tensors(&tensors, path, decl, names, sums);
    free(path);
    free(decl);
    free(names);
    free(tensors.room);
    return st;
}

enum tri_status tri_state_give_tensors(struct tri_run *run)
{
    struct kind kinds[3];
    int num_kinds = kinds_of(run, kinds);
    for (int k = 0; k < num_kinds; k++)
        TRI_TRY(tri_flat_give(&kinds[k].flat));
    return TRI_OK;
}

/* The tensor of the file, which is not aligned, to the rows that this rank holds. *hash is mixed
 * with all of it. */
static enum tri_status read_tensor(struct tensors *t, int i, const struct tri_st *file,
                                   const struct tri_st_tensor *from, struct tri_flat *to,
                                   uint64_t *hash)
{
    const struct tri_hf_tensor *hf = &t->run->model->hf[i];
    int64_t at_once = tri_hf_rows_at_once(hf, TRI_HF_PIECE);
    size_t row_bytes = (size_t)tri_hf_width(hf) * sizeof *t->room;
    for (int64_t row = 0; row < hf->dim[0]; row += at_once) {
        int64_t rows = tri_min(hf->dim[0] - row, at_once);
        TRI_TRY(tri_st_check(file, from, (size_t)row * row_bytes, (size_t)rows * row_bytes));
        memcpy(t->room, (const char *)from->data + (size_t)row * row_bytes,
               (size_t)rows * row_bytes);
        if (t->compare)
            *hash =
                tri_fingerprint(*hash, (const unsigned char *)t->room, (size_t)rows * row_bytes);
        TRI_TRY(tri_hf_scatter_rows(t->run->model, i, row, rows, t->room, tri_flat_sink, to));
    }
    return TRI_OK;
}

static enum tri_status read_tensors(struct tensors *t, const struct tri_st *file,
                                    struct tri_text *facts)
{
    for (int k = 0; k < t->num_kinds; k++)
        for (int i = 0; i < t->run->model->num_hf; i++) {
            const struct tri_hf_tensor *hf = &t->run->model->hf[i];
            char name[160];
            snprintf(name, sizeof name, "%s%s", t->kinds[k].prefix, hf->name);
            const struct tri_st_tensor *from = tri_st_find(file, name);
            size_t bytes = (size_t)(hf->dim[0] * tri_hf_width(hf)) * sizeof *t->room;
            if (from == NULL || from->dtype != TRI_F32 || from->bytes != bytes)
                return tri_fail(TRI_FORMAT,
                                "optimizer.safetensors: '%s' is missing or has another shape",
                                name);
            uint64_t hash = 0;
            TRI_TRY(read_tensor(t, i, file, from, &t->kinds[k].flat, &hash));
            tri_facts_add_hash(facts, name, hash);
        }
    if (!t->compare)
        return TRI_OK;
    return tri_facts_agree(t->run->mesh.world, "the hash of the optimizer's ",
                           "give all ranks the same checkpoint", facts);
}

enum tri_status tri_state_load_tensors(struct tri_run *run, const char *folder, bool compare)
{
    struct tensors tensors;
    struct tri_text facts = {0};
    struct tri_st *file = NULL;
    TRI_TRY(open_tensors(run, &tensors));
    tensors.compare = compare && run->mesh.world != NULL;
    char *path = tri_path_join(folder, "optimizer.safetensors");
    enum tri_status st = path == NULL ? tri_fail(TRI_NOMEM, "no memory to load the optimizer")
                                      : tri_st_open(path, &file);
    if (st == TRI_OK)
        st = read_tensors(&tensors, file, &facts);
    tri_text_free(&facts);
    tri_st_close(file);
    free(path);
    free(tensors.room);
    return st;
}
