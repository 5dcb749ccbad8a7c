/* trireme help: what to type first; a page for each verb; the reference of a recipe. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "trireme/trireme.h"

static void print_front_page(void)
{
    printf("Trireme %s trains Hugging Face language models on very long sequences.\n"
           "\n"
           "Usage: trireme VERB [...]\n"
           "\n",
           tri_version());
    for (size_t i = 0; i < tri_cli_num_verbs; i++)
        printf("  %-10s %s\n", tri_cli_verbs[i].name, tri_cli_verbs[i].summary);
    if (tri_cli_find("train") == NULL)
        return;
    printf(
        "\n"
        "First steps:\n"
        "\n"
        "  1. Write a recipe, say my.yml. This is a whole one:\n"
        "\n"
        "       model:\n"
        "         name_or_path: /path/to/a/Hugging/Face/model\n"
        "       data:\n"
        "         sources: [samples.jsonl]   # a line: {\"input_ids\": [...]} or {\"text\": ...}\n"
        "         max_length: 32ki\n"
        "         overlength: split          # what to do with longer documents\n"
        "       optimizer:\n"
        "         learning_rate: 1e-5\n"
        "       checkpoint:\n"
        "         output_dir: out\n"
        "\n"
        "  2. trireme data inspect my.yml    see what will be trained on\n"
        "  3. trireme rehearse my.yml        see what a step needs\n"
        "  4. trireme train my.yml           train; type it again to go on where it stopped\n"
        "  5. out/ is a Hugging Face model: load it in Transformers or vLLM as it is\n"
        "\n"
        "`trireme help VERB` explains a verb, `trireme help recipe` every key.\n"
        "Recipes to start from are in the folder examples/ of the sources.\n");
}

static void print_verb(const struct tri_cli_verb *verb)
{
    printf("Usage: trireme %s%s%s\n\n%s.\n%s", verb->name, *verb->usage == '\0' ? "" : " ",
           verb->usage, verb->summary, verb->help);
}

static void print_recipe_page(void)
{
    printf(
        "A recipe is a YAML file of the keys below, nested (optimizer: {learning_rate: 1e-5}) or\n"
        "dotted (optimizer.learning_rate: 1e-5). An unknown key is an error.\n"
        "Numbers may be written 250_000, 5e8, 2^20, 128k (thousands), 128ki (1024s), 10%%.\n"
        "null and auto mean the default. `also` lists the names other tools use for a key.\n"
        "\n");
    tri_recipe_help(stdout);
}

int tri_cli_help(int argc, char **argv)
{
    if (!tri_cli_is_first())
        return 0;
    if (argc > 2)
        return tri_cli_end(
            tri_fail(TRI_INVALID, "help explains one thing: trireme help %s", argv[1]));
    if (argc < 2) {
        print_front_page();
        return 0;
    }
    const struct tri_cli_verb *verb = tri_cli_find(argv[1]);
    if (verb != NULL) {
        print_verb(verb);
        return 0;
    }
    if (strcmp(argv[1], "recipe") == 0) {
        print_recipe_page();
        return 0;
    }
    if (tri_recipe_help_key(argv[1], stdout) || tri_recipe_help_word(argv[1], stdout))
        return 0;
    return tri_cli_end(tri_cli_nearest(argv[1]) != NULL ? tri_cli_unknown(argv[1])
                                                        : tri_recipe_unknown_key("help", argv[1]));
}

int tri_cli_version(int argc, char **argv)
{
    if (!tri_cli_is_first())
        return 0;
    if (argc > 1)
        return tri_cli_end(tri_fail(TRI_INVALID, "version takes no '%s'", argv[1]));
    printf("trireme %s\n", tri_version());
    return 0;
}
