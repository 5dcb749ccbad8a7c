/* Characters as Python sees them: what is a space, what is printable, upper and lower case. */
#ifndef TRI_TEXT_JINJA_CHARACTERS_H
#define TRI_TEXT_JINJA_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode the character at `p` (bytes > 0) of valid UTF-8 and return its bytes. A malformed byte
 * counts as one character of its value, so that the caller always advances within bounds. */
size_t tri_character_decode(const char *p, size_t bytes, uint32_t *out);
size_t tri_character_encode(uint32_t character, char out[4]);

bool tri_character_is_space(uint32_t character);     /* str.isspace() */
bool tri_character_is_printable(uint32_t character); /* str.isprintable() */
bool tri_character_is_cased(uint32_t character);
bool tri_character_is_upper(uint32_t character); /* upper or title case */
bool tri_character_is_lower(uint32_t character);

bool tri_character_is_digit(uint32_t character);  /* decimal digits of any script */
bool tri_character_is_letter(uint32_t character); /* str.isalpha() */

/* Full case mapping: write at most three characters and return how many. */
int tri_character_upper(uint32_t character, uint32_t out[3]);
int tri_character_title(uint32_t character, uint32_t out[3]);
int tri_character_lower(uint32_t character, uint32_t out[3]);

/* Bytes of white space that `text` starts with, and bytes that are left without what it ends
 * with. */
size_t tri_space_prefix(const char *text, size_t bytes);
size_t tri_space_trimmed(const char *text, size_t bytes);

#endif
