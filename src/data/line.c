/* A line of JSONL: which columns it has, and whether they make sense together. */
#include <inttypes.h>
#include <string.h>

#include "data/batch.h"
#include "data/sample.h"
#include "text/utf8.h"

/* What a JSON value is, for messages. */
static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "something unknown";
}

/* A name from the file, short and without control characters, fit for a line of text. */
static void printable(const char *name, char *out, size_t room)
{
    size_t n = strlen(name);
    if (n >= room)
        n = tri_utf8_valid(name, room - 1); /* cut between characters */
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7F ? '?' : name[i];
    out[n] = '\0';
}

/* A member that is a list of numbers, NULL when it is absent or null. */
static enum tri_status get_list(const json_t *root, const char *name, const json_t **out)
{
    const json_t *value = json_object_get(root, name);
    if (value && json_is_null(value))
        value = NULL;
    if (value && !json_is_array(value))
        return tri_fail(TRI_INVALID, "\"%s\" is %s: it must be a list of integers", name,
                        type_name(value));
    *out = value;
    return TRI_OK;
}

static enum tri_status get_list_like_ids(const json_t *root, const char *name, size_t count,
                                         const json_t **out)
{
    const json_t *list = NULL;
    TRI_TRY(get_list(root, name, &list));
    if (list && json_array_size(list) != count)
        return tri_fail(TRI_INVALID,
                        "\"%s\" has %zu values and \"input_ids\" has %zu: they must be "
                        "equal",
                        name, json_array_size(list), count);
    *out = list;
    return TRI_OK;
}

static enum tri_status get_integer(const json_t *list, const char *name, size_t i, int64_t *out)
{
    const json_t *value = json_array_get(list, i);
    if (!json_is_integer(value))
        return tri_fail(TRI_INVALID, "\"%s\"[%zu] is %s: it must be an integer", name, i,
                        type_name(value));
    *out = json_integer_value(value);
    return TRI_OK;
}

/* How many tokens come before the padding? */
static enum tri_status unpadded(const json_t *mask, size_t count, size_t *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t value = 0;
        TRI_TRY(get_integer(mask, "attention_mask", i, &value));
        if (value != 0 && value != 1)
            return tri_fail(TRI_UNSUPPORTED,
                            "\"attention_mask\"[%zu] is %" PRId64
                            ": only 0 and 1 are read; mark packed documents by \"position_ids\"",
                            i, value);
        if (value == 1 && kept != i)
            return tri_fail(TRI_UNSUPPORTED,
                            "\"attention_mask\" is 0 at token %zu and 1 at token %zu: only padding "
                            "on the right is read",
                            kept, i);
        kept += value == 1;
    }
    *out = kept;
    return TRI_OK;
}

static enum tri_status check_ids(const json_t *ids, size_t count, int64_t vocab)
{
    for (size_t i = 0; i < count; i++) {
        int64_t id = 0;
        TRI_TRY(get_integer(ids, "input_ids", i, &id));
        if (id < 0 || id >= vocab)
            return tri_fail(TRI_INVALID,
                            "\"input_ids\"[%zu] is %" PRId64 ", outside the vocabulary of %" PRId64
                            ": was this data made for another model?",
                            i, id, vocab);
    }
    return TRI_OK;
}

static enum tri_status check_labels(const json_t *labels, size_t kept, size_t count, int64_t vocab)
{
    for (size_t i = 0; i < count; i++) {
        int64_t label = 0;
        TRI_TRY(get_integer(labels, "labels", i, &label));
        if (label != TRI_IGNORE_LABEL && (label < 0 || label >= vocab))
            return tri_fail(TRI_INVALID,
                            "\"labels\"[%zu] is %" PRId64
                            ": neither -100 (not trained) nor inside the vocabulary of %" PRId64,
                            i, label, vocab);
        if (label != TRI_IGNORE_LABEL && i >= kept)
            return tri_fail(TRI_INVALID,
                            "\"labels\"[%zu] is %" PRId64
                            ", but \"attention_mask\" calls that token padding: make it -100",
                            i, label);
    }
    return TRI_OK;
}

static enum tri_status check_positions(const json_t *positions, size_t kept)
{
    int64_t before = -1;
    for (size_t i = 0; i < kept; i++) {
        int64_t position = 0;
        TRI_TRY(get_integer(positions, "position_ids", i, &position));
        if (position != 0 && position != before + 1)
            return tri_fail(TRI_INVALID,
                            "\"position_ids\"[%zu] is %" PRId64 " after %" PRId64
                            ": positions go up by 1 and start again at 0 with each document",
                            i, position, before);
        before = position;
    }
    return TRI_OK;
}

static enum tri_status read_tokenized(struct tri_sample *sample)
{
    const int64_t vocab = sample->rules->vocab;
    const json_t *root = sample->root;
    const json_t *mask = NULL;
    TRI_TRY(get_list(root, "input_ids", &sample->ids));
    const size_t count = json_array_size(sample->ids);
    TRI_TRY(get_list_like_ids(root, "labels", count, &sample->labels));
    TRI_TRY(get_list_like_ids(root, "position_ids", count, &sample->positions));
    TRI_TRY(get_list_like_ids(root, "attention_mask", count, &mask));

    size_t kept = count;
    if (mask)
        TRI_TRY(unpadded(mask, count, &kept));
    if (kept == 0)
        return tri_fail(TRI_INVALID, "empty document%s: remove it",
                        count > 0 ? " (all of it is padding)" : "");
    TRI_TRY(check_ids(sample->ids, count, vocab));
    if (sample->labels)
        TRI_TRY(check_labels(sample->labels, kept, count, vocab));
    if (sample->positions)
        TRI_TRY(check_positions(sample->positions, kept));
    sample->tokens = (int64_t)kept;
    return TRI_OK;
}

static bool is_given(const json_t *root, const char *name)
{
    const json_t *value = json_object_get(root, name);
    return value && !json_is_null(value);
}

static enum tri_status read_text(struct tri_sample *sample)
{
    static const char *const tokenized_only[] = {"labels", "position_ids", "attention_mask"};
    for (size_t i = 0; i < sizeof tokenized_only / sizeof *tokenized_only; i++)
        if (is_given(sample->root, tokenized_only[i]))
            return tri_fail(TRI_INVALID,
                            "\"%s\" goes with \"input_ids\": beside \"text\" it has no meaning",
                            tokenized_only[i]);
    const json_t *text = json_object_get(sample->root, "text");
    if (!json_is_string(text))
        return tri_fail(TRI_INVALID, "\"text\" is %s: it must be a string", type_name(text));
    struct tri_sample read;
    TRI_TRY(tri_sample_from_text(sample->rules, json_string_value(text), json_string_length(text),
                                 &read));
    read.root = sample->root;
    *sample = read;
    return TRI_OK;
}

static bool is_read(const char *name)
{
    static const char *const names[] = {"text", "input_ids", "labels", "position_ids",
                                        "attention_mask"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Would a column of this name change what is trained? Then leaving it unread would be wrong. */
static bool sounds_important(const char *name)
{
    static const char *const parts[] = {"mask", "loss", "weight", "seqlen", "seq_len"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

static void note_column(struct tri_columns *columns, const char *name)
{
    const int room = (int)(sizeof columns->name / sizeof *columns->name);
    char text[sizeof *columns->name];
    printable(name, text, sizeof text);
    for (int i = 0; i < columns->count; i++)
        if (strcmp(columns->name[i], text) == 0)
            return;
    if (columns->count < room)
        memcpy(columns->name[columns->count++], text, sizeof text);
}

static enum tri_status check_other_columns(const struct tri_sample *sample)
{
    json_t *root = sample->root;
    for (void *it = json_object_iter(root); it; it = json_object_iter_next(root, it)) {
        const char *name = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        if (is_read(name) || json_is_null(value))
            continue;
        char text[40];
        printable(name, text, sizeof text);
        if (json_is_array(value) || sounds_important(name))
            return tri_fail(TRI_UNSUPPORTED,
                            "column \"%s\" (%s) is not read, and it may say what to train: remove "
                            "it, or express it by \"labels\"",
                            text, type_name(value));
        if (sample->rules->columns)
            note_column(sample->rules->columns, name);
    }
    return TRI_OK;
}

static enum tri_status refuse_shape(const json_t *root)
{
    static const char *const known[] = {"messages", "conversations", "prompt", "completion",
                                        "instruction"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_given(root, known[i]))
            return tri_fail(TRI_UNSUPPORTED,
                            "samples of \"%s\" are not read yet: give \"text\" or \"input_ids\" "
                            "with \"labels\"",
                            known[i]);
    return tri_fail(TRI_INVALID, "the line has neither \"text\" nor \"input_ids\"");
}

static enum tri_status read_object(struct tri_sample *sample)
{
    const json_t *root = sample->root;
    if (!json_is_object(root))
        return tri_fail(TRI_INVALID, "the line is %s: it must be one JSON object", type_name(root));
    const bool text = is_given(root, "text");
    const bool tokenized = is_given(root, "input_ids");
    if (text && tokenized)
        return tri_fail(TRI_INVALID, "both \"text\" and \"input_ids\" are given: remove one");
    if (!text && !tokenized)
        return refuse_shape(root);
    TRI_TRY(check_other_columns(sample));
    return text ? read_text(sample) : read_tokenized(sample);
}

static enum tri_status parse(const char *line, size_t bytes, json_t **out)
{
    const size_t valid = tri_utf8_valid(line, bytes);
    if (valid != bytes)
        return tri_fail(TRI_INVALID,
                        "invalid UTF-8 at byte %zu of the line (0x%02X): write the file as UTF-8",
                        valid, (unsigned char)line[valid]);
    if (bytes >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0)
        return tri_fail(TRI_INVALID, "the line begins with a byte order mark (U+FEFF): remove it");
    json_error_t error;
    *out = json_loadb(line, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (*out)
        return TRI_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return tri_fail(TRI_NOMEM, "no memory for a line of %zu bytes", bytes);
    char text[JSON_ERROR_TEXT_LENGTH];
    printable(error.text, text, sizeof text);
    return tri_fail(TRI_FORMAT, "not valid JSON, column %d: %s", error.column, text);
}

enum tri_status tri_sample_from_line(const struct tri_sample_rules *rules, const char *line,
                                     size_t bytes, struct tri_sample *out)
{
    struct tri_sample sample = {.rules = rules};
    TRI_TRY(parse(line, bytes, &sample.root));
    enum tri_status st = read_object(&sample);
    if (st != TRI_OK) {
        tri_sample_close(&sample);
        return st;
    }
    *out = sample;
    return TRI_OK;
}
