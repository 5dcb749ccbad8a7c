#include "backend/cuda/attn_cudnn_api.h"

#include <stdio.h>
#include <string.h>

#include "backend/cuda/libraries.h"

/* Earlier versions want another value than -infinity for what is hidden, and 9.10.0 and 9.10.1 err
 * in the backward of bfloat16 (cudnn-frontend 1.23). */
enum { OLDEST_VERSION = 91002 };

enum tri_status tri_cudnn_api_open(struct tri_cuda_library *found, struct tri_cudnn_api *out)
{
    struct tri_cudnn_api api;
    memset(&api, 0, sizeof api);
    void *library = tri_library_open_cudnn(found);
    if (library == NULL)
        return tri_fail(TRI_UNSUPPORTED, "%s", found->problem);
    bool complete =
        tri_library_symbol(library, "cudnnGetVersion", &api.get_version, found) &&
        tri_library_symbol(library, "cudnnCreate", &api.create, found) &&
        tri_library_symbol(library, "cudnnDestroy", &api.destroy, found) &&
        tri_library_symbol(library, "cudnnSetStream", &api.set_stream, found) &&
        tri_library_symbol(library, "cudnnGetErrorString", &api.error_string, found) &&
        tri_library_symbol(library, "cudnnGetLastErrorString", &api.last_error, found) &&
        tri_library_symbol(library, "cudnnBackendCreateDescriptor", &api.create_descriptor,
                           found) &&
        tri_library_symbol(library, "cudnnBackendDestroyDescriptor", &api.destroy_descriptor,
                           found) &&
        tri_library_symbol(library, "cudnnBackendFinalize", &api.finalize, found) &&
        tri_library_symbol(library, "cudnnBackendSetAttribute", &api.set, found) &&
        tri_library_symbol(library, "cudnnBackendGetAttribute", &api.get, found) &&
        tri_library_symbol(library, "cudnnBackendExecute", &api.execute, found);
    if (!complete)
        return tri_fail(TRI_UNSUPPORTED, "%s", found->problem);
    api.version = api.get_version();
    snprintf(found->version, sizeof found->version, "%zu.%zu.%zu", api.version / 10000,
             api.version / 100 % 100, api.version % 100);
    if (api.version < OLDEST_VERSION) {
        found->found = false;
        snprintf(found->problem, sizeof found->problem,
                 "%.300s is cuDNN %s; attention needs 9.10.2 or later: update it", found->path,
                 found->version);
        return tri_fail(TRI_UNSUPPORTED, "%s", found->problem);
    }
    *out = api;
    return TRI_OK;
}

enum tri_status tri_cudnn_check(const struct tri_cudnn_api *api, cudnnStatus_t code,
                                const char *what)
{
    if (code == CUDNN_STATUS_SUCCESS)
        return TRI_OK;
    char why[256] = "";
    api->last_error(why, sizeof why);
    for (char *p = why; *p != '\0'; p++)
        if (*p == '\n')
            *p = ' ';
    return tri_fail(code == CUDNN_STATUS_ALLOC_FAILED ? TRI_NOMEM : TRI_DEVICE,
                    "cuDNN could not %s: %s (%s)", what, api->error_string(code), why);
}
