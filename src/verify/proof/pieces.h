/* The first documents of a recipe's data, cut to a few hundred tokens. */
#ifndef TRI_VERIFY_PROOF_PIECES_H
#define TRI_VERIFY_PROOF_PIECES_H

#include "verify/proof/subject.h"

/* Fill subject->docs from the first steps of subject->run->loader: about `tokens` tokens in all,
 * each with at least one trained token. Where the data has fewer documents the longest are cut. */
enum tri_status tri_pieces_take(struct tri_subject *subject, int64_t tokens);

#endif
