/* Conversations to tokens and labels, whatever format they come in.
 *
 * The chat template writes the text (text/chat.h says which bytes of it are trained), the whole
 * text is encoded at once, and a token is trained if any of its bytes is. Nothing is put around it:
 * the template has written what begins and ends a conversation, so there is never a second bos.
 * Tools and tool calls of which the template writes nothing are an error. */
#ifndef TRI_DATA_FORMATS_CHAT_H
#define TRI_DATA_FORMATS_CHAT_H

#include "data/options.h"
#include "data/sample.h"
#include "text/chat.h"

/* The template of a run, and what data.* says about masks. */
struct tri_chat_rules {
    struct tri_chat_template *chat; /* NULL: there is none, and `reason` says why */
    char *reason;
    enum tri_status status; /* that of the reason */
    struct tri_chat_options options;
    json_t *variables; /* of the options */
    uint64_t identity; /* equal ones give equal texts and masks */
};

/* The template is data.chat_template, or that of the model's folder (which may be NULL). A model
 * without one is no error until a conversation comes. The options must outlive the rules. */
enum tri_status tri_chat_rules_open(const struct tri_data_options *options,
                                    const char *model_folder, struct tri_chat_rules **out);
void tri_chat_rules_close(struct tri_chat_rules *rules); /* NULL is allowed */

/* A conversation; the values belong to the caller. */
struct tri_conversation {
    const json_t *messages;  /* a list of objects with role and content */
    const json_t *tools;     /* a list, its JSON as a string, or NULL */
    const json_t *variables; /* more for the template: an object or NULL */
};
enum tri_status tri_chat_sample(const struct tri_sample_rules *rules,
                                const struct tri_conversation *conversation,
                                struct tri_sample *out);

/* A text of two parts, of which the second is trained, between bos and eos as a text document is.
 * A token that lies across the border is trained. */
enum tri_status tri_prompt_sample(const struct tri_sample_rules *rules, const char *text,
                                  size_t bytes, size_t prompt_bytes, struct tri_sample *out);

/* Is this a list of messages, not empty, of known roles? `name` is that of the column. Contents
 * that are lists of text parts are joined. */
enum tri_status tri_messages_check(const struct tri_sample_rules *rules, const char *name,
                                   const json_t *messages);

/* The columns "tools" and "chat_template_kwargs". */
enum tri_status tri_conversation_extras(const json_t *root, struct tri_conversation *out);

/* Append a message; the text need not be NUL-terminated. */
enum tri_status tri_add_message(json_t *messages, const char *role, const char *text, size_t bytes);

#endif
