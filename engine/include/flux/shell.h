/* SPDX-License-Identifier: LGPL-3.0-only */
/* flux/shell.h - the part of flux-core's shell API that job shells of solo
 * have.  A plugin defines FLUX_SHELL_PLUGIN_NAME, the component of its log
 * lines, before it includes this.
 */
#ifndef SOLO_FLUX_SHELL_H
#define SOLO_FLUX_SHELL_H

#ifndef FLUX_SHELL_PLUGIN_NAME
#error "define FLUX_SHELL_PLUGIN_NAME before including flux/shell.h"
#endif

#include <errno.h>
#include <flux/core.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flux_shell flux_shell_t;

flux_shell_t *flux_plugin_get_shell (flux_plugin_t *p);
flux_t *flux_shell_get_flux (flux_shell_t *shell);
int flux_shell_setenvf (flux_shell_t *shell, int overwrite, const char *name,
                        const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));
int flux_shell_info_unpack (flux_shell_t *shell, const char *fmt, ...);

enum {
    FLUX_SHELL_QUIET = -1,
    FLUX_SHELL_FATAL = 0,
    FLUX_SHELL_ERROR = 3,
    FLUX_SHELL_WARN = 4,
    FLUX_SHELL_NOTICE = 5,
    FLUX_SHELL_DEBUG = 6,
    FLUX_SHELL_TRACE = 7,
};

void flux_shell_log (const char *component, int level,
                     const char *file, int line, const char *fmt, ...)
    __attribute__ ((format (printf, 5, 6)));
int flux_shell_err (const char *component, const char *file, int line,
                    int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 5, 6)));
void flux_shell_fatal (const char *component, const char *file, int line,
                       int errnum, int exit_code, const char *fmt, ...)
    __attribute__ ((format (printf, 6, 7)));

#define shell_log_at(level, ...) \
    flux_shell_log (FLUX_SHELL_PLUGIN_NAME, level, __FILE__, __LINE__, \
                    __VA_ARGS__)
#define shell_debug(...) shell_log_at (FLUX_SHELL_DEBUG, __VA_ARGS__)
#define shell_warn(...) shell_log_at (FLUX_SHELL_WARN, __VA_ARGS__)
#define shell_log_error(...) shell_log_at (FLUX_SHELL_ERROR, __VA_ARGS__)
#define shell_log_errn(errnum, ...) \
    flux_shell_err (FLUX_SHELL_PLUGIN_NAME, __FILE__, __LINE__, errnum, \
                    __VA_ARGS__)
#define shell_log_errno(...) shell_log_errn (errno, __VA_ARGS__)
#define shell_die_with(errnum, code, ...) \
    flux_shell_fatal (FLUX_SHELL_PLUGIN_NAME, __FILE__, __LINE__, errnum, \
                      code, __VA_ARGS__)
#define shell_die(code, ...) shell_die_with (0, code, __VA_ARGS__)
#define shell_die_errno(code, ...) shell_die_with (errno, code, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
