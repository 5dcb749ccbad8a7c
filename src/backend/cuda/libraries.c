#include "backend/cuda/libraries.h"

#include "backend/cuda/probe.h"

#include <cublas_api.h>
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(x)       #x
#define TEXT_OF_VALUE(x) TEXT_OF(x)

/* Where one library may be. */
struct search {
    const char *what;        /* for people */
    const char *environment; /* a variable that holds a path */
    const char *soname;
    const char *package;    /* the pip package that brings it */
    const char *folders[4]; /* below a site-packages folder; NULL ends them */
};

/* The major version is that of the headers: the API of another one may differ. */
static const struct search cublaslt = {
    "cuBLASLt",
    "TRIREME_CUBLASLT",
    "libcublasLt.so." TEXT_OF_VALUE(CUBLAS_VER_MAJOR),
    "nvidia-cublas",
    {"nvidia/cu" TEXT_OF_VALUE(CUBLAS_VER_MAJOR) "/lib", "nvidia/cublas/lib"},
};

static const struct search cudnn = {
    "cuDNN",
    "TRIREME_CUDNN",
    "libcudnn.so.9",
    "nvidia-cudnn-cu" TEXT_OF_VALUE(CUBLAS_VER_MAJOR),
    {"nvidia/cudnn/lib"},
};

static const struct search nccl = {
    "NCCL",
    "TRIREME_NCCL",
    "libnccl.so.2",
    "nvidia-nccl-cu" TEXT_OF_VALUE(CUBLAS_VER_MAJOR),
    {"nvidia/nccl/lib"},
};

/* Folders that hold Python packages, below a prefix, as patterns of glob(3). */
static const char *const site_packages[] = {"/lib/python3*/site-packages",
                                            "/lib/python3*/dist-packages", NULL};

/* Ordinary CUDA installations. */
static const char *const cuda_folders[] = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                                           "/usr/lib/x86_64-linux-gnu",
                                           "/usr/lib/aarch64-linux-gnu", NULL};

static void *try_path(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The library below one Python prefix such as "/usr". */
static void *try_prefix(const struct search *search, const char *prefix)
{
    void *handle = NULL;
    for (const char *const *site = site_packages; *site != NULL && handle == NULL; site++) {
        for (const char *const *folder = search->folders; *folder != NULL && handle == NULL;
             folder++) {
            char base[1024], pattern[2048];
            if (snprintf(base, sizeof base, "%s%s", prefix, *site) >= (int)sizeof base ||
                snprintf(pattern, sizeof pattern, "%s/%s/%s", base, *folder, search->soname) >=
                    (int)sizeof pattern)
                continue;
            glob_t found;
            if (glob(pattern, 0, NULL, &found) == 0)
                for (size_t i = 0; i < found.gl_pathc && handle == NULL; i++)
                    handle = try_path(found.gl_pathv[i]);
            globfree(&found);
        }
    }
    return handle;
}

/* The library in the packages of the Python that would run: its virtual environment, the conda
 * environment, the first python3 of PATH, the user's folder, the system. */
static void *try_python(const struct search *search)
{
    static const char *const environments[] = {"VIRTUAL_ENV", "CONDA_PREFIX", NULL};
    void *handle = NULL;
    for (const char *const *name = environments; *name != NULL && handle == NULL; name++)
        if (getenv(*name) != NULL)
            handle = try_prefix(search, getenv(*name));
    const char *path = getenv("PATH");
    while (handle == NULL && path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        char prefix[512], program[600];
        if (length > 4 && length < sizeof prefix && strncmp(path + length - 4, "/bin", 4) == 0) {
            snprintf(prefix, sizeof prefix, "%.*s", (int)(length - 4), path);
            snprintf(program, sizeof program, "%s/bin/python3", prefix);
            FILE *file = fopen(program, "rb");
            if (file != NULL) {
                fclose(file);
                handle = try_prefix(search, prefix);
            }
        }
        path += length;
        path += *path == ':';
    }
    char home[600];
    if (handle == NULL && getenv("HOME") != NULL &&
        snprintf(home, sizeof home, "%s/.local", getenv("HOME")) < (int)sizeof home)
        handle = try_prefix(search, home);
    if (handle == NULL)
        handle = try_prefix(search, "/usr/local");
    if (handle == NULL)
        handle = try_prefix(search, "/usr");
    return handle;
}

static void *try_cuda(const struct search *search)
{
    void *handle = NULL;
    for (const char *const *folder = cuda_folders; *folder != NULL && handle == NULL; folder++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", *folder, search->soname);
        handle = try_path(path);
    }
    return handle;
}

static void *find(const struct search *search, struct tri_cuda_library *found)
{
    memset(found, 0, sizeof *found);
    const char *wish = getenv(search->environment);
    void *handle = NULL;
    if (wish != NULL && *wish != '\0') {
        handle = try_path(wish);
        if (handle == NULL) {
            const char *why = dlerror();
            snprintf(found->problem, sizeof found->problem, "%s: cannot open %s: %s",
                     search->environment, wish, why != NULL ? why : "unknown reason");
            return NULL;
        }
    }
    if (handle == NULL)
        handle = try_python(search);
    if (handle == NULL)
        handle = try_path(search->soname);
    if (handle == NULL)
        handle = try_cuda(search);
    if (handle == NULL) {
        snprintf(found->problem, sizeof found->problem,
                 "%s (%s) not found: pip install %s, or set %s to its path", search->what,
                 search->soname, search->package, search->environment);
        return NULL;
    }
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL)
        snprintf(found->path, sizeof found->path, "%s", map->l_name);
    found->found = true;
    return handle;
}

void *tri_library_open_cublaslt(struct tri_cuda_library *found)
{
    return find(&cublaslt, found);
}

void *tri_library_open_cudnn(struct tri_cuda_library *found)
{
    return find(&cudnn, found);
}

void *tri_library_open_nccl(struct tri_cuda_library *found)
{
    return find(&nccl, found);
}

bool tri_library_symbol(void *handle, const char *name, void *out, struct tri_cuda_library *found)
{
    void *symbol = dlsym(handle, name);
    if (symbol == NULL) {
        found->found = false;
        snprintf(found->problem, sizeof found->problem, "%.400s has no %s", found->path, name);
        return false;
    }
    *(void **)out = symbol;
    return true;
}

void tri_cuda_probe_libraries(struct tri_cuda_info *out)
{
    size_t (*version)(void);
    void *handle = find(&cublaslt, &out->cublaslt);
    if (handle != NULL &&
        tri_library_symbol(handle, "cublasLtGetVersion", &version, &out->cublaslt))
        snprintf(out->cublaslt.version, sizeof out->cublaslt.version, "%zu.%zu.%zu",
                 version() / 10000, version() / 100 % 100, version() % 100);
    handle = find(&cudnn, &out->cudnn);
    if (handle != NULL && tri_library_symbol(handle, "cudnnGetVersion", &version, &out->cudnn))
        snprintf(out->cudnn.version, sizeof out->cudnn.version, "%zu.%zu.%zu", version() / 10000,
                 version() / 100 % 100, version() % 100);
}
