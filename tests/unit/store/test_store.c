#include "unit/scratch.h"

#include "backend/cpu/cpu.h"
#include "store/store.h"

enum { MIB = 1 << 20 };

struct fixture {
    struct tri_backend *backend;
    struct tri_exec exec;
    struct tri_store *store;
};
static struct fixture f;

static int open_store(void **state)
{
    (void)state;
    if (tri_cpu_open(NULL, &f.backend) != TRI_OK)
        return -1;
    f.exec = (struct tri_exec){
        .backend = f.backend, .ops = &f.backend->ops, .stream = f.backend->stream};
    if (tri_arena_open(&tri_host_memory, 4 * MIB, &f.exec.arena) != TRI_OK)
        return -1;
    return tri_store_open(f.exec, &f.store) == TRI_OK ? 0 : -1;
}

static int close_store(void **state)
{
    (void)state;
    tri_store_close(f.store);
    tri_arena_close(f.exec.arena);
    tri_cpu_close(f.backend);
    return 0;
}

static int add(enum tri_dtype dtype, int64_t rows, int64_t cols)
{
    int slot = -1;
    if (tri_store_add(f.store, "slot", TRI_TIER_DEVICE, dtype, rows, cols, &slot) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return slot;
}

/* Rows [begin, begin + count) get numbers that say where they are. */
static void write_rows(int slot, int64_t begin, int64_t count, float base)
{
    struct tri_view rows;
    assert_int_equal(tri_store_fill(f.store, slot, begin, count, &rows), TRI_OK);
    assert_int_equal(rows.dim[0], count);
    for (int64_t r = 0; r < count; r++)
        for (int64_t c = 0; c < rows.dim[1]; c++)
            ((float *)rows.data)[r * rows.stride[0] + c] =
                base + (float)(100 * (begin + r)) + (float)c;
    assert_int_equal(tri_store_put(f.store, slot, begin, count), TRI_OK);
}

static void assert_rows(int slot, int64_t begin, int64_t count, float base)
{
    struct tri_view rows;
    assert_int_equal(tri_store_prefetch(f.store, slot, begin, count), TRI_OK);
    assert_int_equal(tri_store_get(f.store, slot, begin, count, &rows), TRI_OK);
    assert_int_equal(rows.dim[0], count);
    for (int64_t r = 0; r < count; r++)
        for (int64_t c = 0; c < rows.dim[1]; c++)
            assert_true(((float *)rows.data)[r * rows.stride[0] + c] ==
                        base + (float)(100 * (begin + r)) + (float)c);
    assert_int_equal(tri_store_done(f.store, slot, begin, count), TRI_OK);
}

/* Written in one set of ranges, read in another. */
static void ranges_need_not_match(void **state)
{
    (void)state;
    int a = add(TRI_F32, 10, 3);
    int b = add(TRI_F32, 10, 5);
    write_rows(a, 0, 4, 0.25f);
    write_rows(b, 0, 10, 0.5f);
    write_rows(a, 4, 6, 0.25f);
    assert_rows(a, 0, 10, 0.25f);
    assert_rows(a, 3, 2, 0.25f);
    assert_rows(b, 9, 1, 0.5f);
    write_rows(a, 2, 3, 7000);
    assert_rows(a, 0, 2, 0.25f);
    assert_rows(a, 2, 3, 7000);
    assert_rows(a, 5, 5, 0.25f);
    assert_rows(b, 0, 10, 0.5f);
}

static void empty_ranges_are_fine(void **state)
{
    (void)state;
    struct tri_view rows;
    int a = add(TRI_F32, 10, 3);
    int none = add(TRI_F32, 0, 3);
    assert_int_equal(tri_store_get(f.store, a, 10, 0, &rows), TRI_OK);
    assert_int_equal(rows.dim[0], 0);
    assert_int_equal(tri_store_fill(f.store, none, 0, 0, &rows), TRI_OK);
    assert_int_equal(rows.dim[0], 0);
}

/* Slots come from the arena under their names, and go with its mark. */
static void memory_is_the_arenas(void **state)
{
    (void)state;
    size_t mark = tri_arena_mark(f.exec.arena);
    size_t before = tri_arena_used(f.exec.arena);
    int first = add(TRI_F64, 128, 16);
    assert_int_equal(tri_arena_used(f.exec.arena) - before, 128 * 16 * 8);
    tri_store_clear(f.store);
    tri_arena_release(f.exec.arena, mark);
    assert_int_equal(add(TRI_BF16, 128, 16), first); /* numbers begin anew */
    assert_int_equal(tri_arena_used(f.exec.arena) - before, 128 * 16 * 2);
}

static void no_room_is_an_error_with_the_name(void **state)
{
    (void)state;
    int slot = -7;
    assert_int_equal(tri_store_add(f.store, "keys", TRI_TIER_DEVICE, TRI_F32, 2 * MIB, 4, &slot),
                     TRI_NOMEM);
    assert_error_has("'keys'");
    assert_int_equal(slot, -7);
    assert_int_equal(add(TRI_F32, 4, 4), 0);
}

static void unknown_tiers_are_refused(void **state)
{
    (void)state;
    int slot = -7;
    assert_int_equal(tri_store_add(f.store, "keys", (enum tri_tier)9, TRI_F32, 4, 4, &slot),
                     TRI_UNSUPPORTED);
    assert_error_has("'keys'");
    assert_int_equal(slot, -7);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(ranges_need_not_match),     STORE_TEST(empty_ranges_are_fine),
        STORE_TEST(memory_is_the_arenas),      STORE_TEST(no_room_is_an_error_with_the_name),
        STORE_TEST(unknown_tiers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
