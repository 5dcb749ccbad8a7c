/* Tool calls and tools that a template passes over in silence.
 *
 * A template that knows nothing of tools gives the same text with and without them, and a model
 * trained on that learns to answer without ever calling. So the conversation is rendered once more
 * without the tools, and once without the calls: each must change the text. A template that cannot
 * do without them reads them. */
#include <string.h>

#include "text/chat_private.h"

static bool has_calls(const json_t *message)
{
    return json_array_size(json_object_get(message, "tool_calls")) > 0;
}

/* The messages without their calls; what is not changed is shared. */
static enum tri_status without_calls(const json_t *messages, json_t **out)
{
    json_t *list = json_array();
    bool bad = list == NULL;
    for (size_t i = 0; i < json_array_size(messages) && !bad; i++) {
        json_t *message = json_array_get(messages, i);
        const bool calls = has_calls(message);
        message = calls ? json_copy(message) : json_incref(message);
        bad = message == NULL || (calls && json_object_del(message, "tool_calls") != 0) ||
              json_array_append(list, message) != 0;
        json_decref(message);
    }
    if (bad) {
        json_decref(list);
        return tri_fail(TRI_NOMEM, "no memory to render a conversation");
    }
    *out = list;
    return TRI_OK;
}

/* Is this what `jinja` makes of the messages and tools? */
static enum tri_status is_same(const struct tri_chat_template *chat, const struct tri_jinja *jinja,
                               const json_t *messages, const json_t *tools,
                               const struct tri_chat_options *options,
                               const struct tri_chat_text *text, bool *out)
{
    struct tri_chat_job job;
    struct tri_jinja_output other;
    TRI_TRY(tri_chat_job_open(chat, messages, tools, options, &job));
    job.jinja = jinja;
    const enum tri_status st =
        tri_chat_run(&job, (int64_t)json_array_size(messages), options->generation_prompt, &other);
    json_decref(job.variables);
    if (st == TRI_NOMEM)
        return st;
    if (st != TRI_OK) {
        tri_error_clear();
        *out = false;
        return TRI_OK;
    }
    *out = other.bytes == text->bytes && memcmp(other.text, text->text, text->bytes) == 0;
    tri_jinja_output_free(&other);
    return TRI_OK;
}

enum tri_status tri_chat_check_calls(const struct tri_chat_template *chat, const json_t *messages,
                                     const json_t *tools, const struct tri_chat_options *options,
                                     const struct tri_chat_text *text)
{
    static const char advice[] = "set data.chat_template to a template that writes tools";
    const struct tri_jinja *jinja = tri_chat_choose(chat, tools);
    size_t first = 0;
    bool same = false;
    while (first < json_array_size(messages) && !has_calls(json_array_get(messages, first)))
        first++;
    if (first < json_array_size(messages)) {
        json_t *bare = NULL;
        TRI_TRY(without_calls(messages, &bare));
        const enum tri_status st = is_same(chat, jinja, bare, tools, options, text, &same);
        json_decref(bare);
        TRI_TRY(st);
        if (same)
            return tri_fail(TRI_INVALID,
                            "message %zu has \"tool_calls\", of which the chat template writes "
                            "nothing: %s, or remove the line",
                            first, advice);
    }
    if (json_array_size(tools) == 0)
        return TRI_OK;
    TRI_TRY(is_same(chat, jinja, messages, NULL, options, text, &same));
    return same ? tri_fail(TRI_INVALID,
                           "there are \"tools\", of which the chat template writes nothing: %s, or "
                           "remove them",
                           advice)
                : TRI_OK;
}
