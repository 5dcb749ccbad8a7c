/* The template language of Hugging Face chat templates: Jinja 3.1 in the environment that
 * Transformers sets up (sandboxed, trim_blocks, lstrip_blocks, loop controls, {% generation %}).
 *
 * What it knows behaves as in Python, down to printed floats and error conditions; what it does not
 * know is refused with line and name, when the template is opened if possible. Known differences:
 * integers have 64 bits; a text marked by the filters `safe` or `escape` escapes what + joins to
 * it, but methods and other filters drop the mark; recursive loops, call blocks, imports and
 * inheritance are refused. */
#ifndef TRI_TEXT_JINJA_JINJA_H
#define TRI_TEXT_JINJA_JINJA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

struct tri_jinja;

/* Parse a template (at most 1 MiB of UTF-8). `what` names it in errors ("chat template", a path).
 * The result never changes and may be rendered by several threads at once. */
enum tri_status tri_jinja_open(const char *what, const char *text, size_t bytes,
                               struct tri_jinja **out);
void tri_jinja_close(struct tri_jinja *jinja); /* NULL is allowed */

bool tri_jinja_has_generation(const struct tri_jinja *jinja);

/* What a rendering may use. */
struct tri_jinja_limits {
    int64_t steps; /* nodes evaluated, characters handled by filters count a little */
    size_t bytes;  /* memory */
};

/* Limits that no template in use comes near for an input of so many bytes. */
struct tri_jinja_limits tri_jinja_default_limits(size_t input_bytes);

struct tri_jinja_input {
    json_t *variables;     /* an object: bos_token, tools, add_generation_prompt, ... */
    json_t *messages;      /* an array, the variable `messages`; NULL: none */
    int64_t message_count; /* only the first so many; negative: all */
    int64_t now;           /* for strftime_now: seconds since 1970, shown as UTC */
    struct tri_jinja_limits limits;
};

/* What a stretch of the output comes from. */
struct tri_jinja_mark {
    size_t begin, end;
    /* The message whose turn of a loop over messages wrote it, or -1 outside of such loops. */
    int64_t message;
    bool generation; /* inside {% generation %} */
};

/* The marks cover the text without gaps. */
struct tri_jinja_output {
    char *text; /* NUL-terminated */
    size_t bytes;
    struct tri_jinja_mark *marks;
    size_t num_marks;
};

enum tri_status tri_jinja_render(const struct tri_jinja *jinja, const struct tri_jinja_input *input,
                                 struct tri_jinja_output *out);
void tri_jinja_output_free(struct tri_jinja_output *output);

#endif
