#include "train/changes.h"

#include <string.h>

#include "base/log.h"

/* Compared by its reader, or of no use to a model. */
static bool is_state(const char *name)
{
    return strstr(name, ".safetensors") != NULL || strcmp(name, "recipe.yml") == 0 ||
           strcmp(name, "trainer_state.json") == 0;
}

/* `so` ends the warning: what follows. */
static enum tri_status warn(struct tri_sums *sums, const char *folder, bool resumes, const char *so)
{
    const char *name;
    for (int64_t i = 0; sums != NULL && (name = tri_sums_file(sums, i)) != NULL; i++) {
        if (is_state(name) || (resumes && strcmp(name, "config.json") == 0))
            continue;
        enum tri_status st = tri_sums_check_file(sums, folder, name);
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

enum tri_status tri_warn_of_changes(struct tri_sums *sums, const char *folder)
{
    return warn(sums, folder, true, "training does not read it and goes on");
}

enum tri_status tri_warn_of_changed_model(const char *folder)
{
    struct tri_sums *sums = NULL;
    TRI_TRY(tri_sums_load(folder, &sums));
    enum tri_status st = warn(sums, folder, false, "the model is used as it is");
    tri_sums_close(sums);
    return st;
}
