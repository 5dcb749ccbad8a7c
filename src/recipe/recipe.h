/* A recipe: the YAML file and the command line, joined, checked and explained.
 *
 * Each component owns its table of options; this file only joins them under their section names.
 * Every value remembers where it came from: default, recipe (file:line), command line, or model. */
#ifndef TRI_RECIPE_RECIPE_H
#define TRI_RECIPE_RECIPE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "base/text.h"
#include "ckpt/options.h"
#include "data/options.h"
#include "model/options.h"
#include "optim/options.h"
#include "pass/options.h"
#include "train/options.h"

struct tri_recipe {
    struct tri_train_options train;
    struct tri_model_options model;
    struct tri_data_options data;
    struct tri_optim_options optimizer;
    struct tri_schedule_options scheduler;
    struct tri_pass_options pass;
    struct tri_ckpt_options checkpoint;
    char *path;    /* of the recipe file */
    void *origins; /* private */
};

/* Read `path` and then the overrides ("--optimizer.learning_rate", "1e-5", or "--a.b=c", in order).
 * Unknown and duplicate keys are errors with file, line and the nearest known name. */
enum tri_status tri_recipe_open(const char *path, int num_overrides, char *const *overrides,
                                struct tri_recipe **out);
/* The same from text, for tests and the fuzzer. */
enum tri_status tri_recipe_parse(const char *what, const char *text, size_t bytes,
                                 int num_overrides, char *const *overrides,
                                 struct tri_recipe **out);
void tri_recipe_close(struct tri_recipe *recipe);

/* Say that the model or the machine decided a value (shown in the dump). `key` is the full name. */
enum tri_status tri_recipe_note(struct tri_recipe *recipe, const char *key, const char *value,
                                const char *origin);

/* Every key, its effective value and its origin, as YAML with comments. */
enum tri_status tri_recipe_dump(const struct tri_recipe *recipe, FILE *to);

/* Notes count as values here and in the hash: take them first.
 *
 * May a run that was saved under `before` go on under `now`? The first key that the numbers depend
 * on and that may not change in between is named in the error. */
enum tri_status tri_recipe_check_same(const struct tri_recipe *before,
                                      const struct tri_recipe *now);

/* Hash of every value that the numbers depend on; equal recipes give equal hashes. */
uint64_t tri_recipe_hash(const struct tri_recipe *recipe);

/* Append what all ranks of a run must have in common: a key and its value, a zero byte behind each,
 * and so on for every key that may not differ between ranks. */
enum tri_status tri_recipe_facts(const struct tri_recipe *recipe, struct tri_text *out);

/* The reference of all keys: name, type, default, range, what it does. */
void tri_recipe_help(FILE *to);

/* The same for one key, by any of its names, or for a section or group of keys; a key of other
 * tools that is not honoured is explained. False if there is none. */
bool tri_recipe_help_key(const char *key, FILE *to);

/* The same for all keys that have `word` in one of their names. False if there is none. */
bool tri_recipe_help_word(const char *word, FILE *to);

/* Fail with "<where>: unknown key 'x'; did you mean 'y'?". */
enum tri_status tri_recipe_unknown_key(const char *where, const char *key);

#endif
