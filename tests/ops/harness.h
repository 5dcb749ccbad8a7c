/* Running one op in several places and comparing what comes out.
 *
 * A case is an op, its constants and its tensors as host float64 values. It can be run on any
 * backend with any activation dtype. Every tensor lies between guard bands in a block of NaN
 * poison, which also fills the gaps of strided tensors and the outputs: an op that reads what it
 * should not returns NaN, and one that writes what it should not is caught by comparing the block.
 *
 * The rule (tri_test_compare): against the float64 oracle, the error of the backend under test is
 * at most twice the error of the reference kernels with the same storage, plus an allowance for
 * float32 arithmetic of (8 + sqrt(n)) * 2^-24, n being the longest sum of the op. Errors are
 * Frobenius norms relative to the norm of the oracle's result.
 */
#ifndef TESTS_OPS_HARNESS_H
#define TESTS_OPS_HARNESS_H

#include "backend/backend.h"

enum tri_test_op {
    TRI_TEST_COPY,
    TRI_TEST_ZERO,
    TRI_TEST_ADD,
    TRI_TEST_EMBED_FORWARD,
    TRI_TEST_EMBED_BACKWARD,
    TRI_TEST_NORM_FORWARD,
    TRI_TEST_NORM_BACKWARD,
    TRI_TEST_LINEAR_FORWARD,
    TRI_TEST_LINEAR_BACKWARD_X,
    TRI_TEST_LINEAR_BACKWARD_W,
    TRI_TEST_ROPE_TABLE,
    TRI_TEST_ROPE,
    TRI_TEST_ACT_FORWARD,
    TRI_TEST_ACT_BACKWARD,
    TRI_TEST_ATTN_FORWARD,
    TRI_TEST_ATTN_BACKWARD,
    TRI_TEST_CROSS_ENTROPY,
    TRI_TEST_ADAMW,
    TRI_TEST_SUM_SQUARES,
};

/* What a tensor is stored as in a run with activation dtype A. */
enum tri_test_kind {
    TRI_TEST_ACT,  /* A */
    TRI_TEST_STAT, /* float32, or float64 when A is */
    TRI_TEST_F32,  /* always this, and so on */
    TRI_TEST_F64,
    TRI_TEST_BF16,
    TRI_TEST_F16,
    TRI_TEST_I32,
    TRI_TEST_I64,
};

enum tri_test_role { TRI_TEST_IN, TRI_TEST_OUT, TRI_TEST_INOUT };

/* An absent tensor has num_dims == 0. */
struct tri_test_tensor {
    const char *name;
    enum tri_test_kind kind;
    enum tri_test_role role;
    int num_dims;
    int64_t dim[TRI_MAX_DIMS];
    int64_t pad;   /* elements of poison between rows (and between heads) */
    int alias;     /* the input whose memory a run with aliasing gives to this output, or -1 */
    double *value; /* (count) inputs and initial contents; owned */
};

enum { TRI_TEST_MAX_TENSORS = 9 };

/* Tensors are in the order of the op's arguments: destinations, then sources. */
struct tri_test_case {
    char name[192];
    enum tri_test_op op;
    int num_tensors;
    struct tri_test_tensor tensor[TRI_TEST_MAX_TENSORS];

    struct tri_norm norm;
    struct tri_attn attn;
    struct tri_adamw adamw;
    enum tri_activation act;
    bool flag; /* accumulate, inverse or backward */
    double scale;
    const double *inv_freq;

    int64_t sum_length; /* the longest sum, for the rounding allowance */
    double slack;       /* times the allowance: how much the op amplifies rounding; usually 1 */
    double floor;       /* errors are relative to at least this norm */
    bool exact;         /* equal to the reference bit for bit */
    bool exact_zeros;   /* where the oracle is 0, the result must be 0 */
    bool float64;       /* arithmetic is float64 whatever the storage */
};

/* A place to run: a backend and room in its memory. */
struct tri_test_place {
    struct tri_backend *backend;
    struct tri_arena *arena;
};

/* The reference kernels in host memory. */
struct tri_backend *tri_test_reference(void);

void tri_test_place_open(struct tri_backend *backend, struct tri_test_place *out);
void tri_test_place_close(struct tri_test_place *place);

/* Contiguous float64 results of a run, NULL for inputs; release with tri_test_result_free. */
struct tri_test_result {
    double *value[TRI_TEST_MAX_TENSORS];
};
void tri_test_result_free(struct tri_test_result *result);

/* Run a case with inputs rounded to the activation dtype `inputs` and stored as `storage`. Fails
 * the test if a guard, a gap or an input was written. */
void tri_test_run(struct tri_test_place *place, const struct tri_test_case *c,
                  enum tri_dtype inputs, enum tri_dtype storage, bool aliased,
                  struct tri_test_result *out);

/* Apply the rule to a case on `place`, with and without aliasing. */
void tri_test_compare(struct tri_test_place *place, const struct tri_test_case *c,
                      enum tri_dtype act);

/* Norm of a - b over elements finite in both; infinities and NaN must agree, or it is infinite. */
double tri_test_distance(const double *a, const double *b, int64_t count);
double tri_test_norm(const double *a, int64_t count);

/* The nearest value of a dtype. */
double tri_test_round(enum tri_dtype dtype, double value);

int64_t tri_test_count(const struct tri_test_tensor *tensor);
void tri_test_case_free(struct tri_test_case *c);

#endif
