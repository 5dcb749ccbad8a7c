/* The loader adapter: rounds in which every rank that still has samples sends one to all. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "comm/gather.h"
#include "data/adapter/private.h"

/* The messages that arrived together. */
struct round {
    struct round *next;
    int64_t left; /* of `bytes` messages that were not given out yet */
    char *memory;
    int64_t offset; /* of the next message */
    int sender;     /* of it */
    int64_t bytes[];
};

struct tri_adapter {
    struct tri_adapter_config config;
    struct tri_comm *sequence, *world;
    int ranks, rank; /* of the group */
    bool sums;       /* the communicator moves device memory: see tri_scatter */
    int64_t length;
    bool begun, compared, ended; /* ended: no rank has a sample any more */
    bool mine_ended;
    int64_t samples; /* that this rank has read of the epoch */
    struct tri_prepared prepared;
    struct round *first, *last; /* pending */
    struct round *given;        /* holds the shard that was given out last, once used up */
    struct tri_field fields[TRI_SAMPLE_FIELDS + 1];
};

/* ---- life --------------------------------------------------------------------------------------
 */

static void round_free(struct round *round)
{
    if (round != NULL)
        free(round->memory);
    free(round);
}

static void drop_pending(struct tri_adapter *a)
{
    round_free(a->given);
    a->given = NULL;
    while (a->first != NULL) {
        struct round *next = a->first->next;
        round_free(a->first);
        a->first = next;
    }
    a->last = NULL;
}

/* Samples of all ranks, if all know theirs; and what all must have alike. */
static enum tri_status agree(struct tri_adapter *a)
{
    const struct tri_adapter_config *c = &a->config;
    int64_t unknown = c->samples < 0;
    int64_t total = c->samples < 0 ? 0 : c->samples;
    if (a->sequence != NULL) {
        TRI_TRY(tri_comm_agree(a->sequence, "the adapter's chunk", c->chunk));
        TRI_TRY(tri_comm_agree(a->sequence, "the adapter's fixed_tokens", c->fixed_tokens));
        TRI_TRY(tri_comm_max_int(a->sequence, &unknown, 1));
        TRI_TRY(tri_comm_sum_int(a->sequence, &total, 1));
    }
    a->length = unknown ? -1 : total;
    return a->world != NULL
               ? tri_comm_agree(a->world, "the adapter's compare_first", c->compare_first)
               : TRI_OK;
}

enum tri_status tri_adapter_open(const struct tri_adapter_config *config, struct tri_adapter **out)
{
    struct tri_comm *sequence = config->mesh != NULL ? config->mesh->sequence : NULL;
    struct tri_adapter *a = calloc(1, sizeof *a);
    enum tri_status st = a != NULL ? TRI_OK : tri_fail(TRI_NOMEM, "no memory for an adapter");
    if (st == TRI_OK && (config->next == NULL || config->rewind == NULL || config->chunk < 0 ||
                         config->fixed_tokens < 0))
        st = tri_fail(TRI_INVALID, "an adapter needs next and rewind, and chunk and fixed_tokens "
                                   "that are not negative");
    st = tri_comm_all_well(sequence, st);
    if (st != TRI_OK) {
        free(a);
        return st;
    }
    *a = (struct tri_adapter){.config = *config,
                              .sequence = sequence,
                              .world = config->mesh != NULL ? config->mesh->world : NULL,
                              .ranks = sequence != NULL ? sequence->size : 1,
                              .rank = sequence != NULL ? sequence->rank : 0};
    a->sums = sequence != NULL && strcmp(sequence->ops->name, "nccl") == 0;
    st = agree(a);
    if (st != TRI_OK) {
        free(a);
        return st;
    }
    *out = a;
    return TRI_OK;
}

void tri_adapter_close(struct tri_adapter *a)
{
    if (a == NULL)
        return;
    drop_pending(a);
    tri_prepared_free(&a->prepared);
    free(a);
}

int64_t tri_adapter_length(const struct tri_adapter *a)
{
    return a->length;
}

/* ---- a round -----------------------------------------------------------------------------------
 */

static enum tri_status read_sample(struct tri_adapter *a, bool *has)
{
    struct tri_sample sample = {NULL, 0};
    bool end = a->mine_ended;
    *has = false;
    if (!end)
        TRI_TRY(a->config.next(a->config.ctx, &sample, &end));
    a->mine_ended = end;
    if (end)
        return TRI_OK;
    enum tri_status st = tri_prepare(&sample, a->config.fixed_tokens, &a->prepared);
    if (st != TRI_OK) {
        tri_error_prefix("sample %" PRId64, a->samples);
        return st;
    }
    *has = true;
    return TRI_OK;
}

/* This rank's messages, one after the other. The caller frees *send. */
static enum tri_status write_messages(struct tri_adapter *a, int64_t *send_bytes, char **send)
{
    struct tri_envelope e = {
        .owner = a->rank,
        .sample = a->samples,
        .layout = {.tokens = a->prepared.tokens, .chunk = a->config.chunk, .ranks = a->ranks}};
    size_t total = 0;
    for (int r = 0; r < a->ranks; r++) {
        send_bytes[r] = (int64_t)tri_message_bytes(&a->prepared, &e, r);
        total += (size_t)send_bytes[r];
    }
    char *memory = malloc(total);
    if (memory == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a sample of %" PRId64 " tokens",
                        a->prepared.rows * a->prepared.tokens);
    char *to = memory;
    for (int r = 0; r < a->ranks; r++) {
        tri_message_write(&a->prepared, &e, r, to);
        to += send_bytes[r];
    }
    *send = memory;
    return TRI_OK;
}

static enum tri_status receive(struct tri_adapter *a, const char *send, const int64_t *send_bytes,
                               struct round *round)
{
    int64_t total = 0;
    TRI_TRY(tri_scatter_sizes(a->sequence, send_bytes, round->bytes));
    for (int r = 0; r < a->ranks; r++) {
        total += round->bytes[r];
        round->left += round->bytes[r] > 0;
    }
    if (round->left == 0)
        return TRI_OK;
    round->memory = malloc((size_t)total);
    enum tri_status st = round->memory != NULL ? TRI_OK
                                               : tri_fail(TRI_NOMEM, "no memory for %s of shards",
                                                          tri_bytes((double)total).s);
    TRI_TRY(tri_comm_all_well(a->sequence, st));
    return tri_scatter(a->sequence, a->sums, send, send_bytes, round->memory, round->bytes);
}

/* One sample of every rank that has one, or the agreed end. */
static enum tri_status refill(struct tri_adapter *a)
{
    char *send = NULL;
    bool has = false;
    int64_t *send_bytes = calloc((size_t)a->ranks, sizeof *send_bytes);
    struct round *round = calloc(1, sizeof *round + (size_t)a->ranks * sizeof(int64_t));
    enum tri_status st = send_bytes != NULL && round != NULL
                             ? TRI_OK
                             : tri_fail(TRI_NOMEM, "no memory for a round of samples");
    if (st == TRI_OK)
        st = read_sample(a, &has);
    if (st == TRI_OK && has)
        st = write_messages(a, send_bytes, &send);
    st = tri_comm_all_well(a->sequence, st);
    if (st == TRI_OK)
        st = receive(a, send, send_bytes, round);
    free(send);
    free(send_bytes);
    if (st != TRI_OK || round->left == 0) {
        a->ended = st == TRI_OK;
        round_free(round);
        return st;
    }
    a->samples += has;
    if (a->last != NULL)
        a->last->next = round;
    else
        a->first = round;
    a->last = round;
    return TRI_OK;
}

/* ---- epochs ------------------------------------------------------------------------------------
 */

static enum tri_status compare(const struct tri_adapter *a, const int64_t *all, int words)
{
    for (int i = 0; i < a->world->size; i++)
        for (int j = i + 1; j < a->world->size; j++) {
            const int64_t *x = all + i * words;
            const int64_t *y = all + j * words;
            if (x[0] > 0 && memcmp(x, y, (size_t)words * sizeof *x) == 0)
                return tri_fail(TRI_INVALID,
                                "ranks %d and %d read the same samples (their first %" PRId64
                                " are equal), so each would be trained on twice: give rank r of "
                                "%d the samples r, r + %d, ...",
                                i, j, x[0], a->world->size, a->world->size);
        }
    return TRI_OK;
}

/* Do ranks read different samples? The first rounds of the first epoch are made now, and what they
 * hash to is compared over the whole job. */
static enum tri_status compare_streams(struct tri_adapter *a)
{
    enum { MOST = 64 };
    int count = a->config.compare_first == 0 ? 2 : a->config.compare_first;
    int64_t mine[1 + MOST] = {0};
    if (count < 0 || a->world == NULL || a->world->size == 1)
        return TRI_OK;
    count = count < MOST ? count : MOST;
    /* Groups may end after different numbers of rounds, and only ranks of one group refill
     * together. */
    enum tri_status st = TRI_OK;
    for (int i = 0; i < count && !a->ended && st == TRI_OK; i++) {
        int64_t before = a->samples;
        st = refill(a);
        if (st == TRI_OK && a->samples > before)
            mine[1 + mine[0]++] = (int64_t)a->prepared.hash;
    }
    int64_t *all = malloc((size_t)a->world->size * (size_t)(1 + count) * sizeof *all);
    if (st == TRI_OK && all == NULL)
        st = tri_fail(TRI_NOMEM, "no memory to compare %d ranks", a->world->size);
    st = tri_comm_all_well(a->world, st);
    if (st == TRI_OK)
        st = tri_comm_gather(a->world, mine, 1 + count, all);
    if (st == TRI_OK)
        st = compare(a, all, 1 + count);
    free(all);
    return st;
}

enum tri_status tri_adapter_epoch(struct tri_adapter *a, int64_t epoch)
{
    drop_pending(a);
    a->begun = a->ended = a->mine_ended = false;
    a->samples = 0;
    if (a->sequence != NULL)
        TRI_TRY(tri_comm_agree(a->sequence, "the epoch", epoch));
    TRI_TRY(tri_comm_all_well(a->sequence, a->config.rewind(a->config.ctx, epoch)));
    if (!a->compared)
        TRI_TRY(compare_streams(a));
    a->compared = a->begun = true;
    return TRI_OK;
}

enum tri_status tri_adapter_next(struct tri_adapter *a, struct tri_shard *shard, bool *end)
{
    if (!a->begun)
        return tri_fail(TRI_INVALID, "tri_adapter_epoch comes before the first tri_adapter_next");
    round_free(a->given);
    a->given = NULL;
    if (a->first == NULL && !a->ended)
        TRI_TRY(refill(a));
    if (a->first == NULL) {
        *end = true;
        return TRI_OK;
    }
    struct round *round = a->first;
    while (round->bytes[round->sender] == 0)
        round->sender++;
    int64_t bytes = round->bytes[round->sender++];
    TRI_TRY(tri_message_read(round->memory + round->offset, (size_t)bytes, a->fields, shard));
    round->offset += bytes;
    if (--round->left == 0) {
        a->first = round->next;
        a->last = a->first == NULL ? NULL : a->last;
        a->given = round;
    }
    *end = false;
    return TRI_OK;
}
