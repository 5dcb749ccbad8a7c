/* Writing files that appear complete or not at all.
 *
 * Crash argument: the name is taken by rename(2), which is atomic, and only after fsync(2) of the
 * contents; fsync of the folder then makes the name itself last. A crash before the rename leaves
 * the old file and at most a "NAME.tmp", which the next writer of NAME overwrites.
 *
 * Every write(2) passes through write_piece(), where tests make the disk full.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

struct tri_writer {
    int fd;
    char *path;
    char *temporary;
    unsigned char *buffer;
    size_t used;
    bool failed; /* a write was lost: commit must not succeed */
};

/* Writes left until one fails; 0: never; FAIL_UNSET: the environment was not asked yet. */
enum { FAIL_UNSET = -1 };
static _Atomic int64_t writes_left = FAIL_UNSET;

void tri_file_fail_at(int64_t nth)
{
    atomic_store(&writes_left, nth > 0 ? nth : 0);
}

static bool must_fail(void)
{
    if (atomic_load(&writes_left) == FAIL_UNSET) {
        const char *text = getenv("TRIREME_FAIL_WRITE");
        int64_t nth = text == NULL ? 0 : strtoll(text, NULL, 10);
        int64_t unset = FAIL_UNSET;
        atomic_compare_exchange_strong(&writes_left, &unset, nth > 0 ? nth : 0);
    }
    int64_t left = atomic_load(&writes_left);
    while (left > 0)
        if (atomic_compare_exchange_weak(&writes_left, &left, left - 1))
            return left == 1;
    return false;
}

static enum tri_status fail_to_write(const char *path, int code)
{
    const char *advice = "";
    if (code == ENOSPC || code == EDQUOT)
        advice = ": free space or choose another output_dir";
    else if (code == EACCES || code == EPERM || code == EROFS || code == ENOENT || code == ENOTDIR)
        advice = ": choose another output_dir";
    return tri_fail(code == ENOMEM ? TRI_NOMEM : TRI_IO, "cannot write %s: %s%s", path,
                    strerror(code), advice);
}

static enum tri_status write_piece(struct tri_writer *writer, const unsigned char *data,
                                   size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = -1;
        if (must_fail())
            errno = ENOSPC;
        else
            done = write(writer->fd, data, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            writer->failed = true;
            return fail_to_write(writer->path, errno);
        }
        data += done;
        bytes -= (size_t)done;
    }
    return TRI_OK;
}

static void free_writer(struct tri_writer *writer)
{
    free(writer->path);
    free(writer->temporary);
    free(writer->buffer);
    free(writer);
}

enum tri_status tri_writer_open(const char *path, struct tri_writer **out)
{
    struct tri_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return tri_fail(TRI_NOMEM, "no memory to write %s", path);
    size_t room = strlen(path) + sizeof ".tmp";
    writer->path = strdup(path);
    writer->temporary = malloc(room);
    writer->buffer = malloc(BUFFER_BYTES);
    if (writer->path == NULL || writer->temporary == NULL || writer->buffer == NULL) {
        free_writer(writer);
        return tri_fail(TRI_NOMEM, "no memory to write %s", path);
    }
    snprintf(writer->temporary, room, "%s.tmp", path);

    writer->fd =
        open(writer->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (writer->fd < 0) {
        enum tri_status st = fail_to_write(path, errno);
        free_writer(writer);
        return st;
    }
    *out = writer;
    return TRI_OK;
}

static enum tri_status flush(struct tri_writer *writer)
{
    enum tri_status st = write_piece(writer, writer->buffer, writer->used);
    writer->used = 0;
    return st;
}

enum tri_status tri_writer_write(struct tri_writer *writer, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    while (bytes > 0) {
        /* Whole buffers' worth need no copy. */
        if (writer->used == 0 && bytes >= BUFFER_BYTES) {
            TRI_TRY(write_piece(writer, p, BUFFER_BYTES));
            p += BUFFER_BYTES;
            bytes -= BUFFER_BYTES;
            continue;
        }
        size_t room = BUFFER_BYTES - writer->used;
        size_t piece = bytes < room ? bytes : room;
        memcpy(writer->buffer + writer->used, p, piece);
        writer->used += piece;
        p += piece;
        bytes -= piece;
        if (writer->used == BUFFER_BYTES)
            TRI_TRY(flush(writer));
    }
    return TRI_OK;
}

enum tri_status tri_writer_sync(struct tri_writer *writer)
{
    if (writer->failed)
        return tri_fail(TRI_IO, "cannot write %s: an earlier write failed", writer->path);
    TRI_TRY(flush(writer));
    if (fsync(writer->fd) != 0) {
        writer->failed = true;
        return fail_to_write(writer->path, errno);
    }
    return TRI_OK;
}

/* Make the entries of the folder that holds `path` last. */
static enum tri_status sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    if (folder == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the path %s", path);
    enum tri_status st = TRI_OK;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some network file systems cannot sync a folder and say EINVAL. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        st = tri_fail_errno(errno, "cannot sync the folder %s", folder);
    if (fd >= 0)
        close(fd);
    free(folder);
    return st;
}

enum tri_status tri_writer_commit(struct tri_writer *writer)
{
    enum tri_status st = tri_writer_sync(writer);
    if (close(writer->fd) != 0 && st == TRI_OK)
        st = fail_to_write(writer->path, errno);
    if (st == TRI_OK && rename(writer->temporary, writer->path) != 0)
        st = fail_to_write(writer->path, errno);
    if (st == TRI_OK)
        st = sync_folder_of(writer->path);
    else
        unlink(writer->temporary);
    free_writer(writer);
    return st;
}

void tri_writer_abandon(struct tri_writer *writer)
{
    if (writer == NULL)
        return;
    close(writer->fd);
    unlink(writer->temporary);
    free_writer(writer);
}

enum tri_status tri_file_write(const char *path, const void *data, size_t bytes)
{
    struct tri_writer *writer = NULL;
    TRI_TRY(tri_writer_open(path, &writer));
    enum tri_status st = tri_writer_write(writer, data, bytes);
    if (st != TRI_OK) {
        tri_writer_abandon(writer);
        return st;
    }
    return tri_writer_commit(writer);
}

enum tri_status tri_file_copy(const char *from, const char *to)
{
    struct tri_map map;
    TRI_TRY(tri_map_open(from, &map));
    enum tri_status st = tri_file_write(to, map.data, map.bytes);
    tri_map_close(&map);
    return st;
}

enum tri_status tri_rename_folder(const char *from, const char *to)
{
    if (rename(from, to) != 0)
        return tri_fail_errno(errno, "cannot rename %s to %s", from, to);
    return sync_folder_of(to);
}
