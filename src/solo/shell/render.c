/* SPDX-License-Identifier: LGPL-3.0-only */
/* render.c - the {{tags}} of names that users give, as --output has them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "shell.h"

struct render {
    flux_shell_t *shell;
    struct node *node;
    flux_shell_task_t *task;
    bool per_rank;          // a tag differs from rank to rank
};

/* Print the value of a tag; false if there is none of that name.
 */
static bool render_tag (FILE *fp, const char *tag, struct render *r)
{
    flux_shell_t *shell = r->shell;
    const char *name;
    char buf[64];

    if (streq (tag, "id") || streq (tag, "jobid"))
        fprintf (fp, "%s", idf58 (shell->id));
    else if (strstarts (tag, "id.") || strstarts (tag, "jobid.")) {
        if (flux_job_id_encode (shell->id,
                                strchr (tag, '.') + 1,
                                buf,
                                sizeof (buf)) < 0)
            return false;
        fprintf (fp, "%s", buf);
    }
    else if (streq (tag, "name")) {
        if ((name = json_string_value (jp_get (shell->jobspec,
                                               "attributes.system.job.name")))
            || (name = json_string_value (json_array_get (shell->command,
                                                          0))))
            fprintf (fp, "%s", strrchr (name, '/') ? strrchr (name, '/') + 1
                                                   : name);
    }
    else if (streq (tag, "nnodes"))
        fprintf (fp, "%d", shell->size);
    else if (streq (tag, "ntasks") || streq (tag, "size"))
        fprintf (fp, "%d", shell->ntasks);
    else {
        r->per_rank = true;
        if (streq (tag, "node.id"))
            fprintf (fp, "%d", (int)(r->node - shell->nodes));
        else if (streq (tag, "node.name"))
            fprintf (fp, "%s", r->node->host);
        else if (r->task
                 && (streq (tag, "task.id") || streq (tag, "taskid")
                     || streq (tag, "task.rank")))
            fprintf (fp, "%d", r->task->rank);
        else if (r->task && (streq (tag, "task.index")
                             || streq (tag, "task.localid")))
            fprintf (fp, "%d", r->task->index);
        else
            return false;
    }
    return true;
}

static char *render (struct render *r, const char *fmt)
{
    char *result = NULL;
    size_t size;
    FILE *fp;
    const char *start;
    const char *end;

    if (!(fp = open_memstream (&result, &size)))
        return NULL;
    while ((start = strstr (fmt, "{{")) && (end = strstr (start, "}}"))) {
        char tag[64];
        fprintf (fp, "%.*s", (int)(start - fmt), fmt);
        snprintf (tag, sizeof (tag), "%.*s", (int)(end - start - 2), start + 2);
        if (!render_tag (fp, tag, r))
            fprintf (fp, "{{%s}}", tag);
        fmt = end + 2;
    }
    fputs (fmt, fp);
    return fclose (fp) == 0 ? result : NULL;
}

char *flux_shell_rank_mustache_render (flux_shell_t *shell, int rank,
                                       const char *fmt)
{
    struct render r = { .shell = shell };

    if (!shell || !fmt || rank < 0 || rank >= shell->size) {
        errno = EINVAL;
        return NULL;
    }
    r.node = &shell->nodes[rank];
    r.task = shell->current;
    return render (&r, fmt);
}

char *flux_shell_mustache_render (flux_shell_t *shell, const char *fmt)
{
    return flux_shell_rank_mustache_render (shell,
                                            shell ? shell->rank : -1,
                                            fmt);
}

char *flux_shell_task_mustache_render (flux_shell_t *shell,
                                       flux_shell_task_t *task,
                                       const char *fmt)
{
    struct render r = { .shell = shell, .task = task };

    if (!shell || !task || !fmt) {
        errno = EINVAL;
        return NULL;
    }
    r.node = &shell->nodes[shell->rank];
    return render (&r, fmt);
}

bool flux_shell_mustache_is_per_rank (flux_shell_t *shell, const char *fmt)
{
    struct render r = { .shell = shell };

    if (!shell || !fmt) {
        errno = EINVAL;
        return false;
    }
    r.node = &shell->nodes[shell->rank];
    free (render (&r, fmt));
    return r.per_rank;
}

// vi: ts=4 sw=4 expandtab
