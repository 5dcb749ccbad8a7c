/* Every op of every CPU kernel set against the float64 oracle, by the rule in harness.h. */
#include "ops/cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"

struct kernel_set {
    const char *name;
    enum tri_cpu_kernels kernels;
};
static const struct kernel_set kernel_sets[] = {{"reference", TRI_CPU_REFERENCE},
                                                {"generic", TRI_CPU_GENERIC},
                                                {"avx2", TRI_CPU_AVX2},
                                                {"avx512", TRI_CPU_AVX512}};

enum { NUM_KERNEL_SETS = 4, MAX_FAMILIES = 16 };

struct subject {
    const struct kernel_set *set;
    const char *family;
    enum tri_dtype act;
    char name[64];
};

/* NULL when this machine cannot run the set. */
static struct tri_backend *open_kernels(const struct kernel_set *set, int threads)
{
    struct tri_cpu_config config = {.threads = threads, .kernels = set->kernels};
    struct tri_backend *backend = NULL;
    enum tri_status status = tri_cpu_open(&config, &backend);
    if (status == TRI_UNSUPPORTED) {
        print_message("skipped: %s: %s\n", set->name, tri_error_text());
        return NULL;
    }
    if (status != TRI_OK)
        fail_msg("%s: %s", set->name, tri_error_text());
    return backend;
}

struct comparison {
    struct tri_test_place *place;
    enum tri_dtype act;
};

static void compare(struct tri_test_case *c, void *ctx)
{
    const struct comparison *comparison = ctx;
    tri_test_compare(comparison->place, c, comparison->act);
}

static void test_family(void **state)
{
    const struct subject *subject = *state;
    struct tri_backend *backend = open_kernels(subject->set, 2);
    if (backend == NULL)
        skip();
    struct tri_test_place place;
    tri_test_place_open(backend, &place);
    struct comparison comparison = {&place, subject->act};
    tri_case_visit(subject->family, compare, &comparison);
    tri_test_place_close(&place);
    tri_cpu_close(backend);
}

int main(void)
{
    static struct subject subjects[NUM_KERNEL_SETS * MAX_FAMILIES * 2];
    static struct CMUnitTest tests[NUM_KERNEL_SETS * MAX_FAMILIES * 2];
    size_t n = 0;
    for (int i = 0; i < NUM_KERNEL_SETS; i++)
        for (int j = 0; tri_case_families[j] != NULL; j++) {
            subjects[n] = (struct subject){&kernel_sets[i], tri_case_families[j], TRI_F32, ""};
            snprintf(subjects[n].name, sizeof(subjects[n].name), "%s.%s", kernel_sets[i].name,
                     tri_case_families[j]);
            tests[n] = (struct CMUnitTest){
                .name = subjects[n].name, .test_func = test_family, .initial_state = &subjects[n]};
            n++;
        }
    return _cmocka_run_group_tests("ops.backends", tests, n, NULL, NULL);
}
