/* trireme info: what this machine and this build offer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cblas.h>
#include <jansson.h>
#include <yaml.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "backend/cpu/cpu.h"
#include "backend/cuda/cuda.h"
#include "base/text.h"
#include "cli.h"
#include "comm/mpi/mpi.h"
#include "trireme/trireme.h"

static void line(const char *name, const char *value)
{
    printf("%-18s %s\n", name, value);
}

/* The text behind the first "NAME:" or "NAME" of a file of such lines. */
static bool read_field(const char *path, const char *name, char *out, size_t capacity)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    char text[512];
    bool found = false;
    while (!found && fgets(text, sizeof text, file) != NULL) {
        if (strncmp(text, name, strlen(name)) != 0)
            continue;
        const char *value = text + strlen(name);
        value += strspn(value, " \t:");
        snprintf(out, capacity, "%.*s", (int)strcspn(value, "\n"), value);
        found = true;
    }
    fclose(file);
    return found;
}

static double bytes_of_field(const char *path, const char *name)
{
    char text[64];
    return read_field(path, name, text, sizeof text) ? 1024 * strtod(text, NULL) : 0;
}

static void print_processor(void)
{
    char text[256];
    if (read_field("/proc/cpuinfo", "model name", text, sizeof text))
        line("processor", text);
#ifdef _OPENMP
    int threads = omp_get_max_threads();
#else
    int threads = 1;
#endif
    snprintf(text, sizeof text, "%d (of %ld)", threads, sysconf(_SC_NPROCESSORS_ONLN));
    line("threads", text);
    snprintf(text, sizeof text, "%s, %s of it free",
             tri_bytes(bytes_of_field("/proc/meminfo", "MemTotal")).s,
             tri_bytes(bytes_of_field("/proc/meminfo", "MemAvailable")).s);
    line("memory", text);
    if (read_field("/sys/fs/cgroup/memory.max", "", text, sizeof text) &&
        strcmp(text, "max") != 0) {
        double limit = strtod(text, NULL);
        snprintf(text, sizeof text, "%s, set by the control group", tri_bytes(limit).s);
        line("memory limit", text);
    }
}

/* Which kernel sets this processor and build can run, by opening each. */
static void print_kernels(void)
{
    static const char *const names[] = {"auto", "reference", "generic", "avx2", "avx512"};
    char text[128] = "";
    for (int i = TRI_CPU_REFERENCE; i <= TRI_CPU_AVX512; i++) {
        struct tri_cpu_config config = {.kernels = (enum tri_cpu_kernels)i};
        struct tri_backend *backend = NULL;
        if (tri_cpu_open(&config, &backend) != TRI_OK)
            continue;
        tri_cpu_close(backend);
        strncat(text, text[0] == '\0' ? "" : ", ", sizeof text - strlen(text) - 1);
        strncat(text, names[i], sizeof text - strlen(text) - 1);
    }
    tri_error_clear();
    line("CPU kernels", text);
}

static void print_library(const char *name, const struct tri_cuda_library *library)
{
    char text[1100];
    snprintf(text, sizeof text, "%s%s%s",
             library->found ? library->version : "no: ", library->found ? ", " : library->problem,
             library->found ? library->path : "");
    line(name, text);
}

static void print_cuda(void)
{
    struct tri_cuda_info info;
    tri_cuda_probe(0, &info);
    char text[512];
    if (!info.available) {
        snprintf(text, sizeof text, "no: %s", info.problem);
        line("CUDA", text);
    } else {
        snprintf(text, sizeof text, "%s, compute capability %d.%d, %s, cards: %d", info.card,
                 info.capability / 10, info.capability % 10, tri_bytes((double)info.memory_bytes).s,
                 info.num_cards);
        line("CUDA", text);
    }
    if (!info.built)
        return;
    print_library("cuBLASLt", &info.cublaslt);
    print_library("cuDNN", &info.cudnn);
}

int tri_cli_info(int argc, char **argv)
{
    if (!tri_cli_is_first())
        return 0;
    if (argc > 1)
        return tri_cli_end(tri_fail(TRI_INVALID, "info takes no '%.60s'", argv[1]));
    char text[256];
    line("Trireme", tri_version());
#ifdef __clang__
    line("compiler", __VERSION__); /* it names itself there */
#else
    line("compiler", "GNU " __VERSION__);
#endif
    print_processor();
    print_kernels();
    line("OpenBLAS", openblas_get_config());
#ifdef _OPENMP
    snprintf(text, sizeof text, "yes, %d", _OPENMP);
    line("OpenMP", text);
#else
    line("OpenMP", "no: kernels run on one thread");
#endif
    line("MPI", tri_mpi_version() != NULL ? tri_mpi_version() : "no: ranks are threads or cards");
    print_cuda();
    line("libyaml", yaml_get_version_string());
    line("jansson", JANSSON_VERSION);
    return 0;
}
