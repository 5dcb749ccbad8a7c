#include "unit/scratch.h"

#include <sys/stat.h>

enum { MIB = 1 << 20 };

/* Runs first: the environment is asked at the first write. */
static void environment_makes_a_write_fail(void **state)
{
    (void)state;
    assert_int_equal(tri_file_write(in_scratch("a"), "1", 1), TRI_OK);
    assert_int_equal(tri_file_write(in_scratch("a"), "2", 1), TRI_IO);
    assert_error_has("No space left on device");
    assert_int_equal(tri_file_write(in_scratch("b"), "3", 1), TRI_OK);
    assert_file_is(in_scratch("a"), "1");
}

static void reads_whole_files(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    put_file(in_scratch("a"), "one\0two", 7);
    assert_int_equal(tri_file_read(in_scratch("a"), 7, &text, &bytes), TRI_OK);
    assert_int_equal(bytes, 7);
    assert_memory_equal(text, "one\0two", 8);
    free(text);

    put_text(in_scratch("empty"), "");
    assert_int_equal(tri_file_read(in_scratch("empty"), 10, &text, NULL), TRI_OK);
    assert_string_equal(text, "");
    free(text);
}

static void refuses_what_cannot_be_read(void **state)
{
    (void)state;
    char *text = NULL;
    put_text(in_scratch("a"), "12345678");
    assert_int_equal(tri_file_read(in_scratch("a"), 7, &text, NULL), TRI_FORMAT);
    assert_error_has("7 bytes");
    assert_int_equal(tri_file_read(in_scratch("none"), 7, &text, NULL), TRI_IO);
    assert_error_has(in_scratch("none"));
    assert_error_has("No such file or directory");
    assert_int_equal(tri_file_read(scratch, 7, &text, NULL), TRI_IO);
    assert_error_has("Is a directory");
    assert_null(text);
}

/* Files of /proc have no size. */
static void reads_files_without_size(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(tri_file_read("/proc/self/maps", 1 << 20, &text, &bytes), TRI_OK);
    assert_true(bytes > 100);
    assert_int_equal(strlen(text), bytes);
    free(text);
}

static void maps_files(void **state)
{
    (void)state;
    struct tri_map map;
    put_text(in_scratch("a"), "hello");
    assert_int_equal(tri_map_open(in_scratch("a"), &map), TRI_OK);
    assert_int_equal(map.bytes, 5);
    assert_memory_equal(map.data, "hello", 5);
    tri_map_close(&map);

    put_text(in_scratch("empty"), "");
    assert_int_equal(tri_map_open(in_scratch("empty"), &map), TRI_OK);
    assert_int_equal(map.bytes, 0);
    assert_null(map.data);
    tri_map_close(&map);

    assert_int_equal(tri_map_open(in_scratch("none"), &map), TRI_IO);
    assert_int_equal(tri_map_open(scratch, &map), TRI_IO);
    assert_error_has("a folder");
    assert_int_equal(mkfifo(in_scratch("pipe"), 0600), 0);
    assert_int_equal(tri_map_open(in_scratch("pipe"), &map), TRI_IO);
    assert_error_has("pipe");
}

/* Pieces of all sizes around the buffer's come out as they went in. */
static void writes_in_pieces(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, MIB - 1, MIB, MIB + 1, 0, 17, 3 * MIB + 5, 100};
    size_t total = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        total += pieces[i];
    unsigned char *data = malloc(total);
    assert_non_null(data);
    for (size_t i = 0; i < total; i++)
        data[i] = (unsigned char)(i * 31 + i / 251);

    struct tri_writer *writer = NULL;
    assert_int_equal(tri_writer_open(in_scratch("big"), &writer), TRI_OK);
    size_t at = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        assert_int_equal(tri_writer_write(writer, data + at, pieces[i]), TRI_OK);
        at += pieces[i];
    }
    assert_false(tri_path_exists(in_scratch("big")));
    assert_int_equal(tri_writer_commit(writer), TRI_OK);

    struct tri_map map;
    assert_int_equal(tri_map_open(in_scratch("big"), &map), TRI_OK);
    assert_int_equal(map.bytes, total);
    assert_memory_equal(map.data, data, total);
    tri_map_close(&map);
    free(data);
    assert_int_equal(count_entries(scratch), 1);
}

static void abandoned_writes_leave_nothing(void **state)
{
    (void)state;
    put_text(in_scratch("a"), "old");
    struct tri_writer *writer = NULL;
    assert_int_equal(tri_writer_open(in_scratch("a"), &writer), TRI_OK);
    assert_int_equal(tri_writer_write(writer, "new", 3), TRI_OK);
    assert_int_equal(tri_writer_sync(writer), TRI_OK);
    tri_writer_abandon(writer);
    tri_writer_abandon(NULL);
    assert_file_is(in_scratch("a"), "old");
    assert_int_equal(count_entries(scratch), 1);
}

/* Whichever write meets the full disk, the old file stays and nothing is left beside it. */
static void full_disk_keeps_the_old_file(void **state)
{
    (void)state;
    char *data = calloc(1, 3 * MIB);
    assert_non_null(data);
    int failures = 0;
    for (int64_t nth = 1;; nth++) {
        put_text(in_scratch("a"), "old");
        tri_file_fail_at(nth);
        enum tri_status st = tri_file_write(in_scratch("a"), data, 3 * MIB - 10);
        tri_file_fail_at(0);
        assert_int_equal(count_entries(scratch), 1);
        if (st == TRI_OK)
            break;
        failures++;
        assert_int_equal(st, TRI_IO);
        assert_error_has(in_scratch("a"));
        assert_error_has("No space left on device: free space or choose another output_dir");
        assert_file_is(in_scratch("a"), "old");
    }
    assert_int_equal(failures, 3);
    free(data);
}

/* A failed write is not forgotten: commit fails too. */
static void commit_remembers_failures(void **state)
{
    (void)state;
    char *data = calloc(1, MIB);
    assert_non_null(data);
    struct tri_writer *writer = NULL;
    assert_int_equal(tri_writer_open(in_scratch("a"), &writer), TRI_OK);
    tri_file_fail_at(1);
    assert_int_equal(tri_writer_write(writer, data, MIB), TRI_IO);
    assert_int_equal(tri_writer_write(writer, data, MIB), TRI_OK);
    assert_int_equal(tri_writer_commit(writer), TRI_IO);
    assert_int_equal(count_entries(scratch), 0);
    free(data);
}

static void refuses_unwritable_places(void **state)
{
    (void)state;
    assert_int_equal(tri_file_write(in_scratch("none/a"), "x", 1), TRI_IO);
    assert_error_has("none/a");
    assert_error_has("No such file or directory: choose another output_dir");
    put_text(in_scratch("file"), "");
    assert_int_equal(tri_file_write(in_scratch("file/a"), "x", 1), TRI_IO);
    assert_error_has("Not a directory");
    /* A folder has the name: the rename fails, and the temporary file goes. */
    assert_int_equal(tri_make_folder(in_scratch("folder")), TRI_OK);
    assert_int_equal(tri_file_write(in_scratch("folder"), "x", 1), TRI_IO);
    assert_error_has("Is a directory");
    assert_int_equal(count_entries(scratch), 2);
}

static void overwrites_a_stale_temporary(void **state)
{
    (void)state;
    put_text(in_scratch("a.tmp"), "left by a crash, and longer than the new one");
    assert_int_equal(tri_file_write(in_scratch("a"), "new", 3), TRI_OK);
    assert_file_is(in_scratch("a"), "new");
    assert_int_equal(count_entries(scratch), 1);
}

static void copies_files(void **state)
{
    (void)state;
    put_text(in_scratch("a"), "content");
    assert_int_equal(tri_file_copy(in_scratch("a"), in_scratch("b")), TRI_OK);
    assert_file_is(in_scratch("b"), "content");
    assert_int_equal(tri_file_copy(in_scratch("a"), in_scratch("a")), TRI_OK);
    assert_file_is(in_scratch("a"), "content");
    assert_int_equal(tri_file_copy(in_scratch("none"), in_scratch("b")), TRI_IO);
    assert_file_is(in_scratch("b"), "content");
}

static void makes_and_removes_folders(void **state)
{
    (void)state;
    assert_int_equal(tri_make_folder(in_scratch("a/b//c/")), TRI_OK);
    assert_true(tri_path_is_folder(in_scratch("a/b/c")));
    assert_int_equal(tri_make_folder(in_scratch("a/b/c")), TRI_OK);
    put_text(in_scratch("a/b/file"), "x");
    assert_int_equal(tri_make_folder(in_scratch("a/b/file")), TRI_IO);
    assert_error_has("a/b/file");
    assert_int_equal(tri_make_folder(in_scratch("a/b/file/d")), TRI_IO);
    assert_int_equal(tri_make_folder(""), TRI_INVALID);

    /* A link is removed; what it points to stays. */
    put_text(in_scratch("kept"), "x");
    assert_int_equal(symlink(in_scratch("kept"), in_scratch("a/b/link")), 0);
    assert_int_equal(tri_remove_folder(in_scratch("a")), TRI_OK);
    assert_false(tri_path_exists(in_scratch("a")));
    assert_true(tri_path_exists(in_scratch("kept")));
    assert_int_equal(tri_remove_folder(in_scratch("a")), TRI_OK);
}

static void joins_paths(void **state)
{
    (void)state;
    static const char *const cases[][3] = {{"a", "b", "a/b"},       {"a/", "b", "a/b"},
                                           {"a//", "b", "a/b"},     {"/", "b", "/b"},
                                           {"/a/b", "c", "/a/b/c"}, {".", "c", "./c"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *path = tri_path_join(cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        free(path);
    }
}

int main(void)
{
    setenv("TRIREME_FAIL_WRITE", "2", 1);
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(environment_makes_a_write_fail),
        SCRATCH_TEST(reads_whole_files),
        SCRATCH_TEST(refuses_what_cannot_be_read),
        SCRATCH_TEST(reads_files_without_size),
        SCRATCH_TEST(maps_files),
        SCRATCH_TEST(writes_in_pieces),
        SCRATCH_TEST(abandoned_writes_leave_nothing),
        SCRATCH_TEST(full_disk_keeps_the_old_file),
        SCRATCH_TEST(commit_remembers_failures),
        SCRATCH_TEST(refuses_unwritable_places),
        SCRATCH_TEST(overwrites_a_stale_temporary),
        SCRATCH_TEST(copies_files),
        SCRATCH_TEST(makes_and_removes_folders),
        SCRATCH_TEST(joins_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
