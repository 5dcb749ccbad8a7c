/* Private to model: queries, keys and values of a chunk from its normed input, in the layout that
 * the exchange sends, and the way back.
 *
 * A room of blocks (attn/exchange.h) has the heads of each rank in one piece; with one rank it is
 * the plain matrix. The products write all heads of a token; RoPE, the last to touch queries and
 * keys, divides them into blocks, and is the first to read the blocks of gradients. */
#ifndef TRI_MODEL_PROJECT_H
#define TRI_MODEL_PROJECT_H

#include "model/net.h"

/* q, the room of queries, from h(t,E); q_raw(t, Hq*D) receives them before QK-norm, or is absent.
 */
enum tri_status tri_project_queries(const struct tri_net *net, int64_t layer,
                                    struct tri_chunk chunk, struct tri_view q,
                                    struct tri_view q_raw, struct tri_view h);

/* kv, the room of keys and values; k_raw(t, Hk*D) receives the keys before QK-norm, or is absent.
 */
enum tri_status tri_project_keys(const struct tri_net *net, int64_t layer, struct tri_chunk chunk,
                                 struct tri_view kv, struct tri_view k_raw, struct tri_view h);

/* dq_room and dkv_room are what came back, dq(t, Hq*D) and dkv(t, 2*Hk*D) room for the gradients of
 * the products; with one rank they are the same memory. */
struct tri_project_gradients {
    struct tri_view dq_room, dkv_room;
    struct tri_view dq, dkv;
};

/* dh(t,E) = gradient; those of the parameters +=. */
enum tri_status tri_project_backward(const struct tri_net *net, int64_t layer,
                                     struct tri_chunk chunk, struct tri_view dh,
                                     const struct tri_project_gradients *g, struct tri_view h,
                                     struct tri_view q_raw, struct tri_view k_raw);

#endif
