/* A sample's message to one rank: a head of int64, the documents of the whole sample, then each
 * field with a head of its own. Everything is a multiple of 8 bytes. Messages never leave the job,
 * so numbers are as the machine has them. */
#include <string.h>

#include "data/adapter/private.h"

enum {
    HEAD_MAGIC,
    HEAD_OWNER,
    HEAD_SAMPLE,
    HEAD_ROWS,
    HEAD_TOKENS,
    HEAD_CHUNK,
    HEAD_LOCAL,
    HEAD_TRAINED,
    HEAD_DOCS,
    HEAD_FIELDS,
    HEAD_WORDS
};

struct field_head {
    char name[TRI_FIELD_NAME];
    int64_t is_blob, dtype, num_dims, split_dim;
    int64_t dim[TRI_TENSOR_DIMS];
    int64_t bytes; /* of the data, without what fills up to 8 */
};

static const int64_t magic = 0x74726972656d6531;

static size_t filled(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* The field's tensor as `rank` gets it. */
static struct tri_tensor shape_for(const struct tri_field *f, const struct tri_envelope *e,
                                   int rank)
{
    struct tri_tensor t = f->tensor;
    if (f->split_dim >= 0)
        t.dim[f->split_dim] = tri_layout_local(&e->layout, rank);
    return t;
}

static size_t field_bytes(const struct tri_field *f, const struct tri_envelope *e, int rank)
{
    if (f->tensor.num_dims == 0)
        return f->blob_bytes;
    struct tri_tensor t = shape_for(f, e, rank);
    return (size_t)tri_tensor_count(&t) * tri_dtype_bytes(t.dtype);
}

size_t tri_message_bytes(const struct tri_prepared *p, const struct tri_envelope *e, int rank)
{
    size_t bytes = (HEAD_WORDS + (size_t)(2 * p->num_docs + 1)) * sizeof(int64_t);
    for (int i = 0; i < p->num_fields; i++)
        bytes += sizeof(struct field_head) + filled(field_bytes(&p->fields[i], e, rank));
    return bytes;
}

/* ---- writing -----------------------------------------------------------------------------------
 */

/* Whether dimensions from `d` on lie without gaps; *count elements in one index of d - 1. */
static bool is_dense(const struct tri_tensor *t, int d, int64_t *count)
{
    *count = 1;
    for (int i = t->num_dims - 1; i >= d; i--) {
        if (t->dim[i] != 1 && t->stride[i] != *count)
            return false;
        *count *= t->dim[i];
    }
    return true;
}

struct writer {
    const struct tri_tensor *t;
    const struct tri_layout *layout;
    int split_dim, rank;
    size_t size; /* of an element */
    char *to;
};

static void write_dim(struct writer *w, int d, const char *from);

/* Indices [begin, begin + count) of dimension d, and all that is inside. */
static void write_range(struct writer *w, int d, const char *from, int64_t begin, int64_t count)
{
    int64_t inner;
    from += begin * w->t->stride[d] * (int64_t)w->size;
    if (w->split_dim <= d && is_dense(w->t, d + 1, &inner) && w->t->stride[d] == inner) {
        size_t bytes = (size_t)(count * inner) * w->size;
        memcpy(w->to, from, bytes);
        w->to += bytes;
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        write_dim(w, d + 1, from);
        from += w->t->stride[d] * (int64_t)w->size;
    }
}

static void write_dim(struct writer *w, int d, const char *from)
{
    if (d == w->t->num_dims) {
        memcpy(w->to, from, w->size);
        w->to += w->size;
    } else if (d != w->split_dim) {
        write_range(w, d, from, 0, w->t->dim[d]);
    } else {
        for (int64_t c = 0; c < tri_layout_chunks(w->layout); c++) {
            struct tri_range part = tri_layout_part(w->layout, c, w->rank);
            write_range(w, d, from, part.begin, part.count);
        }
    }
}

static char *write_field(const struct tri_field *f, const struct tri_envelope *e, int rank,
                         char *to)
{
    struct tri_tensor t = shape_for(f, e, rank);
    struct field_head head = {.is_blob = t.num_dims == 0,
                              .dtype = t.dtype,
                              .num_dims = t.num_dims,
                              .split_dim = f->split_dim,
                              .bytes = (int64_t)field_bytes(f, e, rank)};
    memcpy(head.name, f->name, strlen(f->name));
    memcpy(head.dim, t.dim, sizeof head.dim);
    memcpy(to, &head, sizeof head);
    to += sizeof head;
    memset(to, 0, filled((size_t)head.bytes));
    if (head.is_blob) {
        if (head.bytes > 0)
            memcpy(to, f->blob, (size_t)head.bytes);
    } else if (head.bytes > 0) {
        struct writer w = {.t = &f->tensor,
                           .layout = &e->layout,
                           .split_dim = f->split_dim,
                           .rank = rank,
                           .size = tri_dtype_bytes(t.dtype),
                           .to = to};
        write_dim(&w, 0, f->tensor.data);
    }
    return to + filled((size_t)head.bytes);
}

void tri_message_write(const struct tri_prepared *p, const struct tri_envelope *e, int rank,
                       void *out)
{
    int64_t head[HEAD_WORDS] = {[HEAD_MAGIC] = magic,
                                [HEAD_OWNER] = e->owner,
                                [HEAD_SAMPLE] = e->sample,
                                [HEAD_ROWS] = p->rows,
                                [HEAD_TOKENS] = p->tokens,
                                [HEAD_CHUNK] = e->layout.chunk,
                                [HEAD_LOCAL] = tri_layout_local(&e->layout, rank),
                                [HEAD_TRAINED] = p->trained,
                                [HEAD_DOCS] = p->num_docs,
                                [HEAD_FIELDS] = p->num_fields};
    char *to = out;
    size_t docs = (size_t)p->num_docs * sizeof(int64_t);
    memcpy(to, head, sizeof head);
    to += sizeof head;
    memcpy(to, p->doc_begin, docs + sizeof(int64_t));
    to += docs + sizeof(int64_t);
    memcpy(to, p->doc_position, docs);
    to += docs;
    for (int i = 0; i < p->num_fields; i++)
        to = write_field(&p->fields[i], e, rank, to);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static enum tri_status torn(void)
{
    return tri_fail(TRI_INTERNAL, "a shard arrived torn, please report it");
}

static enum tri_status read_field(const char **from, const char *end, struct tri_field *out)
{
    const struct field_head *head = (const void *)*from;
    if (end - *from < (ptrdiff_t)sizeof *head || head->bytes < 0 ||
        head->bytes > end - *from - (ptrdiff_t)sizeof *head)
        return torn();
    const char *data = *from + sizeof *head;
    *from = data + filled((size_t)head->bytes);
    if (head->is_blob) {
        *out = tri_field_blob(head->name, data, (size_t)head->bytes);
        return TRI_OK;
    }
    if (head->num_dims < 1 || head->num_dims > TRI_TENSOR_DIMS)
        return torn();
    *out = (struct tri_field){.name = head->name, .split_dim = (int)head->split_dim};
    out->tensor = tri_tensor_make((void *)(uintptr_t)data, (enum tri_dtype)head->dtype,
                                  (int)head->num_dims, head->dim);
    return TRI_OK;
}

static const void *data_of(const struct tri_shard *shard, const char *name)
{
    const struct tri_field *f = tri_shard_field(shard, name);
    return f != NULL ? f->tensor.data : NULL;
}

const struct tri_field *tri_shard_field(const struct tri_shard *shard, const char *name)
{
    for (int i = 0; i < shard->num_fields; i++)
        if (strcmp(shard->fields[i].name, name) == 0)
            return &shard->fields[i];
    return NULL;
}

enum tri_status tri_message_read(const void *message, size_t bytes, struct tri_field *fields,
                                 struct tri_shard *out)
{
    const int64_t *head = message;
    const char *end = (const char *)message + bytes;
    if (bytes < HEAD_WORDS * sizeof *head || head[HEAD_MAGIC] != magic || head[HEAD_DOCS] < 1 ||
        head[HEAD_FIELDS] > TRI_SAMPLE_FIELDS ||
        (size_t)head[HEAD_DOCS] > bytes / (2 * sizeof *head))
        return torn();
    struct tri_shard shard = {.owner = (int)head[HEAD_OWNER],
                              .sample = head[HEAD_SAMPLE],
                              .shape = {head[HEAD_ROWS], head[HEAD_TOKENS], head[HEAD_CHUNK]},
                              .local = head[HEAD_LOCAL],
                              .trained = head[HEAD_TRAINED],
                              .num_docs = head[HEAD_DOCS],
                              .doc_begin = head + HEAD_WORDS,
                              .doc_position = head + HEAD_WORDS + head[HEAD_DOCS] + 1,
                              .fields = fields,
                              .num_fields = (int)head[HEAD_FIELDS]};
    const char *from = (const char *)(shard.doc_position + shard.num_docs);
    for (int i = 0; i < shard.num_fields; i++)
        TRI_TRY(read_field(&from, end, &fields[i]));
    shard.input_ids = data_of(&shard, "input_ids");
    shard.shift_labels = data_of(&shard, "shift_labels");
    shard.position_ids = data_of(&shard, "position_ids");
    for (int64_t i = 0; i < shard.shape.rows * shard.local; i++)
        shard.local_trained += shard.shift_labels[i] >= 0;
    *out = shard;
    return TRI_OK;
}
