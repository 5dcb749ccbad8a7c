/* What the processes of a job say to each other on the host: who is there, small values, and the
 * news that a rank failed. NCCL has no such channel; over this one it gets its id and its
 * deadlines.
 *
 * Every process holds one TCP connection to the hub, a thread of rank 0. A connection that breaks
 * without a farewell is a process that died, so a killed rank is noticed at once and every other
 * rank hears which one it was. A value costs one trip to the hub and back: for what is said a few
 * times a step, not for tensors. */
#ifndef TRI_COMM_RENDEZVOUS_RENDEZVOUS_H
#define TRI_COMM_RENDEZVOUS_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
    TRI_RENDEZVOUS_HOSTS = 1024,           /* bytes of a list of hosts */
    TRI_RENDEZVOUS_TOKEN = 64,             /* bytes of a token, the zero included */
    TRI_RENDEZVOUS_MAX_RANKS = 4096,       /* of a job */
    TRI_RENDEZVOUS_MAX_BYTES = 256 * 1024, /* that one rank gives to one exchange */
};

struct tri_rendezvous;

/* Where the hub is, and which job this is. */
struct tri_rendezvous_place {
    char hosts[TRI_RENDEZVOUS_HOSTS]; /* names or addresses with spaces between, tried in order */
    int port, num_ports;              /* the hub is at one of these */
    char token[TRI_RENDEZVOUS_TOKEN]; /* a process with another token belongs to another job */
};

/* For rank 0: listen on the first free one of place->port, ... (0: any) and set place->port to it,
 * num_ports to 1. `local`: only processes of this machine can come. */
enum tri_status tri_rendezvous_listen(struct tri_rendezvous_place *place, bool local, int *fd);

/* All addresses of this machine, for place->hosts. */
enum tri_status tri_rendezvous_addresses(char *hosts, size_t bytes);

/* Join; returns when all `size` ranks are there, or after `timeout` seconds with a text that says
 * who is missing. `listen_fd` is what tri_rendezvous_listen gave to rank 0 and is taken over; other
 * ranks give -1. */
enum tri_status tri_rendezvous_open(const struct tri_rendezvous_place *place, int rank, int size,
                                    double timeout, int listen_fd, struct tri_rendezvous **out);

/* Say farewell. Rank 0 waits a few seconds for the others, whose hub it is. */
void tri_rendezvous_close(struct tri_rendezvous *rv); /* NULL is allowed */

int tri_rendezvous_rank(const struct tri_rendezvous *rv);
int tri_rendezvous_size(const struct tri_rendezvous *rv);

/* Some of the ranks, as one of them sees them. `id` names the group: equal on its members, given to
 * no other group of the job. */
struct tri_rendezvous_group {
    uint64_t id;
    uint64_t sequence; /* exchanges so far: start with 0 */
    int place, size;
};

/* The group of all ranks. */
struct tri_rendezvous_group tri_rendezvous_all(const struct tri_rendezvous *rv);

/* recv (size * bytes) = `send` of every member in order. Waits until all have come: at most
 * `timeout` seconds, and no longer than all ranks live. Members that come with another `what`
 * (at most 31 characters) or another number of bytes are an error on all ranks. */
enum tri_status tri_rendezvous_gather(struct tri_rendezvous *rv, struct tri_rendezvous_group *group,
                                      const char *what, void *recv, const void *send, size_t bytes,
                                      double timeout);

/* Tell all ranks that this one failed. The first that says so counts. */
void tri_rendezvous_fail(struct tri_rendezvous *rv, enum tri_status status, const char *text);

/* TRI_OK, or TRI_PEER with a text that names the first rank that failed and says that this rank was
 * in `what`. A failure of the job that no rank made alone, such as ranks that went apart, and the
 * own failure keep their code and text. */
enum tri_status tri_rendezvous_check(struct tri_rendezvous *rv, const char *what);

/* Which rank failed first, once the hub has said so: waits up to `seconds`. -1: none, or none
 * alone. */
int tri_rendezvous_first_failed(struct tri_rendezvous *rv, double seconds);

/* Call `heard(ctx)` once, on another thread, when the job fails; at once if it has. NULL: nobody
 * any more; when this returns no call is running. */
void tri_rendezvous_on_failure(struct tri_rendezvous *rv, void (*heard)(void *ctx), void *ctx);

#endif
