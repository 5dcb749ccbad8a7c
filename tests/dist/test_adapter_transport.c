/* How samples of the loader adapter travel: messages, and bytes between all ranks. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include "data/adapter/private.h"

/* Bytes that depend on (sender, receiver, place), of lengths from 0 to more than one piece. */
static int64_t length_of(int from, int to, int ranks)
{
    return from == to ? 0 : (int64_t)(from * ranks + to) * 21003;
}

static enum tri_status both_ways(struct tri_comm *world, void *ctx)
{
    (void)ctx;
    int ranks = tri_comm_size(world);
    int rank = tri_comm_rank(world);
    int64_t send_bytes[8], recv_bytes[8], sent = 0, received = 0;
    for (int r = 0; r < ranks; r++)
        sent += send_bytes[r] = length_of(rank, r, ranks);
    TRI_TRY(tri_scatter_sizes(world, send_bytes, recv_bytes));
    for (int r = 0; r < ranks; r++) {
        CHECK(recv_bytes[r] == length_of(r, rank, ranks));
        received += recv_bytes[r];
    }
    unsigned char *send = malloc((size_t)sent + 1);
    unsigned char *recv = malloc((size_t)received + 1);
    unsigned char *to = send;
    for (int r = 0; r < ranks; r++)
        for (int64_t i = 0; i < send_bytes[r]; i++)
            *to++ = (unsigned char)(i * 7 + rank * 31 + r);
    for (int sums = 0; sums < 2; sums++) {
        memset(recv, 0, (size_t)received + 1);
        TRI_TRY(tri_scatter(world, sums == 1, send, send_bytes, recv, recv_bytes));
        const unsigned char *from = recv;
        for (int r = 0; r < ranks; r++)
            for (int64_t i = 0; i < recv_bytes[r]; i++)
                CHECK(*from++ == (unsigned char)(i * 7 + r * 31 + rank));
    }
    free(send);
    free(recv);
    return TRI_OK;
}

static void bytes_travel_by_exchange_and_by_sums(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        run_ranks(ranks, both_ways, NULL);
}

/* What a rank sends does not grow with the number of ranks but for the heads of messages. */
static void messages_take_memory_of_one_sample(void **state)
{
    (void)state;
    static int64_t ids[4096];
    const int64_t dim[1] = {4096};
    struct tri_tensor t = tri_tensor_make(ids, TRI_I64, 1, dim);
    const struct tri_field fields[] = {tri_field_split("input_ids", t, 0),
                                       tri_field_split("labels", t, 0),
                                       tri_field_split("position_ids", t, 0)};
    struct tri_prepared p = {.rows = 0};
    for (int i = 0; i < 4096; i++)
        ids[i] = i;
    assert_int_equal(tri_prepare(&(struct tri_sample){fields, 3}, 0, &p), TRI_OK);
    for (int ranks = 1; ranks <= 16; ranks *= 4) {
        struct tri_envelope e = {.layout = {4096, 0, ranks}};
        size_t bytes = 0;
        for (int r = 0; r < ranks; r++)
            bytes += tri_message_bytes(&p, &e, r);
        assert_in_range(bytes, 4096 * 16, 4096 * 16 + (size_t)ranks * 800);
    }
    tri_prepared_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_travel_by_exchange_and_by_sums),
        cmocka_unit_test(messages_take_memory_of_one_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
