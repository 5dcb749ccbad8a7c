/* Is this text UTF-8? Fast enough to ask of every byte of a large file. */
#ifndef TRI_TEXT_UTF8_H
#define TRI_TEXT_UTF8_H

#include <stddef.h>

/* Bytes of a longest valid prefix made of whole characters: `bytes` if all of it is valid, else the
 * offset of the first byte of the first character that is malformed or cut off (Unicode 15, table
 * 3-7: no overlong forms, no surrogates, nothing above U+10FFFF). NUL is a character like others.
 *
 * A large text may be checked in windows of at least 4 bytes: continue at the offset that came
 * back, and only a window that makes no progress holds a malformed character. */
size_t tri_utf8_valid(const char *text, size_t bytes);

#endif
