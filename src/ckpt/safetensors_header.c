/* The header of a safetensors file, which comes from a stranger: nothing in it is believed before
 * it is checked, and every refusal says which tensor and which numbers. */
#include "ckpt/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { NAME_ROOM = 120, SHAPE_ROOM = 200 };

char *tri_st_shape_text(int num_dims, const int64_t *dim, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "[");
    for (int i = 0; i < num_dims && used < room; i++)
        used +=
            (size_t)snprintf(text + used, room - used, i == 0 ? "%" PRId64 : ", %" PRId64, dim[i]);
    if (used < room)
        snprintf(text + used, room - used, "]");
    return text;
}

char *tri_st_name_text(const char *name, char *text, size_t room)
{
    size_t length = strlen(name);
    if (length < room) {
        memcpy(text, name, length + 1);
    } else {
        size_t head = (room - 4) / 2, tail = room - 4 - head;
        snprintf(text, room, "%.*s...%s", (int)head, name, name + length - tail);
    }
    for (char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            *p = '?';
    return text;
}

/* Where a failure is: file and tensor. */
struct place {
    const char *what;
    char name[NAME_ROOM];
};

static enum tri_status read_dtype(const struct place *at, const json_t *value, enum tri_dtype *out)
{
    static const struct {
        const char *name;
        enum tri_dtype dtype;
    } known[] = {{"F32", TRI_F32}, {"BF16", TRI_BF16}, {"F16", TRI_F16}, {"F64", TRI_F64},
                 {"I32", TRI_I32}, {"I64", TRI_I64},   {"U8", TRI_U8},   {"BOOL", TRI_U8}};
    const char *name = json_string_value(value);
    if (name == NULL)
        return tri_fail(TRI_FORMAT, "%s: tensor %s has no \"dtype\" text", at->what, at->name);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) == 0) {
            *out = known[i].dtype;
            return TRI_OK;
        }
    }
    char shown[NAME_ROOM];
    return tri_fail(TRI_UNSUPPORTED,
                    "%s: tensor %s has dtype \"%s\", which is not supported: convert it to F32, "
                    "F16, BF16, F64, I32, I64, U8 or BOOL",
                    at->what, at->name, tri_st_name_text(name, shown, sizeof shown));
}

/* Fill dimensions and bytes. No product may leave int64_t, not even before a dimension of 0. */
static enum tri_status read_shape(const struct place *at, const json_t *value,
                                  struct tri_st_tensor *tensor)
{
    if (!json_is_array(value))
        return tri_fail(TRI_FORMAT, "%s: tensor %s has no \"shape\" list", at->what, at->name);
    if (json_array_size(value) > TRI_ST_MAX_DIMS)
        return tri_fail(TRI_FORMAT, "%s: tensor %s has %zu dimensions, more than the %d allowed",
                        at->what, at->name, json_array_size(value), TRI_ST_MAX_DIMS);
    tensor->num_dims = (int)json_array_size(value);
    int64_t bytes = (int64_t)tri_dtype_bytes(tensor->dtype);
    for (int i = 0; i < tensor->num_dims; i++) {
        const json_t *dim = json_array_get(value, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return tri_fail(TRI_FORMAT,
                            "%s: dimension %d in the shape of tensor %s is not a number of at "
                            "least 0",
                            at->what, i, at->name);
        tensor->dim[i] = json_integer_value(dim);
        if (tensor->dim[i] > 0 && bytes > INT64_MAX / tensor->dim[i])
            return tri_fail(TRI_FORMAT, "%s: the shape of tensor %s needs more than 2^63 bytes",
                            at->what, at->name);
        bytes *= tensor->dim[i];
    }
    tensor->bytes = (size_t)bytes;
    return TRI_OK;
}

static enum tri_status read_offsets(const struct place *at, const json_t *value, size_t data_bytes,
                                    struct tri_st_tensor *tensor)
{
    const json_t *first = json_array_get(value, 0), *second = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return tri_fail(TRI_FORMAT, "%s: tensor %s has no \"data_offsets\" list of two numbers",
                        at->what, at->name);
    int64_t begin = json_integer_value(first), end = json_integer_value(second);
    if (begin < 0 || end < begin)
        return tri_fail(TRI_FORMAT,
                        "%s: tensor %s has data_offsets [%" PRId64 ", %" PRId64
                        "], which are not a range",
                        at->what, at->name, begin, end);
    if ((uint64_t)(end - begin) != tensor->bytes) {
        char shape[SHAPE_ROOM];
        return tri_fail(TRI_FORMAT,
                        "%s: tensor %s has %" PRId64 " bytes by its data_offsets, but %s of shape "
                        "%s needs %zu",
                        at->what, at->name, end - begin, tri_dtype_name(tensor->dtype),
                        tri_st_shape_text(tensor->num_dims, tensor->dim, shape, sizeof shape),
                        tensor->bytes);
    }
    if ((uint64_t)end > data_bytes)
        return tri_fail(TRI_FORMAT,
                        "%s: tensor %s ends at byte %" PRId64
                        " of the data, but the file has only %zu: it is cut short, copy or "
                        "download it again",
                        at->what, at->name, end, data_bytes);
    tensor->data = (const void *)(uintptr_t)begin;
    return TRI_OK;
}

static enum tri_status read_tensor(const char *what, const char *name, const json_t *value,
                                   size_t data_bytes, struct tri_st_tensor *out)
{
    struct place at = {.what = what};
    tri_st_name_text(name, at.name, sizeof at.name);
    if (!json_is_object(value))
        return tri_fail(TRI_FORMAT, "%s: the description of tensor %s is not an object", what,
                        at.name);
    if (json_object_size(value) > 3)
        return tri_fail(TRI_FORMAT,
                        "%s: the description of tensor %s has members other than dtype, shape and "
                        "data_offsets",
                        what, at.name);
    struct tri_st_tensor tensor = {0};
    TRI_TRY(read_dtype(&at, json_object_get(value, "dtype"), &tensor.dtype));
    TRI_TRY(read_shape(&at, json_object_get(value, "shape"), &tensor));
    TRI_TRY(read_offsets(&at, json_object_get(value, "data_offsets"), data_bytes, &tensor));
    tensor.name = strdup(name);
    if (tensor.name == NULL)
        return tri_fail(TRI_NOMEM, "%s: no memory for the tensor names", what);
    *out = tensor;
    return TRI_OK;
}

static enum tri_status check_metadata(const char *what, const json_t *metadata)
{
    if (!json_is_object(metadata))
        return tri_fail(TRI_FORMAT, "%s: __metadata__ is not an object", what);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
    {
        char shown[NAME_ROOM];
        if (!json_is_string(value))
            return tri_fail(TRI_FORMAT, "%s: __metadata__ \"%s\" is not a text", what,
                            tri_st_name_text(key, shown, sizeof shown));
    }
    return TRI_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct tri_st_tensor *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;
    if (p != q)
        return p < q ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes; /* empty tensors come first */
}

static int by_name(const void *a, const void *b)
{
    const struct tri_st_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Sorts by offset; the ranges must follow each other from byte 0 to the end of the data. */
static enum tri_status check_layout(const char *what, struct tri_st_tensor *tensors, int64_t count,
                                    size_t data_bytes)
{
    qsort(tensors, (size_t)count, sizeof *tensors, by_offset);
    size_t end = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t begin = (size_t)(uintptr_t)tensors[i].data;
        if (begin != end) {
            char name[NAME_ROOM], before[NAME_ROOM];
            tri_st_name_text(tensors[i].name, name, sizeof name);
            if (i == 0)
                return tri_fail(TRI_FORMAT,
                                "%s: the first tensor, %s, starts at byte %zu of the data, not 0",
                                what, name, begin);
            tri_st_name_text(tensors[i - 1].name, before, sizeof before);
            return tri_fail(TRI_FORMAT,
                            "%s: tensor %s starts at byte %zu of the data, but %s before it ends "
                            "at %zu: the two %s",
                            what, name, begin, before, end,
                            begin < end ? "overlap" : "leave a gap");
        }
        end += tensors[i].bytes;
    }
    if (end != data_bytes)
        return tri_fail(TRI_FORMAT,
                        "%s: the tensors end at byte %zu of the data, but the file goes on to %zu: "
                        "it is damaged, copy or download it again",
                        what, end, data_bytes);
    return TRI_OK;
}

static enum tri_status read_members(const char *what, json_t *header, size_t data_bytes,
                                    struct tri_st_tensor *tensors, int64_t *count)
{
    const char *name;
    json_t *value;
    json_object_foreach(header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            TRI_TRY(check_metadata(what, value));
            continue;
        }
        TRI_TRY(read_tensor(what, name, value, data_bytes, &tensors[*count]));
        *count += 1;
    }
    return check_layout(what, tensors, *count, data_bytes);
}

enum tri_status tri_st_parse_header(const char *what, const char *text, size_t bytes,
                                    size_t data_bytes, struct tri_st_tensor **out, int64_t *count)
{
    if (bytes == 0 || text[0] != '{')
        return tri_fail(TRI_FORMAT,
                        "%s: the header does not start with \"{\": this is not a "
                        "safetensors file, or it is damaged",
                        what);
    json_t *header = NULL;
    TRI_TRY(tri_json_parse(what, text, bytes, &header));

    enum tri_status st = TRI_OK;
    int64_t found = 0;
    struct tri_st_tensor *tensors = calloc(json_object_size(header) + 1, sizeof *tensors);
    if (tensors == NULL) {
        st = tri_fail(TRI_NOMEM, "%s: no memory for %zu tensors", what, json_object_size(header));
        goto free_header;
    }
    TRI_TRY_GOTO(st, read_members(what, header, data_bytes, tensors, &found), free_tensors);
    qsort(tensors, (size_t)found, sizeof *tensors, by_name);
    *out = tensors;
    *count = found;
    json_decref(header);
    return TRI_OK;

free_tensors:
    tri_st_free_header(tensors, found);
free_header:
    json_decref(header);
    return st;
}

void tri_st_free_header(struct tri_st_tensor *tensors, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        free((void *)(uintptr_t)tensors[i].name);
    free(tensors);
}
