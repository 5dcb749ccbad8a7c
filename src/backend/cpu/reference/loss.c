/* Cross-entropy of the next token, and its gradient in place of the logits. */
#include "backend/cpu/reference/reference.h"

#include <assert.h>
#include <math.h>

enum tri_status tri_reference_cross_entropy(struct tri_stream *s, bool backward, double scale,
                                            double *loss_sum, struct tri_view logits,
                                            const int32_t *labels)
{
    (void)s;
    TRI_TRY(tri_reference_check("cross_entropy", &logits, 1));
    int64_t vocabulary = logits.dim[1];
    double loss = 0;
    for (int64_t t = 0; t < logits.dim[0]; t++) {
        int64_t row = t * logits.stride[0];
        if (labels[t] < 0) {
            if (backward)
                for (int64_t i = 0; i < vocabulary; i++)
                    tri_reference_set(logits, row + i, 0);
            continue;
        }
        assert(labels[t] < vocabulary);

        double max = -INFINITY;
        for (int64_t i = 0; i < vocabulary; i++)
            max = fmax(max, tri_reference_get(logits, row + i));
        double sum = 0;
        for (int64_t i = 0; i < vocabulary; i++)
            sum += exp(tri_reference_get(logits, row + i) - max);
        double log_sum_exp = max + log(sum);
        loss += log_sum_exp - tri_reference_get(logits, row + labels[t]);

        if (backward)
            for (int64_t i = 0; i < vocabulary; i++) {
                double p = exp(tri_reference_get(logits, row + i) - log_sum_exp);
                double target = i == labels[t] ? 1 : 0;
                tri_reference_set(logits, row + i, (p - target) * scale);
            }
    }
    *loss_sum += loss;
    return TRI_OK;
}
