#include "unit/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "data/files.h"

static enum tri_status list(const char *source, struct tri_data_files *files)
{
    char *sources[] = {(char *)(uintptr_t)source};
    return tri_data_files_open(sources, 1, files);
}

/* The names of the files below the scratch folder, in order. */
static void assert_names(const struct tri_data_files *files, int64_t count,
                         const char *const *names)
{
    assert_int_equal(files->count, count);
    for (int64_t i = 0; i < count; i++) {
        const char *path = files->file[i].path;
        assert_memory_equal(path, scratch, strlen(scratch));
        assert_string_equal(path + strlen(scratch) + 1, names[i]);
    }
}

static void test_folders_are_walked_in_order(void **state)
{
    (void)state;
    struct tri_data_files files;
    assert_int_equal(tri_make_folder(in_scratch("b/deep")), TRI_OK);
    assert_int_equal(tri_make_folder(in_scratch(".hidden")), TRI_OK);
    put_text(in_scratch("z.txt"), "zz");
    put_text(in_scratch("B.jsonl"), "{}");
    put_text(in_scratch("a.TXT"), "a");
    put_text(in_scratch("b/deep/1.txt"), "1");
    put_text(in_scratch("b/2.txt"), "2");
    put_text(in_scratch("b/3.jsonl.zst"), "packed");
    put_text(in_scratch("b/picture.png"), "not taken");
    put_text(in_scratch(".hidden/3.txt"), "not taken");
    put_text(in_scratch(".4.txt"), "not taken");
    assert_int_equal(symlink("/nowhere", in_scratch(".#lock.txt")), 0);
    assert_int_equal(list(scratch, &files), TRI_OK);
    assert_names(
        &files, 6,
        (const char *[]){"B.jsonl", "a.TXT", "b/2.txt", "b/3.jsonl.zst", "b/deep/1.txt", "z.txt"});
    assert_int_equal(files.file[3].kind, TRI_FILE_LINES);
    assert_int_equal(files.file[3].coding, TRI_ZSTD);
    assert_int_equal(files.file[0].kind, TRI_FILE_LINES);
    assert_int_equal(files.file[1].kind, TRI_FILE_TEXT);
    assert_int_equal(files.file[5].bytes, 2);
    tri_data_files_close(&files);

    /* Sources keep the order they are named in. */
    char first[4400], second[4400];
    snprintf(first, sizeof first, "%s/z.txt", scratch);
    snprintf(second, sizeof second, "%s/b", scratch);
    assert_int_equal(tri_data_files_open((char *[]){first, second}, 2, &files), TRI_OK);
    assert_names(&files, 4, (const char *[]){"z.txt", "b/2.txt", "b/3.jsonl.zst", "b/deep/1.txt"});
    tri_data_files_close(&files);
}

static void test_patterns_take_any_name(void **state)
{
    (void)state;
    struct tri_data_files files;
    assert_int_equal(tri_make_folder(in_scratch("src/x")), TRI_OK);
    assert_int_equal(tri_make_folder(in_scratch("src/a")), TRI_OK);
    put_text(in_scratch("src/x/b.c"), "int b;");
    put_text(in_scratch("src/x/B.c"), "int B;");
    put_text(in_scratch("src/a/c.c"), "int c;");
    put_text(in_scratch("src/a/c.h"), "int c;");
    assert_int_equal(list(in_scratch("src/*/*.c"), &files), TRI_OK);
    assert_names(&files, 3, (const char *[]){"src/a/c.c", "src/x/B.c", "src/x/b.c"});
    assert_int_equal(files.file[0].kind, TRI_FILE_TEXT);
    tri_data_files_close(&files);

    /* A name that exists is itself, whatever characters are in it. */
    put_text(in_scratch("what[1]?"), "text");
    assert_int_equal(list(in_scratch("what[1]?"), &files), TRI_OK);
    assert_names(&files, 1, (const char *[]){"what[1]?"});
    tri_data_files_close(&files);
}

static void assert_refused(const char *source, enum tri_status status, const char *message)
{
    struct tri_data_files files;
    assert_int_equal(list(source, &files), status);
    assert_error_has(message);
}

static void test_bad_sources(void **state)
{
    (void)state;
    struct tri_data_files files;
    assert_int_equal(tri_data_files_open(NULL, 0, &files), TRI_INVALID);
    assert_error_has("set data.sources");

    assert_refused(in_scratch("absent.txt"), TRI_IO, "absent.txt: No such file");
    assert_refused("HuggingFaceH4/ultrachat_200k", TRI_IO,
                   "hf download HuggingFaceH4/ultrachat_200k");
    assert_refused(in_scratch("*.c"), TRI_INVALID,
                   "data.sources or data.eval_sources: no file matches");
    assert_refused("*.absent", TRI_INVALID, "data.sources or data.eval_sources, looked up in /");
    assert_refused(in_scratch("**/*.c"), TRI_UNSUPPORTED, "** is not supported");
    assert_int_equal(tri_make_folder(in_scratch("empty")), TRI_OK);
    assert_refused(in_scratch("empty"), TRI_INVALID, "holds no .txt, .jsonl or .idx file");
    put_text(in_scratch("data.csv"), "a,b");
    assert_refused(in_scratch("data.csv"), TRI_UNSUPPORTED, ".csv files are not read");
    put_text(in_scratch("data.parquet"), "PAR1");
    assert_refused(in_scratch("data.parquet"), TRI_UNSUPPORTED, "pandas.read_parquet(");
    put_text(in_scratch("data.parquet.gz"), "zipped");
    assert_refused(in_scratch("data.parquet.gz"), TRI_UNSUPPORTED, ".parquet files are not read");
    put_text(in_scratch("data.idx.zst"), "zipped");
    assert_refused(in_scratch("data.idx.zst"), TRI_UNSUPPORTED, "mapped as they are: unpack it");
    put_text(in_scratch("data.txt.xz"), "zipped");
    assert_refused(in_scratch("data.txt.xz"), TRI_UNSUPPORTED, "compress it as .zst or .gz");
    assert_int_equal(mkfifo(in_scratch("pipe.txt"), 0600), 0);
    assert_refused(in_scratch("pipe.txt"), TRI_INVALID, "not a regular file");

    assert_int_equal(tri_make_folder(in_scratch("loop")), TRI_OK);
    assert_int_equal(symlink(in_scratch("loop"), in_scratch("loop/again")), 0);
    assert_refused(in_scratch("loop"), TRI_INVALID, "leads back");
    assert_int_equal(tri_make_folder(in_scratch("broken")), TRI_OK);
    assert_int_equal(symlink("/nowhere/at/all", in_scratch("broken/a.txt")), 0);
    assert_refused(in_scratch("broken"), TRI_IO, "link to nothing");
}

static void test_changed_files_are_noticed(void **state)
{
    (void)state;
    struct tri_data_files files;
    put_text(in_scratch("a.txt"), "abc");
    assert_int_equal(list(scratch, &files), TRI_OK);
    assert_int_equal(tri_data_file_check(&files.file[0]), TRI_OK);

    put_text(in_scratch("a.txt"), "abcd");
    assert_int_equal(tri_data_file_check(&files.file[0]), TRI_INVALID);
    assert_error_has("has changed since training began");

    put_text(in_scratch("a.txt"), "xyz"); /* the old size, another time */
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, in_scratch("a.txt"), times, 0), 0);
    assert_int_equal(tri_data_file_check(&files.file[0]), TRI_INVALID);

    assert_int_equal(unlink(in_scratch("a.txt")), 0);
    assert_int_equal(tri_data_file_check(&files.file[0]), TRI_IO);
    assert_error_has("cannot read");
    tri_data_files_close(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_folders_are_walked_in_order),
        SCRATCH_TEST(test_patterns_take_any_name),
        SCRATCH_TEST(test_bad_sources),
        SCRATCH_TEST(test_changed_files_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
