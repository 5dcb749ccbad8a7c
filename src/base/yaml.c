#include "base/yaml.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <yaml.h>

#include "base/file.h"

enum {
    MAX_BYTES = 1 << 20,
    MAX_DEPTH = 32,
    MAX_NODES = 1 << 16,
    MAX_KEYS = 4096,
    MAX_KEY_BYTES = 256,
};

struct reader {
    const char *what;
    const char *text;
    size_t bytes;
    yaml_parser_t parser;
    int64_t nodes;
};

static void free_children(struct tri_yaml *node)
{
    while (node->first != NULL) {
        struct tri_yaml *child = node->first;
        node->first = child->next;
        tri_yaml_free(child);
    }
}

void tri_yaml_free(struct tri_yaml *root)
{
    if (root == NULL)
        return;
    free_children(root);
    free(root->key);
    free(root->text);
    free(root);
}

/* The parser's own complaint in one line. */
static enum tri_status syntax_error(const struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return tri_fail(TRI_NOMEM, "%s: out of memory while reading YAML", reader->what);
    if (parser->error == YAML_READER_ERROR)
        return tri_fail(TRI_FORMAT, "%s: byte %zu: %s (a recipe is UTF-8 text)", reader->what,
                        parser->problem_offset, parser->problem);
    long line = (long)parser->problem_mark.line + 1;
    /* The mark counts characters, so find the place by lines; tabs are the usual cause. */
    const char *p = reader->text, *end = reader->text + reader->bytes;
    for (long i = 1; i < line && p < end; i++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        p = newline == NULL ? end : newline + 1;
    }
    while (p < end && *p == ' ')
        p++;
    if (p < end && *p == '\t')
        return tri_fail(TRI_FORMAT, "%s:%ld: a tab cannot indent YAML, use spaces", reader->what,
                        line);
    return tri_fail(
        TRI_FORMAT, "%s:%ld:%ld: %s%s%s", reader->what, line, (long)parser->problem_mark.column + 1,
        parser->problem == NULL ? "not valid YAML" : parser->problem,
        parser->context == NULL ? "" : " ", parser->context == NULL ? "" : parser->context);
}

static enum tri_status next_event(struct reader *reader, yaml_event_t *event)
{
    if (!yaml_parser_parse(&reader->parser, event))
        return syntax_error(reader);
    return TRI_OK;
}

static enum tri_status refuse(const struct reader *reader, const yaml_event_t *event,
                              const char *why)
{
    return tri_fail(TRI_FORMAT, "%s:%ld: %s", reader->what, (long)event->start_mark.line + 1, why);
}

/* Anchors and tags of the event, if it can have any. */
static enum tri_status check_event(const struct reader *reader, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (event->type == YAML_ALIAS_EVENT || anchor != NULL)
        return refuse(reader, event,
                      "anchors (&) and aliases (*) are not supported here: write "
                      "the value out, or put it in quotes if it is a text");
    if (tag != NULL)
        return refuse(reader, event,
                      "tags (!) are not supported here: leave the tag out, or put "
                      "the value in quotes if it is a text");
    return TRI_OK;
}

static enum tri_status copy_scalar(const struct reader *reader, const yaml_event_t *event,
                                   char **out)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t bytes = event->data.scalar.length;
    /* Escapes can make what the reader would not let through. */
    if (!tri_text_is_utf8(value, bytes, NULL))
        return refuse(reader, event, "a text must be UTF-8 without zero bytes");
    char *copy = strndup(value, bytes);
    if (copy == NULL)
        return tri_fail(TRI_NOMEM, "%s: out of memory while reading YAML", reader->what);
    *out = copy;
    return TRI_OK;
}

static enum tri_status read_key(const struct reader *reader, const yaml_event_t *event, char **out)
{
    if (event->type != YAML_SCALAR_EVENT)
        return refuse(reader, event, "a key must be a plain word");
    char *key = NULL;
    TRI_TRY(copy_scalar(reader, event, &key));
    size_t length = strlen(key);
    bool good = length > 0 && length <= MAX_KEY_BYTES;
    for (size_t i = 0; i < length; i++)
        good = good && (unsigned char)key[i] >= 0x20 && key[i] != 0x7F;
    if (!good) {
        free(key);
        return refuse(reader, event, "a key must have 1 to 256 bytes and no control characters");
    }
    *out = key;
    return TRI_OK;
}

static enum tri_status check_duplicate(const struct reader *reader, const struct tri_yaml *mapping,
                                       const struct tri_yaml *child)
{
    for (const struct tri_yaml *other = mapping->first; other != NULL; other = other->next)
        if (other != child && strcmp(other->key, child->key) == 0)
            return tri_fail(TRI_FORMAT, "%s:%lld: duplicate key '%.80s', first given at %s:%lld",
                            reader->what, (long long)child->key_line, child->key, reader->what,
                            (long long)other->key_line);
    return TRI_OK;
}

static enum tri_status read_node(struct reader *reader, const yaml_event_t *event, int depth,
                                 struct tri_yaml **out);

/* Children up to the end of a mapping or sequence. */
static enum tri_status read_children(struct reader *reader, int depth, struct tri_yaml *parent)
{
    bool mapping = parent->kind == TRI_YAML_MAPPING;
    struct tri_yaml **tail = &parent->first;
    for (;;) {
        yaml_event_t event;
        TRI_TRY(next_event(reader, &event));
        if (event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return TRI_OK;
        }
        char *key = NULL;
        int64_t key_line = (int64_t)event.start_mark.line + 1;
        struct tri_yaml *child = NULL;
        enum tri_status st = check_event(reader, &event);
        if (st == TRI_OK && mapping) {
            st = read_key(reader, &event, &key);
            yaml_event_delete(&event);
            if (st == TRI_OK)
                st = next_event(reader, &event);
            if (st != TRI_OK) {
                free(key);
                return st;
            }
        }
        if (st == TRI_OK)
            st = read_node(reader, &event, depth, &child);
        yaml_event_delete(&event);
        if (st != TRI_OK) {
            free(key);
            return st;
        }
        child->key = key;
        child->key_line = key_line;
        *tail = child;
        tail = &child->next;
        parent->count++;
        if (mapping && parent->count > MAX_KEYS)
            return tri_fail(TRI_FORMAT, "%s:%lld: more than %d keys in one mapping", reader->what,
                            (long long)key_line, MAX_KEYS);
        if (mapping)
            TRI_TRY(check_duplicate(reader, parent, child));
    }
}

static enum tri_status read_node(struct reader *reader, const yaml_event_t *event, int depth,
                                 struct tri_yaml **out)
{
    TRI_TRY(check_event(reader, event));
    if (depth > MAX_DEPTH)
        return refuse(reader, event, "nested more than 32 levels deep");
    if (++reader->nodes > MAX_NODES)
        return refuse(reader, event, "more than 65,536 values");
    struct tri_yaml *node = calloc(1, sizeof *node);
    if (node == NULL)
        return tri_fail(TRI_NOMEM, "%s: out of memory while reading YAML", reader->what);
    node->line = (int64_t)event->start_mark.line + 1;
    node->column = (int64_t)event->start_mark.column + 1;
    enum tri_status st = TRI_OK;
    if (event->type == YAML_SCALAR_EVENT) {
        node->kind = TRI_YAML_SCALAR;
        node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        st = copy_scalar(reader, event, &node->text);
    } else {
        node->kind =
            event->type == YAML_SEQUENCE_START_EVENT ? TRI_YAML_SEQUENCE : TRI_YAML_MAPPING;
        st = read_children(reader, depth + 1, node);
    }
    if (st != TRI_OK) {
        tri_yaml_free(node);
        return st;
    }
    *out = node;
    return TRI_OK;
}

/* stream start, document start, value, document end, stream end; or an empty stream. */
static enum tri_status read_stream(struct reader *reader, struct tri_yaml **root)
{
    for (;;) {
        yaml_event_t event;
        TRI_TRY(next_event(reader, &event));
        enum tri_status st = TRI_OK;
        bool end = event.type == YAML_STREAM_END_EVENT;
        switch (event.type) {
        case YAML_DOCUMENT_START_EVENT:
            if (*root != NULL)
                st = refuse(reader, &event, "a second document (---) is not supported");
            break;
        case YAML_ALIAS_EVENT:
        case YAML_SCALAR_EVENT:
        case YAML_SEQUENCE_START_EVENT:
        case YAML_MAPPING_START_EVENT:
            st = read_node(reader, &event, 1, root);
            break;
        default:
            break;
        }
        yaml_event_delete(&event);
        if (st != TRI_OK || end)
            return st;
    }
}

enum tri_status tri_yaml_parse_value(const char *what, const char *text, size_t bytes,
                                     struct tri_yaml **out)
{
    /* A byte order mark, as some editors on Windows write, is no text: libyaml skips it only where
     * it guesses the encoding itself. */
    if (bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        bytes -= 3;
    }
    struct reader reader = {.what = what, .text = text, .bytes = bytes};
    if (bytes > MAX_BYTES)
        return tri_fail(TRI_FORMAT, "%s: %zu bytes are too many (the limit is 1 MiB)", what, bytes);
    if (!yaml_parser_initialize(&reader.parser))
        return tri_fail(TRI_NOMEM, "%s: out of memory while reading YAML", what);
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, bytes);
    struct tri_yaml *root = NULL;
    enum tri_status st = read_stream(&reader, &root);
    yaml_parser_delete(&reader.parser);
    if (st == TRI_OK && root == NULL) {
        root = calloc(1, sizeof *root);
        if (root == NULL)
            st = tri_fail(TRI_NOMEM, "%s: out of memory while reading YAML", what);
        else
            *root = (struct tri_yaml){.kind = TRI_YAML_MAPPING, .line = 1, .column = 1};
    }
    if (st != TRI_OK) {
        tri_yaml_free(root);
        return st;
    }
    *out = root;
    return TRI_OK;
}

enum tri_status tri_yaml_parse(const char *what, const char *text, size_t bytes,
                               struct tri_yaml **out)
{
    struct tri_yaml *root = NULL;
    TRI_TRY(tri_yaml_parse_value(what, text, bytes, &root));
    if (root->kind != TRI_YAML_MAPPING) {
        long long line = (long long)root->line;
        tri_yaml_free(root);
        return tri_fail(TRI_FORMAT, "%s:%lld: expected 'key: value' lines", what, line);
    }
    *out = root;
    return TRI_OK;
}

enum tri_status tri_yaml_load(const char *path, struct tri_yaml **out)
{
    char *text = NULL;
    size_t bytes = 0;
    TRI_TRY(tri_file_read(path, MAX_BYTES, &text, &bytes));
    enum tri_status st = tri_yaml_parse(path, text, bytes, out);
    free(text);
    return st;
}

bool tri_yaml_is_null(const struct tri_yaml *node)
{
    return node->kind == TRI_YAML_SCALAR && !node->quoted &&
           (*node->text == '\0' || strcmp(node->text, "~") == 0 ||
            strcasecmp(node->text, "null") == 0);
}
