/* SPDX-License-Identifier: LGPL-3.0-only */
/* flux/shell.h - what a job shell plugin may call.  A plugin defines
 * FLUX_SHELL_PLUGIN_NAME, the component of its log lines, before it
 * includes this.
 */
#ifndef SOLO_FLUX_SHELL_H
#define SOLO_FLUX_SHELL_H

#ifndef FLUX_SHELL_PLUGIN_NAME
#error "define FLUX_SHELL_PLUGIN_NAME before including flux/shell.h"
#endif

#include <flux/core.h>
#include <flux/hostlist.h>
#include <flux/taskmap.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flux_shell flux_shell_t;
typedef struct shell_task flux_shell_task_t;
typedef void (*flux_shell_task_io_f) (flux_shell_task_t *task,
                                      const char *stream, void *arg);

flux_shell_t *flux_plugin_get_shell (flux_plugin_t *p);
flux_t *flux_shell_get_flux (flux_shell_t *shell);
void *flux_shell_aux_get (flux_shell_t *shell, const char *name);
int flux_shell_aux_set (flux_shell_t *shell, const char *name, void *aux,
                        flux_free_f free_fn);

/* Shell options: 1 if set, 0 if not, -1 on error. */
int flux_shell_getopt_unpack (flux_shell_t *shell, const char *name,
                              const char *fmt, ...);

/* The job's environment. */
int flux_shell_setenvf (flux_shell_t *shell, int overwrite, const char *name,
                        const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));
int flux_shell_unsetenv (flux_shell_t *shell, const char *name);

/* About the job and this shell. */
int flux_shell_info_unpack (flux_shell_t *shell, const char *fmt, ...);

/* Acting. */
int flux_shell_add_completion_ref (flux_shell_t *shell, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
int flux_shell_remove_completion_ref (flux_shell_t *shell, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
void flux_shell_killall (flux_shell_t *shell, int sig);
int flux_shell_add_event_handler (flux_shell_t *shell, const char *subtopic,
                                  flux_msg_handler_f cb, void *arg);
int flux_shell_service_register (flux_shell_t *shell, const char *method,
                                 flux_msg_handler_f cb, void *arg);
flux_future_t *flux_shell_rpc_pack (flux_shell_t *shell, const char *method,
                                    int shell_rank, int flags,
                                    const char *fmt, ...);
int flux_shell_plugstack_call (flux_shell_t *shell, const char *topic,
                               flux_plugin_arg_t *args);
int flux_shell_add_event_context (flux_shell_t *shell, const char *name,
                                  int flags, const char *fmt, ...);

/* Tasks. */
flux_shell_task_t *flux_shell_current_task (flux_shell_t *shell);
int flux_shell_task_get_info (flux_shell_task_t *task, char **json_str);

/* Log. */
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
void flux_shell_raise (const char *type, int severity, const char *fmt, ...);
void flux_shell_raise_exit_status (int wait_status, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
int flux_shell_log_setlevel (int level, const char *dest);

#define shell_log_at(level, ...) \
    flux_shell_log (FLUX_SHELL_PLUGIN_NAME, level, __FILE__, __LINE__, \
                    __VA_ARGS__)
#define shell_trace(...) shell_log_at (FLUX_SHELL_TRACE, __VA_ARGS__)
#define shell_debug(...) shell_log_at (FLUX_SHELL_DEBUG, __VA_ARGS__)
#define shell_log(...) shell_log_at (FLUX_SHELL_NOTICE, __VA_ARGS__)
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
#define shell_set_verbose(n) \
    flux_shell_log_setlevel (FLUX_SHELL_NOTICE + (n), NULL)
#define shell_set_quiet(n) \
    flux_shell_log_setlevel (FLUX_SHELL_NOTICE - (n), NULL)

#ifdef __cplusplus
}
#endif
#endif
