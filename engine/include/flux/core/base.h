/* SPDX-License-Identifier: LGPL-3.0-only */
/* base.h - types that all of libflux shares, version, error strings. */
#ifndef SOLO_FLUX_BASE_H
#define SOLO_FLUX_BASE_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <syslog.h>

#define FLUX_CORE_VERSION_MAJOR 0
#define FLUX_CORE_VERSION_MINOR 88
#define FLUX_CORE_VERSION_PATCH 0
#define FLUX_CORE_VERSION_STRING "0.88.0"
#define FLUX_CORE_VERSION_HEX \
    (FLUX_CORE_VERSION_MAJOR << 16 | FLUX_CORE_VERSION_MINOR << 8 \
     | FLUX_CORE_VERSION_PATCH)

#ifndef FLUX_DEPRECATED
#define FLUX_DEPRECATED(...) __VA_ARGS__ __attribute__ ((deprecated))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flux_handle flux_t;
typedef struct flux_msg flux_msg_t;
typedef struct flux_reactor flux_reactor_t;
typedef struct flux_watcher flux_watcher_t;
typedef struct flux_future flux_future_t;

typedef void (*flux_free_f) (void *arg);

/* Human readable reason of a failure; always NUL terminated. */
typedef struct {
    char text[160];
} flux_error_t;

const char *flux_core_version_string (void);

/* Like strerror(3), with texts of its own for a few errnos. */
const char *flux_strerror (int errnum);

#ifdef __cplusplus
}
#endif
#endif
