/* The proofs. Each prints its rows; a row over its bound is not an error of the function. */
#ifndef TRI_VERIFY_PROOF_PROOFS_H
#define TRI_VERIFY_PROOF_PROOFS_H

#include "verify/proof/report.h"

/* Every way of splitting the work gives the loss and gradients of one rank (splits.c). */
enum tri_status tri_prove_splits(struct tri_report *report, const struct tri_subject *subject);

/* Batches at the edge: one trained token, a shard without any, a document behind an untrained one
 * (edges.c). */
enum tri_status tri_prove_edges(struct tri_report *report, const struct tri_subject *subject);

/* Hold `ways` against the plainest one on the same step (splits.c). */
struct tri_named_way {
    char name[48];
    struct tri_way way;
    int parts;        /* micro-batches of all replicas that the documents are dealt to */
    bool bit_for_bit; /* it makes the same sums in the same order */
};
enum tri_status tri_prove_ways(struct tri_report *report, const struct tri_subject *subject,
                               const char *reference_name, const struct tri_batch *whole,
                               const struct tri_named_way *ways, int count);

/* Documents do not see each other, no token sees a later one, the first shard gets a gradient from
 * the last (probes.c). */
enum tri_status tri_prove_sight(struct tri_report *report, const struct tri_subject *subject);

/* One probe: other ids at `perturbed` tokens must move the hidden states of `moves` and not by a
 * bit those of `still`. */
struct tri_probe {
    const struct tri_batch *batch;
    struct tri_range perturbed, moves, still;
};
enum tri_status tri_prove_probe(struct tri_report *report, const struct tri_subject *subject,
                                const struct tri_way *way, const char *what,
                                const struct tri_probe *probes, int count);

/* The same ids with a gradient from the token before the last of `batch` to its first one. */
enum tri_status tri_prove_reach(struct tri_report *report, const struct tri_subject *subject,
                                const struct tri_way *way, const char *what,
                                const struct tri_batch *batch);

/* Weights saved and loaded again are the same; leaves the subject's model in FOLDER/model
 * (saves.c). */
enum tri_status tri_prove_saves(struct tri_report *report, const struct tri_subject *subject,
                                const char *folder);

/* `program train` is killed and goes on as if it had not been; works on FOLDER/model (kills.c). */
enum tri_status tri_prove_kills(struct tri_report *report, const struct tri_subject *subject,
                                const char *program, const char *folder);

/* Set the ranks and shards of a way to those that share a sequence among the most ranks: as many
 * threads as there are heads, or all ranks of a launcher. */
void tri_proof_split(const struct tri_subject *subject, struct tri_way *way);

/* How far a gradient may be off by rounding alone; 0: not at all (bounds.c). */
double tri_proof_bound(const struct tri_subject *subject, enum tri_dtype act);
double tri_proof_bit_bound(const struct tri_subject *subject, enum tri_dtype act);

#endif
