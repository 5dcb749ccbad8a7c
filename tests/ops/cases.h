/* The cases that every backend is tested with: builders for one case of each op, and lists of
 * shapes. Values depend only on a tensor's name, so a forward case and its backward case hold the
 * same inputs. */
#ifndef TESTS_OPS_CASES_H
#define TESTS_OPS_CASES_H

#include "ops/harness.h"

/* Families of ops, in the order of backend.h; NULL ends the list. */
extern const char *const tri_case_families[];

/* Build each case of a family in turn; it is freed after the visit. */
void tri_case_visit(const char *family, void (*visit)(struct tri_test_case *c, void *ctx),
                    void *ctx);

/* ---- builders ----------------------------------------------------------------------------------
 */

/* `pad` > 0 leaves gaps between rows (and heads) and moves tensors off their alignment. */

void tri_case_embed(struct tri_test_case *c, bool backward, int64_t rows, int64_t vocabulary,
                    int64_t width, int64_t pad);

/* x is (rows, n), or (rows, heads, n) when heads > 0. */
void tri_case_norm(struct tri_test_case *c, bool backward, struct tri_norm norm, int64_t rows,
                   int64_t heads, int64_t n, bool bias, bool accumulate, int64_t pad);

enum tri_case_linear_op { TRI_CASE_FORWARD, TRI_CASE_BACKWARD_X, TRI_CASE_BACKWARD_W };
void tri_case_linear(struct tri_test_case *c, enum tri_case_linear_op op, int64_t rows, int64_t k,
                     int64_t n, bool bias, bool accumulate, int64_t pad);

/* The first `rotated` of d elements turn. */
void tri_case_rope(struct tri_test_case *c, bool inverse, int64_t rows, int64_t heads, int64_t d,
                   int64_t rotated, int64_t pad);

void tri_case_act(struct tri_test_case *c, bool backward, enum tri_activation act, int64_t rows,
                  int64_t f, bool gated, int64_t pad);

struct tri_case_attn {
    int64_t tq, tk, hq, hk, d;
    int64_t q_begin, k_begin, window;
    const int64_t *doc_begin;
    int64_t num_docs;
    double loudness; /* q is multiplied by it: large scores */
};
/* With `merged`, o and lse of a backward case are those of more keys than the range holds. */
void tri_case_attn(struct tri_test_case *c, bool backward, const struct tri_case_attn *shape,
                   bool accumulate, bool merged, int64_t pad);
extern const struct tri_case_attn tri_case_attn_shapes[];
extern const int tri_case_num_attn_shapes;

/* Every `ignored`-th label is not trained (1: none is; 0: all are). */
void tri_case_cross_entropy(struct tri_test_case *c, bool backward, int64_t rows,
                            int64_t vocabulary, int64_t ignored, double scale, double loudness,
                            int64_t pad);

/* ---- shared by the lists -----------------------------------------------------------------------
 */

enum { TRI_CASE_NUM_ROWS = 5, TRI_CASE_NUM_WIDTHS = 6 };
extern const int64_t tri_case_rows[TRI_CASE_NUM_ROWS];
extern const int64_t tri_case_widths[TRI_CASE_NUM_WIDTHS];

/* Start a case; its name is printed when it fails. */
void tri_case_begin(struct tri_test_case *c, enum tri_test_op op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Append a tensor of standard normal numbers (nothing for outputs); a negative dimension ends the
 * list of dimensions. */
struct tri_test_tensor *tri_case_add(struct tri_test_case *c, const char *name,
                                     enum tri_test_kind kind, enum tri_test_role role, int64_t pad,
                                     int64_t d0, int64_t d1, int64_t d2);

/* Append an argument that is not given. */
void tri_case_add_absent(struct tri_test_case *c, const char *name);

/* Visit and free. */
struct tri_case_visitor {
    void (*visit)(struct tri_test_case *c, void *ctx);
    void *ctx;
};
void tri_case_done(struct tri_case_visitor v, struct tri_test_case *c);

void tri_case_list_attn(struct tri_case_visitor v);
void tri_case_list_loss(struct tri_case_visitor v);
void tri_case_list_optim(struct tri_case_visitor v);
void tri_case_list_move(struct tri_case_visitor v);

#endif
