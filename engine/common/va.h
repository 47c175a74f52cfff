/* SPDX-License-Identifier: LGPL-3.0-only */
/* va.h - hand on variable arguments.
 */
#ifndef SOLO_COMMON_VA_H
#define SOLO_COMMON_VA_H

#include <stdarg.h>

/* The value of a call that takes the arguments after 'last' as "ap".
 */
#define VA(last, call) __extension__ ({             \
        va_list ap;                                 \
        va_start (ap, last);                        \
        __typeof__ (call) va_value = (call);        \
        va_end (ap);                                \
        va_value;                                   \
    })

#define VA_DO(last, call) do {                      \
        va_list ap;                                 \
        va_start (ap, last);                        \
        call;                                       \
        va_end (ap);                                \
    } while (0)

#endif // !SOLO_COMMON_VA_H
