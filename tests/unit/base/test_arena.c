#include "unit/scratch.h"

#include "base/arena.h"

enum { MIB = 1 << 20 };

static struct tri_arena *arena_of(const struct tri_memory *memory, size_t capacity)
{
    struct tri_arena *arena = NULL;
    if (tri_arena_open(memory, capacity, &arena) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return arena;
}

static char *get(struct tri_arena *arena, const char *name, size_t bytes)
{
    void *data = NULL;
    if (tri_arena_alloc(arena, name, bytes, &data) != TRI_OK)
        fail_msg("%s", tri_error_text());
    assert_non_null(data);
    return data;
}

static void allocations_are_aligned_and_apart(void **state)
{
    (void)state;
    struct tri_arena *arena = arena_of(&tri_host_memory, 8 * MIB);
    static const size_t sizes[] = {1, 255, 256, 257, 0, 3 * MIB, 7};
    char *before = NULL;
    size_t room = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *data = get(arena, "piece", sizes[i]);
        assert_int_equal((uintptr_t)data % TRI_ARENA_ALIGN, 0);
        if (before != NULL)
            assert_true(data >= before + room);
        memset(data, (int)i, sizes[i]);
        before = data;
        room = sizes[i];
    }
    assert_true(tri_arena_used(arena) >= 3 * MIB);
    assert_true(tri_arena_committed(arena) >= tri_arena_used(arena));
    tri_arena_close(arena);
}

/* What is above a mark goes back, what is below stays, and the same addresses come again. */
static void marks_nest(void **state)
{
    (void)state;
    struct tri_arena *arena = arena_of(&tri_host_memory, 8 * MIB);
    char *kept = get(arena, "kept", 1000);
    memset(kept, 7, 1000);
    size_t outer = tri_arena_mark(arena);
    char *a = get(arena, "a", 5000);
    size_t inner = tri_arena_mark(arena);
    char *b = get(arena, "b", 70000);
    tri_arena_release(arena, inner);
    assert_ptr_equal(get(arena, "b again", 10), b);
    tri_arena_release(arena, outer);
    assert_int_equal(tri_arena_used(arena), outer);
    assert_ptr_equal(get(arena, "a again", 10), a);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(kept[i], 7);
    tri_arena_close(arena);
}

static void peak_is_the_highest_use(void **state)
{
    (void)state;
    struct tri_arena *arena = arena_of(&tri_host_memory, 8 * MIB);
    get(arena, "a", 1024);
    size_t mark = tri_arena_mark(arena);
    get(arena, "b", 4096);
    tri_arena_release(arena, mark);
    get(arena, "c", 512);
    assert_int_equal(tri_arena_used(arena), 1024 + 512);
    assert_int_equal(tri_arena_peak(arena), 1024 + 4096);
    tri_arena_reset_peak(arena);
    assert_int_equal(tri_arena_peak(arena), 1024 + 512);
    get(arena, "d", 256);
    assert_int_equal(tri_arena_peak(arena), 1024 + 512 + 256);
    tri_arena_close(arena);
}

struct visits {
    char text[256];
};

static void write_down(void *ctx, const char *name, size_t bytes)
{
    struct visits *visits = ctx;
    size_t used = strlen(visits->text);
    snprintf(visits->text + used, sizeof visits->text - used, "%s=%zu ", name, bytes);
}

static void visits_the_living_in_order(void **state)
{
    (void)state;
    struct tri_arena *arena = arena_of(&tri_host_memory, 8 * MIB);
    struct visits visits = {""};
    get(arena, "a", 3);
    size_t mark = tri_arena_mark(arena);
    get(arena, "gone", 4);
    get(arena, "gone too", 0);
    tri_arena_release(arena, mark);
    get(arena, "b", 500);
    get(arena, "nothing", 0);
    tri_arena_visit(arena, write_down, &visits);
    assert_string_equal(visits.text, "a=3 b=500 nothing=0 ");
    tri_arena_close(arena);
}

/* An allocation of 0 bytes below a mark has the same offset as the mark, but is not above it. */
static void a_mark_keeps_an_empty_allocation_below_it(void **state)
{
    (void)state;
    struct tri_arena *arena = arena_of(&tri_host_memory, 8 * MIB);
    struct visits visits = {""};
    get(arena, "nothing", 0);
    size_t mark = tri_arena_mark(arena);
    get(arena, "gone", 4);
    tri_arena_release(arena, mark);
    tri_arena_visit(arena, write_down, &visits);
    assert_int_equal(tri_arena_used(arena), mark);
    assert_string_equal(visits.text, "nothing=0 ");
    tri_arena_close(arena);
}

static uint64_t trace_of(const struct tri_memory *memory, const char *first, size_t a,
                         const char *second, size_t b)
{
    struct tri_arena *arena = arena_of(memory, 8 * MIB);
    get(arena, first, a);
    get(arena, second, b);
    uint64_t trace = tri_arena_trace(arena);
    tri_arena_close(arena);
    return trace;
}

static void trace_knows_names_sizes_and_order(void **state)
{
    (void)state;
    uint64_t trace = trace_of(&tri_host_memory, "a", 10, "b", 20);
    assert_true(trace == trace_of(&tri_host_memory, "a", 10, "b", 20));
    assert_true(trace == trace_of(&tri_counting_memory, "a", 10, "b", 20));
    assert_true(trace != trace_of(&tri_host_memory, "b", 20, "a", 10));
    assert_true(trace != trace_of(&tri_host_memory, "a", 11, "b", 20));
    assert_true(trace != trace_of(&tri_host_memory, "a", 10, "c", 20));
    assert_true(trace != trace_of(&tri_host_memory, "a", 20, "b", 10));
}

/* Marks do not enter it, a failed allocation neither, and it starts again when told. */
static void trace_counts_what_was_given(void **state)
{
    (void)state;
    struct tri_arena *arena = arena_of(&tri_host_memory, 8 * MIB);
    void *data = NULL;
    size_t mark = tri_arena_mark(arena);
    get(arena, "a", 10);
    tri_arena_release(arena, mark);
    tri_arena_fail_at(arena, 1);
    assert_int_equal(tri_arena_alloc(arena, "no", 5, &data), TRI_NOMEM);
    get(arena, "b", 20);
    assert_true(tri_arena_trace(arena) == trace_of(&tri_host_memory, "a", 10, "b", 20));
    tri_arena_restart_trace(arena);
    get(arena, "a", 10);
    get(arena, "b", 20);
    assert_true(tri_arena_trace(arena) == trace_of(&tri_host_memory, "a", 10, "b", 20));
    tri_arena_close(arena);
}

static void fails_at_the_nth(void **state)
{
    (void)state;
    struct tri_arena *arena = arena_of(&tri_host_memory, 8 * MIB);
    void *data = &arena;
    tri_arena_fail_at(arena, 3);
    get(arena, "first", 100);
    get(arena, "second", 100);
    size_t used = tri_arena_used(arena);
    size_t peak = tri_arena_peak(arena);
    assert_int_equal(tri_arena_alloc(arena, "third", 100, &data), TRI_NOMEM);
    assert_error_has("'third'");
    assert_ptr_equal(data, &arena);
    assert_int_equal(tri_arena_used(arena), used);
    assert_int_equal(tri_arena_peak(arena), peak);
    get(arena, "fourth", 100); /* it fails once */
    tri_arena_fail_at(arena, 1);
    tri_arena_fail_at(arena, 0);
    get(arena, "fifth", 100);
    tri_arena_close(arena);
}

static void refuses_more_than_its_capacity(void **state)
{
    (void)state;
    struct tri_arena *arena = arena_of(&tri_host_memory, 4 * MIB);
    void *data = NULL;
    get(arena, "a", 3 * MIB);
    assert_int_equal(tri_arena_alloc(arena, "b", MIB + 1, &data), TRI_NOMEM);
    assert_error_has("'b'");
    assert_int_equal(tri_arena_alloc(arena, "c", SIZE_MAX, &data), TRI_NOMEM);
    assert_int_equal(tri_arena_alloc(arena, "d", SIZE_MAX - 100, &data), TRI_NOMEM);
    char *rest = get(arena, "e", MIB); /* and all of it can be had */
    rest[MIB - 1] = 1;
    assert_int_equal(tri_arena_alloc(arena, "f", 1, &data), TRI_NOMEM);
    tri_arena_close(arena);
}

static void reserve_makes_room_without_using_it(void **state)
{
    (void)state;
    struct tri_arena *arena = arena_of(&tri_host_memory, 16 * MIB);
    assert_int_equal(tri_arena_committed(arena), 0);
    assert_int_equal(tri_arena_reserve(arena, 5 * MIB), TRI_OK);
    assert_true(tri_arena_committed(arena) >= 5 * MIB);
    assert_int_equal(tri_arena_used(arena), 0);
    size_t committed = tri_arena_committed(arena);
    char *data = get(arena, "a", 5 * MIB);
    data[5 * MIB - 1] = 1;
    assert_int_equal(tri_arena_committed(arena), committed);
    assert_int_equal(tri_arena_reserve(arena, MIB), TRI_OK); /* never shrinks */
    assert_int_equal(tri_arena_committed(arena), committed);
    assert_int_equal(tri_arena_reserve(arena, 17 * MIB), TRI_NOMEM);
    assert_error_has("17.0 MiB");
    tri_arena_close(arena);
}

/* Memory whose commit fails from some address on, as when a machine is full. */
static enum tri_status commit_below(void *ctx, void *base, size_t from, size_t to)
{
    const size_t *limit = ctx;
    if (to > *limit)
        return tri_fail(TRI_NOMEM, "the machine is full");
    return tri_host_memory.commit(NULL, base, from, to);
}

static void a_full_machine_is_an_error_with_the_name(void **state)
{
    (void)state;
    size_t limit = 4 * MIB;
    struct tri_memory memory = tri_host_memory;
    memory.ctx = &limit;
    memory.commit = commit_below;
    struct tri_arena *arena = arena_of(&memory, 64 * MIB);
    void *data = NULL;
    get(arena, "a", MIB);
    size_t used = tri_arena_used(arena);
    assert_int_equal(tri_arena_alloc(arena, "big", 32 * MIB, &data), TRI_NOMEM);
    assert_error_has("'big'");
    assert_error_has("the machine is full");
    assert_int_equal(tri_arena_used(arena), used);
    assert_int_equal(tri_arena_reserve(arena, 32 * MIB), TRI_NOMEM);
    get(arena, "small", MIB);
    tri_arena_close(arena);
}

/* Far more than any machine has: nothing is touched. */
static void counting_memory_only_counts(void **state)
{
    (void)state;
    const size_t tib = (size_t)1 << 40;
    struct tri_arena *arena = arena_of(&tri_counting_memory, 40 * tib);
    get(arena, "a", 10 * tib);
    size_t mark = tri_arena_mark(arena);
    get(arena, "b", 20 * tib);
    tri_arena_release(arena, mark);
    get(arena, "c", 256);
    assert_true(tri_arena_used(arena) == 10 * tib + 256);
    assert_true(tri_arena_peak(arena) == 30 * tib);
    tri_arena_close(arena);
    tri_arena_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_and_apart),
        cmocka_unit_test(marks_nest),
        cmocka_unit_test(peak_is_the_highest_use),
        cmocka_unit_test(visits_the_living_in_order),
        cmocka_unit_test(a_mark_keeps_an_empty_allocation_below_it),
        cmocka_unit_test(trace_knows_names_sizes_and_order),
        cmocka_unit_test(trace_counts_what_was_given),
        cmocka_unit_test(fails_at_the_nth),
        cmocka_unit_test(refuses_more_than_its_capacity),
        cmocka_unit_test(reserve_makes_room_without_using_it),
        cmocka_unit_test(a_full_machine_is_an_error_with_the_name),
        cmocka_unit_test(counting_memory_only_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
