/* Conversations to text by a checkpoint's chat template, with the bytes that are trained.
 *
 * What is trained. Rule one: what the model itself has to write, given the prompt that the template
 * makes with add_generation_prompt. So of an assistant's turn the header (the generation prompt) is
 * not trained, the content and the end-of-turn token are, white space after that token is not.
 *
 * How the bytes are found, in this order:
 * 1. {% generation %} blocks, if the template has any, are what is trained.
 * 2. Else by origin: the interpreter notes which message's turn of the loop over messages wrote
 * each byte. One rendering is enough, and templates that rewrite earlier turns (Qwen3 drops their
 *    <think> blocks) are no problem. The header is found by rendering the messages before an
 *    assistant's turn with and without the generation prompt.
 * 3. A template that does not loop over the messages themselves: by prefixes, messages [0, i) with
 *    the generation prompt against messages [0, i]. Both must be beginnings of the whole text; a
 *    template for which they are not is refused.
 * What a template writes for one message while it handles another is that other's: a template that
 * puts the end of a turn at the start of the next one (Apertus) leaves it untrained without
 * generation blocks.
 *
 * Which messages are trained: those whose role is in `roles` (after the last user message alone if
 * `last_round` is set), unless the message has a field "train" or "loss" (true or false) or
 * "weight" (0 or 1), which always decides. */
#ifndef TRI_TEXT_CHAT_H
#define TRI_TEXT_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

struct tri_chat_template;

/* A template from its text. `tokens` is an object of what templates may know of the tokenizer
 * (bos_token, eos_token, ...), or NULL; it is copied. */
enum tri_status tri_chat_open(const char *what, const char *text, size_t bytes,
                              const json_t *tokens, struct tri_chat_template **out);

/* The template of a model's folder: chat_template.jinja, else chat_template in
 * tokenizer_config.json (of several the one named "tool_use" for conversations with tools, and
 * "default" for the others). Special tokens come from tokenizer_config.json and, where that has
 * none, from special_tokens_map.json. */
enum tri_status tri_chat_load(const char *folder, struct tri_chat_template **out);
void tri_chat_close(struct tri_chat_template *chat); /* NULL is allowed */

/* The special tokens alone, for a template that comes from elsewhere; the caller drops them. */
enum tri_status tri_chat_tokens(const char *folder, json_t **out);

/* Equal identities render equal conversations alike; 0 for NULL. */
uint64_t tri_chat_identity(const struct tri_chat_template *chat);

struct tri_chat_options {
    const char *const *roles; /* that are trained; NULL: "assistant" */
    size_t num_roles;
    bool last_round;         /* train only what follows the last user message */
    bool ignore_empty_think; /* a turn's empty <think></think> block is not trained */
    bool generation_prompt;  /* render a prompt for the next turn; nothing more is trained by it */
    int64_t now;             /* for strftime_now: seconds since 1970, shown as UTC */
    const json_t *variables; /* more for the template, such as enable_thinking; may be NULL */
};

struct tri_chat_span {
    size_t begin, end;
    int64_t message; /* -1: text of the template around the messages */
    bool trained;
};

/* The spans cover the text in order, without gaps. To label tokens, encode the whole text without
 * adding special tokens (the template has written them); a token is trained if any of its bytes
 * is, as in Transformers. */
struct tri_chat_text {
    char *text; /* NUL-terminated */
    size_t bytes;
    struct tri_chat_span *spans;
    size_t num_spans;
    size_t trained_bytes;
    bool has_bos; /* it starts with bos_token: do not add another */
};

/* `messages` is a non-empty array of objects with a role; `tools` an array or NULL. */
enum tri_status tri_chat_render(const struct tri_chat_template *chat, const json_t *messages,
                                const json_t *tools, const struct tri_chat_options *options,
                                struct tri_chat_text *out);

/* Is there something in `text`, which was rendered of the rest, of the messages' "tool_calls" and
 * of the tools, where there are any? If not, TRI_INVALID. */
enum tri_status tri_chat_check_calls(const struct tri_chat_template *chat, const json_t *messages,
                                     const json_t *tools, const struct tri_chat_options *options,
                                     const struct tri_chat_text *text);

void tri_chat_text_free(struct tri_chat_text *text);

/* Is the byte at `offset` trained? `cursor` starts at 0 and makes increasing offsets cheap. */
bool tri_chat_is_trained(const struct tri_chat_text *text, size_t offset, size_t *cursor);

#endif
