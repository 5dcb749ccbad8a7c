#include "unit/scratch.h"

#include "ckpt/safetensors.h"

/* Write a safetensors file from a header text and data bytes of ascending value. */
static void put_safetensors(const char *path, const char *header, size_t data_bytes)
{
    size_t length = strlen(header), total = 8 + length + data_bytes;
    unsigned char *bytes = calloc(1, total);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)length >> (8 * i));
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        bytes[8 + length + i] = (unsigned char)i;
    put_file(path, bytes, total);
    free(bytes);
}

static void header_fails(const char *header, size_t data_bytes, enum tri_status expected,
                         const char *part)
{
    put_safetensors(in_scratch("bad.safetensors"), header, data_bytes);
    struct tri_st *st = NULL;
    assert_int_equal(tri_st_open(in_scratch("bad.safetensors"), &st), expected);
    assert_null(st);
    assert_error_has(in_scratch("bad.safetensors"));
    assert_error_has(part);
}

static void reads_a_file(void **state)
{
    (void)state;
    put_safetensors(in_scratch("a.safetensors"),
                    "{\"__metadata__\":{\"format\":\"pt\"},"
                    "\"z\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[0,6]},"
                    "\"b\":{\"dtype\":\"BOOL\",\"shape\":[2,0],\"data_offsets\":[6,6]},"
                    "\"a\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[6,14]},"
                    "\"s\":{\"shape\":[],\"data_offsets\":[14,22],\"dtype\":\"F64\"}}   ",
                    22);
    struct tri_st *st = NULL;
    assert_int_equal(tri_st_open(in_scratch("a.safetensors"), &st), TRI_OK);
    assert_int_equal(tri_st_count(st), 4);
    static const char *const sorted[] = {"a", "b", "s", "z"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(tri_st_at(st, i)->name, sorted[i]);

    const struct tri_st_tensor *a = tri_st_find(st, "a");
    assert_int_equal(a->dtype, TRI_BF16);
    assert_int_equal(a->num_dims, 2);
    assert_int_equal(a->dim[0] * 10 + a->dim[1], 22);
    assert_int_equal(a->bytes, 8);
    assert_int_equal(((const unsigned char *)a->data)[0], 6);
    tri_st_forget(a);
    assert_int_equal(((const unsigned char *)a->data)[7], 13);
    assert_int_equal(tri_st_find(st, "b")->bytes, 0);
    assert_int_equal(tri_st_find(st, "b")->dtype, TRI_U8);
    assert_int_equal(tri_st_find(st, "s")->num_dims, 0);
    assert_int_equal(tri_st_find(st, "s")->bytes, 8);
    assert_null(tri_st_find(st, "aa"));
    tri_st_close(st);

    put_safetensors(in_scratch("empty.safetensors"), "{}", 0);
    assert_int_equal(tri_st_open(in_scratch("empty.safetensors"), &st), TRI_OK);
    assert_int_equal(tri_st_count(st), 0);
    assert_null(tri_st_find(st, "a"));
    tri_st_close(st);
}

static void refuses_a_bad_length(void **state)
{
    (void)state;
    struct tri_st *st = NULL;
    const char *path = in_scratch("a.safetensors");
    put_file(path, "1234567", 7);
    assert_int_equal(tri_st_open(path, &st), TRI_FORMAT);
    assert_error_has("7 bytes are too few");
    put_file(path, "", 0);
    assert_int_equal(tri_st_open(path, &st), TRI_FORMAT);
    put_file(path, "\3\0\0\0\0\0\0\0{}", 10);
    assert_int_equal(tri_st_open(path, &st), TRI_FORMAT);
    assert_error_has("says it has 3 bytes, but the file has only 2");
    put_file(path, "\377\377\377\377\377\377\377\377{}", 10);
    assert_int_equal(tri_st_open(path, &st), TRI_FORMAT);
    assert_error_has("18446744073709551615 bytes, more than the 100000000 allowed");
    put_file(path, "\0\0\0\0\0\0\0\0", 8);
    assert_int_equal(tri_st_open(path, &st), TRI_FORMAT);
    assert_error_has("does not start with \"{\"");
    assert_int_equal(tri_st_open(in_scratch("none.safetensors"), &st), TRI_IO);
    assert_error_has("none.safetensors: No such file");
    assert_null(st);
}

#define TENSOR(dtype, shape, offsets)                                                              \
    "{\"t\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void refuses_bad_headers(void **state)
{
    (void)state;
    header_fails(" {}", 0, TRI_FORMAT, "does not start with \"{\"");
    header_fails("{\"t\":", 0, TRI_FORMAT, "not valid JSON");
    header_fails("[]", 0, TRI_FORMAT, "does not start with \"{\"");
    header_fails("{\"t\":1}", 0, TRI_FORMAT, "tensor t is not an object");
    header_fails("{\"t\":{}}", 0, TRI_FORMAT, "tensor t has no \"dtype\"");
    header_fails("{\"__metadata__\":[]}", 0, TRI_FORMAT, "__metadata__ is not an object");
    header_fails("{\"__metadata__\":{\"k\":1}}", 0, TRI_FORMAT, "__metadata__ \"k\"");
    header_fails("{\"t\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":1}}", 1,
                 TRI_FORMAT, "members other than");

    header_fails(TENSOR("\"F8_E4M3\"", "[1]", "[0,1]"), 1, TRI_UNSUPPORTED,
                 "tensor t has dtype \"F8_E4M3\"");
    header_fails(TENSOR("7", "[1]", "[0,1]"), 1, TRI_FORMAT, "no \"dtype\" text");

    header_fails(TENSOR("\"F32\"", "4", "[0,4]"), 4, TRI_FORMAT, "no \"shape\" list");
    header_fails(TENSOR("\"F32\"", "[-1]", "[0,4]"), 4, TRI_FORMAT, "dimension 0");
    header_fails(TENSOR("\"F32\"", "[1,1.0]", "[0,4]"), 4, TRI_FORMAT, "dimension 1");
    header_fails(TENSOR("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, TRI_FORMAT,
                 "has 9 dimensions");
    header_fails(TENSOR("\"F32\"", "[4611686018427387904,4611686018427387904,0]", "[0,0]"), 0,
                 TRI_FORMAT, "more than 2^63 bytes");
    header_fails(TENSOR("\"F32\"", "[9223372036854775807]", "[0,4]"), 4, TRI_FORMAT, "2^63");

    header_fails(TENSOR("\"F32\"", "[1]", "[0]"), 4, TRI_FORMAT, "list of two numbers");
    header_fails(TENSOR("\"F32\"", "[1]", "[0,\"4\"]"), 4, TRI_FORMAT, "list of two numbers");
    header_fails(TENSOR("\"F32\"", "[1]", "[4,0]"), 4, TRI_FORMAT, "[4, 0], which are not a range");
    header_fails(TENSOR("\"F32\"", "[1]", "[-4,0]"), 4, TRI_FORMAT, "not a range");
    header_fails(TENSOR("\"F32\"", "[2,3]", "[0,20]"), 20, TRI_FORMAT,
                 "has 20 bytes by its data_offsets, but float32 of shape [2, 3] needs 24");
}

static void refuses_bad_layouts(void **state)
{
    (void)state;
#define PAIR(first, second)                                                                        \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" first                               \
    "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" second "}}"
    header_fails(PAIR("[0,4]", "[4,8]"), 7, TRI_FORMAT,
                 "tensor b ends at byte 8 of the data, but the file has only 7: it is cut short");
    header_fails(PAIR("[0,4]", "[4,8]"), 9, TRI_FORMAT,
                 "end at byte 8 of the data, but the file goes on to 9");
    header_fails(PAIR("[0,4]", "[3,7]"), 7, TRI_FORMAT,
                 "tensor b starts at byte 3 of the data, but a before it ends at 4: the two "
                 "overlap");
    header_fails(PAIR("[0,4]", "[0,4]"), 4, TRI_FORMAT, "the two overlap");
    header_fails(PAIR("[5,9]", "[0,4]"), 9, TRI_FORMAT, "leave a gap");
    header_fails(PAIR("[1,5]", "[5,9]"), 9, TRI_FORMAT,
                 "the first tensor, a, starts at byte 1 of the data, not 0");
    header_fails("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                 "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
                 8, TRI_FORMAT, "duplicate object key");
    header_fails("{}", 3, TRI_FORMAT, "end at byte 0 of the data, but the file goes on to 3");
}

/* Names from a stranger neither break the line nor fill it. */
static void shows_hostile_names_in_one_line(void **state)
{
    (void)state;
    header_fails("{\"two\\nlines\":1}", 0, TRI_FORMAT, "tensor two?lines is not");
    char header[1100] = "{\"";
    memset(header + 2, 'x', 1000);
    strcpy(header + 1002, "\":1}");
    header_fails(header, 0, TRI_FORMAT, "xxx...xxx");
    header_fails(header, 0, TRI_FORMAT, "is not an object");
}

/* Every truncation of a good file is an error. */
static void refuses_every_truncation(void **state)
{
    (void)state;
    char *path = strdup(in_scratch("a.safetensors"));
    put_safetensors(path,
                    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                    "\"b\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[8,16]}}",
                    16);
    struct tri_map map;
    assert_int_equal(tri_map_open(path, &map), TRI_OK);
    size_t bytes = map.bytes;
    tri_map_close(&map);
    while (bytes-- > 0) {
        assert_int_equal(truncate(path, (off_t)bytes), 0);
        struct tri_st *st = NULL;
        assert_int_equal(tri_st_open(path, &st), TRI_FORMAT);
        assert_error_has(path);
    }
    free(path);
}

static void write_pair(const char *path)
{
    const struct tri_st_decl decl[] = {{"m.w", TRI_F32, 2, {2, 3}}, {"a", TRI_BF16, 1, {3}}};
    static const float w[] = {1, 2, 3, 4, 5, 6};
    static const uint16_t a[] = {0x3F80, 0x4000, 0x4040};
    struct tri_st_writer *writer = NULL;
    assert_int_equal(tri_st_writer_open(path, decl, 2, &writer), TRI_OK);
    assert_int_equal(tri_st_writer_append(writer, w, 8), TRI_OK);
    assert_int_equal(tri_st_writer_append(writer, w + 2, 16), TRI_OK);
    assert_int_equal(tri_st_writer_append(writer, a, 6), TRI_OK);
    assert_int_equal(tri_st_writer_commit(writer), TRI_OK);
}

static uint64_t place_of(const char *path)
{
    struct tri_st *st = NULL;
    uint64_t place;
    assert_int_equal(tri_st_open(path, &st), TRI_OK);
    assert_int_equal(tri_st_place(st, &place), TRI_OK);
    tri_st_close(st);
    return place;
}

/* Equal bytes elsewhere are not the same file, and neither is one that was written again. */
static void knows_the_very_same_file(void **state)
{
    (void)state;
    const char *one = in_scratch("one.safetensors"), *other = in_scratch("other.safetensors");
    write_pair(one);
    write_pair(other);
    const uint64_t place = place_of(one);
    assert_true(place_of(one) == place);
    assert_true(place_of(other) != place);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(symlink(one, other), 0);
    assert_true(place_of(other) == place);
    write_pair(one);
    assert_true(place_of(one) != place);
}

static void writes_what_it_reads(void **state)
{
    (void)state;
    const char *path = in_scratch("w.safetensors");
    write_pair(path);
    char *text = get_text(path);
    assert_int_equal(text[0] % 8, 0); /* the data is aligned */
    assert_true(strncmp(text + 8, "{\"__metadata__\":{\"format\":\"pt\"},\"m.w\":", 38) == 0);
    free(text);

    struct tri_st *st = NULL;
    assert_int_equal(tri_st_open(path, &st), TRI_OK);
    assert_int_equal(tri_st_count(st), 2);
    const struct tri_st_tensor *w = tri_st_find(st, "m.w"), *a = tri_st_find(st, "a");
    assert_int_equal((uintptr_t)w->data % 8, 0);
    assert_int_equal(w->dim[1], 3);
    float back[6];
    memcpy(back, w->data, sizeof back);
    for (int i = 0; i < 6; i++)
        assert_true(back[i] == (float)(i + 1));
    assert_int_equal(a->dtype, TRI_BF16);
    assert_memory_equal(a->data, "\x80\x3F\x00\x40\x40\x40", 6);
    tri_st_close(st);
}

static void writer_wants_exactly_what_was_declared(void **state)
{
    (void)state;
    const struct tri_st_decl decl[] = {{"a", TRI_U8, 1, {4}}, {"a", TRI_U8, 1, {4}}};
    struct tri_st_writer *writer = NULL;
    const char *path = in_scratch("w.safetensors");
    assert_int_equal(tri_st_writer_open(path, decl, 1, &writer), TRI_OK);
    assert_int_equal(tri_st_writer_append(writer, "12345", 5), TRI_INTERNAL);
    assert_int_equal(tri_st_writer_append(writer, "123", 3), TRI_OK);
    assert_int_equal(tri_st_writer_commit(writer), TRI_INTERNAL);
    assert_error_has("4 bytes of data were declared, 3 were appended");
    assert_int_equal(tri_st_writer_open(path, decl, 2, &writer), TRI_INTERNAL);
    assert_error_has("declared twice");
    assert_int_equal(count_entries(scratch), 0);
}

static void full_disk_keeps_the_old_file(void **state)
{
    (void)state;
    const char *path = in_scratch("w.safetensors");
    write_pair(path);
    char *before = get_text(path);
    const struct tri_st_decl decl[] = {{"a", TRI_U8, 1, {4}}};
    struct tri_st_writer *writer = NULL;
    tri_file_fail_at(1);
    assert_int_equal(tri_st_writer_open(path, decl, 1, &writer), TRI_OK);
    assert_int_equal(tri_st_writer_append(writer, "1234", 4), TRI_OK);
    assert_int_equal(tri_st_writer_commit(writer), TRI_IO);
    assert_error_has("No space left on device");
    char *after = get_text(path);
    assert_memory_equal(before, after, 1 << 20);
    assert_int_equal(count_entries(scratch), 1);
    free(before);
    free(after);
}

/* --- folders --- */

#define ONE(name) "{\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"

static void put_shards(const char *weight_map)
{
    char index[512];
    snprintf(index, sizeof index, "{\"metadata\":{\"total_size\":8},\"weight_map\":%s}",
             weight_map);
    put_safetensors(in_scratch("s1.safetensors"), ONE("x"), 4);
    put_safetensors(in_scratch("s2.safetensors"), ONE("b"), 4);
    put_text(in_scratch("model.safetensors.index.json"), index);
}

static void reads_shards(void **state)
{
    (void)state;
    put_shards("{\"x\":\"s1.safetensors\",\"b\":\"s2.safetensors\"}");
    struct tri_st *st = NULL;
    assert_int_equal(tri_st_open(scratch, &st), TRI_OK);
    assert_int_equal(tri_st_count(st), 2);
    assert_string_equal(tri_st_at(st, 0)->name, "b");
    assert_non_null(tri_st_find(st, "x"));
    tri_st_close(st);

    /* As in Transformers, a single file goes first. */
    put_safetensors(in_scratch("model.safetensors"), ONE("single"), 4);
    assert_int_equal(tri_st_open(scratch, &st), TRI_OK);
    assert_int_equal(tri_st_count(st), 1);
    tri_st_close(st);
}

static void shards_fail(const char *weight_map, enum tri_status expected, const char *part)
{
    put_shards(weight_map);
    struct tri_st *st = NULL;
    assert_int_equal(tri_st_open(scratch, &st), expected);
    assert_null(st);
    assert_error_has(part);
}

static void refuses_bad_indexes(void **state)
{
    (void)state;
    shards_fail("[]", TRI_FORMAT, "\"weight_map\" names no tensors");
    shards_fail("{}", TRI_FORMAT, "\"weight_map\" names no tensors");
    shards_fail("{\"x\":1}", TRI_FORMAT, "tensor x is placed in \"\"");
    shards_fail("{\"x\":\"../s1.safetensors\"}", TRI_FORMAT, "placed in \"../s1.safetensors\"");
    shards_fail("{\"x\":\"a/s1.safetensors\"}", TRI_FORMAT, "not the name of a file");
    shards_fail("{\"x\":\"..\"}", TRI_FORMAT, "not the name of a file");
    shards_fail("{\"x\":\"\"}", TRI_FORMAT, "not the name of a file");
    shards_fail("{\"x\":\"one\\ntwo\"}", TRI_FORMAT, "one?two");
    shards_fail("{\"x\":\"none.safetensors\"}", TRI_IO, "none.safetensors: No such file");
    shards_fail("{\"x\":\"s1.safetensors\",\"b\":\"s2.safetensors\",\"c\":\"s2.safetensors\"}",
                TRI_FORMAT, "tensor c is not in s2.safetensors, where the index places it");
    shards_fail("{\"y\":\"s1.safetensors\"}", TRI_FORMAT,
                "holds tensor x, which the index does not name");
    shards_fail("{\"x\":\"s2.safetensors\",\"b\":\"s2.safetensors\"}", TRI_FORMAT,
                "tensor x is not in s2.safetensors");
    shards_fail("{\"x\":\"s1.safetensors\",\"b\":\"s1.safetensors\"}", TRI_FORMAT,
                "tensor b is not in s1.safetensors");
    shards_fail("{\"b\":\"s1.safetensors\",\"x\":\"s2.safetensors\"}", TRI_FORMAT,
                "holds tensor x, which the index places in s2.safetensors");
}

static void says_what_a_folder_lacks(void **state)
{
    (void)state;
    struct tri_st *st = NULL;
    assert_int_equal(tri_st_open(scratch, &st), TRI_IO);
    assert_error_has("has no weights: neither model.safetensors nor");
    put_text(in_scratch("pytorch_model.bin"), "x");
    assert_int_equal(tri_st_open(scratch, &st), TRI_UNSUPPORTED);
    assert_error_has("pytorch_model.bin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(reads_a_file),
        SCRATCH_TEST(refuses_a_bad_length),
        SCRATCH_TEST(refuses_bad_headers),
        SCRATCH_TEST(refuses_bad_layouts),
        SCRATCH_TEST(shows_hostile_names_in_one_line),
        SCRATCH_TEST(refuses_every_truncation),
        SCRATCH_TEST(writes_what_it_reads),
        SCRATCH_TEST(knows_the_very_same_file),
        SCRATCH_TEST(writer_wants_exactly_what_was_declared),
        SCRATCH_TEST(full_disk_keeps_the_old_file),
        SCRATCH_TEST(reads_shards),
        SCRATCH_TEST(refuses_bad_indexes),
        SCRATCH_TEST(says_what_a_folder_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
