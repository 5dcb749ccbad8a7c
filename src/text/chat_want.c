/* Which messages are trained. */
#include <string.h>

#include "text/chat_private.h"

/* What a field says: 1, 0, or -1 when it is not there. */
static enum tri_status read_flag(const json_t *message, size_t index, const char *name, int *out)
{
    const json_t *value = json_object_get(message, name);
    if (value == NULL || json_is_null(value)) {
        *out = -1;
    } else if (json_is_boolean(value)) {
        *out = json_is_true(value);
    } else if (json_is_number(value) &&
               (json_number_value(value) == 0 || json_number_value(value) == 1)) {
        *out = json_number_value(value) == 1;
    } else {
        return tri_fail(TRI_UNSUPPORTED, "message %zu: \"%s\" must be true, false, 0 or 1", index,
                        name);
    }
    return TRI_OK;
}

static enum tri_status read_flags(const json_t *message, size_t index, int *out)
{
    static const char *const names[] = {"train", "loss", "weight"};
    *out = -1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int flag = -1;
        TRI_TRY(read_flag(message, index, names[i], &flag));
        if (flag < 0)
            continue;
        if (*out >= 0 && *out != flag)
            return tri_fail(TRI_INVALID,
                            "message %zu: \"train\", \"loss\" and \"weight\" contradict", index);
        *out = flag;
    }
    return TRI_OK;
}

static bool is_trained_role(const char *role, const struct tri_chat_options *options)
{
    if (options->roles == NULL)
        return strcmp(role, "assistant") == 0;
    for (size_t i = 0; i < options->num_roles; i++)
        if (strcmp(role, options->roles[i]) == 0)
            return true;
    return false;
}

enum tri_status tri_chat_want(const json_t *messages, const struct tri_chat_options *options,
                              bool *want)
{
    const size_t count = json_array_size(messages);
    size_t round = 0; /* first message of the last round */
    for (size_t i = 0; i < count; i++)
        if (strcmp(tri_chat_role(json_array_get(messages, i)), "user") == 0)
            round = i;
    for (size_t i = 0; i < count; i++) {
        const json_t *message = json_array_get(messages, i);
        int flag = -1;
        TRI_TRY(read_flags(message, i, &flag));
        want[i] = is_trained_role(tri_chat_role(message), options) &&
                  (!options->last_round || i >= round);
        if (flag >= 0)
            want[i] = flag != 0;
    }
    return TRI_OK;
}
