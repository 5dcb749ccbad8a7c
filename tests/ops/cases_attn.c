/* Cases of attention. */
#include "ops/cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

static const int64_t one_document[] = {0, 100000};
static const int64_t four_documents[] = {0, 1, 40, 41, 113};
static const int64_t documents_of_200[] = {0, 90, 120, 121, 200};
static const int64_t documents_of_700[] = {0, 300, 333, 700};

const struct tri_case_attn tri_case_attn_shapes[] = {
    /*   tq  tk hq hk   d  q_begin k_begin window  documents  number  loudness */
    {0, 0, 2, 1, 64, 0, 0, 0, one_document, 1, 1},
    {1, 1, 1, 1, 64, 0, 0, 0, one_document, 1, 1},
    {3, 3, 2, 2, 1, 0, 0, 0, one_document, 1, 1},
    {17, 17, 4, 2, 80, 0, 0, 0, one_document, 1, 1},
    {113, 113, 3, 1, 7, 0, 0, 0, four_documents, 4, 1},
    {113, 113, 4, 4, 64, 0, 0, 0, four_documents, 4, 1},
    {113, 113, 4, 2, 128, 0, 0, 64, one_document, 1, 1},
    {113, 113, 2, 1, 64, 0, 0, 5, four_documents, 4, 1},
    {113, 113, 1, 1, 203, 0, 0, 1, one_document, 1, 1},
    {60, 100, 4, 2, 64, 100, 0, 0, one_document, 1, 1},       /* a prefix that all queries see */
    {60, 60, 4, 2, 64, 100, 100, 0, one_document, 1, 1},      /* the diagonal block */
    {60, 45, 2, 1, 80, 100, 130, 0, one_document, 1, 1},      /* early queries see nothing */
    {60, 20, 2, 2, 64, 100, 180, 0, one_document, 1, 1},      /* nobody sees anything */
    {60, 80, 2, 1, 64, 100, 10, 30, one_document, 1, 1},      /* late queries see nothing */
    {60, 0, 2, 1, 64, 100, 0, 0, one_document, 1, 1},         /* no keys at all */
    {100, 150, 4, 1, 64, 100, 50, 0, documents_of_200, 4, 1}, /* a straddling document */
    {80, 170, 2, 2, 128, 110, 20, 25, documents_of_200, 4, 1},
    {113, 113, 2, 1, 64, 0, 0, 0, one_document, 1, 40}, /* scores in the hundreds */
    {300, 300, 4, 1, 64, 0, 0, 0, one_document, 1, 1},
    {300, 600, 2, 1, 64, 350, 50, 0, documents_of_700, 3, 1},
    {250, 550, 1, 1, 128, 330, 30, 200, documents_of_700, 3, 1},
};
const int tri_case_num_attn_shapes =
    (int)(sizeof(tri_case_attn_shapes) / sizeof(tri_case_attn_shapes[0]));

/* o and lse of a backward case from the reference forward. With `merged`, as if keys outside the
 * range held the rest of the probability (all of it where the range shows nothing). */
static void fill_forward(struct tri_test_case *c, const struct tri_case_attn *shape, bool merged)
{
    enum { O = 7, LSE = 8 };
    const double share = exp(-0.7);
    struct tri_test_case forward;
    tri_case_attn(&forward, false, shape, false, false, 0);
    struct tri_test_place host;
    struct tri_test_result result;
    tri_test_place_open(tri_test_reference(), &host);
    tri_test_run(&host, &forward, TRI_F64, TRI_F64, false, &result);
    tri_test_place_close(&host);

    double *o = c->tensor[O].value, *lse = c->tensor[LSE].value;
    for (int64_t row = 0; row < shape->tq * shape->hq; row++) {
        bool blind = isinf(result.value[1][row]);
        lse[row] = result.value[1][row];
        if (merged)
            lse[row] = blind ? 0.3 : lse[row] + 0.7;
        for (int64_t d = 0; d < shape->d; d++) {
            int64_t at = row * shape->d + d;
            double elsewhere = tri_rng_normal(13, 0, (uint64_t)at);
            double here = blind ? 0 : share;
            o[at] = result.value[0][at];
            if (merged)
                o[at] = here * o[at] + (1 - here) * elsewhere;
        }
    }
    tri_test_result_free(&result);
    tri_test_case_free(&forward);
}

void tri_case_attn(struct tri_test_case *c, bool backward, const struct tri_case_attn *shape,
                   bool accumulate, bool merged, int64_t pad)
{
    int64_t tq = shape->tq, tk = shape->tk, hq = shape->hq, hk = shape->hk, d = shape->d;
    tri_case_begin(c, backward ? TRI_TEST_ATTN_BACKWARD : TRI_TEST_ATTN_FORWARD,
                   "attn_%s q=%lld+%lld k=%lld+%lld Hq=%lld Hk=%lld D=%lld window=%lld docs=%lld "
                   "accumulate=%d merged=%d pad=%lld",
                   backward ? "backward" : "forward", (long long)shape->q_begin, (long long)tq,
                   (long long)shape->k_begin, (long long)tk, (long long)hq, (long long)hk,
                   (long long)d, (long long)shape->window, (long long)shape->num_docs, accumulate,
                   merged, (long long)pad);
    c->attn = (struct tri_attn){.scale = 1 / sqrt((double)d),
                                .q_begin = shape->q_begin,
                                .k_begin = shape->k_begin,
                                .window = shape->window,
                                .doc_begin = shape->doc_begin,
                                .num_docs = shape->num_docs,
                                .deterministic = true};
    c->flag = accumulate;
    c->sum_length = tk + d;
    /* exp turns the rounding of a score, which grows with the score, into relative error. */
    c->slack = shape->loudness;
    if (!backward) {
        tri_case_add(c, "o", TRI_TEST_ACT, TRI_TEST_OUT, pad, tq, hq, d);
        tri_case_add(c, "lse", TRI_TEST_STAT, TRI_TEST_OUT, pad, tq, hq, -1);
        c->exact_zeros = true; /* the rows that see nothing */
    } else {
        tri_case_add(c, "dq", TRI_TEST_ACT, accumulate ? TRI_TEST_INOUT : TRI_TEST_OUT, pad, tq, hq,
                     d);
        tri_case_add(c, "dk", TRI_TEST_STAT, TRI_TEST_INOUT, pad, tk, hk, d);
        tri_case_add(c, "dv", TRI_TEST_STAT, TRI_TEST_INOUT, pad, tk, hk, d);
        tri_case_add(c, "do", TRI_TEST_ACT, TRI_TEST_IN, pad, tq, hq, d);
        /* A query with one key has gradient 0, the difference of two sums of D terms. */
        c->floor = tq <= 3 || shape->window == 1 ? sqrt((double)(tq * hq * d)) : 0;
    }
    struct tri_test_tensor *q = tri_case_add(c, "q", TRI_TEST_ACT, TRI_TEST_IN, pad, tq, hq, d);
    tri_case_add(c, "k", TRI_TEST_ACT, TRI_TEST_IN, pad, tk, hk, d);
    tri_case_add(c, "v", TRI_TEST_ACT, TRI_TEST_IN, pad, tk, hk, d);
    for (int64_t i = 0; i < tq * hq * d; i++)
        q->value[i] *= shape->loudness;
    if (backward) {
        tri_case_add(c, "o", TRI_TEST_ACT, TRI_TEST_IN, pad, tq, hq, d);
        tri_case_add(c, "lse", TRI_TEST_STAT, TRI_TEST_IN, pad, tq, hq, -1);
        fill_forward(c, shape, merged);
    }
}

void tri_case_list_attn(struct tri_case_visitor v)
{
    struct tri_test_case c;
    for (int i = 0; i < tri_case_num_attn_shapes; i++) {
        const struct tri_case_attn *shape = &tri_case_attn_shapes[i];
        for (int64_t pad = 0; pad <= 3; pad += 3) {
            tri_case_attn(&c, false, shape, false, false, pad);
            tri_case_done(v, &c);
            tri_case_attn(&c, true, shape, pad > 0, (i + pad) % 2 == 0, pad);
            tri_case_done(v, &c);
        }
    }
}
