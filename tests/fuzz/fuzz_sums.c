/* Hashes of the files of a checkpoint from a stranger, and a file that is compared with them. */
#include <stdint.h>

#include "ckpt/sums.h"
#include "fuzz/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void compare(struct tri_sums *sums)
{
    static const unsigned char contents[100];
    const struct tri_map map = {contents, sizeof contents};
    const enum tri_status whole = tri_sums_check(sums, "a", &map, 0, sizeof contents);
    if (whole != TRI_OK)
        check_error();
    CHECK(tri_sums_check(sums, "folder/a", &map, 99, 1) == whole); /* one block */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tri_sums *sums = NULL;
    if (tri_sums_parse("fuzz", (const char *)data, bytes, &sums) == TRI_OK) {
        compare(sums);
        (void)tri_sums_hash(sums);
    } else {
        check_error();
    }
    tri_sums_close(sums);
    tri_error_clear();
    return 0;
}
