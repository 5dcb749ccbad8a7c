#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_START_BYTES = 4096, WALK_OPEN_FOLDERS = 16 };

static enum tri_status fail_to_read(const char *path)
{
    return tri_fail_errno(errno, "cannot read %s", path);
}

enum tri_status tri_map_open(const char *path, struct tri_map *out)
{
    /* Without O_NONBLOCK a pipe under this name would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail_to_read(path);
    enum tri_status st = TRI_OK;
    struct stat info;
    if (fstat(fd, &info) != 0) {
        st = fail_to_read(path);
        goto close_fd;
    }
    if (!S_ISREG(info.st_mode)) {
        st = tri_fail(TRI_IO, "cannot read %s: it is %s, not a file", path,
                      S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
        goto close_fd;
    }

    struct tri_map map = {NULL, (size_t)info.st_size};
    if (map.bytes > 0) {
        void *data = mmap(NULL, map.bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            st = tri_fail_errno(errno, "cannot map the %zu bytes of %s", map.bytes, path);
            goto close_fd;
        }
        map.data = data;
    }
    *out = map;

close_fd:
    close(fd);
    return st;
}

void tri_map_close(struct tri_map *map)
{
    if (map->data != NULL)
        munmap((void *)(uintptr_t)map->data, map->bytes);
    *map = (struct tri_map){NULL, 0};
}

/* Read to the end rather than trust the size: pipes and files under /proc have none. */
static enum tri_status read_all(int fd, const char *path, size_t limit, char **text, size_t *bytes)
{
    size_t capacity = READ_START_BYTES, used = 0;
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_size > 0 && (size_t)info.st_size <= limit)
        capacity = (size_t)info.st_size + 2; /* the NUL, and one byte to see the end */
    char *data = malloc(capacity);
    if (data == NULL)
        return tri_fail(TRI_NOMEM, "no memory to read %zu bytes of %s", capacity, path);

    enum tri_status st = TRI_OK;
    for (;;) {
        ssize_t got = read(fd, data + used, capacity - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            st = fail_to_read(path);
            goto free_data;
        }
        if (got == 0)
            break;
        used += (size_t)got;
        if (used > limit) {
            st = tri_fail(TRI_FORMAT, "%s is larger than the %zu bytes allowed for such a file",
                          path, limit);
            goto free_data;
        }
        if (used + 1 == capacity) {
            capacity *= 2;
            char *larger = realloc(data, capacity);
            if (larger == NULL) {
                st = tri_fail(TRI_NOMEM, "no memory to read %zu bytes of %s", capacity, path);
                goto free_data;
            }
            data = larger;
        }
    }
    data[used] = '\0';
    *text = data;
    if (bytes != NULL)
        *bytes = used;
    return TRI_OK;

free_data:
    free(data);
    return st;
}

enum tri_status tri_file_read(const char *path, size_t limit, char **text, size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_to_read(path);
    enum tri_status st = read_all(fd, path, limit, text, bytes);
    close(fd);
    return st;
}

/* One level of mkdir -p; an existing folder is fine. */
static enum tri_status make_one_folder(const char *path)
{
    if (mkdir(path, 0777) == 0)
        return TRI_OK;
    int code = errno;
    if (tri_path_is_folder(path))
        return TRI_OK;
    if (code == EEXIST || code == ENOTDIR)
        return tri_fail(TRI_IO,
                        "cannot create the folder %s: a file of this name, or on the way "
                        "to it, is there already",
                        path);
    return tri_fail(code == ENOMEM ? TRI_NOMEM : TRI_IO,
                    "cannot create the folder %s: %s: choose another output_dir", path,
                    strerror(code));
}

enum tri_status tri_make_folder(const char *path)
{
    if (path[0] == '\0')
        return tri_fail(TRI_INVALID, "cannot create a folder without a name");
    char *prefix = strdup(path);
    if (prefix == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the path %s", path);
    enum tri_status st = TRI_OK;
    for (char *p = prefix + 1; st == TRI_OK; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char separator = *p;
        *p = '\0';
        st = make_one_folder(prefix);
        *p = separator;
        if (separator == '\0')
            break;
    }
    free(prefix);
    return st;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    if (remove(path) == 0 || errno == ENOENT)
        return 0;
    tri_fail_errno(errno, "cannot remove %s", path);
    return 1;
}

enum tri_status tri_remove_folder(const char *path)
{
    /* Depth first, and links are removed, never followed. */
    int rc = nftw(path, remove_entry, WALK_OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    if (rc == 0 || (rc < 0 && errno == ENOENT))
        return TRI_OK;
    return rc > 0 ? TRI_IO : tri_fail_errno(errno, "cannot remove the folder %s", path);
}

bool tri_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool tri_path_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

char *tri_path_join(const char *folder, const char *name)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    const char *separator = length == 1 && folder[0] == '/' ? "" : "/";
    size_t room = length + strlen(name) + 2;
    char *path = malloc(room);
    if (path != NULL)
        snprintf(path, room, "%.*s%s%s", (int)length, folder, separator, name);
    return path;
}

char *tri_path_append(const char *path, const char *ending)
{
    size_t room = strlen(path) + strlen(ending) + 1;
    char *out = malloc(room);
    if (out != NULL)
        snprintf(out, room, "%s%s", path, ending);
    return out;
}
