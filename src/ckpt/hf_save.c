/* Weights, index, configuration and tokenizer of a model as a Hugging Face folder.
 *
 *   write each file under a temporary name, and sync it      any failure: all are removed
 *   rename them, weights first and config.json last
 *   remove weight files of an earlier save
 *
 * A reader that looks between the renames of a save over an older one may see both; callers that
 * care write into a new folder and rename that.
 */
#include "ckpt/hf.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "ckpt/hf_export.h"
#include "ckpt/hf_rows.h"
#include "tensor/half.h"

enum { FILE_NAME_ROOM = 64 };

struct shard {
    char name[FILE_NAME_ROOM];
    int begin, end; /* tensors of model->hf */
    struct tri_st_writer *writer;
};

struct save {
    const struct tri_model *model;
    const char *folder;
    const struct tri_hf_export *how;
    tri_rows_source *source;
    void *ctx;
    struct shard *shards;
    int num_shards;
    struct shard *shard;         /* that is written now */
    struct tri_export_set files; /* everything that is not weights */
    float *piece;                /* (tri_hf_piece_room) */
    uint16_t *half;
};

static int64_t tensor_elements(const struct tri_hf_tensor *hf)
{
    return hf->dim[0] * tri_hf_width(hf);
}

/* Split the tensors, in order, into files of at most max_shard_bytes; a larger one is alone. */
static enum tri_status plan_shards(struct save *save)
{
    const struct tri_model *model = save->model;
    save->shards = calloc((size_t)model->num_hf + 1, sizeof *save->shards);
    if (save->shards == NULL)
        return tri_fail(TRI_NOMEM, "no memory to save into %s", save->folder);
    double limit = save->how->max_shard_bytes > 0 ? save->how->max_shard_bytes : INFINITY;
    double bytes = 0;
    for (int i = 0; i < model->num_hf; i++) {
        double more =
            (double)tensor_elements(&model->hf[i]) * (double)tri_dtype_bytes(save->how->dtype);
        if (save->num_shards == 0 || (bytes > 0 && bytes + more > limit)) {
            save->shards[save->num_shards++].begin = i;
            bytes = 0;
        }
        save->shards[save->num_shards - 1].end = i + 1;
        bytes += more;
    }
    for (int s = 0; s < save->num_shards; s++) {
        struct shard *shard = &save->shards[s];
        if (save->num_shards == 1)
            snprintf(shard->name, sizeof shard->name, "model.safetensors");
        else
            snprintf(shard->name, sizeof shard->name, "model-%05d-of-%05d.safetensors", s + 1,
                     save->num_shards);
    }
    return TRI_OK;
}

static enum tri_status open_shard(struct save *save, struct shard *shard)
{
    int count = shard->end - shard->begin;
    struct tri_st_decl *decl = calloc((size_t)count, sizeof *decl);
    char *path = tri_path_join(save->folder, shard->name);
    enum tri_status st;
    if (decl == NULL || path == NULL) {
        st = tri_fail(TRI_NOMEM, "no memory to save into %s", save->folder);
        goto free_decl;
    }
    for (int i = 0; i < count; i++) {
        const struct tri_hf_tensor *hf = &save->model->hf[shard->begin + i];
        decl[i] = (struct tri_st_decl){.name = hf->name,
                                       .dtype = save->how->dtype,
                                       .num_dims = hf->num_dims,
                                       .dim = {hf->dim[0], hf->dim[1]}};
    }
    st = tri_st_writer_open_summed(path, decl, count, save->how->sums, &shard->writer);

free_decl:
    free(decl);
    free(path);
    return st;
}

static bool all_finite(const float *data, int64_t count)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++)
        bad |= (tri_float_bits(data[i]) & 0x7F800000u) == 0x7F800000u;
    return bad == 0;
}

/* Are all exponents of 16-bit numbers below the one of infinity? */
static bool all_finite_half(const uint16_t *data, int64_t count, uint16_t exponent)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++)
        bad |= (data[i] & exponent) == exponent;
    return bad == 0;
}

/* Say which element of the piece at `row` is not finite in the dtype of the export. */
static enum tri_status fail_nonfinite(const struct save *save, const struct tri_hf_tensor *hf,
                                      int64_t row, int64_t count)
{
    int64_t i = 0;
    while (i < count && isfinite(save->piece[i]))
        i++;
    if (i < count)
        return tri_fail(TRI_NONFINITE,
                        "%s is not saved: weight %s holds %g in row %" PRId64
                        ": go back to an earlier checkpoint, and look at the learning rate",
                        save->folder, hf->name, (double)save->piece[i], row + i / tri_hf_width(hf));
    for (i = 0; i < count - 1; i++)
        if (save->how->dtype == TRI_F16 ? (save->half[i] & 0x7C00u) == 0x7C00u
                                        : (save->half[i] & 0x7F80u) == 0x7F80u)
            break;
    return tri_fail(TRI_NONFINITE,
                    "%s is not saved: weight %s holds %g in row %" PRId64
                    ", which is beyond %s: save as float32",
                    save->folder, hf->name, (double)save->piece[i], row + i / tri_hf_width(hf),
                    tri_dtype_name(save->how->dtype));
}

static enum tri_status append(const struct save *save, const void *data, size_t bytes)
{
    TRI_TRY(tri_st_writer_append(save->shard->writer, data, bytes));
    tri_job_add(save->how->job, (double)bytes);
    return TRI_OK;
}

static enum tri_status write_piece(void *ctx, const struct tri_hf_tensor *hf, int64_t row,
                                   const float *piece, int64_t count)
{
    struct save *save = ctx;
    if (!all_finite(piece, count))
        return fail_nonfinite(save, hf, row, count);
    if (save->how->dtype == TRI_F32)
        return append(save, piece, (size_t)count * sizeof *piece);

    bool is_f16 = save->how->dtype == TRI_F16;
    if (is_f16)
        for (int64_t i = 0; i < count; i++)
            save->half[i] = tri_f16_from_float(piece[i]);
    else
        for (int64_t i = 0; i < count; i++)
            save->half[i] = tri_bf16_from_float(piece[i]);
    if (!all_finite_half(save->half, count, is_f16 ? 0x7C00u : 0x7F80u))
        return fail_nonfinite(save, hf, row, count);
    return append(save, save->half, (size_t)count * sizeof *save->half);
}

static enum tri_status write_weights(struct save *save)
{
    int64_t elements = tri_hf_piece_room(save->model);
    save->piece = malloc((size_t)elements * sizeof *save->piece);
    save->half = malloc((size_t)elements * sizeof *save->half);
    if (save->piece == NULL || save->half == NULL)
        return tri_fail(TRI_NOMEM, "no memory to save into %s", save->folder);
    for (int s = 0; s < save->num_shards; s++) {
        struct shard *shard = save->shard = &save->shards[s];
        TRI_TRY(open_shard(save, shard));
        for (int i = shard->begin; i < shard->end; i++)
            TRI_TRY(tri_hf_gather_pieces(save->model, i, save->source, save->ctx, save->piece,
                                         write_piece, save));
        TRI_TRY(tri_st_writer_sync(shard->writer));
    }
    return TRI_OK;
}

/* Write model.safetensors.index.json. */
static enum tri_status write_index(struct save *save)
{
    json_t *weight_map = json_object();
    int64_t bytes = 0;
    bool complete = weight_map != NULL;
    for (int s = 0; s < save->num_shards; s++) {
        for (int i = save->shards[s].begin; i < save->shards[s].end; i++) {
            const struct tri_hf_tensor *hf = &save->model->hf[i];
            complete = complete && json_object_set_new(weight_map, hf->name,
                                                       json_string(save->shards[s].name)) == 0;
            bytes += tensor_elements(hf) * (int64_t)tri_dtype_bytes(save->how->dtype);
        }
    }
    json_t *index = json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)bytes,
                              "weight_map", weight_map);
    enum tri_status st =
        complete && index != NULL
            ? tri_export_json(&save->files, save->folder, "model.safetensors.index.json", index)
            : tri_fail(TRI_NOMEM, "no memory to save into %s", save->folder);
    json_decref(index);
    return st;
}

static bool is_weight_file(const char *name)
{
    int part = 0, parts = 0, used = 0;
    if (strcmp(name, "model.safetensors") == 0 || strcmp(name, "model.safetensors.index.json") == 0)
        return true;
    return sscanf(name, "model-%5d-of-%5d.safetensors%n", &part, &parts, &used) == 2 && used > 0 &&
           name[used] == '\0';
}

static bool belongs(const struct save *save, const char *name)
{
    if (save->num_shards > 1 && strcmp(name, "model.safetensors.index.json") == 0)
        return true;
    for (int s = 0; s < save->num_shards; s++)
        if (strcmp(name, save->shards[s].name) == 0)
            return true;
    return false;
}

/* Weight files of an earlier save would be found first, or mislead people. */
static enum tri_status remove_stale(const struct save *save)
{
    DIR *dir = opendir(save->folder);
    if (dir == NULL)
        return tri_fail_errno(errno, "cannot read the folder %s", save->folder);
    enum tri_status st = TRI_OK;
    for (struct dirent *entry; st == TRI_OK && (entry = readdir(dir)) != NULL;) {
        if (!is_weight_file(entry->d_name) || belongs(save, entry->d_name))
            continue;
        if (unlinkat(dirfd(dir), entry->d_name, 0) != 0 && errno != ENOENT)
            st = tri_fail_errno(errno, "cannot remove the old %s/%s", save->folder, entry->d_name);
    }
    closedir(dir);
    return st;
}

/* Has the mapped file the tensors of the shard, as a save with the same limit of bytes would have
 * put them there? Each shard's bytes of data say where it begins and ends, and the dtype. */
static bool has_data_of(const struct tri_map *map, const struct save *save,
                        const struct shard *shard)
{
    uint64_t header = 0, data = 0;
    if (map->bytes < sizeof header)
        return false;
    for (size_t i = 0; i < sizeof header; i++)
        header |= (uint64_t)map->data[i] << (8 * i);
    for (int i = shard->begin; i < shard->end; i++)
        data += (uint64_t)tensor_elements(&save->model->hf[i]) * tri_dtype_bytes(save->how->dtype);
    uint64_t rest = map->bytes - sizeof header;
    return rest >= data && rest - data == header;
}

static enum tri_status find_shard(const struct save *save, const struct shard *shard,
                                  struct tri_sums *known)
{
    struct tri_map map;
    char *path = tri_path_join(save->folder, shard->name);
    if (path == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    enum tri_status st = tri_map_open(path, &map);
    if (st == TRI_OK) {
        st = has_data_of(&map, save, shard) ? tri_sums_check(known, path, &map, 0, map.bytes)
                                            : tri_fail(TRI_FORMAT, "%s: other tensors", path);
        tri_map_close(&map);
    }
    free(path);
    return st;
}

bool tri_hf_weights_are_saved(const struct tri_model *model, const char *folder,
                              const struct tri_hf_export *how, struct tri_sums *known)
{
    struct save save = {.model = model, .folder = folder, .how = how};
    enum tri_status st = known != NULL ? plan_shards(&save) : TRI_INVALID;
    for (int s = 0; st == TRI_OK && s < save.num_shards; s++)
        st = find_shard(&save, &save.shards[s], known);
    free(save.shards);
    if (st != TRI_OK)
        tri_error_clear();
    return st == TRI_OK;
}

static enum tri_status write_all(struct save *save)
{
    TRI_TRY(plan_shards(save));
    if (!save->how->keep_weights)
        TRI_TRY(write_weights(save));
    if (save->num_shards > 1)
        TRI_TRY(write_index(save));
    TRI_TRY(tri_export_companions(&save->files, save->model, save->folder, save->how));

    for (int s = 0; s < save->num_shards; s++) {
        struct tri_st_writer *writer = save->shards[s].writer;
        save->shards[s].writer = NULL; /* closed in every case */
        if (writer != NULL)
            TRI_TRY(tri_st_writer_commit(writer));
    }
    TRI_TRY(tri_export_commit(&save->files));
    return remove_stale(save);
}

enum tri_status tri_hf_save(const struct tri_model *model, const char *folder,
                            const struct tri_hf_export *how, tri_rows_source *source, void *ctx)
{
    if (how->dtype != TRI_F32 && how->dtype != TRI_BF16 && how->dtype != TRI_F16)
        return tri_fail(TRI_INVALID, "cannot save weights as %s: use float32, bfloat16 or float16",
                        tri_dtype_name(how->dtype));
    struct save save = {.model = model, .folder = folder, .how = how, .source = source, .ctx = ctx};
    save.files.sums = how->sums;
    enum tri_status st = write_all(&save);
    for (int s = 0; s < save.num_shards; s++)
        tri_st_writer_abandon(save.shards[s].writer);
    tri_export_abandon(&save.files);
    free(save.shards);
    free(save.piece);
    free(save.half);
    return st;
}
