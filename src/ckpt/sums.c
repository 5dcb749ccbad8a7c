#include "ckpt/sums.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "ckpt/sums_private.h"

enum tri_status tri_sums_open(struct tri_sums **out)
{
    struct tri_sums *sums = calloc(1, sizeof *sums);
    if (sums == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the hashes of files");
    *out = sums;
    return TRI_OK;
}

static void close_sum(struct tri_sum *file)
{
    if (file == NULL)
        return;
    free(file->name);
    free(file->block);
    free(file->right);
    free(file);
}

void tri_sums_close(struct tri_sums *sums)
{
    if (sums == NULL)
        return;
    for (int64_t i = 0; i < sums->count; i++)
        close_sum(sums->file[i]);
    free(sums->file);
    free(sums);
}

struct tri_sum *tri_sums_begin(struct tri_sums *sums, const char *path)
{
    if (sums == NULL)
        return NULL;
    struct tri_sum **all = realloc(sums->file, (size_t)(sums->count + 1) * sizeof *all);
    struct tri_sum *file = calloc(1, sizeof *file);
    if (all != NULL)
        sums->file = all;
    if (file != NULL)
        file->name = strdup(tri_sum_name(path));
    if (all == NULL || file == NULL || file->name == NULL) {
        close_sum(file);
        sums->failed = true;
        return NULL;
    }
    tri_fingerprinter_begin(&file->open, TRI_HASH_START);
    sums->file[sums->count++] = file;
    return file;
}

/* The block that is open ends here. When memory is out, num_blocks stays behind the bytes. */
static void end_block(struct tri_sum *file)
{
    if (file->num_blocks == file->room) {
        int64_t room = file->room == 0 ? 16 : 2 * file->room;
        uint64_t *block = realloc(file->block, (size_t)room * sizeof *block);
        if (block == NULL)
            return;
        file->block = block;
        file->room = room;
    }
    file->block[file->num_blocks++] = tri_fingerprinter_end(&file->open);
    tri_fingerprinter_begin(&file->open, TRI_HASH_START);
}

void tri_sum_add(struct tri_sum *file, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    while (file != NULL && bytes > 0) {
        size_t left = TRI_SUMS_BLOCK - (size_t)(file->bytes % TRI_SUMS_BLOCK);
        size_t piece = bytes < left ? bytes : left;
        tri_fingerprinter_add(&file->open, p, piece);
        file->bytes += piece;
        p += piece;
        bytes -= piece;
        if (piece == left)
            end_block(file);
    }
}

void tri_sums_add(struct tri_sums *sums, const char *path, const void *data, size_t bytes)
{
    tri_sum_add(tri_sums_begin(sums, path), data, bytes);
}

static json_t *hash_json(uint64_t hash)
{
    char text[TRI_SUMS_TEXT];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

static json_t *blocks_json(const struct tri_sum *file)
{
    json_t *blocks = json_array();
    for (int64_t b = 0; b < file->num_blocks; b++) {
        if (json_array_append_new(blocks, hash_json(file->block[b])) != 0) {
            json_decref(blocks);
            return NULL;
        }
    }
    return blocks;
}

static json_t *sums_json(struct tri_sums *sums)
{
    json_t *files = json_object();
    bool complete = files != NULL && !sums->failed;
    for (int64_t i = 0; i < sums->count && complete; i++) {
        struct tri_sum *file = sums->file[i];
        if (file->bytes % TRI_SUMS_BLOCK != 0)
            end_block(file);
        complete = file->num_blocks == tri_sum_blocks(file->bytes) &&
                   json_object_set_new(files, file->name,
                                       json_pack("{s:I, s:o}", "bytes", (json_int_t)file->bytes,
                                                 "blocks", blocks_json(file))) == 0;
    }
    if (!complete) {
        json_decref(files);
        return NULL;
    }
    return json_pack("{s:i, s:i, s:o, s:o}", "format", 2, "block_bytes", TRI_SUMS_BLOCK, "files",
                     files, "hash", hash_json(tri_sums_hash(sums)));
}

enum tri_status tri_sums_save(struct tri_sums *sums, const char *folder)
{
    char *path = tri_path_join(folder, TRI_SUMS_FILE);
    json_t *root = sums_json(sums);
    enum tri_status st = path != NULL && root != NULL
                             ? tri_json_save(path, root)
                             : tri_fail(TRI_NOMEM, "no memory for the hashes of %s", folder);
    json_decref(root);
    free(path);
    return st;
}
