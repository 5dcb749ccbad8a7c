/* Memory is linear in the length: two rehearsals at full length, measured by what the operating
 * system says was resident. Long, for every byte is touched. */
#include "unit/verify/trace.h"

static struct finished f;

static const char model_256[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": 259,\n"
    " \"hidden_size\": 256, \"intermediate_size\": 688, \"num_hidden_layers\": 2,\n"
    " \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"hidden_act\": \"silu\",\n"
    " \"rms_norm_eps\": 1e-6, \"max_position_embeddings\": 131072, \"rope_theta\": 10000.0,\n"
    " \"tie_word_embeddings\": false, \"torch_dtype\": \"float32\"}\n";

/* "1.69 GiB" behind `words`, in GiB. */
static double gib_behind(const char *text, const char *words)
{
    char unit[4];
    double number;
    const char *at = strstr(text, words);
    if (at == NULL || sscanf(at + strlen(words), "%lf %3s", &number, unit) != 2)
        fail_msg("no amount behind \"%s\" in: %s", words, text);
    return strcmp(unit, "MiB") == 0 ? number / 1024 : number;
}

static double resident_gib(const char *length)
{
    const char *const extra[] = {"--data.max_length", length, NULL};
    char planned_trace[17], trace[17];
    project_run("rehearse", NULL, extra, &f);
    assert_finished_well(&f);
    read_trace(f.out, "allocation trace ", trace);
    read_trace(f.out, "(planned ", planned_trace);
    assert_string_equal(trace, planned_trace);
    double planned = gib_behind(f.out, "planned peak");
    double measured = gib_behind(f.out, "measured peak");
    double resident = gib_behind(f.out, "resident peak");
    assert_true(planned == measured && planned > 0);
    /* Nearly all that was planned was touched: the rest are tiles that products leave alone. */
    assert_true(resident > 0.9 * planned);
    return resident;
}

static void memory_is_linear_in_the_length(void **state)
{
    (void)state;
    put_text(in_scratch("model/config.json"), model_256);
    double one = resident_gib("65536");
    double two = resident_gib("131072");
    print_message("resident: %.3f GiB at 65,536 tokens, %.3f GiB at 131,072: %.3f times\n", one,
                  two, two / one);
    assert_true(two <= 2.2 * one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROJECT_TEST(memory_is_linear_in_the_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
