/* The formats of a line, one file each: what their readers have in common.
 *
 *   messages           chats as OpenAI writes them           messages.c
 *   sharegpt           chats as ShareGPT writes them         conversations.c
 *   prompt_completion  a prompt and what follows it          prompt.c
 *   alpaca             instruction, input, output            alpaca.c
 *   text               {"text": "..."}                       text.c
 *   tokenized          token ids, perhaps with labels        tokenized.c
 *
 * A reader gets the object of a line and makes a sample of it. It may keep a reference to the
 * object; the caller drops its own. */
#ifndef TRI_DATA_FORMATS_FORMAT_H
#define TRI_DATA_FORMATS_FORMAT_H

#include "data/sample.h"

enum tri_status tri_format_messages(const struct tri_sample_rules *rules, json_t *root,
                                    struct tri_sample *out);
enum tri_status tri_format_conversations(const struct tri_sample_rules *rules, json_t *root,
                                         struct tri_sample *out);
enum tri_status tri_format_prompt(const struct tri_sample_rules *rules, json_t *root,
                                  struct tri_sample *out);
enum tri_status tri_format_alpaca(const struct tri_sample_rules *rules, json_t *root,
                                  struct tri_sample *out);
enum tri_status tri_format_text(const struct tri_sample_rules *rules, json_t *root,
                                struct tri_sample *out);
enum tri_status tri_format_tokenized(const struct tri_sample_rules *rules, json_t *root,
                                     struct tri_sample *out);

/* Of an enum tri_data_format, as data.format has it. */
const char *tri_format_name(int format);

/* What a JSON value is, for messages: "a list". NULL is "missing". */
const char *tri_json_kind(const json_t *value);

/* A member that is neither absent nor null; else NULL. */
const json_t *tri_json_given(const json_t *root, const char *name);

/* A member that must be a string. */
enum tri_status tri_json_string_of(const json_t *root, const char *name, const char **text,
                                   size_t *bytes);

/* A name from the file, short and without control characters, fit for a line of text. */
void tri_printable(const char *name, char *out, size_t room);

#endif
