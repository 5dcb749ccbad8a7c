#include "train/changes.h"

#include <string.h>

#include "base/log.h"

enum tri_status tri_warn_of_changes(struct tri_sums *sums, const char *folder,
                                    bool (*is_read)(const char *name), const char *so)
{
    const char *name;
    for (int64_t i = 0; sums != NULL && (name = tri_sums_file(sums, i)) != NULL; i++) {
        enum tri_status st = is_read(name) ? TRI_OK : tri_sums_check_file(sums, folder, name);
        if (st == TRI_OK)
            continue;
        if (st == TRI_FORMAT)
            tri_warn("%s/%s is not what was saved: changed since, or damaged; %s", folder, name,
                     so);
        else if (st == TRI_IO)
            tri_warn("%s; %s", tri_error_text(), so);
        else
            return st;
        tri_error_clear();
    }
    return TRI_OK;
}

/* Compared by its reader, or of no use to a model. */
static bool is_no_part(const char *name)
{
    return strstr(name, ".safetensors") != NULL || strcmp(name, "recipe.yml") == 0 ||
           strcmp(name, "trainer_state.json") == 0;
}

enum tri_status tri_warn_of_changed_model(const char *folder)
{
    struct tri_sums *sums = NULL;
    TRI_TRY(tri_sums_load(folder, &sums));
    enum tri_status st =
        tri_warn_of_changes(sums, folder, is_no_part, "the model is used as it is");
    tri_sums_close(sums);
    return st;
}
