/* What the public exchange, attention, meshes and devices refuse: mistakes of one rank are errors
 * on all of them. Only public headers. */
#include "unit/api/sp_fixture.h"

enum mistake { LONGER_ON_ONE, OTHER_ROWS, NO_POSITIONS, OTHER_HEADS, TOO_MANY_RANKS };

struct refusal {
    enum mistake mistake;
    const char *text;
};

static enum tri_status make_mistake(struct tri_comm *comm, struct tri_device *device,
                                    enum mistake mistake)
{
    struct tri_sp_shape shape = {1, 8, 0};
    int64_t positions[40] = {0};
    bool me = tri_comm_rank(comm) == 1;
    struct tri_sp_batch *batch;
    int64_t local = tri_sp_local_tokens(&shape, tri_comm_size(comm), tri_comm_rank(comm));
    for (int64_t t = 0; t < local; t++)
        positions[t] = tri_sp_token(&shape, tri_comm_size(comm), tri_comm_rank(comm), t);
    if (mistake == LONGER_ON_ONE && me)
        local++;
    if (mistake == OTHER_ROWS && me)
        shape.rows = 2;
    TRY(tri_sp_batch_open(device, comm, &shape, local,
                          mistake == NO_POSITIONS && me ? NULL : positions, &batch));
    double memory[3 * 8 * 4] = {0};
    int64_t heads = mistake == OTHER_HEADS && me ? 6 : mistake == TOO_MANY_RANKS ? 2 : 4;
    struct tri_sp_attention op = {.num_heads = heads, .num_kv_heads = 1, .head_dim = 1};
    struct tri_tensor q = make(TRI_F64, memory, BATCH_FIRST, 1, local, heads, 1);
    struct tri_tensor k = make(TRI_F64, memory + 32, BATCH_FIRST, 1, local, 1, 1);
    enum tri_status st = tri_sp_attention_forward(batch, &op, q, NULL, q, k, k);
    tri_sp_batch_close(batch);
    return st;
}

/* Every rank must come back by itself, with the error, though nobody aborts anything. */
static enum tri_status refused_rank(struct tri_comm *comm, void *ctx)
{
    const struct refusal *refusal = ctx;
    struct tri_device *device;
    TRY(open_device("reference", &device));
    enum tri_status st = make_mistake(comm, device, refusal->mistake);
    if (st == TRI_INVALID && strstr(tri_error_text(), refusal->text) != NULL)
        st = TRI_OK;
    else
        fprintf(stderr, "rank %d: status %d, %s\n", tri_comm_rank(comm), (int)st, tri_error_text());
    tri_device_close(device);
    return st;
}

static void mistakes_of_one_rank_are_errors_on_all(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {LONGER_ON_ONE, "rank 1 of the sequence group holds 4 of the 8 tokens of a row"},
        {OTHER_ROWS, "rank 1 of the sequence group has 2 rows of 8 tokens"},
        {NO_POSITIONS, "rank 1 of the sequence group has no position ids"},
        {OTHER_HEADS, "ranks disagree on the attention"},
        {TOO_MANY_RANKS, "3 is more than the 2 query heads"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (tri_comm_threads_run(3, 20, refused_rank, (void *)(uintptr_t)&refusals[i]) != TRI_OK)
            fail_msg("mistake %d: %s", (int)i, tri_error_text());
}

static enum tri_status meshes(struct tri_comm *world, void *ctx)
{
    (void)ctx;
    struct tri_mesh mesh;
    static const int64_t sizes[] = {1, 3, 2, 8, 4, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        enum tri_status st = tri_mesh_open(world, sizes[i], &mesh);
        if (sizes[i] == 3 || sizes[i] == 8) {
            CHECK(st == TRI_INVALID && strstr(tri_error_text(), "of this job") != NULL);
            continue;
        }
        TRY(st);
        int p = sizes[i] == 0 ? 4 : (int)sizes[i];
        CHECK(tri_comm_size(mesh.sequence) == p && mesh.num_replicas == 4 / p);
        CHECK(tri_comm_rank(world) == mesh.replica * p + tri_comm_rank(mesh.sequence));
        struct tri_loss_sum sum = {1.5, tri_comm_rank(world) == 2 ? 0 : 2};
        TRY(tri_loss_reduce(mesh.sequence, &sum));
        bool has = mesh.replica == 2 / p;
        CHECK(sum.count == 2 * (p - (has ? 1 : 0)));
        CHECK(sum.sum == 1.5 * (p - (has ? 1 : 0)));
        bool any;
        TRY(tri_comm_any(world, tri_comm_rank(world) == 2, &any));
        CHECK(any);
        TRY(tri_comm_any(world, false, &any));
        CHECK(!any);
        tri_mesh_close(&mesh);
    }
    return TRI_OK;
}

static void meshes_are_rebuilt_after_refusals(void **state)
{
    (void)state;
    if (tri_comm_threads_run(4, 20, meshes, NULL) != TRI_OK)
        fail_msg("%s", tri_error_text());
    assert_true(tri_loss_mean((struct tri_loss_sum){0, 0}) == 0);
}

static void devices_say_what_is_missing(void **state)
{
    (void)state;
    struct tri_device *device;
    struct tri_device_config config = {.backend = "tpu"};
    assert_int_equal(tri_device_open(&config, &device), TRI_UNSUPPORTED);
    assert_non_null(strstr(tri_error_text(), "no backend \"tpu\""));
    config = (struct tri_device_config){.cuda_stream = &device};
    assert_int_equal(tri_device_open(&config, &device), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "CUDA stream"));
    config = (struct tri_device_config){.cpu_kernels = "sse"};
    assert_int_equal(tri_device_open(&config, &device), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "no CPU kernels \"sse\""));
}

static enum tri_status never(struct tri_comm *comm, void *ctx)
{
    (void)comm;
    *(bool *)ctx = true;
    return TRI_OK;
}

static void cards_need_a_launcher(void **state)
{
    (void)state;
    bool ran = false;
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (int i = 0; i < 4; i++)
        unsetenv(names[i]);
    assert_int_equal(tri_comm_cards_run(10, never, &ran), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "torchrun, mpirun or srun"));
    assert_false(ran);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_of_one_rank_are_errors_on_all),
        cmocka_unit_test(meshes_are_rebuilt_after_refusals),
        cmocka_unit_test(devices_say_what_is_missing),
        cmocka_unit_test(cards_need_a_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
