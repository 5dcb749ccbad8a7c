/* Every element of a model is held by exactly one rank, where the collectives expect it. */
#include "unit/tiny_model.h"

#include "zero/partition.h"

enum { MOST_RANKS = 9 };

static const struct tri_param *param_at(const struct tri_model *model, int64_t element)
{
    int p = 0;
    while (p + 1 < model->num_params && model->params[p + 1].offset <= element)
        p++;
    return &model->params[p];
}

/* The model's element at a place of a buffer of everything, or -1 for padding. */
static int64_t element_at(const struct tri_partition *p, int64_t full)
{
    int u = 0;
    while (u + 1 < p->model->num_units && p->units[u + 1].full <= full)
        u++;
    int64_t element = p->model->unit_begin[u] + full - p->units[u].full;
    return element < p->model->unit_begin[u + 1] ? element : -1;
}

/* Count the elements of one rank in `held`; its runs must fill the own buffer. */
static void count_runs(const struct tri_partition *p, int *held)
{
    struct tri_own_run run;
    int64_t own = 0;
    for (int param = 0; tri_partition_next_run(p, &param, &run);) {
        assert_int_equal(run.own, own);
        assert_true(run.count > 0);
        own += run.count;
        for (int64_t i = 0; i < run.count; i++) {
            int64_t element = element_at(p, run.full + i);
            if (element < 0)
                continue;
            held[element]++;
            assert_int_equal(param_at(p->model, element)->decay, run.decay);
        }
    }
    assert_int_equal(own, p->own_elements);
}

static void each_element_has_one_rank(void **state)
{
    (void)state;
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tri_model *model = tiny_parse(tiny_models[m].config);
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
            int *held = calloc((size_t)model->num_elements, sizeof *held);
            assert_non_null(held);
            for (int rank = 0; rank < ranks; rank++) {
                struct tri_partition p;
                assert_int_equal(tri_partition_open(model, ranks, rank, &p), TRI_OK);
                assert_int_equal(p.own_elements * ranks, p.full_elements);
                /* Padding is less than one step of a part for each rank of each unit. */
                assert_true(p.full_elements <
                            model->num_elements + (int64_t)64 * ranks * model->num_units);
                count_runs(&p, held);
                tri_partition_close(&p);
            }
            for (int64_t i = 0; i < model->num_elements; i++)
                assert_int_equal(held[i], 1);
            free(held);
        }
        tri_model_close(model);
    }
}

/* Parts are aligned as parameters are, and lie in a unit in the order of ranks. */
static void parts_are_aligned(void **state)
{
    (void)state;
    struct tri_model *model = tiny_parse(tiny_models[1].config);
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        struct tri_partition p;
        int64_t full = 0;
        int64_t own = 0;
        assert_int_equal(tri_partition_open(model, ranks, 0, &p), TRI_OK);
        for (int u = 0; u < model->num_units; u++) {
            assert_int_equal(p.units[u].part % 64, 0);
            assert_int_equal(p.units[u].full, full);
            assert_int_equal(p.units[u].own, own);
            assert_true(p.units[u].part * ranks >= model->unit_begin[u + 1] - model->unit_begin[u]);
            full += p.units[u].part * ranks;
            own += p.units[u].part;
        }
        assert_int_equal(p.full_elements, full);
        tri_partition_close(&p);
    }
    tri_model_close(model);
}

/* One rank: the layout of the model, and as few runs as there are changes of rule. */
static void one_rank_has_the_models_layout(void **state)
{
    (void)state;
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tri_model *model = tiny_parse(tiny_models[m].config);
        struct tri_partition p;
        struct tri_own_run run;
        int runs = 0;
        int changes = 1;
        assert_int_equal(tri_partition_open(model, 1, 0, &p), TRI_OK);
        assert_int_equal(p.full_elements, model->num_elements);
        for (int u = 0; u < model->num_units; u++)
            assert_int_equal(p.units[u].full, model->unit_begin[u]);
        for (int param = 0; tri_partition_next_run(&p, &param, &run); runs++)
            assert_int_equal(run.full, run.own);
        for (int i = 1; i < model->num_params; i++)
            changes += model->params[i].decay != model->params[i - 1].decay;
        assert_int_equal(runs, changes);
        tri_partition_close(&p);
        tri_model_close(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_element_has_one_rank),
        cmocka_unit_test(parts_are_aligned),
        cmocka_unit_test(one_rank_has_the_models_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
