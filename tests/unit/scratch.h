/* A folder for one test program, and files in it. */
#ifndef TESTS_UNIT_SCRATCH_H
#define TESTS_UNIT_SCRATCH_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static char scratch[4096];

/* Setup and teardown of each test. */
static inline int scratch_open(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/trireme-test-XXXXXX",
             base == NULL || base[0] == '\0' ? P_tmpdir : base);
    return mkdtemp(scratch) == NULL;
}

static inline int scratch_close(void **state)
{
    (void)state;
    tri_file_fail_at(0);
    return tri_remove_folder(scratch) != TRI_OK;
}

#define SCRATCH_TEST(name) cmocka_unit_test_setup_teardown(name, scratch_open, scratch_close)

/* A path in the folder. Four of them live at a time. */
static inline const char *in_scratch(const char *name)
{
    static char paths[4][4400];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

/* Write a file the plain way, without the code under test. */
static inline void put_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static inline void put_text(const char *path, const char *text)
{
    put_file(path, text, strlen(text));
}

/* The whole of a small file as a string that the caller frees. */
static inline char *get_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        fail_msg("cannot open %s", path);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t got = fread(text, 1, (1 << 20) - 1, f);
    text[got] = '\0';
    fclose(f);
    return text;
}

static inline void assert_file_is(const char *path, const char *expected)
{
    char *text = get_text(path);
    assert_string_equal(text, expected);
    free(text);
}

/* Number of entries of a folder. */
static inline int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

/* The error must be one line that holds `part`. */
static inline void assert_error_has(const char *part)
{
    if (strstr(tri_error_text(), part) == NULL)
        fail_msg("\"%s\" is not in the error \"%s\"", part, tri_error_text());
    assert_null(strchr(tri_error_text(), '\n'));
}

#endif
