#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

static enum tri_log_level max_level = TRI_LOG_INFO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool progress_on_screen;
static double next_progress; /* clock of the next line that may be printed */
static _Thread_local bool muted;

void tri_log_set_level(enum tri_log_level level)
{
    max_level = level;
}

void tri_log_mute(void)
{
    muted = true;
}

static bool on_terminal(void)
{
    return isatty(STDERR_FILENO) != 0;
}

static void clear_progress(void)
{
    if (progress_on_screen)
        fputs("\r\033[K", stderr);
    progress_on_screen = false;
}

void tri_log(enum tri_log_level level, const char *format, ...)
{
    static const char *const words[] = {"error: ", "warning: ", "", "debug: "};
    if (level > max_level || muted)
        return;
    pthread_mutex_lock(&lock);
    clear_progress();
    fputs(words[level], stderr);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}

void tri_progress(const char *format, ...)
{
    if (max_level < TRI_LOG_INFO || muted)
        return;
    pthread_mutex_lock(&lock);
    bool terminal = on_terminal();
    double now = tri_clock();
    /* A terminal is refreshed ten times a second at most, a log file gets a line every ten. */
    if (now >= next_progress) {
        next_progress = now + (terminal ? 0.1 : 10.0);
        if (terminal)
            fputs("\r\033[K", stderr);
        va_list args;
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        if (!terminal)
            fputc('\n', stderr);
        progress_on_screen = terminal;
        fflush(stderr);
    }
    pthread_mutex_unlock(&lock);
}

void tri_progress_end(void)
{
    pthread_mutex_lock(&lock);
    clear_progress();
    /* What takes less than two seconds leaves no line in a log file. */
    next_progress = tri_clock() + (on_terminal() ? 0.1 : 2.0);
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}
