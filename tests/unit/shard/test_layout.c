/* Token and head layout: everything is held exactly once, in order, whatever the numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shard/layout.h"
#include "shard/mesh.h"

static void tokens_are_held_once_and_in_order(void **state)
{
    (void)state;
    for (int64_t s = 0; s <= 40; s++)
        for (int64_t c = 0; c <= s; c++)
            for (int p = 1; p <= 8; p++) {
                struct tri_layout l = {.tokens = s, .chunk = c, .ranks = p};
                int64_t next = 0;
                int64_t rows[8] = {0};
                for (int64_t i = 0; i < tri_layout_chunks(&l); i++) {
                    struct tri_range chunk = tri_layout_chunk(&l, i);
                    assert_int_equal(chunk.begin, next);
                    for (int r = 0; r < p; r++) {
                        struct tri_range part = tri_layout_part(&l, i, r);
                        struct tri_range at = tri_layout_rows(&l, i, r);
                        assert_int_equal(part.begin, next);
                        assert_int_equal(at.begin, rows[r]);
                        assert_int_equal(at.count, part.count);
                        rows[r] += part.count;
                        next += part.count;
                    }
                    assert_int_equal(next, chunk.begin + chunk.count);
                }
                assert_int_equal(next, s);
                for (int r = 0; r < p; r++)
                    assert_int_equal(tri_layout_local(&l, r), rows[r]);
            }
}

static void even_chunks_follow_the_formula(void **state)
{
    /* Local position i*c + j holds global token i*C + r*c + j when P divides C. */
    (void)state;
    struct tri_layout l = {.tokens = 48, .chunk = 12, .ranks = 4};
    for (int64_t i = 0; i < 4; i++)
        for (int r = 0; r < 4; r++) {
            assert_int_equal(tri_layout_part(&l, i, r).begin, i * 12 + r * 3);
            assert_int_equal(tri_layout_rows(&l, i, r).begin, i * 3);
        }
}

static void heads_cover_and_groups_are_right(void **state)
{
    (void)state;
    for (int64_t hq = 1; hq <= 32; hq++)
        for (int64_t hk = 1; hk <= hq; hk++)
            for (int p = 1; p <= 8; p++) {
                if (hq % hk != 0 || p > hq)
                    continue;
                assert_int_equal(tri_heads_check(hq, hk, p), TRI_OK);
                int64_t next = 0;
                int64_t least = hq, most = 0;
                for (int r = 0; r < p; r++) {
                    struct tri_heads h = tri_heads_split(hq, hk, p, r);
                    assert_int_equal(h.query.begin, next);
                    least = h.query.count < least ? h.query.count : least;
                    most = h.query.count > most ? h.query.count : most;
                    for (int64_t i = 0; i < h.key.count; i++) {
                        struct tri_range g = tri_heads_group(&h, hq, hk, i);
                        assert_int_equal(g.begin, next);
                        assert_true(g.count > 0);
                        for (int64_t q = g.begin; q < g.begin + g.count; q++)
                            assert_int_equal(q / (hq / hk), h.key.begin + i);
                        next += g.count;
                    }
                    assert_int_equal(next, h.query.begin + h.query.count);
                }
                assert_int_equal(next, hq);
                assert_true(most - least <= 1);
            }
}

static void bad_numbers_are_refused(void **state)
{
    (void)state;
    assert_int_equal(tri_heads_check(4, 2, 8), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "divisor of the number of ranks that is at most 4"));
    assert_int_equal(tri_heads_check(4, 3, 1), TRI_INVALID);
    assert_int_equal(tri_heads_check(4, 4, 0), TRI_INVALID);
}

static void huge_counts_do_not_overflow(void **state)
{
    (void)state;
    int64_t n = INT64_MAX;
    int64_t next = 0;
    for (int64_t i = 0; i < 7; i++) {
        struct tri_range part = tri_split(n, 7, i);
        assert_int_equal(part.begin, next);
        next += part.count;
    }
    assert_true(next == n);

    struct tri_layout l = {.tokens = 48, .chunk = n, .ranks = 1};
    assert_int_equal(tri_layout_chunks(&l), 1);
    assert_int_equal(tri_layout_chunk(&l, 0).count, 48);
    assert_int_equal(tri_layout_local(&l, 0), 48);
}

/* Query heads must suffice for the ranks of a sequence; what a recipe says is left to be checked.
 */
static void ranks_that_heads_leave_over_are_replicas(void **state)
{
    (void)state;
    assert_int_equal(tri_mesh_choose(8, 0, 4), 4);
    assert_int_equal(tri_mesh_choose(8, 0, 32), 8);
    assert_int_equal(tri_mesh_choose(6, 0, 4), 3);
    assert_int_equal(tri_mesh_choose(7, 0, 4), 1);
    assert_int_equal(tri_mesh_choose(1, 0, 4), 1);
    assert_int_equal(tri_mesh_choose(8, 8, 4), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_heads_leave_over_are_replicas),
        cmocka_unit_test(tokens_are_held_once_and_in_order),
        cmocka_unit_test(even_chunks_follow_the_formula),
        cmocka_unit_test(heads_cover_and_groups_are_right),
        cmocka_unit_test(bad_numbers_are_refused),
        cmocka_unit_test(huge_counts_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
