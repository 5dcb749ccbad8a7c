/* What the inside of the library knows of a mesh beside its public header. */
#ifndef TRI_SHARD_MESH_H
#define TRI_SHARD_MESH_H

#include "comm/comm.h"
#include "trireme/mesh.h"

/* P of a job of `ranks` ranks: `size`, or all ranks for 0. It must divide them. */
enum tri_status tri_mesh_shards(int64_t ranks, int64_t size, int64_t *shards);

/* The P of a job whose recipe asks for `size`: that, or for 0 the largest divisor of `ranks` that
 * gives each rank of a sequence one of `num_heads` query heads. The rest are replicas. */
int64_t tri_mesh_choose(int64_t ranks, int64_t size, int64_t num_heads);

/* Whether this rank speaks for the job: prints, saves. */
static inline bool tri_mesh_is_first(const struct tri_mesh *mesh)
{
    return mesh->world == NULL || mesh->world->rank == 0;
}

#endif
