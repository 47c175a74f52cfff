/* SPDX-License-Identifier: LGPL-3.0-only */
/* conf_toml.c - TOML to JSON.
 *
 * TOML is read by a Python, which has a parser and hands over JSON.  The
 * program refuses what flux-core's parser and its conversion to JSON refuse,
 * and converts times as flux-core does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "common/spawn.h"
#include "conf_toml.h"
#include "errprintf.h"

/* Standard input to {"conf": OBJECT}, or {"line": N, "error": TEXT} where the
 * line is 0 when it is not known.
 */
static const char program[] =
    "import datetime, json, math, re, sys\n"
    "try:\n"
    "    import tomllib\n"
    "except ImportError:\n"
    "    try:\n"
    "        import tomli as tomllib\n"
    "    except ImportError:\n"
    "        from flux.utils import tomli as tomllib\n"
    "def convert(value):\n"
    "    if isinstance(value, dict):\n"
    "        return {key: convert(v) for key, v in value.items()}\n"
    "    if isinstance(value, list):\n"
    "        if len({type(v) for v in value}) > 1:\n"
    "            raise ValueError('array type mismatch')\n"
    "        return [convert(v) for v in value]\n"
    "    if isinstance(value, datetime.datetime):\n"
    "        return {'iso-8601-ts': value.strftime('%Y-%m-%dT%H:%M:%SZ')}\n"
    "    if isinstance(value, (datetime.date, datetime.time)) or (\n"
    "        isinstance(value, float) and not math.isfinite(value)\n"
    "    ):\n"
    "        raise ValueError(f'converting TOML to JSON: {value} cannot be')\n"
    "    if isinstance(value, int) and not -1 << 63 <= value < 1 << 63:\n"
    "        return float(value)\n"
    "    return value\n"
    "text = ''\n"
    "try:\n"
    "    text = sys.stdin.buffer.read().decode()\n"
    "    answer = {'conf': convert(tomllib.loads(text))}\n"
    "except OSError as exc:\n"
    "    answer = {'line': 0, 'error': exc.strerror}\n"
    "except ValueError as exc:\n"
    "    error, line = str(exc), 0\n"
    "    if found := re.search(r' \\(at line (\\d+), column \\d+\\)$', error):\n"
    "        error, line = error[:found.start()], int(found[1])\n"
    "    elif error.endswith(' (at end of document)'):\n"
    "        line = len(text.splitlines())\n"
    "    answer = {'line': line, 'error': error}\n"
    "json.dump(answer, sys.stdout)\n";

/* The answer to standard input 'in', or NULL. */
static json_t *run (int in, flux_error_t *errp)
{
    char *argv[] = {
        (char *)python_path (), "-I", "-c", (char *)program, NULL,
    };
    json_t *answer = NULL;
    int fds[2];
    pid_t pid;
    FILE *fp;

    if (pipe2 (fds, O_CLOEXEC) < 0) {
        errprintf (errp, "pipe: %s", strerror (errno));
        return NULL;
    }
    pid = spawn_program (argv, NULL, in, fds[1], errp);
    close (fds[1]);
    if (pid < 0 || !(fp = fdopen (fds[0], "r")))
        close (fds[0]);
    else {
        if (!(answer = json_loadf (fp, 0, NULL))) {
            errno = EINVAL;
            errprintf (errp, "cannot be read by %s", argv[0]);
        }
        fclose (fp);
    }
    if (pid > 0) {
        ERRNO_SAFE_BLOCK;
        while (waitpid (pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return answer;
}

json_t *conf_toml_file (const char *path, flux_error_t *errp)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    flux_error_t error = { "" };
    json_t *answer = NULL;
    json_t *conf = NULL;
    const char *text;
    struct stat st;
    int line;

    if (fd >= 0 && fstat (fd, &st) == 0 && S_ISDIR (st.st_mode))
        errno = EISDIR;     // with which Python does not even start
    else if (fd >= 0)
        answer = run (fd, &error);
    if (!answer)
        errprintf (errp, "%s: %s", path,
                   error.text[0] ? error.text : strerror (errno));
    else if (json_unpack (answer, "{s:i s:s}", "line", &line,
                          "error", &text) == 0) {
        errno = EINVAL;
        if (line > 0)
            errprintf (errp, "%s:%d: %s", path, line, text);
        else
            errprintf (errp, "%s: %s", path, text);
    }
    else
        conf = json_incref (json_object_get (answer, "conf"));
    {
        ERRNO_SAFE_BLOCK;
        json_decref (answer);
        if (fd >= 0)
            close (fd);
    }
    return conf;
}
