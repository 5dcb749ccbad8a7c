/* Messages for people, on standard error. Standard output belongs to a verb's own result. */
#ifndef TRI_BASE_LOG_H
#define TRI_BASE_LOG_H

#include <stdbool.h>

enum tri_log_level { TRI_LOG_ERROR, TRI_LOG_WARN, TRI_LOG_INFO, TRI_LOG_DEBUG };

/* Messages above this level are dropped. Default: TRI_LOG_INFO. */
void tri_log_set_level(enum tri_log_level level);

/* From now on nothing of the calling thread is printed: of several ranks one speaks. */
void tri_log_mute(void);

/* Print one line. Warnings and errors carry the word; information is plain. */
void tri_log(enum tri_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define tri_error(...) tri_log(TRI_LOG_ERROR, __VA_ARGS__)
#define tri_warn(...)  tri_log(TRI_LOG_WARN, __VA_ARGS__)
#define tri_info(...)  tri_log(TRI_LOG_INFO, __VA_ARGS__)
#define tri_debug(...) tri_log(TRI_LOG_DEBUG, __VA_ARGS__)

/* A transient progress line: overwritten in place on a terminal, at most one line every ten
 * seconds elsewhere. The next tri_log call clears it. */
void tri_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* End a run of progress lines (clears the line on a terminal). */
void tri_progress_end(void);

#endif
