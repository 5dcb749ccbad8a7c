/* Attention through cuDNN, in bfloat16: every mask against the float64 oracle, and what cuDNN gets
 * wrong.
 *
 * The rule: an error is at most twice that of a plain implementation in the same precision
 * (attn_plain.h). */
#include "gpu/attn_plain.h"
#include "gpu/cudnn_fixture.h"

static void compare(struct tri_test_case *c)
{
    struct tri_test_place host;
    struct tri_test_result oracle, got;
    double *sums[TRI_TEST_MAX_TENSORS] = {NULL};
    tri_test_place_open(tri_test_reference(), &host);
    tri_test_run(&host, c, TRI_BF16, TRI_F64, false, &oracle);
    tri_test_place_close(&host);
    tri_test_run(&place, c, TRI_BF16, TRI_BF16, false, &got);
    for (int i = 0; i < c->num_tensors; i++)
        if (got.value[i] != NULL)
            sums[i] = calloc((size_t)tri_test_count(&c->tensor[i]) + 1, sizeof **sums);
    tri_test_plain_attn(c, sums);
    for (int i = 0; i < c->num_tensors; i++) {
        if (got.value[i] == NULL)
            continue;
        int64_t n = tri_test_count(&c->tensor[i]);
        double *want = oracle.value[i];
        double error = tri_test_distance(got.value[i], want, n);
        double plain_error = tri_test_distance(sums[i], want, n);
        double norm = fmax(tri_test_norm(want, n), c->floor);
        double allowance = (8 + sqrt((double)c->sum_length)) * c->slack * 0x1p-24 * norm;
        if (!(error <= 2 * plain_error + allowance))
            fail_msg("%s: %s: error %.3g of norm %.3g; the plain error is %.3g", c->name,
                     c->tensor[i].name, error, norm, plain_error);
        free(sums[i]);
    }
    tri_test_result_free(&oracle);
    tri_test_result_free(&got);
}

static void compare_shape(const struct tri_case_attn *shape, bool deterministic)
{
    struct tri_test_case c;
    for (int backward = 0; backward <= 1; backward++)
        for (int merged = 0; merged <= backward; merged++) {
            tri_case_attn(&c, backward == 1, shape, merged == 1, merged == 1, 0);
            c.attn.deterministic = deterministic;
            if (shape->tk == 1) /* one key: dq is 0, the difference of two sums */
                c.floor = sqrt((double)(shape->tq * shape->hq * shape->d));
            compare(&c);
            tri_test_case_free(&c);
        }
}

static const int64_t many[] = {0, 1, 2, 60, 61, 189, 190, 318, 447, 600, 601, 900};
enum { MANY = 11 };

static void test_head_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {8, 40, 64, 80, 96, 128, 192, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct tri_case_attn whole = {200, 200, 4, 2, sizes[i], 0, 0, 0, one, 1, 1};
        compare_shape(&whole, false);
        struct tri_case_attn chunk = {100, 333, 2, 1, sizes[i], 233, 0, 0, one, 1, 1};
        compare_shape(&chunk, false);
        struct tri_case_attn documents = {450, 450, 2, 1, sizes[i], 0, 0, 0, many, MANY, 1};
        compare_shape(&documents, false);
        compare_shape(&documents, sizes[i] <= 128);
    }
}

static const struct tri_case_attn masks[] = {
    /* tq  tk hq hk   d  q_begin k_begin window  documents  number  loudness */
    {0, 0, 2, 1, 64, 0, 0, 0, one, 1, 1},
    {5, 0, 2, 1, 64, 9, 0, 0, one, 1, 1},
    {1, 1, 2, 1, 128, 0, 0, 0, one, 1, 1},
    {1, 300, 2, 1, 128, 299, 0, 0, one, 1, 1},
    {1, 192, 2, 1, 128, 300, 0, 0, one, 1, 1},
    {300, 1, 2, 1, 128, 300, 0, 0, one, 1, 1},
    {17, 17, 8, 2, 128, 0, 0, 0, one, 1, 1},
    {333, 333, 4, 4, 128, 0, 0, 0, one, 1, 1},
    {256, 256, 4, 1, 128, 0, 0, 0, one, 1, 20},
    {128, 448, 4, 1, 128, 320, 0, 0, one, 1, 1}, /* a chunk against its prefix */
    {128, 448, 4, 1, 128, 448, 0, 0, one, 1, 1}, /* all keys before the queries */
    {200, 205, 4, 1, 128, 205, 0, 0, one, 1, 1},
    {128, 64, 2, 2, 64, 100, 64, 0, one, 1, 1},   /* keys end among the queries */
    {200, 150, 2, 1, 64, 100, 150, 0, one, 1, 1}, /* early queries see nothing */
    {200, 50, 2, 1, 64, 100, 150, 30, one, 1, 1}, /* and late ones */
    {60, 20, 2, 2, 64, 100, 180, 0, one, 1, 1},   /* nobody sees anything */
    {300, 300, 4, 2, 128, 0, 0, 100, one, 1, 1},
    {300, 300, 4, 2, 128, 0, 0, 1, one, 1, 1},
    {100, 333, 4, 2, 128, 233, 0, 64, one, 1, 1},
    {100, 333, 4, 2, 128, 233, 0, 300, one, 1, 1},
    {100, 256, 4, 2, 128, 256, 0, 150, one, 1, 1}, /* a window over keys before the queries */
    {900, 900, 4, 2, 128, 0, 0, 0, many, MANY, 1},
    {900, 900, 2, 2, 64, 0, 0, 40, many, MANY, 1},
    {300, 700, 4, 1, 128, 400, 0, 0, many, MANY, 1}, /* a straddling document and others */
    {300, 700, 4, 1, 128, 400, 0, 90, many, MANY, 1},
    {150, 100, 4, 1, 128, 350, 330, 0, many, MANY, 1},
};

static void test_masks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++)
        compare_shape(&masks[i], false);
}

static void test_deterministic_masks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++)
        compare_shape(&masks[i], true);
}

static void test_refusals(void **state)
{
    (void)state;
    struct tri_attn op = {.scale = 1, .doc_begin = one, .num_docs = 1};
    struct tri_view x = tri_view3(get(1 << 16), TRI_BF16, 16, 2, 36);
    struct tri_view lse = tri_view2(get(1 << 10), TRI_F32, 16, 2);
    const struct tri_attn_engine *engine = &((struct tri_cuda *)cudnn->ctx)->cudnn;
    assert_int_equal(engine->workspace(cudnn->stream, &op, true, x, x), 0);
    assert_int_equal(engine->forward(cudnn->stream, &op, x, lse, x, x, x, NULL), TRI_UNSUPPORTED);
    x = tri_view3(x.data, TRI_F32, 16, 2, 64);
    assert_int_equal(engine->forward(cudnn->stream, &op, x, lse, x, x, x, NULL), TRI_UNSUPPORTED);
    x = tri_view3((char *)x.data + 2, TRI_BF16, 16, 2, 64);
    assert_int_equal(engine->forward(cudnn->stream, &op, x, lse, x, x, x, NULL), TRI_UNSUPPORTED);
    x = tri_view3((char *)x.data - 2, TRI_BF16, 16, 2, 64);
    x.stride[0] = (int64_t)1 << 31; /* cuDNN 9.19 takes it and gives wrong numbers */
    assert_int_equal(engine->forward(cudnn->stream, &op, x, lse, x, x, x, NULL), TRI_UNSUPPORTED);
    tri_error_clear();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_sizes),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_deterministic_masks),
        cmocka_unit_test(test_refusals),
    };
    engines_open(argc, argv);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    engines_close();
    return failed;
}
