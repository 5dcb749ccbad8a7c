/* Text that grows in a pool. */
#include <string.h>

#include "text/jinja/characters.h"
#include "text/jinja/run.h"

void tri_jinja_buffer_add(struct tri_jinja_buffer *buffer, const char *data, size_t bytes)
{
    if (buffer->failed || bytes == 0)
        return;
    if (bytes > buffer->capacity - buffer->bytes) {
        size_t capacity = 2 * buffer->capacity + bytes + 64;
        char *room = capacity < bytes ? NULL : tri_jinja_pool_get(buffer->pool, capacity);
        if (room == NULL) {
            buffer->failed = true;
            return;
        }
        if (buffer->bytes > 0)
            memcpy(room, buffer->data, buffer->bytes);
        buffer->data = room;
        buffer->capacity = capacity;
    }
    memcpy(buffer->data + buffer->bytes, data, bytes);
    buffer->bytes += bytes;
}

void tri_jinja_buffer_text(struct tri_jinja_buffer *buffer, const char *text)
{
    tri_jinja_buffer_add(buffer, text, strlen(text));
}

void tri_jinja_buffer_character(struct tri_jinja_buffer *buffer, uint32_t character)
{
    char text[4];
    tri_jinja_buffer_add(buffer, text, tri_character_encode(character, text));
}

enum tri_status tri_jinja_buffer_value(struct tri_jinja_buffer *buffer, struct tri_jinja_value *out)
{
    if (buffer->failed)
        return tri_jinja_pool_fail(buffer->pool, "chat template");
    return tri_jinja_string_ref(buffer->pool, buffer->bytes > 0 ? buffer->data : "", buffer->bytes,
                                out);
}
