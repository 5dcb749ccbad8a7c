/* Compressed files: whole, in parts, broken; and the copies that are made of them. */
#include "unit/scratch.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>
#include <zstd.h>

#include "base/log.h"
#include "data/json_list.h"
#include "data/lock.h"
#include "data/unpack.h"

enum { MOST = 4 << 20 };

struct heap {
    unsigned char *data;
    size_t bytes;
};

static enum tri_status keep(void *ctx, const void *data, size_t bytes, size_t used)
{
    struct heap *heap = ctx;
    assert_true(used > 0 && heap->bytes + bytes <= MOST);
    memcpy(heap->data + heap->bytes, data, bytes);
    heap->bytes += bytes;
    return TRI_OK;
}

/* Text that does not compress to nothing. */
static struct heap make_text(size_t bytes)
{
    struct heap text = {malloc(bytes), bytes};
    uint32_t x = 1;
    assert_non_null(text.data);
    for (size_t i = 0; i < bytes; i++) {
        x = x * 1664525 + 1013904223;
        text.data[i] = (unsigned char)("abcdefgh \n"[(x >> 24) % 10]);
    }
    return text;
}

static size_t gzip(const struct heap *text, unsigned char *out)
{
    z_stream z = {
        .next_in = text->data, .avail_in = (uInt)text->bytes, .next_out = out, .avail_out = MOST};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&z), Z_OK);
    return MOST - z.avail_out;
}

static size_t zstd(const struct heap *text, unsigned char *out)
{
    const size_t bytes = ZSTD_compress(out, MOST, text->data, text->bytes, 3);
    assert_false(ZSTD_isError(bytes));
    return bytes;
}

static size_t pack(enum tri_coding coding, const struct heap *text, unsigned char *out)
{
    return coding == TRI_GZIP ? gzip(text, out) : zstd(text, out);
}

static enum tri_status decode(enum tri_coding coding, const unsigned char *data, size_t bytes,
                              struct heap *out)
{
    const struct tri_decompress_sink sink = {out, keep};
    out->bytes = 0;
    return tri_decompress(coding, "f", data, bytes, &sink);
}

static void check_coding(enum tri_coding coding)
{
    struct heap text = make_text(3 << 20), got = {malloc(MOST), 0};
    unsigned char *data = malloc(2 * MOST);
    assert_true(got.data && data);
    const size_t bytes = pack(coding, &text, data);
    assert_int_equal(decode(coding, data, bytes, &got), TRI_OK);
    assert_int_equal(got.bytes, text.bytes);
    assert_memory_equal(got.data, text.data, text.bytes);

    /* Parts one after the other, and an empty one. */
    struct heap small = {text.data, 1000}, none = {text.data, 0};
    size_t two = pack(coding, &small, data);
    two += pack(coding, &none, data + two);
    two += pack(coding, &small, data + two);
    assert_int_equal(decode(coding, data, two, &got), TRI_OK);
    assert_int_equal(got.bytes, 2000);
    assert_memory_equal(got.data + 1000, text.data, 1000);

    /* Cut anywhere it is refused; so is what is not compressed at all. */
    const size_t one = pack(coding, &small, data);
    for (size_t cut = 0; cut < one; cut++) {
        assert_int_equal(decode(coding, data, cut, &got), TRI_FORMAT);
        assert_non_null(strstr(tri_error_text(), "f ends in the middle, after"));
    }
    assert_int_equal(decode(coding, text.data, 100, &got), TRI_FORMAT);
    assert_non_null(strstr(tri_error_text(), "f is broken near byte"));
    memcpy(data + one, "tail", 4);
    assert_int_equal(decode(coding, data, one + 4, &got), TRI_FORMAT);
    free(text.data);
    free(got.data);
    free(data);
}

static void test_gzip(void **state)
{
    (void)state;
    check_coding(TRI_GZIP);
    struct heap text = make_text(100), got = {malloc(MOST), 0};
    unsigned char *data = calloc(1, MOST);
    assert_true(got.data && data);
    const size_t bytes = gzip(&text, data);
    assert_int_equal(decode(TRI_GZIP, data, bytes + 512, &got), TRI_OK); /* padded by zeros */
    assert_int_equal(got.bytes, 100);
    data[bytes - 5] ^= 1; /* the checksum */
    assert_int_equal(decode(TRI_GZIP, data, bytes, &got), TRI_FORMAT);
    assert_non_null(strstr(tri_error_text(), "incorrect data check"));
    free(text.data);
    free(got.data);
    free(data);
}

static void test_zstd(void **state)
{
    (void)state;
    check_coding(TRI_ZSTD);
}

static void put_packed(const char *name, enum tri_coding coding, const char *text)
{
    const struct heap heap = {(unsigned char *)(uintptr_t)text, strlen(text)};
    unsigned char *data = malloc(MOST);
    assert_non_null(data);
    put_file(in_scratch(name), data, pack(coding, &heap, data));
    free(data);
}

/* Copies are found again, by contents; a changed file gets a copy of its own. */
static void test_copies(void **state)
{
    (void)state;
    char folder[4400], *first, *second;
    snprintf(folder, sizeof folder, "%s", in_scratch("cache/deep"));
    put_packed("a.jsonl.gz", TRI_GZIP, "hello\n");
    assert_int_equal(tri_unpack(in_scratch("a.jsonl.gz"), TRI_GZIP, false, folder, &first), TRI_OK);
    assert_file_is(first, "hello\n");
    assert_string_equal(first + strlen(first) - 8, "-a.jsonl");

    struct stat before, after; /* not made again */
    assert_int_equal(stat(first, &before), 0);
    assert_int_equal(tri_unpack(in_scratch("a.jsonl.gz"), TRI_GZIP, false, folder, &second),
                     TRI_OK);
    assert_string_equal(first, second);
    assert_int_equal(stat(second, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    free(second);

    put_packed("a.jsonl.gz", TRI_GZIP, "other\n");
    assert_int_equal(tri_unpack(in_scratch("a.jsonl.gz"), TRI_GZIP, false, folder, &second),
                     TRI_OK);
    assert_string_not_equal(first, second);
    assert_file_is(second, "other\n");
    free(first);
    free(second);
}

/* A copy that is not what was unpacked is not believed, nor one of which that cannot be known. */
static void test_damaged_copies(void **state)
{
    (void)state;
    static const char *const bad[] = {"hellp\n", "hell", "", "hello\n\n"};
    char folder[4400], sum[4500], *copy, *again;
    snprintf(folder, sizeof folder, "%s", in_scratch("cache"));
    put_packed("a.jsonl.gz", TRI_GZIP, "hello\n");
    assert_int_equal(tri_unpack(in_scratch("a.jsonl.gz"), TRI_GZIP, false, folder, &copy), TRI_OK);
    snprintf(sum, sizeof sum, "%s.sum", copy);
    for (size_t i = 0; i < sizeof bad / sizeof *bad + 2; i++) {
        if (i < sizeof bad / sizeof *bad)
            put_text(copy, bad[i]);
        else if (i == sizeof bad / sizeof *bad)
            put_text(sum, "0 0\n");
        else
            assert_int_equal(unlink(sum), 0);
        assert_int_equal(tri_unpack(in_scratch("a.jsonl.gz"), TRI_GZIP, false, folder, &again),
                         TRI_OK);
        assert_string_equal(copy, again);
        assert_file_is(again, "hello\n");
        assert_true(tri_path_exists(sum));
        free(again);
    }
    free(copy);
}

/* No copy appears of a broken file, or on a full disk. */
static void test_failures_leave_nothing(void **state)
{
    (void)state;
    char folder[4400], command[9000], *copy;
    snprintf(folder, sizeof folder, "%s", in_scratch("cache"));
    put_text(in_scratch("b.txt.zst"), "not zstd at all");
    assert_int_equal(tri_unpack(in_scratch("b.txt.zst"), TRI_ZSTD, false, folder, &copy),
                     TRI_FORMAT);
    assert_error_has("b.txt.zst is broken near byte");
    put_packed("b.txt.zst", TRI_ZSTD, "text");
    tri_file_fail_at(1);
    assert_int_equal(tri_unpack(in_scratch("b.txt.zst"), TRI_ZSTD, false, folder, &copy), TRI_IO);
    assert_error_has("is unpacked into data.cache_dir");
    assert_error_has("free space or choose another data.cache_dir");
    tri_file_fail_at(0);
    snprintf(command, sizeof command, "test -z \"$(find '%s' -name '*b.txt')\"", folder);
    assert_int_equal(system(command), 0);

    put_text(in_scratch("file"), "");
    assert_int_equal(
        tri_unpack(in_scratch("b.txt.zst"), TRI_ZSTD, false, in_scratch("file/x"), &copy), TRI_IO);
    assert_error_has("is unpacked into data.cache_dir");
}

/* Several processes at once make one copy. */
static void test_processes_share(void **state)
{
    (void)state;
    char folder[4400];
    snprintf(folder, sizeof folder, "%s", in_scratch("cache"));
    struct heap text = make_text(2 << 20);
    unsigned char *data = malloc(MOST);
    assert_non_null(data);
    put_file(in_scratch("c.txt.gz"), data, gzip(&text, data));
    pid_t child[4];
    for (int i = 0; i < 4; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            struct tri_map map;
            char *copy;
            _exit(tri_unpack(in_scratch("c.txt.gz"), TRI_GZIP, false, folder, &copy) != TRI_OK ||
                  tri_map_open(copy, &map) != TRI_OK || map.bytes != text.bytes ||
                  memcmp(map.data, text.data, map.bytes) != 0);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status = -1;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    free(text.data);
    free(data);
}

/* Who waits says for what, and after two seconds how far that is. */
static void test_waiting_shows_progress(void **state)
{
    (void)state;
    int fd = -1, pipes[2];
    char lock[4400], making[4400], said[4096] = "", done;
    snprintf(lock, sizeof lock, "%s/lock", scratch);
    snprintf(making, sizeof making, "%s/made", scratch);
    assert_int_equal(tri_make_folder(making), TRI_OK);
    put_file(in_scratch("made/a"), (const unsigned char *)"abc", 3);
    put_file(in_scratch("made/b"), (const unsigned char *)"de", 2);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(tri_data_lock(lock, "never told", making, &fd), TRI_OK); /* nobody has it */
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int mine = -1;
        tri_log_set_level(TRI_LOG_INFO);
        close(fd);
        _exit(dup2(pipes[1], STDERR_FILENO) < 0 ||
              tri_data_lock(lock, "waiting for it", making, &mine) != TRI_OK);
    }
    close(pipes[1]);
    size_t bytes = 0;
    struct pollfd ready = {.fd = pipes[0], .events = POLLIN};
    while (bytes + 1 < sizeof said && poll(&ready, 1, 20000) == 1 &&
           read(pipes[0], &done, 1) == 1) {
        said[bytes++] = done;
        said[bytes] = '\0';
        if (fd >= 0 && strstr(said, "so far, ") != NULL) {
            close(fd);
            fd = -1;
        }
    }
    if (fd >= 0)
        close(fd);
    close(pipes[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    static const char want[] = "waiting for it\nwaiting for it: 5 bytes written so far, 2.";
    if (strncmp(said, want, sizeof want - 1) != 0)
        fail_msg("%s", said);
}

static void check_list(const char *text, const char *want)
{
    const size_t bytes = strlen(text);
    for (size_t step = 1; step <= bytes; step += step < 8 ? 1 : bytes) { /* in pieces of any size */
        struct heap got = {malloc(MOST), 0};
        assert_non_null(got.data);
        struct tri_json_list list = {.what = "f", .sink = {&got, keep}};
        enum tri_status st = TRI_OK;
        for (size_t at = 0; st == TRI_OK && at < bytes; at += step)
            st =
                tri_json_list_take(&list, text + at, bytes - at < step ? bytes - at : step, at + 1);
        if (st == TRI_OK)
            st = tri_json_list_finish(&list);
        if (st != TRI_OK)
            assert_string_equal(tri_error_text(), want);
        else
            assert_int_equal(got.bytes, strlen(want));
        if (st == TRI_OK)
            assert_memory_equal(got.data, want, got.bytes);
        free(got.data);
    }
}

static void test_json_lists(void **state)
{
    (void)state;
    check_list(" [ {\"a\": [1, {\"b\": \"],\\\"\\\\\"}]},\n {\n\"c\": 1}\r\n, 5 ]\n ",
               "{\"a\": [1, {\"b\": \"],\\\"\\\\\"}]}\n{ \"c\": 1}  \n5 \n");
    check_list("[]", "");
    check_list("[{}]", "{}\n");
    check_list("{}", "f is no JSON list: it does not begin with [ (element 0)");
    check_list("[{}", "f is no JSON list: it ends in the middle (element 1)");
    check_list("[{},,{}]", "f is no JSON list: a comma without an element before it (element 1)");
    check_list("[{}}]", "f is no JSON list: a bracket closes that was not opened (element 1)");
    check_list("[{\"a\": \"\n\"}]", "f is no JSON list: a line break inside a string (element 1)");
    check_list("[1] 2", "f is no JSON list: there is something behind it (element 1)");
}

static void test_names(void **state)
{
    (void)state;
    size_t stem;
    assert_int_equal(tri_coding_of("a/b.jsonl.gz", &stem), TRI_GZIP);
    assert_int_equal(stem, 9);
    assert_int_equal(tri_coding_of("b.txt.ZST", &stem), TRI_ZSTD);
    assert_int_equal(tri_coding_of("b.txt", &stem), TRI_PLAIN);
    assert_int_equal(stem, 5);
    char *folder;
    assert_int_equal(tri_cache_folder("mine", &folder), TRI_OK);
    assert_string_equal(folder, "mine");
    free(folder);
    assert_int_equal(setenv("XDG_CACHE_HOME", "/x", 1), 0);
    assert_int_equal(tri_cache_folder(NULL, &folder), TRI_OK);
    assert_string_equal(folder, "/x/trireme");
    free(folder);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(setenv("HOME", "/y", 1), 0);
    assert_int_equal(tri_cache_folder(NULL, &folder), TRI_OK);
    assert_string_equal(folder, "/y/.cache/trireme");
    free(folder);
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(tri_cache_folder(NULL, &folder), TRI_INVALID);
    assert_error_has("set data.cache_dir");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_gzip),
        SCRATCH_TEST(test_zstd),
        SCRATCH_TEST(test_copies),
        SCRATCH_TEST(test_damaged_copies),
        SCRATCH_TEST(test_failures_leave_nothing),
        SCRATCH_TEST(test_processes_share),
        SCRATCH_TEST(test_waiting_shows_progress),
        SCRATCH_TEST(test_json_lists),
        SCRATCH_TEST(test_names),
    };
    tri_log_set_level(TRI_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
