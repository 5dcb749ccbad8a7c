/* {"text": "..."}: a document to continue. */
#include "data/formats/format.h"

enum tri_status tri_format_text(const struct tri_sample_rules *rules, json_t *root,
                                struct tri_sample *out)
{
    const char *text;
    size_t bytes;
    TRI_TRY(tri_json_string_of(root, "text", &text, &bytes));
    TRI_TRY(tri_sample_from_text(rules, text, bytes, out));
    out->root = json_incref(root);
    return TRI_OK;
}
