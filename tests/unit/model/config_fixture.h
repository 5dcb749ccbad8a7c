/* Small models from the text of a config.json, and what is refused in it. */
#ifndef TESTS_UNIT_MODEL_CONFIG_FIXTURE_H
#define TESTS_UNIT_MODEL_CONFIG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "model/arch.h"

static inline json_t *json_of(const char *text)
{
    json_t *value = NULL;
    if (tri_json_parse("test", text, strlen(text), &value) != TRI_OK)
        fail_msg("%s: %s", tri_error_text(), text);
    return value;
}

/* Parse a small model of a family whose other members are `members` ("\"a\": 1, ..."). */
static inline enum tri_status parse_over(const char *family, const char *members,
                                         const char *overrides, struct tri_model **out)
{
    char text[4096];
    snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", family);
    json_t *config = json_of(text);
    json_t *sizes = json_of("{\"hidden_size\": 64, \"num_hidden_layers\": 4, "
                            "\"num_attention_heads\": 8, \"num_key_value_heads\": 8, "
                            "\"intermediate_size\": 96, \"vocab_size\": 320, "
                            "\"max_position_embeddings\": 512}");
    json_object_update(config, sizes);
    json_decref(sizes);
    snprintf(text, sizeof text, "{%s}", members);
    json_t *more = json_of(text);
    json_object_update(config, more);
    json_decref(more);
    json_t *over = overrides == NULL ? NULL : json_of(overrides);

    char *dump = json_dumps(config, 0);
    *out = NULL;
    enum tri_status st = tri_model_parse("config.json", dump, strlen(dump), over, out);
    free(dump);
    json_decref(over);
    json_decref(config);
    return st;
}

static inline struct tri_model *parse_ok(const char *family, const char *members,
                                         const char *overrides)
{
    struct tri_model *model = NULL;
    if (parse_over(family, members, overrides, &model) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return model;
}

static inline void check_refused(const char *family, const char *members, const char *overrides,
                                 enum tri_status status, const char *words)
{
    struct tri_model *model = NULL;
    enum tri_status st = parse_over(family, members, overrides, &model);
    if (st == TRI_OK)
        fail_msg("%s was accepted: %s", family, members);
    if (strstr(tri_error_text(), words) == NULL)
        fail_msg("\"%s\" is not in the error \"%s\"", words, tri_error_text());
    if (strncmp(tri_error_text(), "config.json", 11) != 0)
        fail_msg("the error does not begin with the file: %s", tri_error_text());
    assert_null(strchr(tri_error_text(), '\n'));
    if (st != status)
        fail_msg("status %d instead of %d: %s", st, status, tri_error_text());
    assert_null(model);
}

#endif
