/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Characters that a person does not see, or not as what they are: white space,
 * control and format characters of Unicode (categories Zs, Zl, Zp, Cc and Cf).
 * Programs do not agree on which of them separate words.
 */

#ifndef LIBDWS_UNSEEN_H
#define LIBDWS_UNSEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* U+FFFD, in the place of bytes that are no UTF-8.
 */
#define DWS_UNREADABLE 0xfffd

/* The character that begins at 's', before 'end', and its length in bytes. A byte that
 * begins none of UTF-8 (incomplete, longer than need be, no character) is U+FFFD, of
 * length 1.
 */
uint32_t dws_character (const char *s, const char *end, size_t *len);

/* Is it a control or format character, or does it separate lines (Cc, Cf, Zl, Zp)?
 */
bool dws_is_hidden (uint32_t c);

/* Is the character one of these, and no blank? U+FFFD counts, too: it stands for bytes
 * that were no UTF-8.
 */
bool dws_is_unseen (uint32_t c);

/* Does it end a line for some programs, besides '\n'?
 */
bool dws_ends_line (uint32_t c);

/* Write the number of a character and, for common ones, its name: "U+00A0 NO-BREAK SPACE".
 */
void dws_unseen_name (uint32_t c, char *buf, size_t size);

/* Copy 'len' bytes to 'buf' with "<U+00A0>" in the place of such characters, and cut at
 * the end of one to fit.
 */
void dws_unseen_shown (const char *s, size_t len, char *buf, size_t size);

#endif /* !LIBDWS_UNSEEN_H */
