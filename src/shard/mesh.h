/* The ranks of a job as a table: replicas of the data times shards of the sequence.
 *
 * Ranks of a sequence group are consecutive: rank = replica * P + place. Every rank of a group
 * works on the same sequences, every replica on others. */
#ifndef TRI_SHARD_MESH_H
#define TRI_SHARD_MESH_H

#include "comm/comm.h"

struct tri_mesh {
    struct tri_comm *world;    /* all ranks; not owned. NULL: one rank */
    struct tri_comm *sequence; /* this rank's group; owned. NULL: one rank */
    int num_replicas;
    int replica; /* of this rank */
};

/* P of a job of `ranks` ranks: `size`, or all ranks for 0. It must divide them. */
enum tri_status tri_mesh_shards(int64_t ranks, int64_t size, int64_t *shards);

/* `size` is P, 0: all ranks. It must divide the number of ranks. Collective; world may be NULL. */
enum tri_status tri_mesh_open(struct tri_comm *world, int64_t size, struct tri_mesh *out);
void tri_mesh_close(struct tri_mesh *mesh);

/* Whether this rank speaks for the job: prints, saves. */
static inline bool tri_mesh_is_first(const struct tri_mesh *mesh)
{
    return mesh->world == NULL || mesh->world->rank == 0;
}

#endif
