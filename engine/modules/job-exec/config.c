/* SPDX-License-Identifier: LGPL-3.0-only */
/* config.c - the table [exec] of the configuration.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "job-exec.h"

const char *exec_config (flux_t *h, const char *name)
{
    const char *s = NULL;

    (void)flux_conf_unpack (flux_get_conf (h),
                            NULL,
                            "{s?{s?s}}",
                            "exec",
                              name, &s);
    return s;
}

/* Signal by name, with or without SIG, or by number; 0 if unknown.
 */
static int parse_signal (const char *s)
{
    const char *name = strstarts (s, "SIG") ? s + 3 : s;
    int n = atoi (s);

    for (int sig = 1; sig < NSIG; sig++) {
        const char *abbrev = sigabbrev_np (sig);
        if (sig == n || (abbrev && streq (abbrev, name)))
            return sig;
    }
    return 0;
}

int exec_configure (struct exec *exec, const flux_conf_t *conf,
                    flux_error_t *errp)
{
    struct exec new = *exec;
    const char *timeout = "5s";
    const char *term = "SIGTERM";
    const char *kill = "SIGKILL";

    new.max_start_delay_percent = 25.;
    new.max_kill_count = 8;
    if (flux_conf_unpack (conf,
                          errp,
                          "{s?{s?F s?s s?s s?s s?i}}",
                          "exec",
                            "max-start-delay-percent",
                              &new.max_start_delay_percent,
                            "kill-timeout", &timeout,
                            "term-signal", &term,
                            "kill-signal", &kill,
                            "max-kill-count", &new.max_kill_count) < 0)
        return -1;
    errno = EINVAL;
    if (parse_duration (timeout, &new.kill_timeout) < 0
        || new.kill_timeout == 0.)
        return set_error (errp, "[exec] invalid kill-timeout: %s", timeout);
    if ((new.term_signal = parse_signal (term)) == 0)
        return set_error (errp, "[exec] invalid term-signal: %s", term);
    if ((new.kill_signal = parse_signal (kill)) == 0)
        return set_error (errp, "[exec] invalid kill-signal: %s", kill);
    if (new.max_kill_count <= 0)
        return set_error (errp,
                          "[exec] max-kill-count=%d: no such number",
                          new.max_kill_count);
    *exec = new;
    return 0;
}

// vi: ts=4 sw=4 expandtab
