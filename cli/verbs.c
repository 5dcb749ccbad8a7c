/* All verbs, in the order of the help page. */
#include <string.h>

#include "base/text.h"
#include "cli.h"

#define RECIPE_KEYS                                                                                \
    "\n"                                                                                           \
    "RECIPE is a YAML file; `trireme help recipe` lists its keys. Any key can be given on the\n"   \
    "command line, where it wins over the file:\n"                                                 \
    "\n"                                                                                           \
    "  --optimizer.learning_rate 1e-5    --data.max_length=128ki    --tiled_mlp_compute false\n"   \
    "  --data.sources '[book.txt, papers.jsonl]'\n"

const struct tri_cli_verb tri_cli_verbs[] = {
    {"train", "RECIPE [--key value]...", "Train a model",
     RECIPE_KEYS "\n"
                 "The output folder gets metrics.jsonl, checkpoint-N folders, and at the end the "
                 "model\n"
                 "itself. `report_to: [csv, tensorboard]` adds metrics.csv and event files.\n"
                 "SIGTERM or Ctrl-C stops after the step at work and saves; the same command goes "
                 "on from there.\n",
     tri_cli_train},
    {"eval", "RECIPE [--key value]...", "Measure the loss on data.eval_sources",
     "\n"
     "What a run has trained, out being its checkpoint.output_dir (of a run that has not ended:\n"
     "out/checkpoint-N). model.init matters where the recipe says random:\n"
     "\n"
     "  trireme eval my.yml --model.name_or_path out --model.init checkpoint\n" RECIPE_KEYS,
     tri_cli_eval},
    {"data", "build | inspect RECIPE [--key value]...", "Make tokens once; see what is trained on",
     "\n"
     "  trireme data inspect my.yml [-n 3] [--tokens 400]\n"
     "      Shows the first sequences of training as the model gets them, trained tokens in "
     "colour\n"
     "      (in [brackets] where there is no terminal, or with NO_COLOR), how long the samples "
     "are,\n"
     "      how full packed sequences get, what each data.overlength would lose, and how the "
     "number\n"
     "      of steps comes about. Nothing is written.\n"
     "\n"
     "  trireme data build my.yml\n"
     "      Tokenizes data.sources and data.eval_sources once, on all cores, into data.cache_dir.\n"
     "      Training finds these tokens by itself as long as files, tokenizer, template and masks\n"
     "      are the same; lengths, packing and seed may change. Stop it and start it again: it "
     "goes\n"
     "      on where it was.\n" RECIPE_KEYS,
     tri_cli_data},
    {"rehearse", "RECIPE [--key value]...", "Show what a long step needs",
     "\n"
     "Makes and touches every allocation of a training step over data.max_length tokens, but "
     "computes\n"
     "the first tile of each operation only: it takes little longer than the system takes to hand "
     "out\n"
     "the memory. Needs the model's config.json; neither weights nor data.\n" RECIPE_KEYS,
     tri_cli_rehearse},
    {"verify", "RECIPE [--key value]...", "Prove that splitting the work changes no number",
     "\n"
     "On the recipe's own model and first documents, shrunk to the first layers and as many "
     "tokens\n"
     "as take seconds (it prints what is left):\n"
     "\n"
     "  - one step on one rank, uncut, against every other way: ranks that share a sequence,\n"
     "    replicas, ZeRO 0 to 3, tiles, chunks, checkpointing, accumulation\n"
     "  - one trained token; a shard without any; a document behind an untrained one\n"
     "  - other documents must not move a document, later tokens not an earlier one; the last\n"
     "    token's gradient must arrive at the first one, over all shards and chunks\n"
     "  - weights saved and loaded again; a run that is killed in a save and goes on\n"
     "\n"
     "Each row has its bound. Small models are computed in float64, where rounding is no excuse.\n"
     "Others in the recipe's dtype: a gradient may then be off by 4 u sqrt(K) (7 L + 1), with u\n"
     "2^-24, K the longest sum (hidden, MLP width or tokens) and L layers; in bfloat16 by\n"
     "2^-8 sqrt(20 L + 10); a loss by a tenth of that. A bound of 0 means bit for bit.\n"
     "\n"
     "On the CPU ranks are threads: up to four, whatever `ranks` says. On cards there is a "
     "process\n"
     "a card; `mpirun -np 4 trireme verify my.yml` takes what it is given. `--backend cpu` proves\n"
     "on a machine with a card what is above the kernels. Exit code 1 if a row is over its "
     "bound.\n" RECIPE_KEYS,
     tri_cli_verify},
    {"check", "DIR... [--dtype D] [--key value]...", "Compare with what Transformers computed",
     "\n"
     "DIR is a golden folder: a small model with logits, loss, gradients and training steps "
     "computed in\n"
     "float64 by Transformers (tests/golden has some; tools/golden.py makes one from any model). "
     "Exit\n"
     "code 1 if a number is over its bound.\n"
     "\n"
     "  --ranks 4                             split the sequence over this many ranks (threads)\n"
     "  --zero 3                              and divide weights, gradients and optimizer state\n"
     "                                        among them: 0, 1, 2 or 3\n"
     "  --dtype float32 | float64             float64 runs the plain reference kernels\n"
     "  --activation_checkpointing none       or any other key of how a step is computed\n"
     "                                        (backend, cpu_kernels, threads, fpdt.chunk_size,\n"
     "                                        tiled_mlp_num_shards, loss_slice_gb): none of them "
     "may\n"
     "                                        change the numbers\n",
     tri_cli_check},
    {"info", "", "Show what this machine and this build offer", "", tri_cli_info},
    {"help", "[VERB | recipe | KEY]", "Explain a verb, all keys of a recipe, or one key",
     "\n"
     "  trireme help train                    a verb\n"
     "  trireme help recipe                   every key a recipe can have\n"
     "  trireme help optimizer                the keys of one section\n"
     "  trireme help data.max_length          one key, by any of its names\n"
     "  trireme help warmup                   the keys with this word in a name\n",
     tri_cli_help},
    {"version", "", "Print the version", "", tri_cli_version},
};

const size_t tri_cli_num_verbs = sizeof tri_cli_verbs / sizeof *tri_cli_verbs;

const struct tri_cli_verb *tri_cli_find(const char *name)
{
    for (size_t i = 0; i < tri_cli_num_verbs; i++)
        if (strcmp(tri_cli_verbs[i].name, name) == 0)
            return &tri_cli_verbs[i];
    return NULL;
}

const struct tri_cli_verb *tri_cli_nearest(const char *name)
{
    const char *names[sizeof tri_cli_verbs / sizeof *tri_cli_verbs];
    for (size_t i = 0; i < tri_cli_num_verbs; i++)
        names[i] = tri_cli_verbs[i].name;
    int64_t nearest = tri_text_nearest(name, names, tri_cli_num_verbs);
    return nearest < 0 ? NULL : &tri_cli_verbs[nearest];
}

enum tri_status tri_cli_unknown(const char *name)
{
    const struct tri_cli_verb *nearest = tri_cli_nearest(name);
    if (nearest != NULL)
        return tri_fail(TRI_INVALID, "unknown verb '%.60s'; did you mean '%s'?", name,
                        nearest->name);
    size_t bytes = strlen(name);
    if ((bytes > 4 && strcmp(name + bytes - 4, ".yml") == 0) ||
        (bytes > 5 && strcmp(name + bytes - 5, ".yaml") == 0))
        return tri_fail(TRI_INVALID, "the verb is missing: trireme train %.200s", name);
    return tri_fail(TRI_INVALID, "unknown verb '%.60s' (`trireme help` lists all)", name);
}
