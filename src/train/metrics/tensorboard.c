/* TensorBoard's event files: TFRecords of the protocol buffers Event and Summary, of which a scalar
 * needs five fields, written by hand.
 *
 * Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
 *           SessionLog session_log = 7 }
 * Summary { repeated Value value = 1 }, Value { string tag = 1; float simple_value = 2 }
 * SessionLog { enum status = 1 }, of which 1 is START
 *
 * Every start of a run makes a file of its own. Its session log tells TensorBoard from which step
 * on events of earlier files were repeated and are void. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "train/metrics/tfrecord.h"
#include "train/metrics/writer.h"

#define PREFIX "events.out.tfevents."

struct board {
    struct tri_metric_writer writer;
    FILE *file;
    char *path;
};

/* ---- protocol buffers -------------------------------------------------------------------------
 */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void add_varint(struct tri_text *out, uint64_t value)
{
    char byte;
    for (; value >= 0x80; value >>= 7) {
        byte = (char)(unsigned char)(value | 0x80);
        tri_text_add(out, &byte, 1);
    }
    byte = (char)value;
    tri_text_add(out, &byte, 1);
}

static void add_key(struct tri_text *out, unsigned field, enum wire wire)
{
    add_varint(out, (uint64_t)field << 3 | wire);
}

static void add_bytes(struct tri_text *out, unsigned field, const char *data, size_t bytes)
{
    add_key(out, field, WIRE_BYTES);
    add_varint(out, bytes);
    tri_text_add(out, data, bytes);
}

/* The bits of a number, the lowest byte first. */
static void add_fixed(struct tri_text *out, uint64_t bits, int count)
{
    char bytes[8];
    for (int i = 0; i < count; i++)
        bytes[i] = (char)(unsigned char)(bits >> 8 * i);
    tri_text_add(out, bytes, (size_t)count);
}

static void add_double(struct tri_text *out, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(out, field, WIRE_64);
    add_fixed(out, bits, 8);
}

static void add_float(struct tri_text *out, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(out, field, WIRE_32);
    add_fixed(out, bits, 4);
}

/* ---- events ----------------------------------------------------------------------------------
 */

static void begin_event(struct tri_text *event, int64_t step)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    add_double(event, 1, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    add_key(event, 2, WIRE_VARINT);
    add_varint(event, (uint64_t)step);
}

/* Write an event as a record, and free it. */
static enum tri_status end_event(struct board *board, struct tri_text *event)
{
    struct tri_text record = {0};
    enum tri_status st = TRI_OK;
    tri_tfrecord_add(&record, tri_text_data(event), event->bytes);
    if (event->failed || record.failed)
        st = tri_fail(TRI_NOMEM, "no memory for a row of metrics");
    else if (fwrite(record.data, 1, record.bytes, board->file) != record.bytes ||
             fflush(board->file) != 0)
        st = tri_fail_errno(errno, "%s: writing failed, free some space", board->path);
    tri_text_free(&record);
    tri_text_free(event);
    return st;
}

/* train/loss, train/learning_rate, eval/loss: the names that Hugging Face's Trainer uses. */
static void tag_of(const char *name, char *tag, size_t room)
{
    if (strncmp(name, "eval_", 5) == 0)
        snprintf(tag, room, "eval/%s", name + 5);
    else
        snprintf(tag, room, "train/%s", strcmp(name, "lr") == 0 ? "learning_rate" : name);
}

/* Texts, and what a float cannot hold, are left out. */
static void add_scalar(struct tri_text *summary, const struct tri_metric *metric)
{
    char tag[64];
    const float number =
        metric->type == TRI_METRIC_INT ? (float)metric->whole : (float)metric->real;
    if (metric->type == TRI_METRIC_TEXT || !isfinite(number))
        return;
    struct tri_text value = {0};
    tag_of(metric->name, tag, sizeof tag);
    add_bytes(&value, 1, tag, strlen(tag));
    add_float(&value, 2, number);
    add_bytes(summary, 1, tri_text_data(&value), value.bytes);
    summary->failed |= value.failed;
    tri_text_free(&value);
}

static enum tri_status write_row(struct tri_metric_writer *writer, const struct tri_metric_row *row)
{
    struct tri_text event = {0};
    struct tri_text summary = {0};
    for (int i = 0; i < row->count; i++)
        add_scalar(&summary, &row->value[i]);
    begin_event(&event, row->step);
    add_bytes(&event, 5, tri_text_data(&summary), summary.bytes);
    event.failed |= summary.failed;
    tri_text_free(&summary);
    return end_event((struct board *)writer, &event);
}

static enum tri_status write_start(struct board *board, int64_t step)
{
    static const char version[] = "brain.Event:2";
    struct tri_text event = {0};
    begin_event(&event, 0);
    add_bytes(&event, 3, version, sizeof version - 1);
    TRI_TRY(end_event(board, &event));
    static const char status_is_start[] = {1 << 3 | WIRE_VARINT, 1};
    begin_event(&event, step + 1);
    add_bytes(&event, 7, status_is_start, sizeof status_is_start);
    return end_event(board, &event);
}

/* ---- the file ---------------------------------------------------------------------------------
 */

static enum tri_status sync_rows(struct tri_metric_writer *writer)
{
    struct board *board = (struct board *)writer;
    if (fflush(board->file) != 0 || fsync(fileno(board->file)) != 0)
        return tri_fail_errno(errno, "%s", board->path);
    return TRI_OK;
}

static void close_writer(struct tri_metric_writer *writer)
{
    struct board *board = (struct board *)writer;
    if (board->file != NULL)
        fclose(board->file);
    free(board->path);
    free(board);
}

/* Files are read in the order of their names, which begin with a time: later than any there is. */
static enum tri_status choose_time(const char *folder, long long *out)
{
    long long when = (long long)time(NULL);
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return tri_fail_errno(errno, "%s", folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0)
            continue;
        const long long other = strtoll(entry->d_name + sizeof PREFIX - 1, NULL, 10);
        if (other >= when && other < 9999999999)
            when = other + 1;
    }
    closedir(dir);
    *out = when;
    return TRI_OK;
}

static enum tri_status open_file(struct board *board, const char *folder)
{
    char host[128] = "", name[256];
    long long when = 0;
    TRI_TRY(tri_make_folder(folder));
    TRI_TRY(choose_time(folder, &when));
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0' || strchr(host, '/') != NULL)
        snprintf(host, sizeof host, "localhost");
    snprintf(name, sizeof name, PREFIX "%010lld.%s.%ld", when, host, (long)getpid());
    board->path = tri_path_join(folder, name);
    if (board->path == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    board->file = fopen(board->path, "wxe");
    return board->file != NULL ? TRI_OK : tri_fail_errno(errno, "%s", board->path);
}

enum tri_status tri_tensorboard_open(const char *folder, int64_t step,
                                     struct tri_metric_writer **out)
{
    struct board *board = calloc(1, sizeof *board);
    char *path = tri_path_join(folder, "tensorboard");
    enum tri_status st = TRI_OK;
    if (board == NULL || path == NULL) {
        free(board);
        free(path);
        return tri_fail(TRI_NOMEM, "no memory for metrics");
    }
    board->writer = (struct tri_metric_writer){write_row, sync_rows, close_writer};
    st = open_file(board, path);
    free(path);
    if (st == TRI_OK)
        st = write_start(board, step);
    if (st != TRI_OK) {
        close_writer(&board->writer);
        return st;
    }
    *out = &board->writer;
    return TRI_OK;
}
