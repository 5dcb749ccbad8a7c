#include "ckpt/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { DATA_ALIGN = 8, LENGTH_BYTES = 8, NAME_ROOM = 120 };

struct tri_st_writer {
    struct tri_writer *file;
    struct tri_sum *sum; /* owned by the sums of the folder; NULL: none are taken */
    char *path;
    uint64_t expected; /* bytes of data declared */
    uint64_t written;
};

static const char *format_name(enum tri_dtype dtype)
{
    static const char *const names[] = {
        [TRI_F32] = "F32", [TRI_BF16] = "BF16", [TRI_F16] = "F16", [TRI_F64] = "F64",
        [TRI_I32] = "I32", [TRI_I64] = "I64",   [TRI_U8] = "U8"};
    return names[dtype];
}

static enum tri_status write_bytes(struct tri_st_writer *writer, const void *data, size_t bytes)
{
    tri_sum_add(writer->sum, data, bytes);
    return tri_writer_write(writer->file, data, bytes);
}

/* Add one tensor to the header, at data offset *end, and move *end behind it. */
static enum tri_status declare(const char *path, json_t *header, const struct tri_st_decl *decl,
                               uint64_t *end)
{
    char name[NAME_ROOM];
    tri_st_name_text(decl->name, name, sizeof name);
    if (json_object_get(header, decl->name) != NULL)
        return tri_fail(TRI_INTERNAL, "cannot write %s: tensor %s is declared twice", path, name);
    uint64_t begin = *end, bytes = tri_dtype_bytes(decl->dtype);
    json_t *shape = json_array();
    for (int i = 0; i < decl->num_dims; i++) {
        if (json_array_append_new(shape, json_integer(decl->dim[i])) != 0) {
            json_decref(shape);
            return tri_fail(TRI_NOMEM, "no memory to write %s", path);
        }
        bytes *= (uint64_t)decl->dim[i];
    }
    json_t *entry =
        json_pack("{s:s, s:o, s:[I, I]}", "dtype", format_name(decl->dtype), "shape", shape,
                  "data_offsets", (json_int_t)begin, (json_int_t)(begin + bytes));
    if (entry == NULL || json_object_set_new(header, decl->name, entry) != 0)
        return tri_fail(TRI_NOMEM, "no memory to write %s", path);
    *end = begin + bytes;
    return TRI_OK;
}

/* The length and the header, padded with spaces. */
static enum tri_status write_header(struct tri_st_writer *writer, const json_t *header)
{
    char *text = json_dumps(header, JSON_COMPACT);
    if (text == NULL)
        return tri_fail(TRI_INVALID,
                        "cannot write %s: a tensor name is not UTF-8, or memory is out",
                        writer->path);
    size_t bytes = strlen(text);
    size_t padding = (DATA_ALIGN - bytes % DATA_ALIGN) % DATA_ALIGN;
    unsigned char length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (unsigned char)((uint64_t)(bytes + padding) >> (8 * i));
    enum tri_status st = write_bytes(writer, length, sizeof length);
    if (st == TRI_OK)
        st = write_bytes(writer, text, bytes);
    if (st == TRI_OK)
        st = write_bytes(writer, "        ", padding);
    free(text);
    return st;
}

enum tri_status tri_st_writer_open(const char *path, const struct tri_st_decl *decl, int64_t count,
                                   struct tri_st_writer **out)
{
    return tri_st_writer_open_summed(path, decl, count, NULL, out);
}

enum tri_status tri_st_writer_open_summed(const char *path, const struct tri_st_decl *decl,
                                          int64_t count, struct tri_sums *sums,
                                          struct tri_st_writer **out)
{
    enum tri_status st = TRI_OK;
    struct tri_st_writer *writer = calloc(1, sizeof *writer);
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    if (writer == NULL || header == NULL || (writer->path = strdup(path)) == NULL) {
        st = tri_fail(TRI_NOMEM, "no memory to write %s", path);
        goto abandon;
    }
    for (int64_t i = 0; i < count; i++)
        TRI_TRY_GOTO(st, declare(path, header, &decl[i], &writer->expected), abandon);
    TRI_TRY_GOTO(st, tri_writer_open(path, &writer->file), abandon);
    writer->sum = tri_sums_begin(sums, path);
    TRI_TRY_GOTO(st, write_header(writer, header), abandon);
    *out = writer;
    json_decref(header);
    return TRI_OK;

abandon:
    json_decref(header);
    tri_st_writer_abandon(writer);
    return st;
}

enum tri_status tri_st_writer_append(struct tri_st_writer *writer, const void *data, size_t bytes)
{
    if (bytes > writer->expected - writer->written)
        return tri_fail(TRI_INTERNAL,
                        "cannot write %s: %" PRIu64
                        " bytes of data were declared, and more are appended",
                        writer->path, writer->expected);
    TRI_TRY(write_bytes(writer, data, bytes));
    writer->written += bytes;
    return TRI_OK;
}

enum tri_status tri_st_writer_sync(struct tri_st_writer *writer)
{
    if (writer->written != writer->expected)
        return tri_fail(TRI_INTERNAL,
                        "cannot write %s: %" PRIu64 " bytes of data were declared, %" PRIu64
                        " were appended",
                        writer->path, writer->expected, writer->written);
    return tri_writer_sync(writer->file);
}

enum tri_status tri_st_writer_commit(struct tri_st_writer *writer)
{
    enum tri_status st = tri_st_writer_sync(writer);
    if (st == TRI_OK) {
        st = tri_writer_commit(writer->file);
        writer->file = NULL; /* closed in every case */
    }
    tri_st_writer_abandon(writer);
    return st;
}

void tri_st_writer_abandon(struct tri_st_writer *writer)
{
    if (writer == NULL)
        return;
    tri_writer_abandon(writer->file);
    free(writer->path);
    free(writer);
}
