/* A plain implementation of attention in bfloat16, to hold the errors of others against: weights
 * and their gradients are rounded to bfloat16 before the products, as tensor cores want it, and
 * each result once. */
#ifndef TESTS_GPU_ATTN_PLAIN_H
#define TESTS_GPU_ATTN_PLAIN_H

#include "ops/cases.h"

/* Compute an attention case. out[i] is zeros, as many as tensor i of the case has elements, where
 * that tensor is a result, and NULL otherwise; it receives the result. */
void tri_test_plain_attn(const struct tri_test_case *c, double *const out[]);

#endif
