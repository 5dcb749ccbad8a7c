/* The loader adapter: from ranks that each read their own samples to ranks that share every sample.
 *
 * Each of the P ranks of a sequence group reads samples of its own. They become P micro-batches
 * that follow each other: first rank 0's sample, split over all P ranks, then rank 1's, and so on.
 * Shards go out by one all-to-all; host memory is O(S) a rank, and nothing lies on a card. Labels
 * are shifted by one over the whole sequence before it is split, document by document.
 *
 * So P ranks must read different samples: those that read the same ones are found at the start of
 * the first epoch. Ranks may have different numbers of samples; no sample is left out. */
#ifndef TRIREME_ADAPTER_H
#define TRIREME_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trireme/mesh.h"
#include "trireme/sp.h"
#include "trireme/status.h"
#include "trireme/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TRI_FIELD_NAME = 64, TRI_SAMPLE_FIELDS = 32 };

/* One part of a sample: a tensor in host memory with any strides, or opaque bytes. */
struct tri_field {
    const char *name; /* shorter than TRI_FIELD_NAME */
    struct tri_tensor tensor;
    int split_dim;    /* the dimension of the tensor that has the S tokens and is cut over ranks;
                         -1: every rank gets the whole tensor */
    const void *blob; /* opaque bytes, whole to every rank; NULL for a tensor */
    size_t blob_bytes;
};

/* A tensor cut along `dim`, such as input_ids (B, S) along 1; one that goes whole, such as a weight
 * of each row (B); bytes, such as a file name. */
struct tri_field tri_field_split(const char *name, struct tri_tensor tensor, int dim);
struct tri_field tri_field_whole(const char *name, struct tri_tensor tensor);
struct tri_field tri_field_blob(const char *name, const void *data, size_t bytes);

/* What a rank reads. Needed, as int32 or int64, (S) or (B, S), cut along the last dimension:
 *   input_ids
 *   labels        not shifted; negative (-100) where nothing is to be learned. Usually input_ids
 *   position_ids  restart at each document (tri_sp_positions); (S) is good for all rows
 * May be there, of the same shape: attention_mask. Attention never sees it: tokens that it hides
 * lose their label, which is all that padding on the right needs; hidden tokens before visible ones
 * must be documents of their own (by position_ids), else the sample is refused. All else is carried
 * as it is. */
struct tri_sample {
    const struct tri_field *fields;
    int num_fields;
};

/* Give this rank's next sample, or set *end. Its memory stays as it is until the next call. */
typedef enum tri_status tri_sample_next(void *ctx, struct tri_sample *sample, bool *end);
/* Go back to the beginning, in the order of this epoch. */
typedef enum tri_status tri_sample_rewind(void *ctx, int64_t epoch);

struct tri_adapter_config {
    const struct tri_mesh *mesh; /* its sequence group shares samples. NULL: one rank. Outlives the
                                    adapter */
    tri_sample_next *next;
    tri_sample_rewind *rewind;
    void *ctx;
    int64_t samples;      /* of this rank in an epoch; -1: not known */
    int64_t fixed_tokens; /* S of every sample, others are refused; 0: each as long as it is */
    int64_t chunk;        /* C of the token layout (sp.h); 0: contiguous shards */
    int compare_first;    /* samples compared over all ranks of the job; 0: two; -1: none */
};

/* This rank's part of a sample. It and all it points to belong to the adapter until the next call.
 * Fields are in the order of the sample, contiguous; "labels" is gone, "shift_labels" is there:
 * what each token predicts, -100 for nothing, and for the last token of a document. */
struct tri_shard {
    int owner;                 /* rank of the sequence group whose sample it is */
    int64_t sample;            /* its number in the owner's epoch */
    struct tri_sp_shape shape; /* B rows of S tokens; C */
    int64_t local;             /* T: tokens of each row on this rank; may be 0 */
    const struct tri_field *fields;
    int num_fields;
    const int32_t *input_ids;    /* (B, T) */
    const int32_t *shift_labels; /* (B, T) */
    const int64_t *position_ids; /* (B, T) */
    int64_t trained;             /* labels of the whole sample that are trained */
    int64_t local_trained;       /* of this rank */
    const int64_t *doc_begin;    /* (num_docs + 1) documents of the whole sample, as tokens of its
                                    B * S, rows one after the other */
    const int64_t *doc_position; /* (num_docs) position id of each one's first token */
    int64_t num_docs;
};

struct tri_adapter; /* opaque */

/* Collective over the mesh, as are the calls below. */
enum tri_status tri_adapter_open(const struct tri_adapter_config *config, struct tri_adapter **out);
void tri_adapter_close(struct tri_adapter *adapter); /* NULL is allowed; not collective */

/* Begin an epoch, also in the middle of another one: what was pending is dropped. Needed before the
 * first tri_adapter_next. Equal epochs give equal shards. */
enum tri_status tri_adapter_epoch(struct tri_adapter *adapter, int64_t epoch);

/* The next shard, or *end on all ranks of the group at once (groups of a mesh may end at different
 * times: tri_comm_any over the world says whether some go on). What one rank's source or sample got
 * wrong is an error on all of them, with a text that names the rank. */
enum tri_status tri_adapter_next(struct tri_adapter *adapter, struct tri_shard *shard, bool *end);

/* Shards of an epoch: the samples of all ranks of the group, P times those of one when all have
 * equally many; -1 when some rank does not know. */
int64_t tri_adapter_length(const struct tri_adapter *adapter);

/* A field of a shard, or NULL. */
const struct tri_field *tri_shard_field(const struct tri_shard *shard, const char *name);

#ifdef __cplusplus
}
#endif

#endif
