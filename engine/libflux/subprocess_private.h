/* SPDX-License-Identifier: LGPL-3.0-only */
/* subprocess_private.h - what a command, a process and its streams consist
 * of.
 */
#ifndef SOLO_SUBPROCESS_PRIVATE_H
#define SOLO_SUBPROCESS_PRIVATE_H

#include <stdbool.h>
#include <sys/types.h>
#include <flux/core.h>

struct strvec {
    char **v;
    int count;
};

struct flux_command {
    struct strvec argv;
    struct strvec env;          // NAME=VALUE
};

/* One stream: stdin is only written, stdout and stderr are only read.
 */
struct channel {
    struct channel *next;
    flux_subprocess_t *p;
    char *name;
    int fd;                     // our end, -1 when closed
    int child_fd;
    bool readable;
    bool eof_seen;              // by read(2)
    bool eof_told;              // to the callback
    bool close_pending;         // once 'out' is written
    char *in;
    size_t in_len;
    char *last;                 // what the last read function returned
    char *out;
    size_t out_len;
    flux_watcher_t *reader;
    flux_watcher_t *writer;
};

struct flux_subprocess {
    flux_reactor_t *r;
    flux_cmd_t *cmd;
    flux_subprocess_ops_t ops;
    int flags;
    int refcount;
    flux_subprocess_state_t state;
    pid_t pid;
    flux_watcher_t *exit_watcher;
    int status;
    bool completed;
    struct channel *channels;
    flux_future_t *aux;         // container of aux items
};

/* subprocess_io.c
 */
int channel_create (flux_subprocess_t *p, const char *name);
void channel_destroy (struct channel *ch);

/* subprocess.c
 */
void subprocess_decref (flux_subprocess_t *p);
/* Tell of the completion once the process and its output have ended.
 */
void subprocess_check_complete (flux_subprocess_t *p);

#endif
