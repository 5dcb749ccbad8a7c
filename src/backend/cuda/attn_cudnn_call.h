/* One attention call of the ops table on its way through cuDNN.
 *
 * The mask is cut into pieces (attn_cudnn_pieces.h), the pieces become batches, each of which is
 * one plan: a piece with a plan for its exact sizes, or documents of similar length in one ragged
 * plan whose sizes are rounded up, so that new lengths seldom need a new plan. A call is visited
 * batch by batch several times, in the same order: to find plans and sizes (nothing is queued if
 * any is refused), to write the tables of the ragged batches, and to run, a few key heads at a
 * time. */
#ifndef TRI_BACKEND_CUDA_ATTN_CUDNN_CALL_H
#define TRI_BACKEND_CUDA_ATTN_CUDNN_CALL_H

#include "backend/cuda/attn_cudnn_pieces.h"
#include "backend/cuda/attn_cudnn_plan.h"
#include "backend/cuda/context.h"

/* Backward takes as many key heads at once as fit these bytes, and at least one. More would not be
 * faster: a few heads keep the sums of dq in the cache. */
#define TRI_CUDNN_BACKWARD_BYTES ((int64_t)512 << 20)
/* Forward takes so few key heads at once that the outputs it has to put aside fit these. */
#define TRI_CUDNN_ASIDE_BYTES ((int64_t)128 << 20)
/* The deterministic backward keeps scores; it takes as many queries at once as fit these. */
#define TRI_CUDNN_SCORE_BYTES ((int64_t)2 << 30)

/* The engine's context. */
struct tri_cudnn_attn {
    struct tri_cuda *cuda;
    struct tri_cudnn_api api;
    struct tri_cudnn_plans plans;
};

/* One plan and the part of the call that it covers. */
struct tri_cudnn_batch {
    bool ragged, padded, causal, bottom_right, windowed;
    int64_t window;              /* as in tri_attn_piece */
    int64_t b;                   /* batch entries, empty ones included */
    int64_t q_rows, k_rows;      /* of an entry, at most */
    int64_t q_row, k_row;        /* where the piece starts; 0 when ragged */
    int64_t slot;                /* in the tables, of the first entry */
    int64_t count;               /* pieces in it */
    struct tri_attn_piece piece; /* the only one, unless `square` */
    bool square;                 /* squares of up to q_rows rows, beginning with number `done` */
    int64_t done;
    bool aside; /* dq goes to the workspace, to be added; o and lse do, to be joined */
};

/* Where things lie in the workspace: offsets in bytes. */
struct tri_cudnn_layout {
    size_t q_length, k_length, offsets; /* tables */
    size_t inside;                      /* cuDNN's own */
    size_t dq_sum, delta;
    size_t dq, dk, dv; /* bfloat16, one row for each row of the call, heads of one group */
    size_t o, lse;     /* the same of forward, when a batch is put aside */
    size_t total;
};

struct tri_cudnn_call {
    struct tri_cudnn_attn *engine;
    struct tri_stream *s;
    const struct tri_attn *op;
    bool backward, accumulate_dq;
    bool deterministic; /* of a backward call */
    struct tri_view q, k, v, o, lse, dout, dq, dk, dv;
    char *workspace;

    int64_t group; /* key heads at once */
    int64_t chunk; /* queries at once: all, unless deterministic */
    int64_t most;  /* bytes that the rows of one ragged batch may take */
    struct tri_cudnn_layout at;

    /* Gathered by tri_cudnn_call_plan. */
    int64_t slots;
    bool aside;                    /* forward puts a batch aside */
    size_t inside, dq_sum, delta;  /* the most that any batch needs */
    struct tri_attn_piece squares; /* the rows that the square batches cover */
};

/* Choose group and chunk, find all plans, fill `at`. TRI_UNSUPPORTED, with nothing queued, when
 * cuDNN cannot take the call. */
enum tri_status tri_cudnn_call_plan(struct tri_cudnn_call *c);

/* Queue it. `workspace` has at.total bytes. */
enum tri_status tri_cudnn_call_run(struct tri_cudnn_call *c);

/* Queue the writing of the tables. */
enum tri_status tri_cudnn_call_tables(struct tri_cudnn_call *c);

/* Query heads of one group. */
int64_t tri_cudnn_query_heads(const struct tri_cudnn_call *c);

/* The batches in order. Those of the squares come last. */
typedef enum tri_status tri_cudnn_visit(struct tri_cudnn_call *c,
                                        const struct tri_cudnn_batch *batch, void *ctx);
enum tri_status tri_cudnn_call_batches(struct tri_cudnn_call *c, tri_cudnn_visit *visit, void *ctx);

/* A walk over the pieces of chunk after chunk. A chunk and its prefix are seen as two pieces, what
 * lies before it and its square: cuDNN is a fifth faster with these (backward always, forward when
 * they are large). Of the second `again` is true: its queries are those of the first. */
struct tri_cudnn_pieces {
    const struct tri_cudnn_call *call;
    struct tri_attn op; /* of the chunk of queries */
    struct tri_attn_walk walk;
    int64_t next; /* first query of the next chunk */
    struct tri_attn_piece second;
    bool again;
};
void tri_cudnn_pieces_begin(struct tri_cudnn_pieces *p, const struct tri_cudnn_call *c);
bool tri_cudnn_pieces_next(struct tri_cudnn_pieces *p, struct tri_attn_piece *out, bool *again);
/* The next square piece that joins the ragged batch of squares of up to `rows` rows. */
bool tri_cudnn_pieces_next_square(struct tri_cudnn_pieces *p, int64_t rows,
                                  struct tri_attn_piece *out);

/* Whether forward may meet a chunk with a prefix that is large enough to be seen as two pieces. */
bool tri_cudnn_may_split(const struct tri_cudnn_call *c);

/* Sizes of ragged plans are powers of two. */
int64_t tri_cudnn_rounded_rows(int64_t rows);
/* Whether several documents can be one ragged batch. Not backward on Ampere, Ada and consumer
 * Blackwell, whose engines take no ragged lse (cudnn-frontend 1.23), nor backward with head sizes
 * over 128 before 9.19 (wrong in 9.14, right in 9.19, seen on Hopper). */
bool tri_cudnn_may_be_ragged(const struct tri_cudnn_call *c);

/* The plan of a batch for the heads of one group. */
void tri_cudnn_batch_shape(const struct tri_cudnn_call *c, const struct tri_cudnn_batch *batch,
                           struct tri_cudnn_sdpa *out);

#endif
