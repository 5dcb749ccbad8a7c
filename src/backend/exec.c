#include "backend/backend.h"
#include "base/arena.h"

enum tri_status tri_exec_scratch(const struct tri_exec *exec, const char *name,
                                 enum tri_dtype dtype, int64_t rows, int64_t cols,
                                 struct tri_view *out)
{
    struct tri_view view = tri_view2(NULL, dtype, rows, cols);
    TRI_TRY(tri_arena_alloc(exec->arena, name, tri_view_bytes(view), &view.data));
    *out = view;
    return TRI_OK;
}
