/* The parts of one turn: header, content, end. */
#include <stdlib.h>
#include <string.h>

#include "text/chat_private.h"
#include "text/jinja/characters.h"

const char *tri_chat_role(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role == NULL ? "" : role;
}

const char *tri_chat_content(const json_t *message, size_t *bytes)
{
    const json_t *content = json_object_get(message, "content");
    const char *text = json_string_value(content);
    if (text == NULL)
        return NULL;
    const size_t all = json_string_length(content), skip = tri_space_prefix(text, all);
    *bytes = tri_space_trimmed(text + skip, all - skip);
    return *bytes == 0 ? NULL : text + skip;
}

/* The first assistant's turn to be trained that has messages before it; else all messages. */
static int64_t header_place(const json_t *messages, const bool *want)
{
    const int64_t count = (int64_t)json_array_size(messages);
    for (int64_t i = 1; i < count; i++)
        if (want[i] && strcmp(tri_chat_role(json_array_get(messages, (size_t)i)), "assistant") == 0)
            return i;
    return count;
}

/* Both renderings of the first `count` messages. */
static enum tri_status render_both(const struct tri_chat_job *job, int64_t count,
                                   struct tri_jinja_output *with, struct tri_jinja_output *without)
{
    TRI_TRY(tri_chat_run(job, count, true, with));
    enum tri_status st = tri_chat_run(job, count, false, without);
    if (st != TRI_OK)
        tri_jinja_output_free(with);
    return st;
}

enum tri_status tri_chat_header(const struct tri_chat_job *job, const bool *want, char **header,
                                size_t *bytes)
{
    struct tri_jinja_output with, without;
    const int64_t count = (int64_t)json_array_size(job->messages);
    int64_t place = header_place(job->messages, want);
    enum tri_status st = render_both(job, place, &with, &without);
    /* Some templates refuse conversations that end there; the whole one they have rendered. */
    if (st != TRI_OK && place != count)
        st = render_both(job, count, &with, &without);
    TRI_TRY(st);
    tri_error_clear();
    size_t from = without.bytes;
    if (from > with.bytes || memcmp(with.text, without.text, from) != 0) {
        /* Something else follows the messages without a prompt (Phi-3: an end-of-text token). The
         * prompt is what the template writes after the last message. */
        from = with.bytes;
        if (with.num_marks > 0 && with.marks[with.num_marks - 1].message < 0)
            from = with.marks[with.num_marks - 1].begin;
    }
    *bytes = with.bytes - from;
    *header = malloc(*bytes + 1);
    if (*header == NULL)
        st = tri_fail(TRI_NOMEM, "no memory for a chat template's prompt");
    else
        memcpy(*header, with.text + from, *bytes + 1);
    tri_jinja_output_free(&with);
    tri_jinja_output_free(&without);
    return st;
}

/* How far header and turn agree, at the end of a line or of a tag if not to the header's end. */
static size_t common(const char *header, size_t header_bytes, const char *turn, size_t bytes)
{
    size_t n = 0;
    while (n < header_bytes && n < bytes && header[n] == turn[n])
        n++;
    while (n > 0 && n < header_bytes && header[n - 1] != '\n' && header[n - 1] != '>' &&
           header[n - 1] != ']' && header[n - 1] != ':')
        n--;
    return n;
}

/* Where message `index` has its content: where the text changes when the content does. */
static enum tri_status content_place(const struct tri_chat_job *job, size_t index,
                                     const struct tri_jinja_output *text, size_t *out)
{
    size_t content_bytes;
    const json_t *message = json_array_get(job->messages, index);
    const char *content = tri_chat_content(message, &content_bytes);
    struct tri_chat_job other = *job;
    struct tri_jinja_output changed;
    json_t *messages = json_copy((json_t *)(uintptr_t)job->messages);
    json_t *copy = json_copy((json_t *)(uintptr_t)message);
    json_t *word = json_string(content != NULL && *content == 'X' ? "Y" : "X");
    enum tri_status st = TRI_OK;
    if (messages == NULL || copy == NULL || json_object_set(copy, "content", word) != 0 ||
        json_array_set(messages, index, copy) != 0)
        st = tri_fail(TRI_NOMEM, "no memory to look for the content of message %zu", index);
    other.messages = messages;
    if (st == TRI_OK)
        st = tri_chat_run(&other, (int64_t)json_array_size(messages),
                          job->options->generation_prompt, &changed);
    if (st == TRI_OK) {
        size_t n = 0;
        while (n < text->bytes && n < changed.bytes && text->text[n] == changed.text[n])
            n++;
        /* Two characters may share their first bytes. */
        while (n > 0 && n < text->bytes && ((unsigned char)text->text[n] & 0xC0) == 0x80)
            n--;
        *out = n;
        tri_jinja_output_free(&changed);
    }
    json_decref(word);
    json_decref(copy);
    json_decref(messages);
    return st;
}

enum tri_status tri_chat_skip_header(const struct tri_chat_job *job, size_t index,
                                     const struct tri_jinja_output *text,
                                     const struct tri_jinja_mark *mark, const char *header,
                                     size_t header_bytes, size_t *out)
{
    const char *turn = text->text + mark->begin;
    const size_t bytes = mark->end - mark->begin;
    size_t content_bytes, n = 0, place = 0;
    const json_t *message = json_array_get(job->messages, index);
    const bool assistant = strcmp(tri_chat_role(message), "assistant") == 0;
    *out = 0;
    if (assistant) {
        if (header_bytes == 0) /* a template without prompt: the model writes the whole turn */
            return TRI_OK;
        n = common(header, header_bytes, turn, bytes);
        if (n < header_bytes) {
            /* Perhaps they differ in the white space between turns. */
            const size_t a = tri_space_prefix(header, header_bytes);
            const size_t b = tri_space_prefix(turn, bytes);
            const size_t m = common(header + a, header_bytes - a, turn + b, bytes - b);
            if (m > 0 && m + b > n)
                n = m + b;
        }
    }
    if (n == 0 && tri_chat_content(message, &content_bytes) != NULL) {
        TRI_TRY(content_place(job, index, text, &place));
        if (place >= mark->begin && place < mark->end)
            n = place - mark->begin;
        else
            place = 0;
    }
    if (assistant && n == 0 && place == 0)
        return tri_fail(TRI_UNSUPPORTED,
                        "the chat template's assistant turn does not start with its generation "
                        "prompt; put {%% generation %%} around what is to be trained");
    *out = n;
    return TRI_OK;
}

size_t tri_chat_keep_end(const json_t *message, const char *turn, size_t bytes)
{
    size_t content_bytes = 0;
    const char *content = tri_chat_content(message, &content_bytes);
    const size_t kept = tri_space_trimmed(turn, bytes);
    /* Nothing but white space after the content: that is how such a template ends a turn. */
    if (kept == 0 || (content != NULL && content_bytes <= kept &&
                      memcmp(turn + kept - content_bytes, content, content_bytes) == 0))
        return bytes;
    return kept;
}

size_t tri_chat_empty_think(const char *turn, size_t bytes)
{
    static const char *const tags[] = {"<think>", "</think>"};
    size_t at = tri_space_prefix(turn, bytes);
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(tags[i]);
        if (n > bytes - at || memcmp(turn + at, tags[i], n) != 0)
            return 0;
        at += n;
        at += tri_space_prefix(turn + at, bytes - at);
    }
    return at;
}
