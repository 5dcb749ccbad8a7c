# What the scripts of this folder share; they read it first. Root and few cores are fine.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1

# Is this mpirun MPICH's? It starts ranks from a proxy.
is_hydra() { [ "$("$1" --version | grep -ci hydra || true)" -gt 0 ]; }

# ranks_of MPIRUN JOB: the processes that a running mpirun started.
ranks_of() {
    local children
    children=$(pgrep -P "$2")
    if is_hydra "$1"; then
        children=$(pgrep -P "$(head -1 <<<"$children")")
    fi
    echo "$children"
}
