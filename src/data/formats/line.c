/* A line of JSONL: which format it has, and whether all of its columns are read. */
#include <string.h>

#include "data/formats/format.h"
#include "data/options.h"
#include "text/utf8.h"

struct format {
    const char *name;         /* of data.format */
    const char *key[2];       /* a line with these is of this format; [1] may be NULL */
    const char *const *reads; /* columns, up to NULL */
    enum tri_status (*read)(const struct tri_sample_rules *rules, json_t *root,
                            struct tri_sample *out);
};

/* By enum tri_data_format. */
static const struct format formats[] = {
    [TRI_DATA_MESSAGES] = {"messages",
                           {"messages", NULL},
                           (const char *const[]){"messages", "tools", "chat_template_kwargs", NULL},
                           tri_format_messages},
    [TRI_DATA_SHAREGPT] = {"sharegpt",
                           {"conversations", NULL},
                           (const char *const[]){"conversations", "system", "tools",
                                                 "chat_template_kwargs", NULL},
                           tri_format_conversations},
    [TRI_DATA_PROMPT] = {"prompt_completion",
                         {"prompt", "completion"},
                         (const char *const[]){"prompt", "completion", "tools",
                                               "chat_template_kwargs", NULL},
                         tri_format_prompt},
    [TRI_DATA_ALPACA] = {"alpaca",
                         {"instruction", "output"},
                         (const char *const[]){"instruction", "input", "output", "system",
                                               "history", NULL},
                         tri_format_alpaca},
    [TRI_DATA_TEXT] = {"text",
                       {"text", NULL},
                       (const char *const[]){"text", NULL},
                       tri_format_text},
    [TRI_DATA_TOKENIZED] = {"tokenized",
                            {"input_ids", NULL},
                            (const char *const[]){"input_ids", "labels", "position_ids",
                                                  "attention_mask", "seq_lengths",
                                                  "packed_sample_seqlens", "completion_mask",
                                                  "assistant_masks", NULL},
                            tri_format_tokenized},
};
enum { NUM_FORMATS = sizeof formats / sizeof *formats };

static bool has_keys(const json_t *root, const struct format *format)
{
    return format->read && tri_json_given(root, format->key[0]) &&
           (!format->key[1] || tri_json_given(root, format->key[1]));
}

static bool is_read(const struct format *format, const char *name)
{
    for (const char *const *column = format->reads; *column; column++)
        if (strcmp(name, *column) == 0)
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

void tri_columns_note(struct tri_columns *columns, const char *name)
{
    const int room = (int)(sizeof columns->name / sizeof *columns->name);
    char text[sizeof *columns->name];
    tri_printable(name, text, sizeof text);
    for (int i = 0; i < columns->count; i++)
        if (strcmp(columns->name[i], text) == 0)
            return;
    if (columns->count < room)
        memcpy(columns->name[columns->count++], text, sizeof text);
}

static enum tri_status check_other_columns(const struct tri_sample_rules *rules, json_t *root,
                                           const struct format *format)
{
    for (void *it = json_object_iter(root); it; it = json_object_iter_next(root, it)) {
        const char *name = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        if (is_read(format, name) || json_is_null(value))
            continue;
        if (is_read(&formats[TRI_DATA_TOKENIZED], name) && json_is_array(value))
            return tri_fail(TRI_INVALID,
                            "\"%s\" goes with \"input_ids\": beside \"%s\" it has no meaning", name,
                            format->key[0]);
        char text[40];
        tri_printable(name, text, sizeof text);
        if (json_array_size(value) > 0 || sounds_important(name))
            return tri_fail(TRI_UNSUPPORTED,
                            "column \"%s\" (%s) is not read, and it may say what to train: remove "
                            "it, or express it by \"labels\"",
                            text, tri_json_kind(value));
        if (rules->columns)
            tri_columns_note(rules->columns, name);
    }
    return TRI_OK;
}

static enum tri_status unknown_format(json_t *root)
{
    struct tri_text keys = {0};
    for (void *it = json_object_iter(root); it && keys.bytes < 100;
         it = json_object_iter_next(root, it)) {
        char name[40];
        tri_printable(json_object_iter_key(it), name, sizeof name);
        tri_text_printf(&keys, "%s\"%s\"", keys.bytes > 0 ? ", " : "", name);
    }
    const enum tri_status st = tri_fail(
        TRI_INVALID,
        "this is no format that is read, of columns %s: give \"messages\", \"conversations\", "
        "\"prompt\" and \"completion\", \"instruction\" and \"output\", \"text\" or \"input_ids\"",
        keys.bytes > 0 ? tri_text_data(&keys) : "none");
    tri_text_free(&keys);
    return st;
}

/* The format whose keys the line has; more than one, or none, is an error. */
static enum tri_status detect(json_t *root, int *out)
{
    int found = TRI_DATA_AUTO;
    for (int i = TRI_DATA_AUTO + 1; i < NUM_FORMATS; i++) {
        if (!has_keys(root, &formats[i]))
            continue;
        if (found != TRI_DATA_AUTO)
            return tri_fail(TRI_INVALID,
                            "both \"%s\" and \"%s\" are given: remove one, or set data.format to "
                            "%s or %s",
                            formats[found].key[0], formats[i].key[0], formats[found].name,
                            formats[i].name);
        found = i;
    }
    if (found == TRI_DATA_AUTO)
        return unknown_format(root);
    *out = found;
    return TRI_OK;
}

static enum tri_status read_object(const struct tri_sample_rules *rules, json_t *root,
                                   struct tri_sample *out)
{
    if (!json_is_object(root))
        return tri_fail(TRI_INVALID, "the line is %s: it must be one JSON object",
                        tri_json_kind(root));
    int format = rules->format;
    if (format == TRI_DATA_AUTO)
        TRI_TRY(detect(root, &format));
    else if (!has_keys(root, &formats[format]))
        return tri_fail(TRI_INVALID, "\"%s\" is missing: data.format is %s, which needs it",
                        !tri_json_given(root, formats[format].key[0]) ? formats[format].key[0]
                                                                      : formats[format].key[1],
                        formats[format].name);
    TRI_TRY(check_other_columns(rules, root, &formats[format]));
    TRI_TRY(formats[format].read(rules, root, out));
    out->format = format;
    return TRI_OK;
}

const char *tri_format_name(int format)
{
    return format > TRI_DATA_AUTO && format < NUM_FORMATS ? formats[format].name : "auto";
}

static enum tri_status parse(const char *line, size_t bytes, json_t **out)
{
    if (bytes > INT32_MAX) /* jansson counts columns in an int */
        return tri_fail(TRI_UNSUPPORTED,
                        "a line of %s: lines are read up to 2 GiB; give a text as a .txt file of "
                        "its own, tokens as a Megatron dataset (.idx)",
                        tri_bytes((double)bytes).s);
    const size_t valid = tri_utf8_valid(line, bytes);
    if (valid != bytes)
        return tri_fail(TRI_INVALID,
                        "invalid UTF-8 at byte %zu of the line (0x%02X): write the file as UTF-8",
                        valid, (unsigned char)line[valid]);
    if (bytes >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0)
        return tri_fail(
            TRI_INVALID,
            "the line begins with a byte order mark (U+FEFF): remove it, at the start of a "
            "file by sed -i '1s/^\\xEF\\xBB\\xBF//'");
    json_error_t error;
    *out = json_loadb(line, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (*out)
        return TRI_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return tri_fail(TRI_NOMEM, "no memory for a line of %zu bytes", bytes);
    char text[JSON_ERROR_TEXT_LENGTH];
    tri_printable(error.text, text, sizeof text);
    return tri_fail(TRI_FORMAT, "not valid JSON, column %d: %s", error.column, text);
}

enum tri_status tri_sample_from_line(const struct tri_sample_rules *rules, const char *line,
                                     size_t bytes, struct tri_sample *out)
{
    json_t *root = NULL;
    TRI_TRY(parse(line, bytes, &root));
    const enum tri_status st = read_object(rules, root, out);
    json_decref(root);
    return st;
}
