/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: more than this is a mistake or malice, and is refused before time
 * or memory are spent on it. The largest machines have some ten thousand.
 */

#ifndef LIBDWS_BOUNDS_H
#define LIBDWS_BOUNDS_H

#define DWS_MAX_HOSTS 1000000
#define DWS_MAX_NODES_PER_RABBIT 65536
#define DWS_MAX_ALLOCATIONS 100000
#define DWS_DIRECTIVE_BYTES 65536 // what a site may change
#define DWS_DIRECTIVE_COUNT 64
#define DWS_MAX_DIRECTIVE_BYTES 1048576
#define DWS_MAX_DIRECTIVE_COUNT 1024
#define DWS_MAX_WORDS 64 // of one directive
#define DWS_MAX_LIST 16 // words of one list in a directive

#endif /* !LIBDWS_BOUNDS_H */
