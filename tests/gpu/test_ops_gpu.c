/* Every op on the card against the float64 oracle, by the rule of ops/harness.h, in float32 and
 * bfloat16; and twice, for equal bits. Once with the libraries that the card has, once with our own
 * products and attention. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/card.h"
#include "ops/cases.h"

struct kernel_set {
    const char *name;
    struct tri_cuda_config config;
};
static const struct kernel_set kernel_sets[] = {
    {"libraries", {.attention = TRI_CUDA_ATTENTION_AUTO}},
    {"own", {.attention = TRI_CUDA_ATTENTION_OWN, .products = TRI_CUDA_PRODUCTS_OWN}},
};

enum { NUM_SETS = 2, NUM_DTYPES = 2, MAX_FAMILIES = 16 };
static const enum tri_dtype dtypes[NUM_DTYPES] = {TRI_F32, TRI_BF16};

struct subject {
    const struct kernel_set *set;
    const char *family;
    enum tri_dtype act;
    char name[64];
};

struct comparison {
    struct tri_test_place *place;
    enum tri_dtype act;
    int64_t count;
};

static void compare(struct tri_test_case *c, void *ctx)
{
    struct comparison *comparison = ctx;
    tri_test_compare(comparison->place, c, comparison->act);
    comparison->count++;
}

static void test_family(void **state)
{
    const struct subject *subject = *state;
    struct tri_backend *backend = tri_test_open_card(&subject->set->config);
    struct tri_test_place place;
    tri_test_place_open(backend, &place);
    struct comparison comparison = {&place, subject->act, 0};
    tri_case_visit(subject->family, compare, &comparison);
    assert_true(comparison.count > 0);
    tri_test_place_close(&place);
    tri_cuda_close(backend);
}

/* Equal inputs give equal bits: every sum has a fixed order. */
static void repeat(struct tri_test_case *c, void *ctx)
{
    struct comparison *comparison = ctx;
    struct tri_test_result first, again;
    c->attn.deterministic = true;
    tri_test_run(comparison->place, c, comparison->act, comparison->act, false, &first);
    tri_test_run(comparison->place, c, comparison->act, comparison->act, false, &again);
    for (int i = 0; i < c->num_tensors; i++)
        if (first.value[i] != NULL &&
            memcmp(first.value[i], again.value[i],
                   (size_t)tri_test_count(&c->tensor[i]) * sizeof(double)) != 0)
            fail_msg("%s: %s differs between two runs", c->name, c->tensor[i].name);
    tri_test_result_free(&first);
    tri_test_result_free(&again);
}

static void test_repeats(void **state)
{
    const struct subject *subject = *state;
    struct tri_backend *backend = tri_test_open_card(&subject->set->config);
    struct tri_test_place place;
    tri_test_place_open(backend, &place);
    struct comparison comparison = {&place, subject->act, 0};
    tri_case_visit(subject->family, repeat, &comparison);
    tri_test_place_close(&place);
    tri_cuda_close(backend);
}

/* test_ops_gpu [PATTERN]: only the tests that match, such as "libraries.norm.*". */
int main(int argc, char **argv)
{
    static struct subject subjects[NUM_SETS * NUM_DTYPES * MAX_FAMILIES * 2];
    static struct CMUnitTest tests[NUM_SETS * NUM_DTYPES * MAX_FAMILIES * 2];
    size_t n = 0;
    tri_test_need_card();
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    for (int i = 0; i < NUM_SETS; i++)
        for (int j = 0; tri_case_families[j] != NULL; j++)
            for (int d = 0; d < NUM_DTYPES; d++)
                for (int twice = 0; twice < 2; twice++) {
                    const char *family = tri_case_families[j];
                    bool chosen = strcmp(family, "linear") == 0 || strcmp(family, "attn") == 0;
                    if (i > 0 && !chosen) /* the other ops have one implementation */
                        continue;
                    /* cuDNN rounds weights to bfloat16: test_attn_cudnn has the rule for that. */
                    if (i == 0 && !twice && strcmp(family, "attn") == 0 && dtypes[d] == TRI_BF16)
                        continue;
                    subjects[n] = (struct subject){&kernel_sets[i], family, dtypes[d], ""};
                    snprintf(subjects[n].name, sizeof subjects[n].name, "%s.%s.%s%s",
                             kernel_sets[i].name, family, tri_dtype_name(dtypes[d]),
                             twice ? ".repeats" : "");
                    tests[n] = (struct CMUnitTest){.name = subjects[n].name,
                                                   .test_func = twice ? test_repeats : test_family,
                                                   .initial_state = &subjects[n]};
                    n++;
                }
    return _cmocka_run_group_tests("gpu.ops", tests, n, NULL, NULL);
}
