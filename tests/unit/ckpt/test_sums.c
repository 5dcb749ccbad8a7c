/* Hashes of files in blocks. */
#include "unit/scratch.h"

#include <fcntl.h>

#include "ckpt/sums.h"

/* Two blocks and a bit, as a sparse file of zeros but for its ends. */
static const size_t long_bytes = 2 * (size_t)TRI_SUMS_BLOCK + 5;

static void put_long(const char *path, unsigned char last)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "a", 1, 0), 1);
    assert_int_equal(pwrite(fd, &last, 1, (off_t)long_bytes - 1), 1);
    assert_int_equal(close(fd), 0);
}

/* Sums of what put_long(.., 'z') writes, taken in pieces that fit no block. */
static void sum_long(struct tri_sums *sums)
{
    enum { PIECE = 10 * 1000 * 1000 };
    unsigned char *zeros = calloc(1, PIECE);
    assert_non_null(zeros);
    struct tri_sum *file = tri_sums_begin(sums, "long");
    assert_non_null(file);
    tri_sum_add(file, "a", 1);
    for (size_t left = long_bytes - 2; left > 0;) {
        const size_t piece = left < PIECE ? left : PIECE;
        tri_sum_add(file, zeros, piece);
        left -= piece;
    }
    tri_sum_add(file, "z", 1);
    free(zeros);
}

static void blocks_are_compared_as_they_are_read(void **state)
{
    (void)state;
    struct tri_sums *sums = NULL, *read = NULL;
    struct tri_map map;
    const char *path = in_scratch("long");
    assert_int_equal(tri_sums_open(&sums), TRI_OK);
    sum_long(sums);
    assert_int_equal(tri_sums_save(sums, scratch), TRI_OK);
    tri_sums_close(sums);

    assert_int_equal(tri_sums_load(scratch, &read), TRI_OK);
    put_long(path, 'z');
    assert_int_equal(tri_sums_check_file(read, scratch, "long"), TRI_OK);
    tri_sums_close(read);

    put_long(path, 'y'); /* the last block is damaged, the others are not */
    assert_int_equal(tri_sums_load(scratch, &read), TRI_OK);
    assert_int_equal(tri_map_open(path, &map), TRI_OK);
    assert_int_equal(tri_sums_check(read, path, &map, 0, 1), TRI_OK);
    assert_int_equal(tri_sums_check(read, path, &map, 0, 2 * (size_t)TRI_SUMS_BLOCK), TRI_OK);
    assert_int_equal(tri_sums_check(read, path, &map, 7, 2 * (size_t)TRI_SUMS_BLOCK), TRI_FORMAT);
    assert_error_has("long is damaged: bytes 134217728 to 134217732 are not");
    assert_int_equal(tri_sums_check(read, path, &map, long_bytes - 1, 1), TRI_FORMAT);
    assert_int_equal(tri_sums_check(read, path, &map, long_bytes, 0), TRI_OK);
    tri_map_close(&map);
    tri_sums_close(read);
}

static void small_files(void **state)
{
    (void)state;
    struct tri_sums *sums = NULL, *read = NULL;
    assert_int_equal(tri_sums_open(&sums), TRI_OK);
    tri_sums_add(sums, "somewhere/one", "1", 1);
    tri_sums_add(sums, "empty", "", 0);
    tri_sums_add(NULL, "nothing", "1", 1);
    assert_int_equal(tri_sums_save(sums, scratch), TRI_OK);
    tri_sums_close(sums);
    assert_int_equal(tri_sums_load(scratch, &read), TRI_OK);
    put_text(in_scratch("one"), "1");
    put_text(in_scratch("empty"), "");
    put_text(in_scratch("other"), "1");
    assert_int_equal(tri_sums_check_file(read, scratch, "one"), TRI_OK);
    assert_int_equal(tri_sums_check_file(read, scratch, "empty"), TRI_OK);
    assert_int_equal(tri_sums_check_file(read, scratch, "gone"), TRI_IO);
    assert_int_equal(tri_sums_check_file(read, scratch, "other"), TRI_FORMAT);
    assert_error_has("other was not there");
    put_text(in_scratch("empty"), " ");
    assert_int_equal(tri_sums_check_file(read, scratch, "empty"), TRI_FORMAT);
    assert_error_has("empty has 1 byte and had 0 when it was saved");
    assert_int_equal(tri_sums_check_file(NULL, scratch, "other"), TRI_OK);
    tri_sums_close(read);
}

static void a_folder_without_hashes(void **state)
{
    (void)state;
    struct tri_sums *read = NULL;
    assert_int_equal(tri_sums_load(scratch, &read), TRI_OK);
    assert_null(read);
}

static void hostile_files(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"format\": 3, \"block_bytes\": 67108864, \"files\": {}}",
        "{\"format\": 2, \"block_bytes\": 67108864, \"files\": {}}",
        "{\"format\": 2, \"block_bytes\": 67108864, \"files\": {}, \"hash\": 1}",
        "{\"format\": 1, \"block_bytes\": 0, \"files\": {}}",
        "{\"format\": 1, \"block_bytes\": 67108864, \"files\": []}",
        "{\"format\": 1, \"block_bytes\": 67108864, \"files\": {\"a\": 1}}",
        "{\"format\": 1, \"block_bytes\": 67108864, \"files\": {\"a\": {\"bytes\": 1, \"blocks\": "
        "[]}}}",
        "{\"format\": 1, \"block_bytes\": 67108864, \"files\": {\"a\": {\"bytes\": "
        "9223372036854775807, \"blocks\": [\"0000000000000000\"]}}}",
        "{\"format\": 1, \"block_bytes\": 67108864, \"files\": {\"a\": {\"bytes\": 1, \"blocks\": "
        "[\"000000000000000g\"]}}}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct tri_sums *read = NULL;
        put_text(in_scratch("trireme_checksums.json"), texts[i]);
        assert_int_equal(tri_sums_load(scratch, &read), TRI_FORMAT);
        assert_error_has("trireme_checksums.json");
        assert_null(read);
    }
}

/* Every bit of what is saved, turned over: either it is found, or nothing that is read differs. */
static void damage_of_the_hashes_is_their_own(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    struct tri_sums *sums = NULL;
    assert_int_equal(tri_sums_open(&sums), TRI_OK);
    tri_sums_add(sums, "one", "1", 1);
    tri_sums_add(sums, "two", "22", 2);
    assert_int_equal(tri_sums_save(sums, scratch), TRI_OK);
    const uint64_t hash = tri_sums_hash(sums);
    tri_sums_close(sums);
    const char *path = in_scratch("trireme_checksums.json");
    assert_int_equal(tri_file_read(path, 4096, &text, &bytes), TRI_OK);
    int found = 0;
    for (size_t i = 0; i < 8 * bytes; i++) {
        struct tri_sums *read = NULL;
        text[i / 8] ^= (char)(1 << i % 8);
        if (tri_sums_parse("sums", text, bytes, &read) == TRI_OK)
            assert_true(tri_sums_hash(read) == hash);
        else
            found++;
        tri_sums_close(read);
        text[i / 8] ^= (char)(1 << i % 8);
    }
    assert_true(found > (int)bytes);
    char *digit = strstr(text, "\"bytes\": 2");
    assert_non_null(digit);
    digit[9] = '3';
    assert_int_equal(tri_sums_parse("sums", text, bytes, &sums), TRI_FORMAT);
    assert_error_has("sums is damaged: by its own hash");
    free(text);
}

/* Format 1 has no hash of itself. */
static void hashes_of_earlier_versions(void **state)
{
    (void)state;
    struct tri_sums *read = NULL;
    put_text(in_scratch("trireme_checksums.json"),
             "{\"format\": 1, \"block_bytes\": 67108864, \"files\": {\"a\": {\"bytes\": 0, "
             "\"blocks\": []}}}");
    assert_int_equal(tri_sums_load(scratch, &read), TRI_OK);
    assert_string_equal(tri_sums_file(read, 0), "a");
    assert_null(tri_sums_file(read, 1));
    tri_sums_close(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(blocks_are_compared_as_they_are_read),
        SCRATCH_TEST(small_files),
        SCRATCH_TEST(a_folder_without_hashes),
        SCRATCH_TEST(hostile_files),
        SCRATCH_TEST(damage_of_the_hashes_is_their_own),
        SCRATCH_TEST(hashes_of_earlier_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
