/* The sliding windows of a config.json follow the family. */
#include "unit/model/config_fixture.h"

static void check_windows(const char *family, const char *members, const int64_t expected[4])
{
    struct tri_model *model = parse_ok(family, members, NULL);
    for (int i = 0; i < 4; i++)
        if (model->arch.window[i] != expected[i])
            fail_msg("%s {%s}: window[%d] is %lld", family, members, i,
                     (long long)model->arch.window[i]);
    tri_model_close(model);
}

#define FULL    "\"full_attention\""
#define SLIDING "\"sliding_attention\""

static void windows_follow_the_family(void **state)
{
    (void)state;
    static const int64_t none[4] = {0, 0, 0, 0}, all[4] = {32, 32, 32, 32};
    check_windows("llama", "\"sliding_window\": null", none);
    check_windows("llama", "\"sliding_window\": 32, \"use_sliding_window\": false", none);
    check_windows("mistral", "\"sliding_window\": null", none);
    check_windows("mistral", "\"sliding_window\": 32", all);
    check_windows("mistral",
                  "\"sliding_window\": 32, \"layer_types\": [" SLIDING ", " SLIDING ", " SLIDING
                  ", " SLIDING "]",
                  all);
    check_windows("phi3", "", none);
    check_windows("phi3", "\"sliding_window\": 32", all);
    for (int i = 0; i < 2; i++) {
        const char *family = i == 0 ? "qwen2" : "qwen3";
        check_windows(family, "\"sliding_window\": 32", none);
        check_windows(family,
                      "\"sliding_window\": 32, \"use_sliding_window\": false, "
                      "\"max_window_layers\": 0",
                      none);
        check_windows(family, "\"sliding_window\": 32, \"use_sliding_window\": true", none);
        check_windows(family,
                      "\"sliding_window\": 32, \"use_sliding_window\": true, "
                      "\"max_window_layers\": 1",
                      (const int64_t[4]){0, 32, 32, 32});
        check_windows(family, "\"use_sliding_window\": true, \"max_window_layers\": 3",
                      (const int64_t[4]){0, 0, 0, 4096});
        check_windows(family,
                      "\"sliding_window\": 32, \"use_sliding_window\": true, "
                      "\"max_window_layers\": 4, \"layer_types\": [" SLIDING ", " FULL ", " SLIDING
                      ", " FULL "]",
                      (const int64_t[4]){32, 0, 32, 0});
    }
}

static void refuses_bad_windows(void **state)
{
    (void)state;
    check_refused("mistral", "\"sliding_window\": 0", NULL, TRI_INVALID, "sliding_window is 0");
    check_refused("mistral", "\"sliding_window\": 32, \"use_sliding_window\": false", NULL,
                  TRI_UNSUPPORTED, "use_sliding_window is false, but the family mistral does not");
    check_refused("mistral",
                  "\"sliding_window\": 32, \"layer_types\": [" FULL ", " SLIDING ", " SLIDING
                  ", " SLIDING "]",
                  NULL, TRI_UNSUPPORTED, "layer_types[0] is full_attention, but in the family");
    check_refused("llama", "\"layer_types\": [" FULL ", " FULL ", " FULL ", " SLIDING "]", NULL,
                  TRI_INVALID, "layer_types[3] is sliding_attention, but no window is set");
    check_refused("qwen2", "\"layer_types\": [" FULL "]", NULL, TRI_INVALID,
                  "layer_types has 1 entries but num_hidden_layers is 4");
    check_refused("qwen2", "\"layer_types\": \"all\"", NULL, TRI_INVALID, "layer_types is \"all\"");
    check_refused("qwen3", "\"layer_types\": [" FULL ", \"linear_attention\", " FULL ", " FULL "]",
                  NULL, TRI_UNSUPPORTED,
                  "layer_types[1] is \"linear_attention\": only full_attention");
    check_refused("qwen3", "\"layer_types\": [" FULL ", " SLIDING ", " FULL ", " FULL "]", NULL,
                  TRI_INVALID, "layer_types[1] is sliding_attention, but no window is set");
    check_refused("qwen2", "\"max_window_layers\": -1", NULL, TRI_INVALID, "max_window_layers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_follow_the_family),
        cmocka_unit_test(refuses_bad_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
