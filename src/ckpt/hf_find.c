/* Finding a model on this machine: a folder, or a hub id in the cache that Python's
 * huggingface_hub keeps:
 *
 *   CACHE/models--ORG--NAME/refs/main              a revision, as text
 *   CACHE/models--ORG--NAME/snapshots/REVISION/    the files, as links
 */
#include "ckpt/hf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

enum { REVISION_LIMIT_BYTES = 256 };

/* Is it "name" or "org/name" as the hub allows it? Then it has no way out of the cache. */
static bool is_hub_id(const char *id)
{
    static const char *const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789-_./";
    const char *slash = strchr(id, '/');
    const char *name = slash == NULL ? id : slash + 1;
    return strspn(id, allowed) == strlen(id) && strchr(name, '/') == NULL && id[0] != '.' &&
           id[0] != '/' && name[0] != '.' && name[0] != '\0' && strstr(id, "..") == NULL;
}

/* The folder of the cache, whether or not it is there. */
static enum tri_status cache_folder(struct tri_text *out)
{
    const char *value = getenv("HF_HUB_CACHE");
    const char *below = "";
    if (value == NULL || value[0] == '\0') {
        value = getenv("HF_HOME");
        below = "/hub";
    }
    if (value == NULL || value[0] == '\0') {
        value = getenv("XDG_CACHE_HOME");
        below = "/huggingface/hub";
    }
    if (value == NULL || value[0] == '\0') {
        value = getenv("HOME");
        below = "/.cache/huggingface/hub";
    }
    if (value == NULL || value[0] == '\0')
        return tri_fail(TRI_INVALID, "cannot find the Hugging Face cache: set HF_HOME, or give the "
                                     "model as a folder");
    tri_text_printf(out, "%s%s", value, below);
    return TRI_OK;
}

/* Put the folder of the cached snapshot of `id` into `out`. */
static enum tri_status find_snapshot(const char *id, const char *cache, struct tri_text *out)
{
    const char *slash = strchr(id, '/');
    if (slash == NULL)
        tri_text_printf(out, "%s/models--%s", cache, id);
    else
        tri_text_printf(out, "%s/models--%.*s--%s", cache, (int)(slash - id), id, slash + 1);
    size_t home_bytes = out->bytes;
    tri_text_printf(out, "/refs/main");
    if (out->failed)
        return tri_fail(TRI_NOMEM, "no memory to look for model %s", id);
    if (!tri_path_exists(tri_text_data(out)) && slash == NULL)
        return tri_fail(TRI_IO,
                        "model %s: there is no such folder below the current one, nor such a model "
                        "in the Hugging Face cache %s: give the folder's path, or ORG/NAME",
                        id, cache);
    if (!tri_path_exists(tri_text_data(out)))
        return tri_fail(TRI_IO,
                        "model %s: there is no such folder below the current one, nor such a model "
                        "in the Hugging Face cache %s: start where the path begins, or run: hf "
                        "download %s",
                        id, cache, id);

    char *revision = NULL;
    TRI_TRY(tri_file_read(tri_text_data(out), REVISION_LIMIT_BYTES, &revision, NULL));
    revision[strcspn(revision, " \t\r\n")] = '\0';
    enum tri_status st = TRI_OK;
    if (!is_hub_id(revision) || strchr(revision, '/') != NULL) {
        st = tri_fail(TRI_FORMAT, "%s does not hold a revision: run: hf download %s",
                      tri_text_data(out), id);
        goto free_revision;
    }
    char *home = strndup(tri_text_data(out), home_bytes);
    tri_text_free(out);
    if (home != NULL)
        tri_text_printf(out, "%s/snapshots/%s", home, revision);
    if (home == NULL || out->failed)
        st = tri_fail(TRI_NOMEM, "no memory to look for model %s", id);
    free(home);

free_revision:
    free(revision);
    return st;
}

/* A model's folder must hold config.json. `id` is NULL outside the cache. On success *out is a copy
 * of the path. */
static enum tri_status accept_folder(const char *path, const char *id, char **out)
{
    char *config = tri_path_join(path, "config.json");
    char *copy = strdup(path);
    enum tri_status st = TRI_OK;
    if (config == NULL || copy == NULL)
        st = tri_fail(TRI_NOMEM, "no memory for the path %s", path);
    else if (!tri_path_exists(config) && id != NULL)
        st = tri_fail(TRI_IO,
                      "%s has no config.json, its download did not finish: run: hf download %s",
                      path, id);
    else if (!tri_path_exists(config))
        st =
            tri_fail(TRI_IO,
                     "%s has no config.json: give a folder as Transformers saves it (of a run that "
                     "has not ended: its newest checkpoint-N)",
                     path);
    free(config);
    if (st == TRI_OK)
        *out = copy;
    else
        free(copy);
    return st;
}

enum tri_status tri_hf_find(const char *name_or_path, char **folder)
{
    if (tri_path_is_folder(name_or_path))
        return accept_folder(name_or_path, NULL, folder);
    if (tri_path_exists(name_or_path))
        return tri_fail(TRI_INVALID, "model %s is a file: give the folder that holds config.json",
                        name_or_path);
    if (!is_hub_id(name_or_path))
        return tri_fail(
            TRI_IO, "model %s: there is no such folder, and it is not a hub id such as org/name",
            name_or_path);

    struct tri_text cache = {0}, snapshot = {0};
    enum tri_status st;
    TRI_TRY_GOTO(st, cache_folder(&cache), free_text);
    TRI_TRY_GOTO(st, find_snapshot(name_or_path, tri_text_data(&cache), &snapshot), free_text);
    st = accept_folder(tri_text_data(&snapshot), name_or_path, folder);

free_text:
    tri_text_free(&cache);
    tri_text_free(&snapshot);
    return st;
}
