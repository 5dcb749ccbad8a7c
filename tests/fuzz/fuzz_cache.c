/* A part of a cache whose ends and hashes are right and whose table and tokens are a stranger's. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/cache/part_private.h"
#include "fuzz/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { KEY = 7, VOCAB = 1000, MOST_TOKENS = 1 << 16 };

/* Make the hashes those of the tokens, where the sample fits before the table. */
static void repair_sample(unsigned char *file, uint64_t table, struct tri_cache_entry *entry)
{
    struct tri_part_layout layout;
    if (!tri_part_lay_out(entry, &layout) || entry->offset % 8 != 0 || entry->offset > table ||
        layout.end > table - entry->offset)
        return;
    unsigned char *at = file + entry->offset;
    uint64_t *hashes = (uint64_t *)(void *)(at + layout.hashes);
    const int32_t *ids = (const int32_t *)(const void *)at;
    const int32_t *labels = (const int32_t *)(const void *)(at + layout.labels);
    const int64_t blocks = tri_part_blocks(entry->tokens);
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t first = b * TRI_PART_BLOCK, left = entry->tokens - first;
        hashes[b] = tri_part_block_hash(ids, entry->flags & TRI_CACHE_LABELS ? labels : NULL,
                                        entry->flags & TRI_CACHE_BEGINS ? at + layout.begins : NULL,
                                        first, left < TRI_PART_BLOCK ? left : TRI_PART_BLOCK);
    }
    entry->hash = tri_hash_bytes(TRI_HASH_START, hashes, (size_t)blocks * sizeof *hashes);
}

/* Make the ends what a part of this length would have, as far as the input leaves room. */
static void repair(unsigned char *file, size_t bytes)
{
    const struct tri_part_header header = {TRI_PART_MAGIC, TRI_CACHE_VERSION, KEY};
    struct tri_part_footer footer;
    unsigned char *end = file + bytes - sizeof footer;
    memcpy(file, &header, sizeof header);
    memcpy(&footer, end, sizeof footer);
    footer.magic = TRI_PART_MAGIC;
    const uint64_t room = (uint64_t)(end - file);
    if (footer.table % 8 == 0 && footer.table <= room) {
        footer.count = (int64_t)((room - footer.table) / sizeof(struct tri_cache_entry));
        struct tri_cache_entry *entries = (struct tri_cache_entry *)(void *)(file + footer.table);
        for (int64_t i = 0; i < footer.count; i++)
            repair_sample(file, footer.table, &entries[i]);
        footer.hash = tri_part_hash(entries, &footer);
    }
    memcpy(end, &footer, sizeof footer);
}

/* Every sample of an accepted part can be taken, or is called damaged. */
static void read_all(const struct tri_part *part)
{
    static int32_t ids[MOST_TOKENS], labels[MOST_TOKENS];
    static int64_t positions[MOST_TOKENS];
    const struct tri_sample_rules rules = {.vocab = VOCAB};
    for (int64_t i = 0; i < part->count; i++) {
        struct tri_sample sample;
        const int64_t all = part->entries[i].tokens;
        const int64_t count = all < MOST_TOKENS ? all : MOST_TOKENS, first = (all - count) / 2;
        if (tri_part_sample(part, i, &rules, first, count, &sample) != TRI_OK)
            continue;
        if (tri_sample_take(&sample, first, count, ids, labels, positions) != TRI_OK)
            abort();
        for (int64_t t = 0; t < count; t++)
            if (ids[t] < 0 || ids[t] >= VOCAB || labels[t] >= VOCAB || positions[t] < 0)
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[64];
    struct tri_part part;
    bytes -= bytes % 8;
    if (bytes < sizeof(struct tri_part_header) + sizeof(struct tri_part_footer))
        return 0;
    unsigned char *file = malloc(bytes);
    const int fd = memfd_create("part", MFD_CLOEXEC);
    if (file == NULL || fd < 0)
        abort();
    memcpy(file, data, bytes);
    repair(file, bytes);
    if (write(fd, file, bytes) != (ssize_t)bytes)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (tri_part_open(path, KEY, &part) == TRI_OK) {
        read_all(&part);
        tri_part_close(&part);
    } else {
        check_error();
    }
    tri_error_clear();
    close(fd);
    free(file);
    return 0;
}
