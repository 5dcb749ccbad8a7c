/* Frequencies of rotary position embeddings, in double precision.
 *
 * Pair j of the R rotated elements of a head turns by position * inv_freq[j] (RoFormer, Su et al.
 * 2021, arXiv:2104.09864), inv_freq[j] = theta^(-2j/R). The other types stretch that to contexts
 * longer than those of pretraining. */
#include <math.h>

#include "model/arch.h"

static const double pi = 3.14159265358979323846;

static void frequencies(double theta, int64_t rotary_dim, double *inv_freq)
{
    for (int64_t j = 0; j < rotary_dim / 2; j++)
        inv_freq[j] = 1.0 / pow(theta, (double)(2 * j) / (double)rotary_dim);
}

/* Dynamic NTK: theta grows with the length so that the slowest pair is stretched by just
 * factor * length / max_positions - (factor - 1); nothing changes up to max_positions. (bloc97 and
 * emozilla 2023; section 3.1 and appendix A.1 of YaRN, arXiv:2309.00071.) */
static double dynamic_theta(const struct tri_rope *rope, int64_t max_positions, int64_t length)
{
    double used = (double)(length > max_positions ? length : max_positions);
    double stretch = rope->factor * used / (double)max_positions - (rope->factor - 1.0);
    double dim = (double)rope->rotary_dim;
    return rope->theta * pow(stretch, dim / (dim - 2.0));
}

/* The pair (not a whole number) that makes `turns` rotations over the original context. */
static double pair_of_turns(const struct tri_rope *rope, double turns)
{
    double length = (double)rope->original_max_positions;
    return (double)rope->rotary_dim * log(length / (turns * 2.0 * pi)) / (2.0 * log(rope->theta));
}

/* "NTK by parts" of YaRN (Peng et al. 2023, arXiv:2309.00071, section 3.2): pairs that turn more
 * than beta_fast times over the original context keep their frequency, pairs that turn less than
 * beta_slow times are slowed by factor, and a ramp leads from one to the other. */
static void stretch_yarn(const struct tri_rope *rope, double *inv_freq)
{
    double low = pair_of_turns(rope, rope->beta_fast > 0.0 ? rope->beta_fast : 32.0);
    double high = pair_of_turns(rope, rope->beta_slow > 0.0 ? rope->beta_slow : 1.0);
    if (rope->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0.0);
    high = fmin(high, (double)(rope->rotary_dim - 1));
    if (low == high)
        high += 0.001; /* a step instead of a division by zero, as wide as in Transformers */

    for (int64_t j = 0; j < rope->rotary_dim / 2; j++) {
        double ramp = fmin(fmax(((double)j - low) / (high - low), 0.0), 1.0);
        inv_freq[j] = inv_freq[j] / rope->factor * ramp + inv_freq[j] * (1.0 - ramp);
    }
}

/* Factor on cos and sin that sharpens attention over long contexts (YaRN, section 3.3); mscale and
 * mscale_all_dim are DeepSeek's weights of its numerator and denominator. */
static double yarn_log_scale(double factor, double mscale)
{
    return factor <= 1.0 ? 1.0 : 0.1 * mscale * log(factor) + 1.0;
}

static double yarn_scale(const struct tri_rope *rope)
{
    if (rope->attention_factor > 0.0)
        return rope->attention_factor;
    if (rope->mscale != 0.0 && rope->mscale_all_dim != 0.0)
        return yarn_log_scale(rope->factor, rope->mscale) /
               yarn_log_scale(rope->factor, rope->mscale_all_dim);
    return yarn_log_scale(rope->factor, 1.0);
}

/* Llama 3.1 (Grattafiori et al. 2024, arXiv:2407.21783; the formula is that of its released code):
 * wavelengths shorter than original / high_freq_factor stay, those longer than
 * original / low_freq_factor are stretched by factor, those between are blended. */
static void stretch_llama3(const struct tri_rope *rope, double *inv_freq)
{
    double length = (double)rope->original_max_positions;
    for (int64_t j = 0; j < rope->rotary_dim / 2; j++) {
        double wavelength = 2.0 * pi / inv_freq[j];
        if (wavelength < length / rope->high_freq_factor)
            continue;
        if (wavelength > length / rope->low_freq_factor) {
            inv_freq[j] /= rope->factor;
            continue;
        }
        double keep = (length / wavelength - rope->low_freq_factor) /
                      (rope->high_freq_factor - rope->low_freq_factor);
        inv_freq[j] = (1.0 - keep) * inv_freq[j] / rope->factor + keep * inv_freq[j];
    }
}

void tri_rope_frequencies(const struct tri_rope *rope, int64_t max_positions, int64_t length,
                          double *inv_freq, double *scale)
{
    *scale = 1.0;
    frequencies(rope->type == TRI_ROPE_DYNAMIC ? dynamic_theta(rope, max_positions, length)
                                               : rope->theta,
                rope->rotary_dim, inv_freq);
    switch (rope->type) {
    case TRI_ROPE_DEFAULT:
    case TRI_ROPE_DYNAMIC:
        break;
    case TRI_ROPE_LINEAR: /* position interpolation, Chen et al. 2023, arXiv:2306.15595 */
        for (int64_t j = 0; j < rope->rotary_dim / 2; j++)
            inv_freq[j] /= rope->factor;
        break;
    case TRI_ROPE_YARN:
        stretch_yarn(rope, inv_freq);
        *scale = yarn_scale(rope);
        break;
    case TRI_ROPE_LLAMA3:
        stretch_llama3(rope, inv_freq);
        break;
    }
}
