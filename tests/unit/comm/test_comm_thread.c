/* The communicators of one process: all collectives, and ranks that fail, hang or go apart. */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/self/self.h"
#include "unit/comm/collectives.h"

static void self_does_everything(void **state)
{
    (void)state;
    struct tri_comm *comm = NULL;
    assert_int_equal(tri_comm_self(&comm), TRI_OK);
    enum tri_status st = all_cases(comm, NULL);
    if (st != TRI_OK)
        fail_msg("%s", tri_error_text());
    tri_comm_close(comm);
}

static void threads_do_everything(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks++)
        run_ranks(ranks, all_cases, NULL);
}

static enum tri_status one_fails(struct tri_comm *comm, void *ctx)
{
    (void)ctx;
    if (comm->rank == 2)
        return tri_fail(TRI_IO, "the disk of this rank is full");
    enum tri_status st = tri_comm_agree(comm, "nothing", 0);
    CASE_CHECK(st == TRI_PEER);
    CASE_CHECK(strstr(tri_error_text(), "rank 2 failed") != NULL);
    CASE_CHECK(strstr(tri_error_text(), "the disk of this rank is full") != NULL);
    return st;
}

static void a_failure_is_named_by_all(void **state)
{
    (void)state;
    assert_int_equal(tri_comm_threads_run(4, 30, one_fails, NULL), TRI_IO);
    assert_string_equal(tri_error_text(), "rank 2: the disk of this rank is full");
}

static enum tri_status one_never_comes(struct tri_comm *comm, void *ctx)
{
    (void)ctx;
    if (comm->rank == 1) {
        struct timespec pause = {.tv_sec = 0, .tv_nsec = 600 * 1000 * 1000};
        nanosleep(&pause, NULL);
    }
    return tri_comm_agree(comm, "nothing", 0);
}

static void no_wait_is_without_a_deadline(void **state)
{
    (void)state;
    assert_int_equal(tri_comm_threads_run(3, 0.2, one_never_comes, NULL), TRI_COMM);
    assert_non_null(strstr(tri_error_text(), "2 of 3 ranks came"));
    assert_null(strstr(tri_error_text(), ": rank ")); /* it names itself once */
}

/* The last rank alone makes another call than the rest. */
static enum tri_status ranks_go_apart(struct tri_comm *comm, void *ctx)
{
    const char *how = ctx;
    double x[4] = {0};
    bool odd = comm->rank == comm->size - 1;
    if (strcmp(how, "call") == 0 && odd)
        return comm->ops->broadcast(comm, NULL, x, sizeof x, 0);
    if (strcmp(how, "root") == 0)
        return comm->ops->broadcast(comm, NULL, x, sizeof x, odd);
    return comm->ops->all_reduce(comm, NULL, x, odd && strcmp(how, "size") == 0 ? 3 : 4,
                                 odd && strcmp(how, "dtype") == 0 ? TRI_F32 : TRI_F64,
                                 odd && strcmp(how, "sum") == 0 ? TRI_MAX : TRI_SUM);
}

static void different_calls_are_an_error(void **state)
{
    (void)state;
    static const struct {
        char how[8];
        const char *odd, *even; /* what is said of the last rank, and of another */
    } cases[] = {
        {"call", "broadcast of 32 bytes of member 0", "all-reduce of 4 float64 (sum)"},
        {"root", "broadcast of 32 bytes of member 1", "broadcast of 32 bytes of member 0"},
        {"size", "all-reduce of 3 float64 (sum)", "all-reduce of 4 float64 (sum)"},
        {"dtype", "all-reduce of 4 float32 (sum)", "all-reduce of 4 float64 (sum)"},
        {"sum", "all-reduce of 4 float64 (greatest)", "all-reduce of 4 float64 (sum)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char odd[80], even[80], how[8];
        strcpy(how, cases[i].how);
        enum tri_status st = tri_comm_threads_run(3, 30, ranks_go_apart, how);
        assert_true(st == TRI_COMM || st == TRI_PEER);
        snprintf(odd, sizeof odd, "rank 2 %s%s",
                 strstr(tri_error_text(), "apart: rank 2") != NULL ? "is in " : "in ",
                 cases[i].odd);
        snprintf(even, sizeof even, "in %s", cases[i].even);
        if (strstr(tri_error_text(), "ranks went apart") == NULL ||
            strstr(tri_error_text(), odd) == NULL || strstr(tri_error_text(), even) == NULL)
            fail_msg("%s: %s", how, tri_error_text());
    }
}

static enum tri_status blocks_differ(struct tri_comm *comm, void *ctx)
{
    enum { BYTES = 1 << 16 };
    const int *odd = ctx; /* the rank that expects less than it gets */
    char *data = calloc(4, BYTES);
    struct tri_block *blocks = calloc(4, sizeof *blocks);
    if (data == NULL || blocks == NULL)
        abort();
    for (int r = 0; r < 4; r++)
        blocks[r] = (struct tri_block){data + (size_t)r * BYTES, 1, BYTES, BYTES};
    if (comm->rank == *odd)
        blocks[2].row_bytes = blocks[3].row_bytes = 4;
    enum tri_status st = comm->ops->all_to_all(comm, NULL, 1, blocks, blocks + 2);
    /* Gone at once: the other rank must have read them by now. */
    free(blocks);
    free(data);
    return st;
}

static void blocks_of_other_shapes_are_an_error(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        int odd = i % 2;
        assert_int_equal(tri_comm_threads_run(2, 30, blocks_differ, &odd), TRI_COMM);
        assert_non_null(strstr(tri_error_text(), "all-to-all"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_does_everything),
        cmocka_unit_test(threads_do_everything),
        cmocka_unit_test(a_failure_is_named_by_all),
        cmocka_unit_test(no_wait_is_without_a_deadline),
        cmocka_unit_test(different_calls_are_an_error),
        cmocka_unit_test(blocks_of_other_shapes_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
