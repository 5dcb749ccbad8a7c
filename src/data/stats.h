/* What the data holds, counted before step 1. */
#ifndef TRI_DATA_STATS_H
#define TRI_DATA_STATS_H

#include <stdint.h>

/* What a way to treat samples that are too long takes away. */
struct tri_policy_loss {
    int64_t samples; /* that nothing is left of */
    int64_t tokens, trained;
};

/* What else an epoch that takes some records more often than others has to count; members as below.
 */
struct tri_record_counts {
    int64_t documents, trained;
};

enum { TRI_LENGTH_CLASSES = 40, TRI_POLICIES = 4 };

struct tri_data_stats {
    /* As found in the files. */
    int64_t files;
    int64_t samples;
    int64_t rendered; /* of them: conversations, written by the chat template */
    int64_t bad;      /* samples that were passed over (data.on_bad_sample: skip) */
    int64_t longest;  /* tokens of the longest sample */
    int64_t lengths[TRI_LENGTH_CLASSES]; /* samples of 2^i to 2^(i + 1) - 1 tokens */
    /* What one epoch trains on, after the over-length policy; with data.weights, as if all were 1.
     */
    int64_t pieces;    /* samples, or parts of split ones */
    int64_t documents; /* runs of tokens that do not see each other */
    int64_t tokens;
    int64_t trained;       /* tokens that predict a trained one */
    int64_t longest_piece; /* tokens */
    int64_t max_length;    /* tokens a sequence may have: data.max_length, or `longest` */
    int64_t epoch_samples; /* pieces of epoch 0, as often as the weights of their sources say */
    int64_t epoch_tokens;  /* of these */
    int64_t sequences;     /* of epoch 0; with packing it varies a little from epoch to epoch */
    double packing;        /* epoch_tokens / (sequences * max_length) */
    /* What the policy took away. */
    int64_t overlong;     /* samples longer than data.max_length */
    int64_t tokens_lost;  /* dropped, cut off, or in parts of split samples that train nothing */
    int64_t trained_lost; /* targets among them, and those that lay on a cut */
    /* What each policy would take away, by enum tri_overlength. */
    struct tri_policy_loss loss[TRI_POLICIES];
};

#endif
