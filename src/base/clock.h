/* Time. */
#ifndef TRI_BASE_CLOCK_H
#define TRI_BASE_CLOCK_H

/* Seconds on a clock that never jumps, from an arbitrary origin. */
double tri_clock(void);

/* Write a duration such as "1d14h", "3h07m", "42s" into `text` (at least 24 bytes). Returns text.
 */
char *tri_duration_text(double seconds, char *text);

#endif
