/* Things a user would want to know before hours are spent. */
#ifndef TRI_TRAIN_WARNINGS_H
#define TRI_TRAIN_WARNINGS_H

#include "base/json.h"
#include "data/dataset.h"
#include "model/arch.h"

/* Print what the model is: family, sizes, attention of each layer, effective rotary embedding. */
void tri_warn_model(const struct tri_model *model, const json_t *overrides);

/* Warn when a document is longer than the positions the model was made for and nothing was done
 * about its rotary embedding. Either dataset may be NULL. */
void tri_warn_length(const struct tri_model *model, const struct tri_dataset *data,
                     const struct tri_dataset *eval);

#endif
