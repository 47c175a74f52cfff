/* SPDX-License-Identifier: LGPL-3.0-only */
/* subprocess.h - commands, and processes here or on another rank. */
#ifndef SOLO_FLUX_SUBPROCESS_H
#define SOLO_FLUX_SUBPROCESS_H

#include "future.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What to run. */
typedef struct flux_command flux_cmd_t;

flux_cmd_t *flux_cmd_create (int argc, char *argv[], char **env);
flux_cmd_t *flux_cmd_copy (const flux_cmd_t *cmd);
void flux_cmd_destroy (flux_cmd_t *cmd);
int flux_cmd_argc (const flux_cmd_t *cmd);
const char *flux_cmd_arg (const flux_cmd_t *cmd, int n);
int flux_cmd_argv_append (flux_cmd_t *cmd, const char *arg);
int flux_cmd_argv_appendf (flux_cmd_t *cmd, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
int flux_cmd_argv_delete (flux_cmd_t *cmd, int n);
int flux_cmd_setenvf (flux_cmd_t *cmd, int overwrite, const char *name,
                      const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));
void flux_cmd_unsetenv (flux_cmd_t *cmd, const char *name);
int flux_cmd_add_message_channel (flux_cmd_t *cmd, const char *name,
                                  const char *uri);

/* The process. */
typedef struct flux_subprocess flux_subprocess_t;

typedef enum {
    FLUX_SUBPROCESS_INIT,
    FLUX_SUBPROCESS_RUNNING,
    FLUX_SUBPROCESS_EXITED,
    FLUX_SUBPROCESS_FAILED,
    FLUX_SUBPROCESS_STOPPED,
} flux_subprocess_state_t;

enum {
    FLUX_SUBPROCESS_FLAGS_STDIO_FALLTHROUGH = 1,
    FLUX_SUBPROCESS_FLAGS_NO_SETPGRP = 2,
    FLUX_SUBPROCESS_FLAGS_FORK_EXEC = 4,
    FLUX_SUBPROCESS_FLAGS_LOCAL_UNBUF = 8,
    FLUX_SUBPROCESS_FLAGS_WAITABLE = 16,
    FLUX_SUBPROCESS_FLAGS_SIGN = 32,
};

typedef void (*flux_subprocess_f) (flux_subprocess_t *p);
typedef void (*flux_subprocess_output_f) (flux_subprocess_t *p,
                                          const char *stream);
typedef void (*flux_subprocess_state_f) (flux_subprocess_t *p,
                                         flux_subprocess_state_t state);
typedef void (*flux_subprocess_credit_f) (flux_subprocess_t *p,
                                          const char *stream, int bytes);
typedef void (*flux_subprocess_hook_f) (flux_subprocess_t *p, void *arg);
typedef void (*subprocess_log_f) (void *arg, const char *file, int line,
                                  const char *func, const char *subsys,
                                  int level, const char *fmt, va_list args);

typedef struct {
    flux_subprocess_f on_completion;
    flux_subprocess_state_f on_state_change;
    flux_subprocess_output_f on_channel_out;
    flux_subprocess_output_f on_stdout;
    flux_subprocess_output_f on_stderr;
    flux_subprocess_credit_f on_credit;
} flux_subprocess_ops_t;

typedef struct {
    flux_subprocess_hook_f pre_exec;
    void *pre_exec_arg;
    flux_subprocess_hook_f post_fork;
    void *post_fork_arg;
} flux_subprocess_hooks_t;

flux_subprocess_t *flux_local_exec (flux_reactor_t *r, int flags,
                                    const flux_cmd_t *cmd,
                                    const flux_subprocess_ops_t *ops);
flux_subprocess_t *flux_local_exec_ex (flux_reactor_t *r, int flags,
                                       const flux_cmd_t *cmd,
                                       const flux_subprocess_ops_t *ops,
                                       const flux_subprocess_hooks_t *hooks,
                                       subprocess_log_f log_fn,
                                       void *log_data);
flux_subprocess_t *flux_rexec (flux_t *h, int rank, int flags,
                               const flux_cmd_t *cmd,
                               const flux_subprocess_ops_t *ops);
flux_subprocess_t *flux_rexec_ex (flux_t *h, const char *service_name,
                                  int rank, int flags, const flux_cmd_t *cmd,
                                  const flux_subprocess_ops_t *ops,
                                  subprocess_log_f log_fn, void *log_data);
flux_subprocess_t *flux_rexec_attach (flux_t *h, const char *service_name,
                                      int rank, int flags, pid_t pid,
                                      const char *label,
                                      const flux_subprocess_ops_t *ops);
flux_future_t *flux_rexec_bg (flux_t *h, const char *service_name, int rank,
                              int flags, const flux_cmd_t *cmd);
flux_future_t *flux_rexec_wait (flux_t *h, const char *service_name, int rank,
                                pid_t pid, const char *label);
void flux_subprocess_destroy (flux_subprocess_t *p);
flux_future_t *flux_subprocess_kill (flux_subprocess_t *p, int signum);

int flux_subprocess_write (flux_subprocess_t *p, const char *stream,
                           const char *buf, size_t len);
int flux_subprocess_close (flux_subprocess_t *p, const char *stream);
int flux_subprocess_read (flux_subprocess_t *p, const char *stream,
                          const char **bufp);
int flux_subprocess_read_trimmed_line (flux_subprocess_t *p,
                                       const char *stream, const char **bufp);
int flux_subprocess_getline (flux_subprocess_t *p, const char *stream,
                             const char **bufp);

flux_subprocess_state_t flux_subprocess_state (flux_subprocess_t *p);
const char *flux_subprocess_state_string (flux_subprocess_state_t state);
bool flux_subprocess_active (flux_subprocess_t *p);
int flux_subprocess_status (flux_subprocess_t *p);
int flux_subprocess_exit_code (flux_subprocess_t *p);
int flux_subprocess_signaled (flux_subprocess_t *p);
pid_t flux_subprocess_pid (flux_subprocess_t *p);
void *flux_subprocess_aux_get (flux_subprocess_t *p, const char *name);
int flux_subprocess_aux_set (flux_subprocess_t *p, const char *name, void *ctx,
                             flux_free_f free);

#ifdef __cplusplus
}
#endif
#endif
