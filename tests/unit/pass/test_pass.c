/* How a step is cut changes no number: chunks, tiles, slices of the loss, what layers keep, threads
 * and micro-batches, on every kind of block, with packed documents.
 *
 * In float64 by the reference kernels, results agree to 1e-12 of their norm. In float32 by the fast
 * kernels a cut may change the order of sums; then each result is compared with the float64 one,
 * and a cut run may be at most twice as far from it as the uncut one, plus an allowance for sums of
 * n float32 terms of (8 + sqrt(n)) * 2^-24, the same rule as for single ops. Where a cut leaves
 * every product's shape alone, results are equal bit for bit. */
#include "unit/pass/pass_fixture.h"

static struct result run_one(const char *config, const struct tiny_way *way)
{
    struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
    struct result result = run_batches(config, way, &batch, 1);
    tri_batch_close(&batch);
    return result;
}

/* float32 against the float64 truth, by the rule at the top. */
static void assert_as_good(const struct tiny_model *m, const char *what, const struct result *got,
                           const struct result *uncut, const struct result *truth)
{
    const double allowance = (8 + sqrt((double)TOKENS)) * 0x1p-24;
    struct tri_model *model = tiny_parse(m->config);
    double loss = fabs(got->loss - truth->loss) / truth->loss;
    if (!(loss <= 2 * fabs(uncut->loss - truth->loss) / truth->loss + allowance))
        fail_msg("%s: %s: loss is off by %.3g", m->name, what, loss);
    for (int p = 0; p < model->num_params; p++) {
        double d = distance(model, p, got, truth);
        double bound = 2 * distance(model, p, uncut, truth) + allowance;
        if (!(d <= bound))
            fail_msg("%s: %s: gradient of parameter %d is off by %.3g, bound %.3g", m->name, what,
                     p, d, bound);
    }
    tri_model_close(model);
}

static const int remats[] = {TRI_REMAT_FULL, TRI_REMAT_SELECTIVE, TRI_REMAT_NONE};
static const int64_t chunks[] = {1, 7, 32, TOKENS, TOKENS + 5, INT64_MAX};
static const int64_t tiles[] = {1, 2, 5, TOKENS, INT64_MAX};
static const int64_t slices[] = {1, 5, 32, TOKENS}; /* rows of logits */

struct cut {
    char name[96];
    struct tiny_way way;
};

/* Cut number i of a list; false at its end. */
static bool cut_at(int i, bool exact, struct cut *cut)
{
    const int num_remats = 3, num_chunks = 6, num_tiles = 5, num_slices = 4;
    cut->way = tiny_way(exact);
    if (i < num_remats * num_chunks) {
        cut->way.pass.activation_checkpointing = remats[i % num_remats];
        cut->way.pass.chunk_size = chunks[i / num_remats];
        snprintf(cut->name, sizeof cut->name, "chunks of %lld, remat %d",
                 (long long)chunks[i / num_remats], remats[i % num_remats]);
        return true;
    }
    i -= num_remats * num_chunks;
    if (i < num_tiles) {
        cut->way.pass.tiled_mlp_num_shards = tiles[i];
        snprintf(cut->name, sizeof cut->name, "%lld mlp tiles", (long long)tiles[i]);
        return true;
    }
    i -= num_tiles;
    if (i < num_slices) {
        cut->way.pass.loss_slice_gb = slice_gb(slices[i], exact);
        snprintf(cut->name, sizeof cut->name, "%lld rows of logits", (long long)slices[i]);
        return true;
    }
    i -= num_slices;
    if (i == 0) { /* all at once, none a divisor of another */
        cut->way.pass.chunk_size = 11;
        cut->way.pass.tiled_mlp_num_shards = 17;
        cut->way.pass.loss_slice_gb = slice_gb(3, exact);
        cut->way.pass.activation_checkpointing = TRI_REMAT_SELECTIVE;
        snprintf(cut->name, sizeof cut->name, "everything cut");
        return true;
    }
    return false;
}

static struct tiny_way uncut(bool exact)
{
    struct tiny_way way = tiny_way(exact);
    way.pass.tiled_mlp_compute = false;
    return way;
}

static void cuts_change_nothing_in_float64(void **state)
{
    (void)state;
    struct cut cut;
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        const struct tiny_model *model = &tiny_models[m];
        struct tiny_way whole = uncut(true);
        struct result truth = run_one(model->config, &whole);
        assert_true(truth.norm > 0 && isfinite(truth.norm));
        for (int i = 0; cut_at(i, true, &cut); i++) {
            struct result got = run_one(model->config, &cut.way);
            assert_close(model, cut.name, &got, &truth, 1e-12);
            free(got.grads);
        }
        free(truth.grads);
    }
}

static void cuts_cost_no_accuracy_in_float32(void **state)
{
    (void)state;
    struct cut cut;
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        const struct tiny_model *model = &tiny_models[m];
        struct tiny_way exact = uncut(true);
        struct tiny_way fast = uncut(false);
        struct result truth = run_one(model->config, &exact);
        struct result whole = run_one(model->config, &fast);
        assert_close(model, "float32", &whole, &truth, 1e-5);
        for (int i = 0; cut_at(i, false, &cut); i++) {
            struct result got = run_one(model->config, &cut.way);
            assert_as_good(model, cut.name, &got, &whole, &truth);
            free(got.grads);
        }
        free(whole.grads);
        free(truth.grads);
    }
}

/* What is computed again is computed by the same calls. */
static void what_layers_keep_changes_no_bit(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 7, 32};
    for (int m = 0; m < NUM_TINY_MODELS; m++)
        for (int c = 0; c < 3; c++) {
            struct tiny_way way = tiny_way(false);
            way.pass.chunk_size = sizes[c];
            struct result full = run_one(tiny_models[m].config, &way);
            for (int r = 1; r < 3; r++) {
                way.pass.activation_checkpointing = remats[r];
                struct result got = run_one(tiny_models[m].config, &way);
                assert_same_bits(&tiny_models[m], r == 1 ? "selective" : "none", &got, &full);
                free(got.grads);
            }
            free(full.grads);
        }
}

/* The default number of tiles, and one chunk as long as the sequence. */
static void equal_shapes_give_equal_bits(void **state)
{
    (void)state;
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tiny_way way = tiny_way(false);
        struct result base = run_one(tiny_models[m].config, &way);
        way.pass.chunk_size = TOKENS;
        way.pass.tiled_mlp_num_shards = (TOKENS + TINY_HIDDEN - 1) / TINY_HIDDEN;
        way.pass.loss_slice_gb = slice_gb(TOKENS, false);
        struct result got = run_one(tiny_models[m].config, &way);
        assert_same_bits(&tiny_models[m], "the same cuts by number", &got, &base);
        free(got.grads);
        free(base.grads);
    }
}

/* Enough tokens that every op shares its work. */
static void threads_cost_no_accuracy(void **state)
{
    (void)state;
    static const int64_t longer[] = {430, 210};
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        const struct tiny_model *model = &tiny_models[m];
        struct tri_batch batch = tiny_batch(longer, 2);
        struct tiny_way exact = uncut(true);
        struct tiny_way way = tiny_way(false);
        struct result truth = run_batches(model->config, &exact, &batch, 1);
        struct result one = run_batches(model->config, &way, &batch, 1);
        way.threads = 2;
        struct result two = run_batches(model->config, &way, &batch, 1);
        struct result again = run_batches(model->config, &way, &batch, 1);
        assert_as_good(model, "two threads", &two, &one, &truth);
        assert_same_bits(model, "two threads twice", &again, &two);
        free(one.grads);
        free(two.grads);
        free(again.grads);
        free(truth.grads);
        tri_batch_close(&batch);
    }
}

/* Each trained token counts the same, however many its micro-batch has. */
static void micro_batches_equal_one_batch(void **state)
{
    (void)state;
    static const int64_t first[] = {37}, second[] = {5, 41}, third[] = {13};
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tri_batch whole = tiny_batch(lengths, NUM_DOCS);
        struct tri_batch parts[3] = {tiny_batch(first, 1), tiny_batch(second, 2),
                                     tiny_batch(third, 1)};
        int64_t t = 0, trained = 0;
        for (int b = 0; b < 3; b++) {
            memcpy(parts[b].ids, whole.ids + t, (size_t)parts[b].num_tokens * sizeof(int32_t));
            memcpy(parts[b].labels, whole.labels + t,
                   (size_t)parts[b].num_tokens * sizeof(int32_t));
            assert_int_equal(tri_batch_finish_shifted(&parts[b]), TRI_OK);
            t += parts[b].num_tokens;
            trained += parts[b].num_trained;
        }
        assert_int_equal(trained, whole.num_trained);
        assert_true(parts[0].num_trained != parts[1].num_trained);
        for (int exact = 0; exact <= 1; exact++) {
            struct tiny_way truth_way = uncut(true);
            struct tiny_way way = uncut(exact);
            struct result truth = run_batches(tiny_models[m].config, &truth_way, &whole, 1);
            struct result one = run_batches(tiny_models[m].config, &way, &whole, 1);
            struct result three = run_batches(tiny_models[m].config, &way, parts, 3);
            if (exact)
                assert_close(&tiny_models[m], "micro-batches", &three, &truth, 1e-12);
            else
                assert_as_good(&tiny_models[m], "micro-batches", &three, &one, &truth);
            free(truth.grads);
            free(one.grads);
            free(three.grads);
        }
        tri_batch_close(&whole);
        for (int b = 0; b < 3; b++)
            tri_batch_close(&parts[b]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_change_nothing_in_float64),
        cmocka_unit_test(cuts_cost_no_accuracy_in_float32),
        cmocka_unit_test(what_layers_keep_changes_no_bit),
        cmocka_unit_test(equal_shapes_give_equal_bits),
        cmocka_unit_test(threads_cost_no_accuracy),
        cmocka_unit_test(micro_batches_equal_one_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
