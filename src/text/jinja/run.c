#include "text/jinja/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/parser.h"
#include "text/utf8.h"

enum {
    TEMPLATE_BYTES = 1 << 20,
    TREE_BYTES = 256 << 20, /* a byte of template makes a node of some hundred bytes at worst */
    DEPTH = 600,            /* times some hundred bytes of stack, a few kilobytes under ASan */
    MESSAGE_BYTES = 512,
};

enum tri_status tri_jinja_fail(const struct tri_jinja_run *run, enum tri_status status,
                               const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            *p = ' ';
    return tri_fail(status, "%s line %d: %s", run->jinja->what, run->line, text);
}

enum tri_status tri_jinja_step(struct tri_jinja_run *run, int64_t steps)
{
    if (steps > run->steps)
        return tri_jinja_fail(run, TRI_INVALID,
                              "the template does not end: its budget of steps is used up");
    run->steps -= steps;
    return TRI_OK;
}

enum tri_status tri_jinja_descend(struct tri_jinja_run *run)
{
    if (run->depth == DEPTH)
        return tri_jinja_fail(run, TRI_INVALID, "nested or recursive more than %d deep", DEPTH);
    run->depth++;
    return TRI_OK;
}

enum tri_status tri_jinja_open(const char *what, const char *text, size_t bytes,
                               struct tri_jinja **out)
{
    if (bytes > TEMPLATE_BYTES)
        return tri_fail(TRI_FORMAT, "%s: a template of %zu bytes; at most %d are read", what, bytes,
                        TEMPLATE_BYTES);
    const size_t valid = tri_utf8_valid(text, bytes);
    if (valid < bytes)
        return tri_fail(TRI_FORMAT, "%s: not valid UTF-8 at byte %zu", what, valid);
    struct tri_jinja *jinja = calloc(1, sizeof *jinja);
    if (jinja == NULL)
        return tri_fail(TRI_NOMEM, "%s: no memory", what);
    tri_jinja_pool_open(TREE_BYTES, &jinja->pool);
    struct tri_jinja_value name;
    struct tri_jinja_tokens tokens;
    enum tri_status st;
    TRI_TRY_GOTO(st, tri_jinja_string(&jinja->pool, what, strlen(what), &name), close);
    jinja->what = name.as.string->data; /* NUL-terminated: pool memory is zeroed */
    TRI_TRY_GOTO(st, tri_jinja_lex(&jinja->pool, jinja->what, text, bytes, &tokens), close);
    TRI_TRY_GOTO(st, tri_jinja_parse(jinja, tokens), close);
    *out = jinja;
    return TRI_OK;
close:
    tri_jinja_close(jinja);
    return st;
}

void tri_jinja_close(struct tri_jinja *jinja)
{
    if (jinja == NULL)
        return;
    tri_jinja_pool_close(&jinja->pool);
    free(jinja);
}

bool tri_jinja_has_generation(const struct tri_jinja *jinja)
{
    return jinja->has_generation;
}

struct tri_jinja_limits tri_jinja_default_limits(size_t input_bytes)
{
    /* The largest published template takes about 600 steps for a message of 100 bytes, and its
     * copies of a text are ten at most. Loops over loops of messages are still within reach. */
    return (struct tri_jinja_limits){
        .steps = 20000000 + 100 * (int64_t)input_bytes,
        .bytes = ((size_t)512 << 20) + 64 * input_bytes,
    };
}

/* Extend the last mark, or start a new one. */
static enum tri_status mark(struct tri_jinja_run *run, size_t begin, size_t end)
{
    struct tri_jinja_mark *last = run->num_marks > 0 ? &run->marks[run->num_marks - 1] : NULL;
    if (last != NULL && last->message == run->message && last->generation == run->generation) {
        last->end = end;
        return TRI_OK;
    }
    if (run->num_marks == run->marks_capacity) {
        size_t capacity = 2 * run->marks_capacity + 16;
        struct tri_jinja_mark *marks = tri_jinja_pool_get(&run->pool, capacity * sizeof *marks);
        if (marks == NULL)
            return tri_jinja_pool_fail(&run->pool, run->jinja->what);
        if (run->num_marks > 0)
            memcpy(marks, run->marks, run->num_marks * sizeof *marks);
        run->marks = marks;
        run->marks_capacity = capacity;
    }
    run->marks[run->num_marks++] = (struct tri_jinja_mark){
        .begin = begin, .end = end, .message = run->message, .generation = run->generation};
    return TRI_OK;
}

enum tri_status tri_jinja_emit(struct tri_jinja_run *run, const char *data, size_t bytes)
{
    if (bytes == 0)
        return TRI_OK;
    TRI_TRY(tri_jinja_step(run, (int64_t)(bytes / 64)));
    tri_jinja_buffer_add(run->output, data, bytes);
    if (run->output->failed)
        return tri_jinja_pool_fail(&run->pool, run->jinja->what);
    if (run->output != &run->root)
        return TRI_OK;
    return mark(run, run->root.bytes - bytes, run->root.bytes);
}

/* Convert the messages and number them. */
static enum tri_status convert_messages(struct tri_jinja_run *run, const json_t *messages,
                                        int64_t count, struct tri_jinja_value *out)
{
    const int64_t all = (int64_t)json_array_size(messages);
    if (count < 0 || count > all)
        count = all;
    TRI_TRY(tri_jinja_list(&run->pool, TRI_JINJA_LIST, count, out));
    for (int64_t i = 0; i < count; i++) {
        struct tri_jinja_value message;
        TRI_TRY(tri_jinja_from_json(run, json_array_get(messages, (size_t)i), &message));
        if (message.kind == TRI_JINJA_DICT)
            message.as.dict->message = i;
        out->as.list->items[i] = message;
    }
    out->as.list->count = count;
    return TRI_OK;
}

/* Give the template's names the values that the input has for them. */
static enum tri_status set_variables(struct tri_jinja_run *run, const struct tri_jinja_input *input)
{
    for (int i = 0; i < run->jinja->num_symbols; i++) {
        const char *name = run->jinja->symbols[i].as.string->data;
        const size_t bytes = run->jinja->symbols[i].as.string->bytes;
        struct tri_jinja_value value;
        if (input->messages != NULL && bytes == 8 && memcmp(name, "messages", bytes) == 0) {
            TRI_TRY(convert_messages(run, input->messages, input->message_count, &value));
        } else {
            const json_t *given = json_object_getn(input->variables, name, bytes);
            if (given == NULL)
                continue;
            TRI_TRY(tri_jinja_from_json(run, given, &value));
        }
        TRI_TRY(tri_jinja_set(run, i, value));
    }
    return TRI_OK;
}

/* Copy the text and its marks out of the pool. */
static enum tri_status take_output(const struct tri_jinja_run *run, struct tri_jinja_output *out)
{
    struct tri_jinja_output result = {.bytes = run->root.bytes, .num_marks = run->num_marks};
    result.text = malloc(result.bytes + 1);
    result.marks = malloc((result.num_marks + 1) * sizeof *result.marks);
    if (result.text == NULL || result.marks == NULL) {
        tri_jinja_output_free(&result);
        return tri_fail(TRI_NOMEM, "%s: no memory for %zu bytes of text", run->jinja->what,
                        run->root.bytes);
    }
    if (result.bytes > 0)
        memcpy(result.text, run->root.data, result.bytes);
    result.text[result.bytes] = '\0';
    if (result.num_marks > 0)
        memcpy(result.marks, run->marks, result.num_marks * sizeof *result.marks);
    *out = result;
    return TRI_OK;
}

enum tri_status tri_jinja_render(const struct tri_jinja *jinja, const struct tri_jinja_input *input,
                                 struct tri_jinja_output *out)
{
    struct tri_jinja_run run = {
        .jinja = jinja, .line = 1, .steps = input->limits.steps, .now = input->now, .message = -1};
    enum tri_jinja_flow flow;
    enum tri_status st;
    tri_jinja_pool_open(input->limits.bytes, &run.pool);
    run.root.pool = &run.pool;
    run.output = &run.root;
    TRI_TRY_GOTO(st, tri_jinja_push_scope(&run, NULL), close_pool);
    TRI_TRY_GOTO(st, set_variables(&run, input), close_pool);
    TRI_TRY_GOTO(st, tri_jinja_exec(&run, jinja->body, &flow), close_pool);
    st = take_output(&run, out);
close_pool:
    tri_jinja_pool_close(&run.pool);
    return st;
}

void tri_jinja_output_free(struct tri_jinja_output *output)
{
    free(output->text);
    free(output->marks);
    *output = (struct tri_jinja_output){0};
}
