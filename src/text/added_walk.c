/* Added tokens in a text: the leftmost match, and of those the longest, as the reference's
 * automaton finds them; then what the flags make of it. */
#include "text/added_tokens.h"
#include "text/unicode.h"

/* The longest token that begins at `at`, -1 if none does. */
static int32_t match_at(const struct tri_trie *trie, const char *text, size_t bytes, size_t at,
                        size_t *end)
{
    int32_t best = -1;
    int32_t node = trie->root[(unsigned char)text[at]];
    while (node >= 0) {
        at++;
        if (trie->node[node].token >= 0) {
            best = trie->node[node].token;
            *end = at;
        }
        if (at == bytes)
            break;
        const unsigned char byte = (unsigned char)text[at];
        node = trie->node[node].child;
        while (node >= 0 && trie->node[node].byte != byte)
            node = trie->node[node].sibling;
    }
    return best;
}

static bool stands_alone(const char *text, size_t bytes, size_t begin, size_t end)
{
    size_t length;
    if (begin > 0 &&
        tri_char_is_word(tri_char_at(text + begin - tri_char_before(text, begin), &length)))
        return false;
    return end == bytes || !tri_char_is_word(tri_char_at(text + end, &length));
}

static size_t strip_left(const char *text, size_t begin)
{
    while (begin > 0) {
        const size_t last = tri_char_before(text, begin);
        size_t length;
        if (!tri_char_is_space(tri_char_at(text + begin - last, &length)))
            break;
        begin -= last;
    }
    return begin;
}

static size_t strip_right(const char *text, size_t bytes, size_t end)
{
    size_t length;
    while (end < bytes && tri_char_is_space(tri_char_at(text + end, &length)))
        end += length;
    return end;
}

/* Find the next token that counts: walk->next and where it is. */
static void find_next(struct tri_added_walk *walk)
{
    const char *text = walk->text;
    while (walk->at < walk->bytes) {
        if (walk->trie->root[(unsigned char)text[walk->at]] < 0) {
            walk->at++;
            continue;
        }
        size_t end = 0;
        const int32_t index = match_at(walk->trie, text, walk->bytes, walk->at, &end);
        if (index < 0) {
            walk->at++;
            continue;
        }
        size_t begin = walk->at;
        walk->at = end; /* the search goes on here, whether or not the token counts */
        const struct tri_added_token *token = &walk->added->token[index];
        if (token->single_word && !stands_alone(text, walk->bytes, begin, end))
            continue;
        if (token->lstrip) {
            begin = strip_left(text, begin);
            if (begin < walk->done)
                begin = walk->done;
        }
        if (token->rstrip)
            end = strip_right(text, walk->bytes, end);
        walk->next = token;
        walk->next_begin = begin;
        walk->next_end = end;
        return;
    }
}

bool tri_added_next(struct tri_added_walk *walk)
{
    if (!walk->next && walk->trie->count > 0)
        find_next(walk);
    if (walk->next && walk->done >= walk->next_begin) {
        walk->token = walk->next;
        walk->begin = walk->next_begin;
        walk->end = walk->done = walk->next_end;
        walk->next = NULL;
        return true;
    }
    walk->token = NULL;
    walk->begin = walk->done;
    walk->end = walk->done = walk->next ? walk->next_begin : walk->bytes;
    return walk->end > walk->begin;
}
