/* The ranks of a job as a table: replicas of the data times shards of the sequence.
 *
 * Ranks of a sequence group are consecutive: rank = replica * P + place. Every rank of a group
 * works on the same sequences, every replica on others. A mesh may be closed and another one opened
 * over the same ranks, with another P, as often as wanted; a refused size leaves nothing behind. */
#ifndef TRIREME_MESH_H
#define TRIREME_MESH_H

#include <stdint.h>

#include "trireme/comm.h"
#include "trireme/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tri_mesh {
    struct tri_comm *world;    /* all ranks; not owned. NULL: one rank */
    struct tri_comm *sequence; /* this rank's group; owned. NULL: one rank */
    int num_replicas;
    int replica; /* of this rank */
};

/* `size` is P, 0: all ranks. It must divide the number of ranks (TRI_INVALID, with the numbers).
 * Collective over `world`, which may be NULL. */
enum tri_status tri_mesh_open(struct tri_comm *world, int64_t size, struct tri_mesh *out);
void tri_mesh_close(struct tri_mesh *mesh);

#ifdef __cplusplus
}
#endif

#endif
