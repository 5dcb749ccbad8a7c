/* The lock of an output folder: one run at a time, and a folder that moves away is noticed. */
#include "unit/scratch.h"

#include "base/file.h"
#include "train/lock.h"

static void a_second_run_is_refused(void **state)
{
    (void)state;
    int first = -1, second = -1;
    assert_int_equal(tri_lock_take(scratch, &first), TRI_OK);
    assert_int_equal(tri_lock_take(scratch, &second), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "is in use by another run"));
    tri_lock_drop(first);
    assert_int_equal(tri_lock_take(scratch, &second), TRI_OK);
    tri_lock_drop(second);
}

static void a_folder_that_moves_is_noticed(void **state)
{
    (void)state;
    int lock = -1;
    char folder[512], away[512];
    snprintf(folder, sizeof folder, "%s/out", scratch);
    snprintf(away, sizeof away, "%s/away", scratch);
    assert_int_equal(tri_make_folder(folder), TRI_OK);
    assert_int_equal(tri_lock_take(folder, &lock), TRI_OK);
    assert_true(tri_lock_is_of(lock, folder));
    assert_int_equal(rename(folder, away), 0);
    assert_false(tri_lock_is_of(lock, folder));
    assert_int_equal(tri_make_folder(folder), TRI_OK);
    assert_false(tri_lock_is_of(lock, folder));
    int other = -1;
    assert_int_equal(tri_lock_take(folder, &other), TRI_OK);
    assert_false(tri_lock_is_of(lock, folder));
    assert_true(tri_lock_is_of(other, folder));
    tri_lock_drop(other);
    tri_lock_drop(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_second_run_is_refused),
        SCRATCH_TEST(a_folder_that_moves_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
