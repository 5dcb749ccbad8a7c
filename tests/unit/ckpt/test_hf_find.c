/* Where a model is: folders and names of the hub. */
#include "unit/scratch.h"

#include "ckpt/hf.h"

static void find_fails(const char *name, enum tri_status expected, const char *part)
{
    char *folder = NULL;
    assert_int_equal(tri_hf_find(name, &folder), expected);
    assert_null(folder);
    assert_error_has(name);
    assert_error_has(part);
}

static void finds_folders(void **state)
{
    (void)state;
    put_text(in_scratch("config.json"), "{}");
    char *folder = NULL;
    assert_int_equal(tri_hf_find(scratch, &folder), TRI_OK);
    assert_string_equal(folder, scratch);
    free(folder);
    assert_int_equal(tri_make_folder(in_scratch("empty")), TRI_OK);
    find_fails(in_scratch("empty"), TRI_IO, "has no config.json");
    find_fails(in_scratch("config.json"), TRI_INVALID, "is a file");
    find_fails(in_scratch("none"), TRI_IO, "there is no such folder");
    find_fails("./none", TRI_IO, "not a hub id");
    find_fails("../none", TRI_IO, "not a hub id");
    find_fails("a/../b", TRI_IO, "not a hub id");
    find_fails("a/b/c", TRI_IO, "not a hub id");
    find_fails("a/", TRI_IO, "not a hub id");
    find_fails("a b", TRI_IO, "not a hub id");
    find_fails("no-such-model", TRI_IO, "give the folder's path, or ORG/NAME");
}

static void put_snapshot(const char *cache, const char *id, bool with_config)
{
    char path[256];
    snprintf(path, sizeof path, "%s/models--%s/snapshots/abc123", cache, id);
    assert_int_equal(tri_make_folder(in_scratch(path)), TRI_OK);
    if (with_config) {
        snprintf(path, sizeof path, "%s/models--%s/snapshots/abc123/config.json", cache, id);
        put_text(in_scratch(path), "{}");
    }
    snprintf(path, sizeof path, "%s/models--%s/refs", cache, id);
    assert_int_equal(tri_make_folder(in_scratch(path)), TRI_OK);
    snprintf(path, sizeof path, "%s/models--%s/refs/main", cache, id);
    put_text(in_scratch(path), "abc123\n");
}

static void finds_hub_ids(void **state)
{
    (void)state;
    put_snapshot("direct", "org--name", true);
    put_snapshot("home/hub", "org--in-home", true);
    put_snapshot("xdg/huggingface/hub", "org--in-xdg", true);
    put_snapshot("user/.cache/huggingface/hub", "plain", true);
    char *folder = NULL;

    assert_int_equal(setenv("HOME", in_scratch("user"), 1), 0);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HF_HOME");
    unsetenv("HF_HUB_CACHE");
    assert_int_equal(tri_hf_find("plain", &folder), TRI_OK);
    assert_string_equal(folder,
                        in_scratch("user/.cache/huggingface/hub/models--plain/snapshots/abc123"));
    free(folder);
    folder = NULL;

    assert_int_equal(setenv("XDG_CACHE_HOME", in_scratch("xdg"), 1), 0);
    assert_int_equal(tri_hf_find("org/in-xdg", &folder), TRI_OK);
    free(folder);
    folder = NULL;

    assert_int_equal(setenv("HF_HOME", in_scratch("home"), 1), 0);
    assert_int_equal(tri_hf_find("org/in-home", &folder), TRI_OK);
    assert_string_equal(folder, in_scratch("home/hub/models--org--in-home/snapshots/abc123"));
    free(folder);
    folder = NULL;

    assert_int_equal(setenv("HF_HUB_CACHE", in_scratch("direct"), 1), 0);
    assert_int_equal(tri_hf_find("org/name", &folder), TRI_OK);
    assert_string_equal(folder, in_scratch("direct/models--org--name/snapshots/abc123"));
    free(folder);

    find_fails("org/none", TRI_IO, in_scratch("direct"));
    assert_error_has("start where the path begins, or run: hf download org/none");
    put_snapshot("direct", "org--half", false);
    find_fails("org/half", TRI_IO, "its download did not finish");
    put_text(in_scratch("direct/models--org--name/refs/main"), "../../..");
    find_fails("org/name", TRI_FORMAT, "does not hold a revision");
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_HOME");
    unsetenv("XDG_CACHE_HOME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(finds_folders),
        SCRATCH_TEST(finds_hub_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
