/* Listening and connecting. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/rendezvous/frame.h"

enum tri_status tri_socket_prepare(int fd)
{
    /* A machine that lost its power or its cable says nothing: after 10 s of silence it is asked
     * every 5 s, and it is gone after half a minute. */
    static const struct {
        int level, name, value;
    } wishes[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},   {IPPROTO_TCP, TCP_KEEPIDLE, 10},
        {IPPROTO_TCP, TCP_KEEPINTVL, 5}, {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_NODELAY, 1},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 30 * 1000},
    };
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++)
        if (setsockopt(fd, wishes[i].level, wishes[i].name, &wishes[i].value,
                       sizeof wishes[i].value) != 0)
            return tri_fail_errno(errno, "cannot set up a connection between ranks");
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        return tri_fail_errno(errno, "cannot set up a connection between ranks");
    return TRI_OK;
}

/* Bind and listen on one port of IPv4: 0 when taken, -1 on anything else. */
static int try_port(bool local, int port, int *fd)
{
    struct sockaddr_in at;
    int yes = 1;
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return -1;
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)port);
    at.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
    /* Connections of an earlier run that have not quite ended are no obstacle; a listener is. */
    (void)setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(made, (const struct sockaddr *)&at, sizeof at) == 0 && listen(made, 1024) == 0) {
        *fd = made;
        return 1;
    }
    int why = errno;
    close(made);
    errno = why;
    return why == EADDRINUSE || why == EACCES ? 0 : -1;
}

enum tri_status tri_rendezvous_listen(struct tri_rendezvous_place *place, bool local, int *fd)
{
    struct sockaddr_in at;
    socklen_t bytes = sizeof at;
    int made = -1;
    int result = 0;
    for (int i = 0; i < place->num_ports && result == 0; i++)
        result = try_port(local, place->port + (place->port > 0 ? i : 0), &made);
    if (result < 0)
        return tri_fail_errno(errno, "cannot listen for the other ranks");
    if (result == 0)
        return tri_fail(TRI_COMM,
                        "no port of %d to %d is free for the ranks to meet: set MASTER_PORT to "
                        "another one",
                        place->port, place->port + place->num_ports - 1);
    if (getsockname(made, (struct sockaddr *)&at, &bytes) != 0) {
        int why = errno;
        close(made);
        return tri_fail_errno(why, "cannot listen for the other ranks");
    }
    place->port = ntohs(at.sin_port);
    place->num_ports = 1;
    *fd = made;
    return TRI_OK;
}

enum tri_status tri_rendezvous_addresses(char *hosts, size_t bytes)
{
    struct ifaddrs *list = NULL;
    size_t used = 0;
    if (getifaddrs(&list) != 0)
        return tri_fail_errno(errno, "cannot list the network interfaces");
    hosts[0] = '\0';
    for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        char text[INET_ADDRSTRLEN];
        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET ||
            (i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP))
            continue;
        const struct sockaddr_in *at = (const struct sockaddr_in *)(const void *)i->ifa_addr;
        if (inet_ntop(AF_INET, &at->sin_addr, text, sizeof text) == NULL ||
            used + strlen(text) + 2 > bytes)
            continue;
        used += (size_t)snprintf(hosts + used, bytes - used, "%s%s", used > 0 ? " " : "", text);
    }
    freeifaddrs(list);
    /* Last, because on another machine it is somebody else. */
    if (used + sizeof " 127.0.0.1" <= bytes)
        snprintf(hosts + used, bytes - used, "%s127.0.0.1", used > 0 ? " " : "");
    return TRI_OK;
}

static int connect_address(const struct addrinfo *to, double seconds)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int code = connect(fd, to->ai_addr, to->ai_addrlen);
    if (code != 0 && errno == EINPROGRESS) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        int error = 0;
        socklen_t bytes = sizeof error;
        if (poll(&wait, 1, (int)(seconds * 1000) + 1) == 1 &&
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == 0)
            code = 0;
    }
    if (code != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int tri_socket_connect(const char *host, int port, double seconds)
{
    char service[16];
    struct addrinfo hints, *list = NULL;
    int fd = -1;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(host, service, &hints, &list) != 0)
        return -1;
    for (const struct addrinfo *i = list; i != NULL && fd < 0; i = i->ai_next)
        fd = connect_address(i, seconds);
    freeaddrinfo(list);
    return fd;
}
