/* What must be the same: on all ranks of a run, and in a checkpoint and the run that goes on from
 * it. Facts are a text of a key, a zero byte, its value, a zero byte, and so on. */
#ifndef TRI_TRAIN_FACTS_H
#define TRI_TRAIN_FACTS_H

#include "base/text.h"
#include "ckpt/hf.h"
#include "comm/comm.h"

void tri_facts_add(struct tri_text *facts, const char *key, const char *value);
void tri_facts_add_hash(struct tri_text *facts, const char *key, uint64_t hash);

/* The first fact in which two texts differ; false if there is none. The strings point into them; a
 * text that ends early or has another key in this place gives "absent". */
struct tri_facts_difference {
    const char *key, *a, *b;
};
bool tri_facts_differ(const struct tri_text *a, const struct tri_text *b,
                      struct tri_facts_difference *out);

/* Every member of an architecture that the numbers depend on, under its name in config.json. The
 * dtype is the recipe's to choose and not among them. */
enum tri_status tri_facts_of_arch(const struct tri_arch *arch, struct tri_text *out);

/* Have all ranks the same facts? If not, every one of them fails with a text that names the first
 * fact in which a rank differs from rank 0, that rank and both values. `what` is in front of the
 * key and `advice` at the end. Collective; world NULL: one rank. */
enum tri_status tri_facts_agree(struct tri_comm *world, const char *what, const char *advice,
                                const struct tri_text *facts);

/* tri_hf_load that compares what the ranks were given, tensor by tensor, unless all of them read
 * the same files of one machine. Collective. */
enum tri_status tri_facts_load(struct tri_comm *world, const struct tri_model *model,
                               const char *folder, tri_rows_sink *sink, void *ctx);

#endif
