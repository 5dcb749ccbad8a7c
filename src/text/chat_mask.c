/* From renderings to the ranges that are trained: see chat.h for the rules. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/chat_private.h"

enum tri_status tri_chat_add_range(struct tri_chat_ranges *ranges, size_t begin, size_t end)
{
    if (begin >= end)
        return TRI_OK;
    if (ranges->count > 0 && ranges->items[ranges->count - 1].end == begin) {
        ranges->items[ranges->count - 1].end = end;
        return TRI_OK;
    }
    if (ranges->count == ranges->capacity) {
        const size_t capacity = 2 * ranges->capacity + 8;
        struct tri_chat_range *items = realloc(ranges->items, capacity * sizeof *items);
        if (items == NULL)
            return tri_fail(TRI_NOMEM, "no memory for the trained ranges of a conversation");
        ranges->items = items;
        ranges->capacity = capacity;
    }
    ranges->items[ranges->count++] = (struct tri_chat_range){.begin = begin, .end = end};
    return TRI_OK;
}

/* Add [begin, end), without an empty think block in front if asked. */
static enum tri_status add_trained(const struct tri_chat_job *job,
                                   const struct tri_jinja_output *text, bool first, size_t begin,
                                   size_t end, struct tri_chat_ranges *out)
{
    if (first && job->options->ignore_empty_think)
        begin += tri_chat_empty_think(text->text + begin, end - begin);
    return tri_chat_add_range(out, begin, end);
}

static bool is_assistant(const struct tri_chat_job *job, size_t index)
{
    return strcmp(tri_chat_role(json_array_get(job->messages, index)), "assistant") == 0;
}

/* The message of the k-th generation block of a template that does not loop over the messages, if
 * there are as many blocks as turns of the assistant. */
static int64_t kth_assistant(const struct tri_chat_job *job, const struct tri_jinja_output *text,
                             size_t k)
{
    size_t blocks = 0, turns = 0;
    int64_t found = -1;
    for (size_t m = 0; m < text->num_marks; m++)
        blocks += text->marks[m].generation;
    for (size_t i = 0; i < json_array_size(job->messages); i++) {
        if (!is_assistant(job, i))
            continue;
        if (turns++ == k)
            found = (int64_t)i;
    }
    return blocks == turns ? found : -1;
}

static enum tri_status mask_by_blocks(const struct tri_chat_job *job,
                                      const struct tri_jinja_output *text, const bool *want,
                                      struct tri_chat_ranges *out)
{
    const size_t count = json_array_size(job->messages);
    size_t block = 0;
    int64_t last = -1, before = -1;
    for (size_t m = 0; m < text->num_marks; m++) {
        const struct tri_jinja_mark *mark = &text->marks[m];
        if (mark->message >= 0)
            last = mark->message;
        if (!mark->generation)
            continue;
        /* A block after the loop (an end-of-text token) belongs to the last message. */
        int64_t message = last >= 0 ? last : kth_assistant(job, text, block);
        bool train = message >= 0 && want[message];
        for (size_t i = 0; i < count && message < 0; i++) {
            if (is_assistant(job, i) && !want[i])
                return tri_fail(TRI_UNSUPPORTED,
                                "the chat template does not tell which of its generation blocks "
                                "belongs to message %zu, which is not to be trained",
                                i);
            train = train || is_assistant(job, i);
        }
        block++;
        if (train)
            TRI_TRY(add_trained(job, text, message < 0 || message != before, mark->begin, mark->end,
                                out));
        before = message;
    }
    for (size_t i = 0; i < count; i++) {
        bool inside = !want[i] || is_assistant(job, i) || last < 0;
        for (size_t m = 0; m < text->num_marks && !inside; m++)
            inside = text->marks[m].generation && text->marks[m].message == (int64_t)i;
        if (!inside)
            return tri_fail(TRI_UNSUPPORTED,
                            "message %zu (%s) is to be trained, but the chat template has no "
                            "generation block for it",
                            i, tri_chat_role(json_array_get(job->messages, i)));
    }
    return TRI_OK;
}

/* A message of which something must appear in the text. */
static bool has_substance(const json_t *message)
{
    size_t bytes;
    return tri_chat_content(message, &bytes) != NULL ||
           json_array_size(json_object_get(message, "tool_calls")) > 0;
}

static enum tri_status fail_nothing(const struct tri_chat_job *job, size_t index)
{
    return tri_fail(
        TRI_UNSUPPORTED,
        "message %zu (%s) is to be trained, but the chat template writes nothing for it", index,
        tri_chat_role(json_array_get(job->messages, index)));
}

static enum tri_status mask_by_origin(const struct tri_chat_job *job,
                                      const struct tri_jinja_output *text, const bool *want,
                                      const char *header, size_t header_bytes,
                                      struct tri_chat_ranges *out)
{
    const size_t count = json_array_size(job->messages);
    /* Of each message the first and the last stretch: for its header and its end. */
    size_t *first = malloc(2 * count * sizeof *first);
    enum tri_status st = TRI_OK;
    if (first == NULL)
        return tri_fail(TRI_NOMEM, "no memory for the turns of a conversation");
    size_t *last = first + count;
    for (size_t i = 0; i < 2 * count; i++)
        first[i] = SIZE_MAX;
    for (size_t m = 0; m < text->num_marks; m++) {
        const int64_t i = text->marks[m].message;
        if (i < 0)
            continue;
        if (first[i] == SIZE_MAX)
            first[i] = m;
        last[i] = m;
    }
    for (size_t i = 0; i < count && st == TRI_OK; i++)
        if (want[i] && first[i] == SIZE_MAX && has_substance(json_array_get(job->messages, i)))
            st = fail_nothing(job, i);
    for (size_t m = 0; m < text->num_marks && st == TRI_OK; m++) {
        const struct tri_jinja_mark *mark = &text->marks[m];
        if (mark->message < 0 || !want[mark->message])
            continue;
        const json_t *message = json_array_get(job->messages, (size_t)mark->message);
        size_t begin = mark->begin, end = mark->end, skip;
        if (m == first[mark->message]) {
            st = tri_chat_skip_header(job, (size_t)mark->message, text, mark, header, header_bytes,
                                      &skip);
            if (st != TRI_OK)
                break;
            begin += skip;
        }
        if (m == last[mark->message])
            end = begin + tri_chat_keep_end(message, text->text + begin, end - begin);
        st = add_trained(job, text, m == first[mark->message], begin, end, out);
    }
    free(first);
    return st;
}

/* Is the message's text in this one? Without a text of its own anything will do. */
static bool has_content(const json_t *message, const char *text, size_t bytes)
{
    size_t content_bytes;
    const char *content = tri_chat_content(message, &content_bytes);
    return content == NULL ? bytes > 0 : memmem(text, bytes, content, content_bytes) != NULL;
}

static bool starts_with(const struct tri_jinja_output *text, const struct tri_jinja_output *part)
{
    return part->bytes == 0 ||
           (part->bytes <= text->bytes && memcmp(text->text, part->text, part->bytes) == 0);
}

static enum tri_status mask_by_prefix(const struct tri_chat_job *job,
                                      const struct tri_jinja_output *text, const bool *want,
                                      struct tri_chat_ranges *out)
{
    const size_t count = json_array_size(job->messages);
    for (size_t i = 0; i < count; i++) {
        struct tri_jinja_output before = {0}, after = {0};
        const json_t *message = json_array_get(job->messages, i);
        if (!want[i])
            continue;
        if (i > 0)
            TRI_TRY(tri_chat_run(job, (int64_t)i, is_assistant(job, i), &before));
        enum tri_status st = tri_chat_run(job, (int64_t)i + 1, false, &after);
        if (st == TRI_OK) {
            if (starts_with(text, &before) && starts_with(text, &after) &&
                before.bytes <= after.bytes) {
                const size_t n = tri_chat_keep_end(message, text->text + before.bytes,
                                                   after.bytes - before.bytes);
                if (has_substance(message) && !has_content(message, text->text + before.bytes, n))
                    st = fail_nothing(job, i);
                else
                    st = add_trained(job, text, true, before.bytes, before.bytes + n, out);
            } else {
                st =
                    tri_fail(TRI_UNSUPPORTED,
                             "the chat template writes message %zu differently when others follow, "
                             "so what is trained cannot be found; put {%% generation %%} around it",
                             i);
            }
        }
        tri_jinja_output_free(&before);
        tri_jinja_output_free(&after);
        TRI_TRY(st);
    }
    return TRI_OK;
}

static enum tri_status mask(const struct tri_chat_job *job, const struct tri_jinja_output *text,
                            const bool *want, struct tri_chat_ranges *out)
{
    const size_t count = json_array_size(job->messages);
    bool any = false, assistant = false, origins = false;
    for (size_t i = 0; i < count; i++) {
        any = any || want[i];
        assistant = assistant || (want[i] && is_assistant(job, i));
    }
    if (!any)
        return TRI_OK;
    if (tri_jinja_has_generation(job->jinja))
        return mask_by_blocks(job, text, want, out);
    for (size_t m = 0; m < text->num_marks; m++)
        origins = origins || text->marks[m].message >= 0;
    if (!origins)
        return mask_by_prefix(job, text, want, out);
    char *header = NULL;
    size_t header_bytes = 0;
    if (assistant)
        TRI_TRY(tri_chat_header(job, want, &header, &header_bytes));
    enum tri_status st = mask_by_origin(job, text, want, header, header_bytes, out);
    free(header);
    return st;
}

enum tri_status tri_chat_mask(const struct tri_chat_job *job, const struct tri_jinja_output *text,
                              struct tri_chat_ranges *out)
{
    const size_t count = json_array_size(job->messages);
    bool *want = calloc(count + 1, sizeof *want);
    if (want == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a conversation of %zu messages", count);
    enum tri_status st = tri_chat_want(job->messages, job->options, want);
    if (st == TRI_OK)
        st = mask(job, text, want, out);
    free(want);
    return st;
}
