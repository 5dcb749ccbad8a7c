#include "verify/proof/way.h"

#include <unistd.h>

#include "comm/thread/thread.h"
#include "shard/mesh.h"
#include "train/machine.h"

struct tri_way tri_way_plain(void)
{
    return (struct tri_way){.ranks = 1, .shards = 1, .remat = TRI_REMAT_NONE};
}

struct job {
    const struct tri_subject *subject;
    const struct tri_way *way;
    const struct tri_way_use *use;
    tri_way_work *work;
    void *ctx;
};

static struct tri_pass_options pass_options(const struct job *job, int ranks)
{
    const struct tri_way *way = job->way;
    const struct tri_arch *arch = &job->subject->model->arch;
    struct tri_pass_options pass = job->subject->run->recipe->pass; /* strings are borrowed */
    double row = (double)arch->vocab * (double)tri_dtype_bytes(job->use->act);
    int64_t rows = way->loss_rows > 0 ? way->loss_rows : (int64_t)1 << 30;
    pass.activation_checkpointing = way->remat;
    pass.chunk_size = way->chunk;
    pass.tiled_mlp_compute = way->mlp_tiles > 0;
    pass.tiled_mlp_num_shards = way->mlp_tiles;
    pass.loss_slice_gb = ((double)rows + 0.5) * row / 0x1p30;
    if (pass.threads == 0 && ranks > 1) {
        int64_t cores = sysconf(_SC_NPROCESSORS_ONLN) / ranks;
        pass.threads = cores > 0 ? cores : 1;
    }
    return pass;
}

static enum tri_status run_with(const struct job *job, const struct tri_mesh *mesh)
{
    const struct tri_subject *s = job->subject;
    struct tri_comm *among = mesh->world != NULL ? mesh->world : s->world;
    int ranks = among != NULL ? among->size : 1; /* at work on this machine at the same time */
    struct tri_pass_options pass = pass_options(job, ranks);
    struct tri_backend *backend = NULL;
    struct tri_trainer *trainer = NULL;
    TRI_TRY(tri_machine_open(&pass, &backend));
    size_t capacity = tri_machine_capacity(backend, &pass);
    struct tri_trainer_config config = {.model = s->model,
                                        .backend = backend,
                                        .act = job->use->act,
                                        .capacity = s->cuda ? capacity : capacity / (size_t)ranks,
                                        .pass = &pass,
                                        .optimizer = job->use->optimizer,
                                        .gradients = job->use->gradients,
                                        .clip = s->run->recipe->train.gradient_clipping,
                                        .world = mesh->world,
                                        .sequence = mesh->sequence,
                                        .zero_stage = job->way->zero_stage};
    enum tri_status st = tri_trainer_open(&config, &trainer);
    if (st == TRI_OK)
        st = tri_subject_weights(s, trainer);
    if (st == TRI_OK)
        st = job->work(s, trainer, mesh, job->ctx);
    tri_trainer_close(trainer);
    tri_machine_close(backend);
    return st;
}

static enum tri_status run_rank(struct tri_comm *comm, void *ctx)
{
    const struct job *job = ctx;
    struct tri_mesh mesh;
    TRI_TRY(tri_mesh_open(comm, comm != NULL ? job->way->shards : 1, &mesh));
    enum tri_status st = run_with(job, &mesh);
    tri_mesh_close(&mesh);
    return st;
}

enum tri_status tri_way_run(const struct tri_subject *subject, const struct tri_way *way,
                            const struct tri_way_use *use, tri_way_work *work, void *ctx)
{
    struct job job = {subject, way, use, work, ctx};
    double timeout = subject->run->recipe->train.comm_timeout;
    if (way->ranks == 1)
        return run_rank(NULL, &job);
    if (subject->world != NULL)
        return run_rank(subject->world, &job);
    return tri_comm_threads_run(way->ranks, timeout, run_rank, &job);
}
