/* One micro-batch: a run of tokens, cut into documents.
 *
 * Rows of a batch, packed samples and single sequences are all the same thing here: documents that
 * follow each other and never see each other. B rows of S tokens are B documents (or more, if rows
 * are packed), so nothing below this struct knows about rows.
 */
#ifndef TRI_DATA_BATCH_H
#define TRI_DATA_BATCH_H

#include <stdint.h>

#include "base/status.h"

enum { TRI_IGNORE_LABEL = -100 };

struct tri_batch {
    int64_t num_tokens; /* S */
    int32_t *ids;       /* (S) */
    int32_t *labels;    /* (S) already shifted: labels[t] is what token t predicts, or -100 */
    int64_t *positions; /* (S) restart at each document */
    int64_t *doc_begin; /* (num_docs + 1) ascending, doc_begin[num_docs] == S */
    int64_t num_docs;
    int64_t num_trained; /* labels >= 0 */
    uint64_t identity;   /* which samples these are: equal on two ranks means duplicated data */
    int64_t chunk;       /* C of the token layout, where it is not the pass's own; 0 */
    int64_t max_tokens;  /* room in the arrays (doc_begin has one more); 0: memory of the caller */
};

/* Host memory for `max_tokens` tokens; a batch is filled again and again. The batch is empty. */
enum tri_status tri_batch_open(int64_t max_tokens, struct tri_batch *out);
void tri_batch_close(struct tri_batch *batch);

/* From ids, unshifted labels and positions already in place for num_tokens tokens, derive
 * doc_begin (a document begins where position[t] != position[t-1] + 1), the shift (the last token
 * of a document predicts nothing) and num_trained. Labels are shifted in place. Ids and labels are
 * not compared with a vocabulary here: readers do that, where they can name the line. */
enum tri_status tri_batch_finish(struct tri_batch *batch);

/* Empty a batch, to fill it again. */
void tri_batch_clear(struct tri_batch *batch);

/* Add a sequence: `count` tokens with unshifted labels and positions were put after the num_tokens
 * that are there and finished. The same is derived for them as in tri_batch_finish; the first of
 * them begins a document, whose position must not follow the one before by 1 (0 never does). */
enum tri_status tri_batch_extend(struct tri_batch *batch, int64_t count);

/* The same for labels that are shifted already: they are checked only in that the last token of a
 * document must be untrained. */
enum tri_status tri_batch_finish_shifted(struct tri_batch *batch);

/* Sum over documents of the pairs (query, key) that attention visits, with a sliding window of
 * `window` tokens (0: none). The unit of attention FLOPs. */
double tri_batch_attended_pairs(const struct tri_batch *batch, int64_t window);

#endif
