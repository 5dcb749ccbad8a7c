/* Between chat.c, chat_calls.c, chat_mask.c and chat_load.c. */
#ifndef TRI_TEXT_CHAT_PRIVATE_H
#define TRI_TEXT_CHAT_PRIVATE_H

#include "text/chat.h"
#include "text/jinja/jinja.h"

struct tri_chat_template {
    struct tri_jinja *usual;
    struct tri_jinja *with_tools; /* NULL: the usual one */
    json_t *tokens;               /* an object */
    uint64_t identity;            /* of the templates' texts */
};

/* One conversation being rendered. */
struct tri_chat_job {
    const struct tri_jinja *jinja;
    const json_t *messages;
    const struct tri_chat_options *options;
    json_t *variables; /* all of them but messages */
    struct tri_jinja_limits limits;
};

/* The template that is used for a conversation with these tools, which may be NULL. */
const struct tri_jinja *tri_chat_choose(const struct tri_chat_template *chat, const json_t *tools);

/* A job without a text yet; the caller drops its variables. */
enum tri_status tri_chat_job_open(const struct tri_chat_template *chat, const json_t *messages,
                                  const json_t *tools, const struct tri_chat_options *options,
                                  struct tri_chat_job *out);

/* Render the first `count` messages. */
enum tri_status tri_chat_run(const struct tri_chat_job *job, int64_t count, bool generation_prompt,
                             struct tri_jinja_output *out);

struct tri_chat_range {
    size_t begin, end;
};

/* Ranges of the text that are trained, in order, disjoint. */
struct tri_chat_ranges {
    struct tri_chat_range *items;
    size_t count, capacity;
};

/* chat_mask.c: fill `out` for the rendering `text` of all messages. */
enum tri_status tri_chat_mask(const struct tri_chat_job *job, const struct tri_jinja_output *text,
                              struct tri_chat_ranges *out);
enum tri_status tri_chat_add_range(struct tri_chat_ranges *ranges, size_t begin, size_t end);

/* chat_want.c: want[i] says whether message i is to be trained. */
enum tri_status tri_chat_want(const json_t *messages, const struct tri_chat_options *options,
                              bool *want);

/* chat_turn.c: parts of a turn. */

/* The role of a message ("" if it has none). */
const char *tri_chat_role(const json_t *message);
/* The message's text without white space around it; NULL when it has none. */
const char *tri_chat_content(const json_t *message, size_t *bytes);
/* What the template writes to make the model begin a turn; the caller frees it. */
enum tri_status tri_chat_header(const struct tri_chat_job *job, const bool *want, char **header,
                                size_t *bytes);
/* Bytes of the stretch `mark`, the first that message `index` wrote, that come before what is
 * trained: an assistant's header, or everything before another role's content. */
enum tri_status tri_chat_skip_header(const struct tri_chat_job *job, size_t index,
                                     const struct tri_jinja_output *text,
                                     const struct tri_jinja_mark *mark, const char *header,
                                     size_t header_bytes, size_t *out);
/* Bytes of `turn` up to and with its end-of-turn token. */
size_t tri_chat_keep_end(const json_t *message, const char *turn, size_t bytes);
/* Bytes of an empty <think> block that `turn` starts with, or 0. */
size_t tri_chat_empty_think(const char *turn, size_t bytes);

#endif
