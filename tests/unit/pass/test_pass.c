/* How a step is cut changes no number: chunks, tiles, slices of the loss, what layers keep, threads
 * and micro-batches, on every kind of block, with packed documents.
 *
 * In float64 by the reference kernels, results agree to 1e-12 of their norm. In float32 by the fast
 * kernels a cut may change the order of sums; then each result is compared with the float64 one,
 * and a cut run may be at most twice as far from it as the uncut one, plus an allowance for sums of
 * n float32 terms of (8 + sqrt(n)) * 2^-24, the same rule as for single ops. Where a cut leaves
 * every product's shape alone, results are equal bit for bit. */
#include "unit/tiny_model.h"

enum { NUM_DOCS = 4 };
static const int64_t lengths[NUM_DOCS] = {37, 5, 41, 13};
enum { TOKENS = 37 + 5 + 41 + 13 };

/* What a step computes. */
struct result {
    double loss, norm;
    double *grads; /* (num_elements) */
};

static struct result run_batches(const char *config, const struct tiny_way *way,
                                 const struct tri_batch *batches, int64_t count)
{
    struct tiny tiny = tiny_open(config, way);
    struct tri_step_stats stats;
    if (tri_train_gradients(tiny.trainer, batches, count, &stats) != TRI_OK)
        fail_msg("%s", tri_error_text());
    struct result result = {.loss = stats.loss,
                            .norm = stats.grad_norm,
                            .grads = tiny_copy(tiny.trainer, tiny.trainer->zero->grads)};
    tiny_close(&tiny);
    return result;
}

static struct result run_one(const char *config, const struct tiny_way *way)
{
    struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
    struct result result = run_batches(config, way, &batch, 1);
    tri_batch_close(&batch);
    return result;
}

/* Distance of a parameter's gradient from another, relative to its norm, or to a thousandth of all
 * gradients' where a parameter has next to none. */
static double distance(const struct tri_model *model, int p, const struct result *got,
                       const struct result *want)
{
    const struct tri_param *param = &model->params[p];
    int64_t n = param->dim[0] * (param->num_dims == 2 ? param->dim[1] : 1);
    double difference = 0, norm = 0;
    for (int64_t i = param->offset; i < param->offset + n; i++) {
        double d = got->grads[i] - want->grads[i];
        difference += d * d;
        norm += want->grads[i] * want->grads[i];
    }
    return sqrt(difference) / fmax(sqrt(norm), 1e-3 * want->norm);
}

static void assert_close(const struct tiny_model *m, const char *what, const struct result *got,
                         const struct result *want, double bound)
{
    struct tri_model *model = tiny_parse(m->config);
    if (!(fabs(got->loss - want->loss) <= bound * want->loss))
        fail_msg("%s: %s: loss %.17g, not %.17g", m->name, what, got->loss, want->loss);
    for (int p = 0; p < model->num_params; p++) {
        double d = distance(model, p, got, want);
        if (!(d <= bound))
            fail_msg("%s: %s: gradient of parameter %d is off by %.3g, bound %.3g", m->name, what,
                     p, d, bound);
    }
    tri_model_close(model);
}

static void assert_same_bits(const struct tiny_model *m, const char *what, const struct result *got,
                             const struct result *want)
{
    struct tri_model *model = tiny_parse(m->config);
    if (got->loss != want->loss)
        fail_msg("%s: %s: loss %.17g, not %.17g", m->name, what, got->loss, want->loss);
    for (int64_t i = 0; i < model->num_elements; i++)
        if (got->grads[i] != want->grads[i])
            fail_msg("%s: %s: gradient element %lld is %.17g, not %.17g", m->name, what,
                     (long long)i, got->grads[i], want->grads[i]);
    tri_model_close(model);
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

/* ---- cuts ------------------------------------------------------------------------------------ */

static const int remats[] = {TRI_REMAT_FULL, TRI_REMAT_SELECTIVE, TRI_REMAT_NONE};
static const int64_t chunks[] = {1, 7, 32, TOKENS, TOKENS + 5, INT64_MAX};
static const int64_t tiles[] = {1, 2, 5, TOKENS, INT64_MAX};
static const int64_t slices[] = {1, 5, 32, TOKENS}; /* rows of logits */

/* loss_slice_gb for `rows` rows of logits; half a row more than that many bytes need. */
static double slice_gb(int64_t rows, bool exact)
{
    return ((double)rows + 0.5) * TINY_VOCAB * (exact ? 8 : 4) / 0x1p30;
}

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

/* ---- micro-batches --------------------------------------------------------------------------- */

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

/* ---- who sees whom --------------------------------------------------------------------------- */

/* Leave only the labels of tokens [begin, end). */
static void train_only(struct tri_batch *batch, int64_t begin, int64_t end)
{
    for (int64_t t = 0; t < batch->num_tokens; t++)
        if (t < begin || t >= end)
            batch->labels[t] = TRI_IGNORE_LABEL;
    assert_int_equal(tri_batch_finish_shifted(batch), TRI_OK);
    assert_true(batch->num_trained > 0);
}

static void change_token(struct tri_batch *batch, int64_t t)
{
    batch->ids[t] = (batch->ids[t] + 1) % TINY_VOCAB;
}

/* Documents before and after the trained one may say what they like. */
static void documents_do_not_see_each_other(void **state)
{
    (void)state;
    for (int m = 0; m < NUM_TINY_MODELS; m++)
        for (int64_t chunk = 0; chunk <= 7; chunk += 7) {
            struct tiny_way way = tiny_way(false);
            way.pass.chunk_size = chunk;
            struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
            train_only(&batch, 42, 83); /* the third document */
            struct result before = run_batches(tiny_models[m].config, &way, &batch, 1);
            change_token(&batch, 0);
            change_token(&batch, 36); /* ends the first */
            change_token(&batch, 41); /* ends the second */
            change_token(&batch, 83); /* begins the fourth */
            struct result after = run_batches(tiny_models[m].config, &way, &batch, 1);
            assert_same_bits(&tiny_models[m], "another document changed", &after, &before);
            change_token(&batch, 42); /* and the probe can see: its own first token counts */
            struct result own = run_batches(tiny_models[m].config, &way, &batch, 1);
            assert_true(own.loss != before.loss);
            free(before.grads);
            free(after.grads);
            free(own.grads);
            tri_batch_close(&batch);
        }
}

/* Hidden states at the top as floats; the caller frees them. */
static float *top_of(const char *config, const struct tiny_way *way, const struct tri_batch *batch)
{
    struct tiny tiny = tiny_open(config, way);
    struct tri_pass *pass = tiny.trainer->pass;
    struct tri_view top;
    float *copy = malloc((size_t)batch->num_tokens * TINY_HIDDEN * sizeof *copy);
    assert_non_null(copy);
    assert_int_equal(tri_pass_begin(pass, batch, false), TRI_OK);
    assert_int_equal(tri_pass_forward(pass), TRI_OK);
    assert_int_equal(tri_pass_top(pass, &top), TRI_OK);
    memcpy(copy, top.data, (size_t)batch->num_tokens * TINY_HIDDEN * sizeof *copy);
    tri_pass_end(pass);
    tiny_close(&tiny);
    return copy;
}

static void the_future_is_not_seen(void **state)
{
    (void)state;
    const int64_t length = TOKENS;
    for (int m = 0; m < NUM_TINY_MODELS; m++)
        for (int64_t chunk = 0; chunk <= 7; chunk += 7) {
            struct tiny_way way = tiny_way(false);
            way.pass.chunk_size = chunk;
            struct tri_batch batch = tiny_batch(&length, 1);
            float *before = top_of(tiny_models[m].config, &way, &batch);
            for (int64_t t = 20; t < TOKENS; t += 25) {
                int32_t kept = batch.ids[t];
                change_token(&batch, t);
                float *after = top_of(tiny_models[m].config, &way, &batch);
                batch.ids[t] = kept;
                assert_memory_equal(before, after, (size_t)t * TINY_HIDDEN * sizeof *before);
                assert_memory_not_equal(before + t * TINY_HIDDEN, after + t * TINY_HIDDEN,
                                        TINY_HIDDEN * sizeof *before);
                if (t + 1 < TOKENS) /* and what follows does see it */
                    assert_memory_not_equal(before + (t + 1) * TINY_HIDDEN,
                                            after + (t + 1) * TINY_HIDDEN,
                                            TINY_HIDDEN * sizeof *before);
                free(after);
            }
            free(before);
            tri_batch_close(&batch);
        }
}

/* A window of 9 in both layers reaches 8 tokens back a layer: 16 back nothing is left. */
static void a_window_ends(void **state)
{
    (void)state;
    static const char config[] =
        "{" TINY_COMMON "\"model_type\":\"mistral\",\"num_key_value_heads\":2,"
        "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6,\"sliding_window\":9,"
        "\"tie_word_embeddings\":false}";
    const int64_t length = TOKENS, changed = 30, row = TINY_HIDDEN;
    for (int64_t chunk = 0; chunk <= 7; chunk += 7) {
        struct tiny_way way = tiny_way(false);
        way.pass.chunk_size = chunk;
        struct tri_batch batch = tiny_batch(&length, 1);
        float *before = top_of(config, &way, &batch);
        change_token(&batch, changed);
        float *after = top_of(config, &way, &batch);
        for (int64_t t = 0; t < TOKENS; t++) {
            bool same =
                memcmp(before + t * row, after + t * row, (size_t)row * sizeof *before) == 0;
            if (same != (t < changed || t > changed + 16))
                fail_msg("chunk %lld: token %lld %s", (long long)chunk, (long long)t,
                         same ? "does not see the change" : "sees the change");
        }
        free(before);
        free(after);
        tri_batch_close(&batch);
    }
}

/* ---- edges ------------------------------------------------------------------------------------
 */

static void assert_finite(const char *name, const struct result *r)
{
    struct tri_model *model = tiny_parse(name);
    assert_true(isfinite(r->loss) && isfinite(r->norm));
    for (int64_t i = 0; i < model->num_elements; i++)
        assert_true(isfinite(r->grads[i]));
    tri_model_close(model);
}

/* The mean over one token is that token's loss, whatever surrounds it. */
static void one_trained_token(void **state)
{
    (void)state;
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tiny_way way = tiny_way(true);
        struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
        double sum = 0, one = 0;
        int64_t trained = 0, last = -1;
        for (int64_t t = 42; t < 83; t++)
            if (batch.labels[t] >= 0)
                last = t;
        train_only(&batch, last, last + 1);
        assert_int_equal(batch.num_trained, 1);
        struct result r = run_batches(tiny_models[m].config, &way, &batch, 1);
        assert_finite(tiny_models[m].config, &r);
        assert_true(r.norm > 0);
        struct tiny tiny = tiny_open(tiny_models[m].config, &way);
        assert_int_equal(tri_train_eval(tiny.trainer, &batch, &sum, &trained), TRI_OK);
        assert_int_equal(trained, 1);
        tri_batch_close(&batch);

        /* The loss of all trained tokens less that of all but this one. */
        struct tri_batch all = tiny_batch(lengths, NUM_DOCS);
        assert_int_equal(tri_train_eval(tiny.trainer, &all, &one, &trained), TRI_OK);
        all.labels[last] = TRI_IGNORE_LABEL;
        assert_int_equal(tri_batch_finish_shifted(&all), TRI_OK);
        double rest = 0;
        assert_int_equal(tri_train_eval(tiny.trainer, &all, &rest, &trained), TRI_OK);
        assert_true(fabs(sum - r.loss) <= 1e-12 * sum);
        assert_true(fabs(one - rest - sum) <= 1e-12 * one);
        free(r.grads);
        tri_batch_close(&all);
        tiny_close(&tiny);
    }
}

static void no_trained_token_is_an_error(void **state)
{
    (void)state;
    struct tiny_way way = tiny_way(false);
    struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
    for (int64_t t = 0; t < batch.num_tokens; t++)
        batch.labels[t] = TRI_IGNORE_LABEL;
    assert_int_equal(tri_batch_finish_shifted(&batch), TRI_OK);
    struct tiny tiny = tiny_open(tiny_models[0].config, &way);
    struct tri_step_stats stats;
    assert_int_equal(tri_train_gradients(tiny.trainer, &batch, 1, &stats), TRI_INVALID);
    assert_error_has("none to train on");
    tiny_close(&tiny);
    tri_batch_close(&batch);
}

/* Loss over tiles of 8 rows where only one tile is trained: what the others add is exactly zero,
 * so the gradients are those of that tile alone. */
static void untrained_tiles_add_exactly_zero(void **state)
{
    (void)state;
    enum { ROWS = 8, AT = 3 };
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tiny_way way = tiny_way(false);
        way.pass.loss_slice_gb = slice_gb(ROWS, false);
        struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
        train_only(&batch, AT * ROWS, (AT + 1) * ROWS);
        struct tiny tiny = tiny_open(tiny_models[m].config, &way);
        struct tri_trainer *t = tiny.trainer;
        struct tri_pass *pass = t->pass;
        struct tri_view top;
        double whole = 0, alone = 0;
        assert_int_equal(pass->net.loss_rows, ROWS);
        assert_int_equal(tri_zero_clear_grads(t->zero), TRI_OK);
        assert_int_equal(tri_pass_loss_reset(pass), TRI_OK);
        assert_int_equal(tri_pass_begin(pass, &batch, true), TRI_OK);
        assert_int_equal(tri_pass_forward(pass), TRI_OK);
        assert_int_equal(tri_pass_top(pass, &top), TRI_OK);
        assert_int_equal(tri_pass_loss(pass, 0.125), TRI_OK);
        assert_int_equal(tri_pass_loss_read(pass, &whole), TRI_OK);
        double *grads = tiny_copy(t, t->zero->grads);
        float *d = malloc((size_t)TOKENS * TINY_HIDDEN * sizeof *d);
        assert_non_null(d);
        memcpy(d, pass->d.data, (size_t)TOKENS * TINY_HIDDEN * sizeof *d);

        assert_int_equal(tri_zero_clear_grads(t->zero), TRI_OK);
        assert_int_equal(tri_pass_loss_reset(pass), TRI_OK);
        assert_int_equal(tri_loss(&pass->net, 0.125, pass->loss_sum,
                                  tri_view_rows(pass->d, AT * ROWS, ROWS),
                                  tri_view_rows(top, AT * ROWS, ROWS), pass->labels + AT * ROWS),
                         TRI_OK);
        assert_int_equal(tri_pass_loss_read(pass, &alone), TRI_OK);
        assert_true(whole == alone && whole > 0);
        for (int64_t i = 0; i < t->model->num_elements; i++)
            assert_true(tiny_at(t, t->zero->grads, i) == grads[i]);
        for (int64_t i = 0; i < TOKENS * TINY_HIDDEN; i++) {
            int64_t row = i / TINY_HIDDEN;
            bool inside = row >= AT * ROWS && row < (AT + 1) * ROWS;
            assert_true(d[i] == (inside ? ((float *)pass->d.data)[i] : 0.0f));
        }
        tri_pass_end(pass);
        free(d);
        free(grads);
        tiny_close(&tiny);
        tri_batch_close(&batch);
    }
}

/* Norms divide by the size of a row and attention by a sum: zero weights try both. Every logit is
 * zero, so the loss is log V. */
static void zeros_never_become_nan(void **state)
{
    (void)state;
    for (int m = 0; m < NUM_TINY_MODELS; m++)
        for (int exact = 0; exact <= 1; exact++) {
            struct tiny_way way = tiny_way(exact);
            struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
            struct tiny tiny = tiny_open(tiny_models[m].config, &way);
            struct tri_trainer *t = tiny.trainer;
            struct tri_step_stats stats;
            tiny_weights(t, true);
            for (int step = 1; step <= 3; step++) {
                assert_int_equal(tri_train_step(t, &batch, 1, 1e-3, &stats), TRI_OK);
                if (step == 1)
                    assert_true(fabs(stats.loss - log(TINY_VOCAB)) < 1e-6);
            }
            for (int64_t i = 0; i < t->model->num_elements; i++)
                assert_true(isfinite(tiny_at(t, t->zero->weights, i)));
            tiny_close(&tiny);
            tri_batch_close(&batch);
        }
}

/* The shortest batches there are: one trained pair, and documents of one token. */
static void shortest_batches(void **state)
{
    (void)state;
    static const int64_t pair[] = {2}, ones[] = {1, 2, 1};
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tiny_way way = tiny_way(true);
        struct result results[2];
        for (int i = 0; i < 2; i++) {
            struct tri_batch batch = tiny_batch(i == 0 ? pair : ones, i == 0 ? 1 : 3);
            int64_t first = i == 0 ? 0 : 1;
            batch.ids[first] = 5;
            batch.ids[first + 1] = 9;
            batch.labels[first] = 9;
            assert_int_equal(tri_batch_finish_shifted(&batch), TRI_OK);
            assert_int_equal(batch.num_trained, 1);
            results[i] = run_batches(tiny_models[m].config, &way, &batch, 1);
            tri_batch_close(&batch);
        }
        assert_close(&tiny_models[m], "lonely neighbours", &results[1], &results[0], 1e-12);
        free(results[0].grads);
        free(results[1].grads);
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
        cmocka_unit_test(documents_do_not_see_each_other),
        cmocka_unit_test(the_future_is_not_seen),
        cmocka_unit_test(a_window_ends),
        cmocka_unit_test(one_trained_token),
        cmocka_unit_test(no_trained_token_is_an_error),
        cmocka_unit_test(untrained_tiles_add_exactly_zero),
        cmocka_unit_test(zeros_never_become_nan),
        cmocka_unit_test(shortest_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
