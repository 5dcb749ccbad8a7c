#include "ckpt/hf_source.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const char *const names[] = {"config.json",
                                    "generation_config.json",
                                    "tokenizer.json",
                                    "tokenizer_config.json",
                                    "special_tokens_map.json",
                                    "added_tokens.json",
                                    "vocab.json",
                                    "merges.txt",
                                    "tokenizer.model",
                                    "chat_template.jinja",
                                    "chat_template.json"};
static_assert(sizeof names / sizeof names[0] == TRI_HF_SOURCE_FILES, "a row each");

static enum tri_status read_file(const char *folder, struct tri_hf_file *file, bool needed)
{
    const size_t most = (size_t)1 << 30;
    char *path = tri_path_join(folder, file->name);
    if (path == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path in %s", folder);
    enum tri_status st = TRI_OK;
    if (needed || tri_path_exists(path))
        st = tri_file_read(path, most, &file->data, &file->bytes);
    free(path);
    return st;
}

enum tri_status tri_hf_source_open(const char *folder, struct tri_hf_source **out)
{
    enum tri_status st = TRI_OK;
    struct tri_hf_source *source = calloc(1, sizeof *source);
    if (source != NULL)
        source->folder = strdup(folder);
    if (source == NULL || source->folder == NULL) {
        free(source);
        return tri_fail(TRI_NOMEM, "no memory for the files of %s", folder);
    }
    for (int i = 0; i < TRI_HF_SOURCE_FILES && st == TRI_OK; i++) {
        source->file[i].name = names[i];
        st = read_file(folder, &source->file[i], i == 0);
    }
    if (st != TRI_OK) {
        tri_hf_source_close(source);
        return st;
    }
    *out = source;
    return TRI_OK;
}

void tri_hf_source_close(struct tri_hf_source *source)
{
    if (source == NULL)
        return;
    for (int i = 0; i < TRI_HF_SOURCE_FILES; i++)
        free(source->file[i].data);
    free(source->folder);
    free(source);
}
