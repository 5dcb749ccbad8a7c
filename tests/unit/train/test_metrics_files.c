/* The files of metrics, read back by what is written here alone. */
#include "unit/scratch.h"

#include <math.h>

#include "base/json.h"
#include "train/metrics.h"
#include "train/metrics/tfrecord.h"
#include "train/metrics/writer.h"

typedef enum tri_status opener(const char *folder, int64_t step, struct tri_metric_writer **out);

static void put_row(struct tri_metric_writer *writer, int64_t step, double loss)
{
    struct tri_metric_row row = {.step = step};
    tri_metric_real(&row, "loss", loss);
    tri_metric_real(&row, "lr", 0.5);
    tri_metric_int(&row, "tokens", 100 * step);
    tri_metric_text(&row, "allocation_trace", "00ff");
    assert_int_equal(writer->write(writer, &row), TRI_OK);
}

static void put_eval(struct tri_metric_writer *writer, int64_t step, double loss)
{
    struct tri_metric_row row = {.step = step, .eval = true};
    tri_metric_real(&row, "eval_loss", loss);
    tri_metric_real(&row, "eval_perplexity", exp(loss));
    assert_int_equal(writer->write(writer, &row), TRI_OK);
}

/* Steps 1 to 3 and an evaluation, then again from step 3 as after a crash behind step 2. */
static void write_twice(opener *open)
{
    struct tri_metric_writer *writer = NULL;
    for (int64_t from = 0; from <= 2; from += 2) {
        if (open(scratch, from, &writer) != TRI_OK)
            fail_msg("%s", tri_error_text());
        for (int64_t step = from + 1; step <= 3; step++)
            put_row(writer, step, 4.0 - (double)step + (double)from / 8);
        put_eval(writer, 3, from == 0 ? 1000 : 1.5);
        assert_int_equal(writer->sync(writer), TRI_OK);
        writer->close(writer);
    }
}

static void jsonl_has_each_step_once(void **state)
{
    (void)state;
    write_twice(tri_jsonl_open);
    assert_file_is(in_scratch("metrics.jsonl"),
                   "{\"step\":1,\"loss\":3.0,\"lr\":0.5,\"tokens\":100,"
                   "\"allocation_trace\":\"00ff\"}\n"
                   "{\"step\":2,\"loss\":2.0,\"lr\":0.5,\"tokens\":200,"
                   "\"allocation_trace\":\"00ff\"}\n"
                   "{\"step\":3,\"loss\":1.25,\"lr\":0.5,\"tokens\":300,"
                   "\"allocation_trace\":\"00ff\"}\n"
                   "{\"step\":3,\"eval_loss\":1.5,\"eval_perplexity\":4.4816890703380645}\n");
}

static void csv_has_a_header_and_each_step_once(void **state)
{
    (void)state;
    write_twice(tri_csv_open);
    assert_file_is(in_scratch("metrics.csv"),
                   "step,epoch,loss,grad_norm,lr,tokens,trained_tokens,total_tokens,"
                   "total_trained_tokens,seconds,forward_seconds,backward_seconds,update_seconds,"
                   "mfu,hfu,peak_bytes,allocation_trace,eval_loss,eval_perplexity,eval_tokens,"
                   "eval_trained_tokens,eval_seconds\n"
                   "1,,3,,0.5,100,,,,,,,,,,,00ff,,,,,\n"
                   "2,,2,,0.5,200,,,,,,,,,,,00ff,,,,,\n"
                   "3,,1.25,,0.5,300,,,,,,,,,,,00ff,,,,,\n"
                   "3,,,,,,,,,,,,,,,,,1.5,4.4816890703380645,,,\n");
}

/* Zero bytes, which a power cut may leave, cost the line in which they lie and no other. */
static void zero_bytes_cost_one_line(void **state)
{
    (void)state;
    opener *const openers[] = {tri_jsonl_open, tri_csv_open};
    static const char *const names[] = {"metrics.jsonl", "metrics.csv"};
    static const char *const second[] = {"{\"step\":2,", "\n2,"};
    static const char *const third[] = {"{\"step\":3,", "\n3,"};
    for (int i = 0; i < 2; i++) {
        struct tri_metric_writer *writer;
        write_twice(openers[i]);
        char *text = get_text(in_scratch(names[i]));
        FILE *file = fopen(in_scratch(names[i]), "r+b");
        assert_non_null(file);
        assert_int_equal(fseek(file, strstr(text, second[i]) - text + 5, SEEK_SET), 0);
        assert_int_equal(fputc('\0', file), 0);
        fclose(file);
        free(text);
        assert_int_equal(openers[i](scratch, 3, &writer), TRI_OK);
        writer->close(writer);
        text = get_text(in_scratch(names[i]));
        assert_null(strstr(text, second[i]));
        assert_non_null(strstr(text, third[i]));
        free(text);
    }
}

/* JSON has no infinity: null. CSV leaves the place empty. */
static void infinities(void **state)
{
    (void)state;
    opener *const openers[] = {tri_jsonl_open, tri_csv_open};
    static const char *const names[] = {"metrics.jsonl", "metrics.csv"};
    static const char *const parts[] = {"\"eval_perplexity\":null}\n", ",1000,,,,\n"};
    for (int i = 0; i < 2; i++) {
        struct tri_metric_writer *writer;
        assert_int_equal(openers[i](scratch, 0, &writer), TRI_OK);
        put_eval(writer, 1, 1000);
        writer->close(writer);
        char *text = get_text(in_scratch(names[i]));
        assert_non_null(strstr(text, parts[i]));
        free(text);
    }
}

/* More than the rate is no share of it: neither people nor files are told one. */
static void shares_of_a_busy_machine_are_unknown(void **state)
{
    (void)state;
    const struct tri_step_stats stats = {.model_flops = 60, .ran_flops = 80};
    struct tri_shares shares = tri_shares_of(&stats, 2.0, 50.0);
    assert_true(shares.mfu == 0.6 && shares.hfu == 0.8);
    shares = tri_shares_of(&stats, 2.0, 35.0); /* 60 of 70 would look like a share */
    assert_true(isnan(shares.mfu) && isnan(shares.hfu));
    shares = tri_shares_of(&stats, 2.0, 0.0);
    assert_true(isnan(shares.mfu) && isnan(shares.hfu));
}

static void csv_of_another_version_is_refused(void **state)
{
    (void)state;
    struct tri_metric_writer *writer;
    put_text(in_scratch("metrics.csv"), "step,loss\n1,2\n");
    assert_int_equal(tri_csv_open(scratch, 1, &writer), TRI_FORMAT);
    assert_error_has("move it away");
    assert_file_is(in_scratch("metrics.csv"), "step,loss\n1,2\n");
}

/* ---- TensorBoard ------------------------------------------------------------------------------
 */

static void crc32c_of_the_standard(void **state)
{
    (void)state;
    static const unsigned char zeros[32];
    assert_int_equal(tri_crc32c("123456789", 9), 0xE3069283); /* the check value of CRC-32C */
    assert_int_equal(tri_crc32c(zeros, 32), 0x8A9136AA);      /* RFC 3720, appendix B.4 */
    assert_int_equal(tri_crc32c("", 0), 0);
}

/* What one event said. */
struct event {
    int64_t step;
    char version[32];
    int start;
    int scalars;
    char tag[16][40];
    float value[16];
};

struct bytes {
    const unsigned char *at, *end;
};

static uint64_t little(const unsigned char *at, int count)
{
    uint64_t word = 0;
    for (int i = 0; i < count; i++)
        word |= (uint64_t)at[i] << 8 * i;
    return word;
}

static uint64_t varint(struct bytes *in)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(in->at < in->end && shift < 64);
        value |= (uint64_t)(*in->at & 0x7F) << shift;
        if ((*in->at++ & 0x80) == 0)
            return value;
    }
}

/* The next field: its number, and its contents (of a varint: the value in *number). */
static unsigned field(struct bytes *in, struct bytes *contents, uint64_t *number)
{
    const uint64_t key = varint(in);
    uint64_t bytes = 0;
    if ((key & 7) == 0)
        *number = varint(in);
    else
        bytes = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint(in);
    assert_true((key & 7) == 0 || (key & 7) == 1 || (key & 7) == 2 || (key & 7) == 5);
    assert_true(bytes <= (uint64_t)(in->end - in->at));
    *contents = (struct bytes){in->at, in->at + bytes};
    in->at += bytes;
    return (unsigned)(key >> 3);
}

static void read_scalar(struct bytes in, struct event *event)
{
    struct bytes contents;
    uint64_t number;
    const int i = event->scalars++;
    assert_true(i < 16);
    while (in.at < in.end) {
        const unsigned which = field(&in, &contents, &number);
        const size_t bytes = (size_t)(contents.end - contents.at);
        if (which == 1) {
            assert_true(bytes < sizeof event->tag[i]);
            memcpy(event->tag[i], contents.at, bytes);
        } else {
            assert_int_equal(which, 2);
            const uint32_t bits = (uint32_t)little(contents.at, 4);
            memcpy(&event->value[i], &bits, 4);
        }
    }
}

static void read_event(struct bytes in, struct event *event)
{
    struct bytes contents, inner;
    uint64_t number = 0, status = 0;
    memset(event, 0, sizeof *event);
    while (in.at < in.end)
        switch (field(&in, &contents, &number)) {
        case 1:
            assert_int_equal(contents.end - contents.at, 8);
            break;
        case 2:
            event->step = (int64_t)number;
            break;
        case 3:
            assert_true(contents.end - contents.at < 32);
            memcpy(event->version, contents.at, (size_t)(contents.end - contents.at));
            break;
        case 5:
            while (contents.at < contents.end) {
                assert_int_equal(field(&contents, &inner, &number), 1);
                read_scalar(inner, event);
            }
            break;
        case 7:
            assert_int_equal(field(&contents, &inner, &status), 1);
            event->start = status == 1;
            break;
        default:
            fail_msg("an unexpected field");
        }
}

static uint32_t masked(const unsigned char *data, size_t bytes)
{
    const uint32_t crc = tri_crc32c(data, bytes);
    return (uint32_t)((crc >> 15 | crc << 17) + 0xA282EAD8u);
}

/* All events of a file; returns how many. */
static int read_events(const char *path, struct event *events, int room)
{
    struct tri_map map;
    int count = 0;
    assert_int_equal(tri_map_open(path, &map), TRI_OK);
    for (size_t at = 0; at < map.bytes; count++) {
        assert_true(count < room && map.bytes - at >= 16);
        const size_t bytes = (size_t)little(map.data + at, 8);
        assert_int_equal(little(map.data + at + 8, 4), masked(map.data + at, 8));
        assert_true(bytes <= map.bytes - at - 16);
        assert_int_equal(little(map.data + at + 12 + bytes, 4), masked(map.data + at + 12, bytes));
        read_event((struct bytes){map.data + at + 12, map.data + at + 12 + bytes}, &events[count]);
        at += 16 + bytes;
    }
    tri_map_close(&map);
    return count;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_event_file(const struct dirent *entry)
{
    return strncmp(entry->d_name, "events.out.tfevents.", 20) == 0;
}

static void tensorboard_has_scalars_and_restarts(void **state)
{
    (void)state;
    struct dirent **names;
    struct event e[8];
    char path[4700];
    write_twice(tri_tensorboard_open);
    assert_int_equal(scandir(in_scratch("tensorboard"), &names, is_event_file, by_name), 2);
    for (int run = 0; run < 2; run++) { /* in the order in which TensorBoard reads them */
        snprintf(path, sizeof path, "%s/%s", in_scratch("tensorboard"), names[run]->d_name);
        free(names[run]);
        const int steps = run == 0 ? 3 : 1;
        assert_int_equal(read_events(path, e, 8), 2 + steps + 1);
        assert_string_equal(e[0].version, "brain.Event:2");
        assert_true(e[1].start && e[1].step == (run == 0 ? 1 : 3));
        for (int i = 0; i < steps; i++) {
            const struct event *row = &e[2 + i];
            assert_int_equal(row->step, run == 0 ? i + 1 : 3);
            assert_int_equal(row->scalars, 3); /* a text is no scalar */
            assert_string_equal(row->tag[0], "train/loss");
            assert_true(row->value[0] == (run == 0 ? 3.0f - (float)i : 1.25f));
            assert_string_equal(row->tag[1], "train/learning_rate");
            assert_true(row->value[1] == 0.5f);
            assert_string_equal(row->tag[2], "train/tokens");
            assert_true(row->value[2] == 100.0f * (float)row->step);
        }
        const struct event *eval = &e[2 + steps];
        assert_string_equal(eval->tag[0], "eval/loss");
        assert_true(eval->value[0] == (run == 0 ? 1000.0f : 1.5f));
        assert_int_equal(eval->scalars, run == 0 ? 1 : 2); /* e^1000 is none either */
    }
    free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(jsonl_has_each_step_once),
        SCRATCH_TEST(csv_has_a_header_and_each_step_once),
        SCRATCH_TEST(zero_bytes_cost_one_line),
        SCRATCH_TEST(infinities),
        cmocka_unit_test(shares_of_a_busy_machine_are_unknown),
        SCRATCH_TEST(csv_of_another_version_is_refused),
        SCRATCH_TEST(crc32c_of_the_standard),
        SCRATCH_TEST(tensorboard_has_scalars_and_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
