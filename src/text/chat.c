#include "text/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "text/chat_private.h"

enum tri_status tri_chat_open(const char *what, const char *text, size_t bytes,
                              const json_t *tokens, struct tri_chat_template **out)
{
    struct tri_chat_template *chat = calloc(1, sizeof *chat);
    if (chat == NULL)
        return tri_fail(TRI_NOMEM, "%s: no memory", what);
    enum tri_status st = tri_jinja_open(what, text, bytes, &chat->usual);
    if (st == TRI_OK) {
        chat->identity = tri_hash_bytes(TRI_HASH_START, text, bytes);
        chat->tokens = tokens == NULL ? json_object() : json_deep_copy(tokens);
        if (chat->tokens == NULL)
            st = tri_fail(TRI_NOMEM, "%s: no memory", what);
    }
    if (st != TRI_OK) {
        tri_chat_close(chat);
        return st;
    }
    *out = chat;
    return TRI_OK;
}

void tri_chat_close(struct tri_chat_template *chat)
{
    if (chat == NULL)
        return;
    tri_jinja_close(chat->usual);
    tri_jinja_close(chat->with_tools);
    json_decref(chat->tokens);
    free(chat);
}

uint64_t tri_chat_identity(const struct tri_chat_template *chat)
{
    if (chat == NULL)
        return 0;
    char *tokens = json_dumps(chat->tokens, JSON_SORT_KEYS | JSON_COMPACT);
    uint64_t hash = tri_hash_bytes(chat->identity, tokens, tokens == NULL ? 0 : strlen(tokens));
    free(tokens);
    return hash;
}

enum tri_status tri_chat_run(const struct tri_chat_job *job, int64_t count, bool generation_prompt,
                             struct tri_jinja_output *out)
{
    if (json_object_set_new(job->variables, "add_generation_prompt",
                            json_boolean(generation_prompt)) != 0)
        return tri_fail(TRI_NOMEM, "no memory to render a conversation");
    const struct tri_jinja_input input = {
        .variables = job->variables,
        .messages = (json_t *)(uintptr_t)job->messages, /* only read */
        .message_count = count,
        .now = job->options->now,
        .limits = job->limits,
    };
    return tri_jinja_render(job->jinja, &input, out);
}

/* Bytes of all strings: what the limits of a rendering grow with. */
static size_t text_bytes(const json_t *value)
{
    size_t sum = json_string_length(value) + 16;
    json_t *object = (json_t *)(uintptr_t)value;
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at))
        sum += json_object_iter_key_len(at) + text_bytes(json_object_iter_value(at));
    for (size_t i = 0; i < json_array_size(value); i++)
        sum += text_bytes(json_array_get(value, i));
    return sum;
}

static enum tri_status check_messages(const json_t *messages)
{
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return tri_fail(TRI_INVALID, "a conversation needs at least one message");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        if (!json_is_object(message))
            return tri_fail(TRI_INVALID, "message %zu is not an object", i);
        if (!json_is_string(json_object_get(message, "role")))
            return tri_fail(TRI_INVALID, "message %zu has no \"role\"", i);
    }
    return TRI_OK;
}

/* Everything a template may use but the messages. */
static enum tri_status make_variables(const struct tri_chat_template *chat, const json_t *tools,
                                      const json_t *more, json_t **out)
{
    json_t *variables = json_copy(chat->tokens);
    json_t *given = tools == NULL ? json_null() : json_incref((json_t *)(uintptr_t)tools);
    if (variables == NULL || json_object_set_new(variables, "tools", given) != 0 ||
        json_object_set_new(variables, "documents", json_null()) != 0 ||
        (more != NULL && json_object_update(variables, (json_t *)(uintptr_t)more) != 0)) {
        json_decref(variables);
        return tri_fail(TRI_NOMEM, "no memory to render a conversation");
    }
    *out = variables;
    return TRI_OK;
}

/* Cut the marks of the text where training begins and ends. */
static enum tri_status make_spans(const struct tri_jinja_output *text,
                                  const struct tri_chat_ranges *ranges, struct tri_chat_text *out)
{
    struct tri_chat_span *spans = malloc((text->num_marks + 2 * ranges->count + 1) * sizeof *spans);
    if (spans == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the spans of a conversation");
    size_t count = 0, r = 0;
    for (size_t m = 0; m < text->num_marks; m++) {
        const struct tri_jinja_mark *mark = &text->marks[m];
        for (size_t at = mark->begin; at < mark->end;) {
            while (r < ranges->count && ranges->items[r].end <= at)
                r++;
            const bool trained = r < ranges->count && ranges->items[r].begin <= at;
            size_t end = mark->end;
            if (r < ranges->count) {
                const size_t edge = trained ? ranges->items[r].end : ranges->items[r].begin;
                if (edge < end)
                    end = edge;
            }
            struct tri_chat_span *before = count > 0 ? &spans[count - 1] : NULL;
            if (before != NULL && before->message == mark->message && before->trained == trained)
                before->end = end;
            else
                spans[count++] = (struct tri_chat_span){
                    .begin = at, .end = end, .message = mark->message, .trained = trained};
            out->trained_bytes += trained ? end - at : 0;
            at = end;
        }
    }
    out->spans = spans;
    out->num_spans = count;
    return TRI_OK;
}

static enum tri_status render(const struct tri_chat_job *job, struct tri_chat_text *out)
{
    struct tri_jinja_output text;
    struct tri_chat_ranges ranges = {0};
    struct tri_chat_text result = {0};
    const int64_t count = (int64_t)json_array_size(job->messages);
    const bool prompt = job->options->generation_prompt;
    TRI_TRY(tri_chat_run(job, count, prompt, &text));
    enum tri_status st;
    TRI_TRY_GOTO(st, tri_chat_mask(job, &text, &ranges), free_text);
    TRI_TRY_GOTO(st, make_spans(&text, &ranges, &result), free_text);
    result.text = text.text;
    result.bytes = text.bytes;
    const json_t *bos = json_object_get(job->variables, "bos_token");
    const size_t bos_bytes = json_string_length(bos);
    result.has_bos = bos_bytes > 0 && bos_bytes <= result.bytes &&
                     memcmp(result.text, json_string_value(bos), bos_bytes) == 0;
    text.text = NULL;
    *out = result;
free_text:
    tri_jinja_output_free(&text);
    free(ranges.items);
    return st;
}

const struct tri_jinja *tri_chat_choose(const struct tri_chat_template *chat, const json_t *tools)
{
    return tools != NULL && chat->with_tools != NULL ? chat->with_tools : chat->usual;
}

enum tri_status tri_chat_job_open(const struct tri_chat_template *chat, const json_t *messages,
                                  const json_t *tools, const struct tri_chat_options *options,
                                  struct tri_chat_job *out)
{
    struct tri_chat_job job = {
        .jinja = tri_chat_choose(chat, tools), .messages = messages, .options = options};
    TRI_TRY(make_variables(chat, tools, options->variables, &job.variables));
    job.limits = tri_jinja_default_limits(text_bytes(messages) + text_bytes(job.variables));
    *out = job;
    return TRI_OK;
}

enum tri_status tri_chat_render(const struct tri_chat_template *chat, const json_t *messages,
                                const json_t *tools, const struct tri_chat_options *options,
                                struct tri_chat_text *out)
{
    struct tri_chat_job job;
    TRI_TRY(check_messages(messages));
    if (tools != NULL && json_is_null(tools))
        tools = NULL;
    if (options->variables != NULL && !json_is_object(options->variables))
        return tri_fail(TRI_INVALID, "the variables of a chat template must be an object");
    TRI_TRY(tri_chat_job_open(chat, messages, tools, options, &job));
    enum tri_status st = render(&job, out);
    json_decref(job.variables);
    return st;
}

void tri_chat_text_free(struct tri_chat_text *text)
{
    free(text->text);
    free(text->spans);
    *text = (struct tri_chat_text){0};
}

bool tri_chat_is_trained(const struct tri_chat_text *text, size_t offset, size_t *cursor)
{
    if (*cursor > 0 && (*cursor >= text->num_spans || text->spans[*cursor].begin > offset))
        *cursor = 0;
    while (*cursor < text->num_spans && text->spans[*cursor].end <= offset)
        ++*cursor;
    return *cursor < text->num_spans && text->spans[*cursor].trained;
}
