#include "shard/mesh.h"

enum tri_status tri_mesh_shards(int64_t ranks, int64_t size, int64_t *shards)
{
    int64_t p = size > 0 ? size : ranks;
    if (p > ranks || ranks % p != 0)
        return tri_fail(TRI_INVALID,
                        "sequence_parallel_size %lld does not divide the %lld ranks of this job: "
                        "start a multiple of it (--ranks), or leave it out",
                        (long long)p, (long long)ranks);
    *shards = p;
    return TRI_OK;
}

int64_t tri_mesh_choose(int64_t ranks, int64_t size, int64_t num_heads)
{
    if (size > 0 || ranks < 1 || num_heads < 1)
        return size;
    int64_t p = ranks < num_heads ? ranks : num_heads;
    while (ranks % p != 0)
        p--;
    return p;
}

enum tri_status tri_mesh_open(struct tri_comm *world, int64_t size, struct tri_mesh *out)
{
    int64_t ranks = world != NULL ? world->size : 1;
    int64_t p = 1;
    TRI_TRY(tri_mesh_shards(ranks, size, &p));
    struct tri_mesh mesh = {.world = world, .num_replicas = (int)(ranks / p)};
    if (world != NULL) {
        mesh.replica = world->rank / (int)p;
        TRI_TRY(world->ops->split(world, mesh.replica, world->rank, &mesh.sequence));
    }
    *out = mesh;
    return TRI_OK;
}

void tri_mesh_close(struct tri_mesh *mesh)
{
    tri_comm_close(mesh->sequence);
    mesh->sequence = NULL;
}
