#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fingerprint.h"
#include "base/rng.h"

enum { BYTES = 700 };
static unsigned char data[BYTES];

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i * 37 + 11);
    return 0;
}

/* Names of caches and identities of data are made of these. */
static void values_stay(void **state)
{
    (void)state;
    assert_true(tri_fingerprint(0, "", 0) == UINT64_C(0x38586F147C78E8AB));
    assert_true(tri_fingerprint(TRI_HASH_START, data, 31) == UINT64_C(0x53F3272DBAAB33F0));
    assert_true(tri_fingerprint(TRI_HASH_START, data + 1, 200) == UINT64_C(0xEDBB5BCBBC6D7E27));
}

static void pieces_do_not_count(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 300; k++) {
        struct tri_fingerprinter f;
        const size_t end = (size_t)(tri_rng_uniform(1, 0, k) * (BYTES + 1));
        tri_fingerprinter_begin(&f, k);
        for (size_t at = 0, i = 0; at < end; i++) {
            size_t piece = (size_t)(tri_rng_uniform(1, 1 + k, i) * 80);
            piece = piece < end - at ? piece : end - at;
            tri_fingerprinter_add(&f, data + at, piece);
            at += piece;
        }
        assert_true(tri_fingerprinter_end(&f) == tri_fingerprint(k, data, end));
    }
}

static void every_bit_counts(void **state)
{
    (void)state;
    const uint64_t before = tri_fingerprint(TRI_HASH_START, data, BYTES);
    for (int bit = 0; bit < 8 * BYTES; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(tri_fingerprint(TRI_HASH_START, data, BYTES) != before);
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(tri_fingerprint(TRI_HASH_START, data, BYTES - 1) != before);
    assert_true(tri_fingerprint(TRI_HASH_START + 1, data, BYTES) != before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(values_stay, fill),
        cmocka_unit_test_setup(pieces_do_not_count, fill),
        cmocka_unit_test_setup(every_bit_counts, fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
