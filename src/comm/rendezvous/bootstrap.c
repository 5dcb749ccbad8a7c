#include "comm/rendezvous/bootstrap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUM_PORTS = 16, SLURM_PORT = 20000, SLURM_PORTS = 10000 };

static enum tri_status read_port(const char *name, int *out)
{
    const char *text = getenv(name);
    char *end;
    errno = 0;
    long value = text != NULL ? strtol(text, &end, 10) : 0;
    if (text == NULL || end == text || *end != '\0' || errno != 0 || value < 1 ||
        value > 65535 - NUM_PORTS)
        return tri_fail(TRI_INVALID, "%s=%.40s is no port (1 to %d)", name,
                        text != NULL ? text : "", 65535 - NUM_PORTS);
    *out = (int)value;
    return TRI_OK;
}

static const char *value_of(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? text : "";
}

/* As the processes of this program: the parent listens, and rank 0 has its socket. */
static enum tri_status find_self(const struct tri_launch_info *launch,
                                 struct tri_rendezvous_place *place, int *fd)
{
    char *end;
    const char *text = value_of("TRIREME_LISTEN_FD");
    TRI_TRY(read_port("MASTER_PORT", &place->port));
    snprintf(place->hosts, sizeof place->hosts, "%.255s", value_of("MASTER_ADDR"));
    snprintf(place->token, sizeof place->token, "%s", value_of("TRIREME_JOB"));
    place->num_ports = 1;
    if (launch->rank > 0)
        return TRI_OK;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < 0 || number > 1000000)
        return tri_fail(TRI_INVALID, "TRIREME_LISTEN_FD=%.20s is no file descriptor", text);
    *fd = (int)number;
    return TRI_OK;
}

/* By MASTER_ADDR and MASTER_PORT. */
static enum tri_status find_master(struct tri_rendezvous_place *place)
{
    int port = 0;
    const char *host = value_of("MASTER_ADDR");
    if (host[0] == '\0' || getenv("MASTER_PORT") == NULL)
        return tri_fail(TRI_INVALID,
                        "the ranks have no place to meet: set MASTER_ADDR to the machine of rank 0 "
                        "and MASTER_PORT to a port that is free there");
    TRI_TRY(read_port("MASTER_PORT", &port));
    bool taken = strcmp(value_of("TORCHELASTIC_USE_AGENT_STORE"), "True") == 0;
    place->port = port + taken;
    place->num_ports = NUM_PORTS - taken;
    snprintf(place->hosts, sizeof place->hosts, "%.255s", host);
    /* The job and its attempt: those of an earlier attempt may still be ending. */
    snprintf(place->token, sizeof place->token, "%d %.30s %.8s", port,
             value_of("TORCHELASTIC_RUN_ID"), value_of("TORCHELASTIC_RESTART_COUNT"));
    return TRI_OK;
}

enum tri_status tri_slurm_first_node(const char *list, char *name, size_t bytes)
{
    size_t used = 0;
    const char *at = list;
    bool good = *at != '\0' && *at != ',';
    while (good && *at != '\0' && *at != ',') {
        bool choice = *at == '[';
        at += choice;
        size_t count = choice ? strcspn(at, "-,]") : strcspn(at, ",[");
        const char *end = choice ? strchr(at, ']') : at + count;
        good = count > 0 && count < bytes - used && end != NULL;
        if (!good)
            break;
        memcpy(name + used, at, count);
        used += count;
        at = end + choice;
    }
    if (!good)
        return tri_fail(TRI_INVALID,
                        "'%.100s' is no list of nodes: set MASTER_ADDR and MASTER_PORT", list);
    name[used] = '\0';
    return TRI_OK;
}

static enum tri_status find_slurm(struct tri_rendezvous_place *place)
{
    char node[256];
    if (getenv("MASTER_ADDR") != NULL && getenv("MASTER_PORT") != NULL)
        return find_master(place);
    const char *list = getenv("SLURM_STEP_NODELIST");
    if (list == NULL)
        list = value_of("SLURM_JOB_NODELIST");
    TRI_TRY(tri_slurm_first_node(list, node, sizeof node));
    long job = strtol(value_of("SLURM_JOB_ID"), NULL, 10);
    place->port = SLURM_PORT + (int)(((job % SLURM_PORTS) + SLURM_PORTS) % SLURM_PORTS);
    place->num_ports = NUM_PORTS;
    snprintf(place->hosts, sizeof place->hosts, "%s", node);
    snprintf(place->token, sizeof place->token, "slurm %ld %.16s", job, value_of("SLURM_STEP_ID"));
    return TRI_OK;
}

/* Rank 0 listens somewhere and says where. */
static enum tri_status find_by_mpi(struct tri_comm *mpi, struct tri_rendezvous_place *place,
                                   int *fd)
{
    enum tri_status st = TRI_OK;
    if (mpi->rank == 0) {
        place->num_ports = 1;
        snprintf(place->token, sizeof place->token, "mpi %ld", (long)getpid());
        st = tri_rendezvous_addresses(place->hosts, sizeof place->hosts);
        if (st == TRI_OK)
            st = tri_rendezvous_listen(place, false, fd);
    }
    if (st != TRI_OK) {
        tri_comm_abort(mpi, st);
        return st;
    }
    st = mpi->ops->broadcast(mpi, NULL, place, sizeof *place, 0);
    if (st != TRI_OK && *fd >= 0)
        close(*fd);
    return st;
}

enum tri_status tri_rendezvous_join(const struct tri_launch_info *launch, struct tri_comm *mpi,
                                    double timeout, struct tri_rendezvous **out)
{
    struct tri_rendezvous_place place;
    int fd = -1;
    memset(&place, 0, sizeof place);
    if (mpi != NULL) {
        TRI_TRY(find_by_mpi(mpi, &place, &fd));
    } else if (launch->by == TRI_LAUNCH_SELF) {
        TRI_TRY(find_self(launch, &place, &fd));
    } else {
        TRI_TRY(launch->by == TRI_LAUNCH_SLURM ? find_slurm(&place) : find_master(&place));
        if (launch->rank == 0)
            TRI_TRY(tri_rendezvous_listen(&place, false, &fd));
    }
    return tri_rendezvous_open(&place, launch->rank, launch->ranks, timeout, fd, out);
}
