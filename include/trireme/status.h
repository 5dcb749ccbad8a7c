/* Status codes of the Trireme library.
 *
 * Every function that can fail returns one. The function that detects a failure describes it
 * (what, where, what to do next) in the calling thread's error text; callers only pass the code on.
 */
#ifndef TRIREME_STATUS_H
#define TRIREME_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define TRI_STATUS_MAP(XX)                                                                         \
    XX(OK, 0, "ok")                                                                                \
    XX(INVALID, 1, "invalid argument, configuration or data")                                      \
    XX(NOMEM, 2, "out of memory")                                                                  \
    XX(IO, 3, "input/output error")                                                                \
    XX(FORMAT, 4, "malformed file")                                                                \
    XX(UNSUPPORTED, 5, "not supported")                                                            \
    XX(NONFINITE, 6, "loss or gradient norm is not finite")                                        \
    XX(DEVICE, 7, "accelerator error")                                                             \
    XX(COMM, 8, "communication error")                                                             \
    XX(PEER, 9, "another rank failed")                                                             \
    XX(INTERNAL, 10, "internal error, please report it")

enum tri_status {
#define XX(name, value, text) TRI_##name = (value),
    TRI_STATUS_MAP(XX)
#undef XX
};

/* Fixed text of a code. Never NULL. */
const char *tri_status_text(enum tri_status status);

/* One line that describes the last failure in this thread; empty if there was none.
 * Owned by the library, valid until the thread's next failure. */
const char *tri_error_text(void);

#ifdef __cplusplus
}
#endif

#endif
