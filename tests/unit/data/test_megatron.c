/* Megatron's indexed datasets, written byte by byte after the layout in data/megatron.h. */
#include "unit/scratch.h"

#include "data/megatron.h"

enum { VOCAB = 300 };

/* A file in the making. */
struct bytes {
    unsigned char data[4096];
    size_t count;
};

static void put(struct bytes *to, uint64_t word, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to->data[to->count++] = (unsigned char)(word >> 8 * i);
}

static const int width_of_code[] = {0, 1, 1, 2, 4, 8, 8, 4, 2};

/* Three documents of (2), (1 and 3), (0) tokens: 7 8 | 9 | 250 251 252. With one mark or none each
 * of the four sequences is a document. */
static void make(int code, uint64_t marks, struct bytes *index, struct bytes *tokens)
{
    static const int lengths[] = {2, 1, 3, 0}, values[] = {7, 8, 9, 120, 121, 122};
    static const int mark[] = {0, 1, 3, 4};
    const int width = width_of_code[code];
    index->count = tokens->count = 0;
    memcpy(index->data, "MMIDIDX\0\0", 9);
    index->count = 9;
    put(index, 1, 8);
    put(index, (uint64_t)code, 1);
    put(index, 4, 8);
    put(index, marks, 8);
    for (int i = 0; i < 4; i++)
        put(index, (uint64_t)lengths[i], 4);
    int before = 0;
    for (int i = 0; i < 4; before += lengths[i++])
        put(index, (uint64_t)(before * width), 8);
    for (uint64_t i = 0; i < marks; i++)
        put(index, (uint64_t)mark[i], 8);
    for (int i = 0; i < 6; i++)
        put(tokens, (uint64_t)values[i], width);
}

static enum tri_status parse(const struct bytes *index, const struct bytes *tokens,
                             struct tri_megatron *out)
{
    return tri_megatron_parse("a.idx", (struct tri_map){index->data, index->count},
                              (struct tri_map){tokens->data, tokens->count}, out);
}

static struct bytes idx, bin;

static void every_type_of_token(void **state)
{
    (void)state;
    static const int codes[] = {1, 2, 3, 4, 5, 8};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct tri_megatron set;
        int32_t ids[6];
        make(codes[i], 4, &idx, &bin);
        if (parse(&idx, &bin, &set) != TRI_OK)
            fail_msg("%s", tri_error_text());
        assert_int_equal(set.documents, 3);
        assert_int_equal(tri_megatron_length(&set, 0), 2);
        assert_int_equal(tri_megatron_length(&set, 1), 4);
        assert_int_equal(tri_megatron_length(&set, 2), 0);
        assert_int_equal(tri_megatron_read(&set, 1, VOCAB, ids), TRI_OK);
        assert_true(ids[0] == 9 && ids[1] == 120 && ids[2] == 121 && ids[3] == 122);
    }
}

static void without_marks_a_sequence_is_a_document(void **state)
{
    (void)state;
    for (uint64_t marks = 0; marks < 2; marks++) {
        struct tri_megatron set;
        make(8, marks, &idx, &bin);
        assert_int_equal(parse(&idx, &bin, &set), TRI_OK);
        assert_int_equal(set.documents, 4);
        assert_int_equal(tri_megatron_length(&set, 2), 3);
    }
}

static void modes_are_passed_over(void **state)
{
    (void)state;
    struct tri_megatron set;
    make(4, 4, &idx, &bin);
    put(&idx, 0, 4);
    assert_int_equal(parse(&idx, &bin, &set), TRI_OK);
    assert_int_equal(set.documents, 3);
}

static void reads_files(void **state)
{
    (void)state;
    struct tri_megatron set;
    int32_t ids[2];
    make(8, 4, &idx, &bin);
    put_file(in_scratch("set.idx"), idx.data, idx.count);
    const char *path = in_scratch("set.idx");
    assert_int_equal(tri_megatron_open(path, &set), TRI_IO);
    assert_error_has("set.bin");
    put_file(in_scratch("set.bin"), bin.data, bin.count);
    assert_int_equal(tri_megatron_open(path, &set), TRI_OK);
    assert_int_equal(tri_megatron_read(&set, 0, VOCAB, ids), TRI_OK);
    assert_true(ids[0] == 7 && ids[1] == 8);
    tri_megatron_close(&set);
    assert_int_equal(tri_megatron_open(in_scratch("set.bin"), &set), TRI_INVALID);
    assert_error_has("PREFIX.idx");
}

static void refuse(const char *message, enum tri_status status)
{
    struct tri_megatron set;
    assert_int_equal(parse(&idx, &bin, &set), status);
    assert_error_has(message);
}

static void change(size_t at, uint64_t word, int bytes)
{
    struct bytes part = {.count = 0};
    put(&part, word, bytes);
    memcpy(idx.data + at, part.data, (size_t)bytes);
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    enum {
        VERSION = 9,
        TYPE = 17,
        SEQUENCES = 18,
        MARKS = 26,
        LENGTHS = 34,
        POINTERS = 50,
        MARK = 82
    };
    static const struct {
        size_t at;
        uint64_t word;
        int bytes;
        const char *message;
        enum tri_status status;
    } cases[] = {
        {0, 'X', 1, "does not begin with MMIDIDX", TRI_FORMAT},
        {VERSION, 2, 8, "version 2", TRI_UNSUPPORTED},
        {TYPE, 6, 1, "floating-point", TRI_UNSUPPORTED},
        {TYPE, 7, 1, "floating-point", TRI_UNSUPPORTED},
        {TYPE, 0, 1, "unknown type of tokens 0", TRI_FORMAT},
        {TYPE, 9, 1, "unknown type of tokens 9", TRI_FORMAT},
        {SEQUENCES, UINT64_MAX, 8, "cut off", TRI_FORMAT},
        {SEQUENCES, UINT64_MAX / 12 + 1, 8, "cut off", TRI_FORMAT},
        {MARKS, UINT64_C(1) << 61, 8, "cut off", TRI_FORMAT},
        {MARKS, 3, 8, "8 bytes too many", TRI_FORMAT},
        {LENGTHS, UINT32_MAX, 4, "sequence 0 has -1 tokens", TRI_FORMAT},
        {LENGTHS, 7, 4, "do not belong together", TRI_FORMAT},
        {LENGTHS, 6, 4, "overlap", TRI_FORMAT},
        {POINTERS, UINT64_MAX, 8, "do not belong together", TRI_FORMAT},
        {POINTERS, 11, 8, "do not belong together", TRI_FORMAT},
        {MARK, 1, 8, "mark 0", TRI_FORMAT},
        {MARK + 8, 5, 8, "mark 1", TRI_FORMAT},
        {MARK + 16, 0, 8, "mark 2", TRI_FORMAT},
        {MARK + 24, 3, 8, "end at sequence 3 of 4", TRI_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(8, 4, &idx, &bin);
        change(cases[i].at, cases[i].word, cases[i].bytes);
        refuse(cases[i].message, cases[i].status);
    }
    for (size_t bytes = 0; bytes < 34 + 4 * 12 + 4 * 8; bytes++) { /* every way to be cut off */
        struct tri_megatron set;
        make(8, 4, &idx, &bin);
        idx.count = bytes;
        assert_int_equal(parse(&idx, &bin, &set), TRI_FORMAT);
    }
}

static void names_a_token_outside_the_vocabulary(void **state)
{
    (void)state;
    struct tri_megatron set;
    int32_t ids[4];
    make(4, 4, &idx, &bin);
    assert_int_equal(parse(&idx, &bin, &set), TRI_OK);
    assert_int_equal(tri_megatron_read(&set, 1, 122, ids), TRI_INVALID);
    assert_error_has("token 2 of sequence 2 is 122, outside the vocabulary of 122");
    bin.data[4 * 2 + 3] = 0x80; /* 9 becomes negative */
    assert_int_equal(tri_megatron_read(&set, 1, VOCAB, ids), TRI_INVALID);
    assert_error_has("is -2147483639");
    assert_int_equal(tri_megatron_read(&set, 3, VOCAB, ids), TRI_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_token),
        cmocka_unit_test(without_marks_a_sequence_is_a_document),
        cmocka_unit_test(modes_are_passed_over),
        SCRATCH_TEST(reads_files),
        cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(names_a_token_outside_the_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
