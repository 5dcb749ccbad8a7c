#include "train/checkpoint_list.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum tri_status tri_checkpoint_path(char *out, const char *folder, const char *name, int64_t step,
                                    const char *suffix)
{
    int n = name != NULL ? snprintf(out, TRI_CHECKPOINT_PATH, "%s/%s", folder, name)
                         : snprintf(out, TRI_CHECKPOINT_PATH, "%s/checkpoint-%" PRId64 "%s", folder,
                                    step, suffix);
    if (n < 0 || n >= TRI_CHECKPOINT_PATH)
        return tri_fail(TRI_INVALID, "checkpoint.output_dir: the path is too long");
    return TRI_OK;
}

static int compare_steps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum tri_status tri_checkpoint_list(const char *folder, bool clean, int64_t **steps, int64_t *count)
{
    enum tri_status st = TRI_OK;
    int64_t *list = NULL;
    int64_t n = 0;
    int64_t room = 0;
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return tri_fail_errno(errno, "%s", folder);
    for (struct dirent *entry; st == TRI_OK && (entry = readdir(dir)) != NULL;) {
        long long step;
        int used = 0;
        char path[TRI_CHECKPOINT_PATH];
        if (sscanf(entry->d_name, "checkpoint-%lld%n", &step, &used) != 1 || step < 0)
            continue;
        char exact[40]; /* not checkpoint-+5 or checkpoint-005, which no save makes */
        int length = snprintf(exact, sizeof exact, "checkpoint-%lld", step);
        if (length != used || strncmp(exact, entry->d_name, (size_t)used) != 0)
            continue;
        st = tri_checkpoint_path(path, folder, entry->d_name, 0, "");
        if (st == TRI_OK && strcmp(entry->d_name + used, ".tmp") == 0 && clean)
            st = tri_remove_folder(path); /* an interrupted save */
        if (st != TRI_OK || entry->d_name[used] != '\0')
            continue;
        if (n == room) {
            room = room == 0 ? 16 : 2 * room;
            int64_t *grown = realloc(list, (size_t)room * sizeof *list);
            if (grown == NULL) {
                st = tri_fail(TRI_NOMEM, "no memory for the list of checkpoints");
                break;
            }
            list = grown;
        }
        list[n++] = step;
    }
    closedir(dir);
    if (st != TRI_OK) {
        free(list);
        return st;
    }
    if (n > 0)
        qsort(list, (size_t)n, sizeof *list, compare_steps);
    *steps = list;
    *count = n;
    return TRI_OK;
}
