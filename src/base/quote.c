/* Texts in quotes. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* May this text stand in YAML without quotes and still be a text, inside a list as well? */
static bool is_plain(const char *text)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "auto"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i]) == 0)
            return strcmp(text, "auto") == 0;
    if (!isalpha((unsigned char)*text) && *text != '/' && *text != '_')
        return false;
    for (const char *p = text; *p != '\0'; p++)
        if (!isalnum((unsigned char)*p) && strchr("_-./", *p) == NULL)
            return false;
    return true;
}

/* Decode one character of valid UTF-8 and step over it. */
static uint32_t next_character(const unsigned char **p)
{
    uint32_t c = *(*p)++;
    int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
    if (more > 0)
        c &= 0x3Fu >> more;
    for (; more > 0 && (**p & 0xC0) == 0x80; more--)
        c = c << 6 | (*(*p)++ & 0x3Fu);
    return c;
}

void tri_text_add_quoted(struct tri_text *out, const char *text)
{
    tri_text_add(out, "\"", 1);
    const unsigned char *p = (const unsigned char *)text;
    while (*p != '\0') {
        const unsigned char *start = p;
        uint32_t c = next_character(&p);
        /* YAML folds its extra line ends (85, 2028, 2029) and refuses what it cannot print. */
        bool printable = (c >= 0x20 && c < 0x7F) || (c >= 0xA0 && c != 0x2028 && c != 0x2029 &&
                                                     c != 0xFEFF && c != 0xFFFE && c != 0xFFFF);
        if (c == '"' || c == '\\')
            tri_text_printf(out, "\\%c", (int)c);
        else if (printable)
            tri_text_add(out, (const char *)start, (size_t)(p - start));
        else
            tri_text_printf(out, "\\u%04X", (unsigned)c);
    }
    tri_text_add(out, "\"", 1);
}

void tri_text_add_yaml(struct tri_text *out, const char *text)
{
    if (is_plain(text))
        tri_text_add(out, text, strlen(text));
    else
        tri_text_add_quoted(out, text);
}
