#include "comm/nccl/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/nccl/nccl.h"

enum { OLDEST = 21800 /* 2.18: communicators that do not block are complete */ };

enum tri_status tri_nccl_api_open(struct tri_nccl_api *out)
{
    struct tri_nccl_api api;
    memset(&api, 0, sizeof api);
    /* Before NCCL reads its environment. */
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    const struct {
        const char *name;
        void *place;
    } functions[] = {
        {"ncclGetVersion", &api.get_version},
        {"ncclGetUniqueId", &api.get_unique_id},
        {"ncclCommInitRankConfig", &api.init},
        {"ncclCommGetAsyncError", &api.get_async_error},
        {"ncclCommFinalize", &api.finalize},
        {"ncclCommDestroy", &api.destroy},
        {"ncclCommAbort", &api.abort},
        {"ncclGetErrorString", &api.error_string},
        {"ncclGetLastError", &api.last_error},
        {"ncclGroupStart", &api.group_start},
        {"ncclGroupEnd", &api.group_end},
        {"ncclSend", &api.send},
        {"ncclRecv", &api.recv},
        {"ncclAllGather", &api.all_gather},
        {"ncclReduceScatter", &api.reduce_scatter},
        {"ncclAllReduce", &api.all_reduce},
        {"ncclBroadcast", &api.broadcast},
    };
    void *handle = tri_library_open_nccl(&api.library);
    bool all = handle != NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions && all; i++)
        all = tri_library_symbol(handle, functions[i].name, functions[i].place, &api.library);
    if (!all)
        return tri_fail(TRI_UNSUPPORTED, "several cards need NCCL: %s", api.library.problem);
    if (api.get_version(&api.version) != ncclSuccess || api.version < OLDEST)
        return tri_fail(TRI_UNSUPPORTED, "NCCL in %s is version %d; 2.18 or later is needed",
                        api.library.path, api.version);
    *out = api;
    return TRI_OK;
}

void tri_comm_nccl_describe(char *text, size_t bytes)
{
    struct tri_nccl_api api;
    if (tri_nccl_api_open(&api) != TRI_OK) {
        snprintf(text, bytes, "%s", tri_error_text());
        tri_error_clear();
        return;
    }
    snprintf(text, bytes, "%d.%d.%d from %s", api.version / 10000, api.version / 100 % 100,
             api.version % 100, api.library.path);
}
