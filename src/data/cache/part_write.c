#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/cache/part_private.h"

enum { RANGE_TOKENS = TRI_PART_BLOCK }; /* a text is encoded and written piece by piece */

struct tri_part_writer {
    struct tri_writer *writer;
    uint64_t bytes;
    struct tri_cache_entry *entries;
    int64_t count, capacity;
    uint64_t *hashes; /* of the blocks of the sample that is being written */
    int64_t hashes_room;
    int32_t ids[RANGE_TOKENS], labels[RANGE_TOKENS];
    int64_t positions[RANGE_TOKENS];
};

static enum tri_status put(struct tri_part_writer *part, const void *data, size_t bytes)
{
    TRI_TRY(tri_writer_write(part->writer, data, bytes));
    part->bytes += bytes;
    return TRI_OK;
}

static enum tri_status pad(struct tri_part_writer *part)
{
    return put(part, "\0\0\0\0\0\0\0", tri_part_padding(part->bytes));
}

enum tri_status tri_part_create(const char *path, uint64_t key, struct tri_part_writer **out)
{
    const struct tri_part_header header = {TRI_PART_MAGIC, TRI_CACHE_VERSION, key};
    struct tri_part_writer *part = malloc(sizeof *part);
    if (!part)
        return tri_fail(TRI_NOMEM, "no memory to write %s", path);
    part->writer = NULL;
    part->entries = NULL;
    part->hashes = NULL;
    part->hashes_room = 0;
    part->bytes = 0;
    part->count = part->capacity = 0;
    enum tri_status st = tri_writer_open(path, &part->writer);
    if (st == TRI_OK)
        st = put(part, &header, sizeof header);
    if (st != TRI_OK) {
        tri_part_abandon(part);
        return st;
    }
    *out = part;
    return TRI_OK;
}

static enum tri_status put_text(struct tri_part_writer *part, const struct tri_sample *sample)
{
    for (int64_t first = 0; first < sample->tokens; first += RANGE_TOKENS) {
        const int64_t left = sample->tokens - first;
        const int64_t count = left < RANGE_TOKENS ? left : RANGE_TOKENS;
        TRI_TRY(tri_sample_take(sample, first, count, part->ids, part->labels, part->positions));
        part->hashes[first / TRI_PART_BLOCK] = tri_part_block_hash(part->ids, NULL, NULL, 0, count);
        TRI_TRY(put(part, part->ids, (size_t)count * sizeof *part->ids));
    }
    return pad(part);
}

static enum tri_status put_tokens(struct tri_part_writer *part, const struct tri_sample *sample)
{
    const size_t count = (size_t)sample->tokens;
    for (int64_t first = 0; first < sample->tokens; first += TRI_PART_BLOCK) {
        const int64_t left = sample->tokens - first;
        part->hashes[first / TRI_PART_BLOCK] =
            tri_part_block_hash(sample->ids, sample->labels, sample->begins, first,
                                left < TRI_PART_BLOCK ? left : TRI_PART_BLOCK);
    }
    TRI_TRY(put(part, sample->ids, count * sizeof *sample->ids));
    TRI_TRY(pad(part));
    if (sample->labels) {
        TRI_TRY(put(part, sample->labels, count * sizeof *sample->labels));
        TRI_TRY(pad(part));
    }
    if (sample->begins) {
        TRI_TRY(put(part, sample->begins, count * sizeof *sample->begins));
        TRI_TRY(pad(part));
    }
    return TRI_OK;
}

/* Room for an entry, and for the hashes of so many blocks. */
static enum tri_status make_room(struct tri_part_writer *part, int64_t blocks)
{
    if (part->hashes_room < blocks) {
        uint64_t *hashes = realloc(part->hashes, (size_t)blocks * sizeof *hashes);
        if (!hashes)
            return tri_fail(TRI_NOMEM, "no memory for the hashes of a sample");
        part->hashes = hashes;
        part->hashes_room = blocks;
    }
    if (part->count == part->capacity) {
        const int64_t capacity = part->capacity ? 2 * part->capacity : 1024;
        struct tri_cache_entry *entries =
            realloc(part->entries, (size_t)capacity * sizeof *entries);
        if (!entries)
            return tri_fail(TRI_NOMEM, "no memory for a table of %" PRId64 " samples", capacity);
        part->entries = entries;
        part->capacity = capacity;
    }
    return TRI_OK;
}

enum tri_status tri_part_add(struct tri_part_writer *part, const struct tri_sample *sample,
                             uint32_t file, int64_t line)
{
    const int64_t blocks = tri_part_blocks(sample->tokens);
    TRI_TRY(make_room(part, blocks));
    struct tri_cache_entry entry = {.offset = part->bytes,
                                    .tokens = sample->tokens,
                                    .line = line,
                                    .file = file,
                                    .flags = sample->rendered ? TRI_CACHE_RENDERED : 0};
    tri_sample_measure(sample, 0, sample->tokens, &entry.documents, &entry.trained);
    if (sample->text) {
        TRI_TRY(put_text(part, sample));
    } else {
        entry.flags |=
            (sample->labels ? TRI_CACHE_LABELS : 0u) | (sample->begins ? TRI_CACHE_BEGINS : 0u);
        TRI_TRY(put_tokens(part, sample));
    }
    TRI_TRY(put(part, part->hashes, (size_t)blocks * sizeof *part->hashes));
    entry.hash =
        tri_hash_bytes(TRI_HASH_START, part->hashes, (size_t)blocks * sizeof *part->hashes);
    part->entries[part->count++] = entry;
    return TRI_OK;
}

uint64_t tri_part_bytes(const struct tri_part_writer *part)
{
    return part->bytes;
}

enum tri_status tri_part_finish(struct tri_part_writer *part, const struct tri_index_place *place)
{
    struct tri_part_footer footer;
    memset(&footer, 0, sizeof footer); /* its padding is hashed as well */
    footer.table = part->bytes;
    footer.count = part->count;
    footer.place = *place;
    footer.hash = tri_part_hash(part->entries, &footer);
    footer.magic = TRI_PART_MAGIC;
    enum tri_status st = put(part, part->entries, (size_t)part->count * sizeof *part->entries);
    if (st == TRI_OK)
        st = put(part, &footer, sizeof footer);
    if (st == TRI_OK) {
        st = tri_writer_commit(part->writer);
        part->writer = NULL;
    }
    tri_part_abandon(part);
    return st;
}

void tri_part_abandon(struct tri_part_writer *part)
{
    if (!part)
        return;
    tri_writer_abandon(part->writer);
    free(part->entries);
    free(part->hashes);
    free(part);
}
