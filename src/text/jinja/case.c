/* upper(), lower(), capitalize() and the two kinds of title(). */
#include "text/jinja/characters.h"
#include "text/jinja/run.h"

/* Jinja's filter title starts a word after one of these. */
static bool splits_words(uint32_t c)
{
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || tri_character_is_space(c);
}

/* A capital sigma at the end of a word becomes a final one. */
static bool is_final_sigma(const struct tri_jinja_string *text, size_t after, bool cased_before)
{
    uint32_t next = ' ';
    if (after < text->bytes)
        tri_character_decode(text->data + after, text->bytes - after, &next);
    return cased_before && !tri_character_is_cased(next);
}

enum tri_status tri_jinja_case(struct tri_jinja_run *run, const struct tri_jinja_string *text,
                               enum tri_jinja_case how, struct tri_jinja_value *out)
{
    struct tri_jinja_buffer buffer = {.pool = &run->pool};
    bool start = true, cased = false; /* of a word, of the character before */
    TRI_TRY(tri_jinja_step(run, (int64_t)(text->bytes / 16)));
    for (size_t at = 0; at < text->bytes;) {
        uint32_t c, to[3];
        int n;
        at += tri_character_decode(text->data + at, text->bytes - at, &c);
        if (how == TRI_JINJA_UPPER || (how == TRI_JINJA_TITLE_FILTER && start)) {
            n = tri_character_upper(c, to);
        } else if (how != TRI_JINJA_LOWER && start) {
            n = tri_character_title(c, to);
        } else if (c == 0x3A3 && is_final_sigma(text, at, cased)) {
            to[0] = 0x3C2;
            n = 1;
        } else {
            n = tri_character_lower(c, to);
        }
        for (int i = 0; i < n; i++)
            tri_jinja_buffer_character(&buffer, to[i]);
        cased = tri_character_is_cased(c);
        start = how == TRI_JINJA_TITLE          ? !cased
                : how == TRI_JINJA_TITLE_FILTER ? splits_words(c)
                                                : false;
    }
    return tri_jinja_buffer_value(&buffer, out);
}
