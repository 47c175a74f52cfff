/* SPDX-License-Identifier: LGPL-3.0-only */
/* flux.c - the flux command: set up the environment, run a subcommand.
 *
 * Everything is found from where this program is: PREFIX/bin/flux.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static char prefix[PATH_MAX];

static void __attribute__ ((noreturn)) die (const char *what, const char *why)
{
    fprintf (stderr, "flux: %s: %s\n", what, why);
    exit (1);
}

static void find_prefix (void)
{
    ssize_t n = readlink ("/proc/self/exe", prefix, sizeof (prefix) - 1);

    if (n < 0)
        die ("/proc/self/exe", strerror (errno));
    prefix[n] = '\0';
    for (int i = 0; i < 2; i++) {
        char *p = strrchr (prefix, '/');
        if (!p)
            die (prefix, "not in a bin directory");
        *p = '\0';
    }
}

static char *in_prefix (const char *path)
{
    char *s;

    if (asprintf (&s, "%s/%s", prefix, path) < 0)
        die (path, "out of memory");
    return s;
}

static bool in_path (const char *path, const char *dir)
{
    size_t n = strlen (dir);

    for (const char *s = path; s && *s; s += strcspn (s, ":"), s += *s == ':')
        if (strcspn (s, ":") == n && strncmp (s, dir, n) == 0)
            return true;
    return false;
}

/* Put PREFIX/dir in front of a search path, and what NAME_PREPEND says
 * before that; nothing twice.
 */
static void prepend (const char *name, const char *dir)
{
    char *full = in_prefix (dir);
    char *var;
    const char *dirs[2] = { full, NULL };

    if (asprintf (&var, "%s_PREPEND", name) < 0)
        die (name, "out of memory");
    dirs[1] = getenv (var);
    for (int i = 0; i < 2; i++) {
        const char *old = getenv (name);
        char *s;

        if (!dirs[i] || !*dirs[i] || in_path (old, dirs[i]))
            continue;
        if (asprintf (&s, "%s%s%s", dirs[i], old && *old ? ":" : "",
                      old ? old : "") < 0)
            die (name, "out of memory");
        setenv (name, s, 1);
        free (s);
    }
    free (var);
    free (full);
}

static const char *python (void)
{
    const char *s = getenv ("FLUX_PYTHON");

    return s && *s ? s : SOLO_PYTHON;
}

static void set_environment (void)
{
    prepend ("LD_LIBRARY_PATH", SOLO_LIBDIR);
    prepend ("PATH", "bin");
    prepend ("FLUX_EXEC_PATH", FLUX_CMDDIR);
    prepend ("FLUX_EXEC_PATH", SOLO_EXECDIR "/cmd");
    prepend ("FLUX_MODULE_PATH", FLUX_MODDIR);
    prepend ("FLUX_MODULE_PATH", SOLO_MODDIR);
    setenv ("FLUX_PYTHON", python (), 1);
    /* Our Python packages, unless that Python has them in its own prefix.
     */
    if (strncmp (python (), prefix, strlen (prefix)) != 0)
        prepend ("PYTHONPATH", SOLO_PYDIR);
}

static void run (const char *path, char *argv[])
{
    execv (path, argv);
    if (errno != ENOENT)
        die (path, strerror (errno));
}

/* Python programs are run by the Python that has flux-python.
 */
static void run_python (const char *path, int argc, char *argv[])
{
    char **av = calloc (argc + 2, sizeof (*av));

    if (!av)
        die (path, "out of memory");
    av[0] = (char *)python ();
    av[1] = (char *)path;
    for (int i = 1; i < argc; i++)
        av[i + 1] = argv[i];
    run (av[0], av);
    die (av[0], strerror (errno));
}

static void run_program (const char *path, int argc, char *argv[])
{
    size_t n = strlen (path);

    if (n > 3 && strcmp (path + n - 3, ".py") == 0)
        run_python (path, argc, argv);
    run (path, argv);
}

/* Look for flux-NAME, flux-NAME.py along FLUX_EXEC_PATH.
 */
static void run_command (int argc, char *argv[])
{
    char path[PATH_MAX];

    for (const char *s = getenv ("FLUX_EXEC_PATH"); s && *s;) {
        int n = strcspn (s, ":");

        for (int i = 0; i < 2; i++) {
            snprintf (path, sizeof (path), "%.*s/flux-%s%s",
                      n, s, argv[0], i ? ".py" : "");
            if (access (path, R_OK) == 0)
                run_program (path, argc, argv);
        }
        s += n + (s[n] == ':');
    }
    fprintf (stderr,
             "flux: no command %s here; flux help lists them\n",
             argv[0]);
    exit (1);
}

static int compare (const void *a, const void *b)
{
    return strcmp (*(char *const *)a, *(char *const *)b);
}

static void list_commands (void)
{
    char *names[512] = { "help", "python", "start", "version" };
    size_t count = 4;
    char dir[PATH_MAX];
    struct dirent *e;
    DIR *d;

    for (const char *s = getenv ("FLUX_EXEC_PATH"); s && *s;) {
        int n = strcspn (s, ":");

        snprintf (dir, sizeof (dir), "%.*s", n, s);
        if ((d = opendir (dir))) {
            while ((e = readdir (d)) && count < 512)
                if (strncmp (e->d_name, "flux-", 5) == 0)
                    names[count++] = strndup (e->d_name + 5,
                                              strcspn (e->d_name + 5, "."));
            closedir (d);
        }
        s += n + (s[n] == ':');
    }
    qsort (names, count, sizeof (names[0]), compare);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp (names[i], names[i - 1]) != 0)
            printf ("   %s\n", names[i]);
}

static void help (void)
{
    puts ("Usage: flux [--help | --version] COMMAND [ARGS...]\n"
          "\n"
          "Start an instance with: flux start --test-size=4\n"
          "\n"
          "Commands:");
    list_commands ();
}

static void version (void)
{
    printf ("commands:    \t\t%s\nengine:      \t\tsolo %s\n",
            FLUX_VERSION, SOLO_VERSION);
    if (getenv ("FLUX_URI"))
        printf ("instance:    \t\t%s\n", getenv ("FLUX_URI"));
}

int main (int argc, char *argv[])
{
    const char *cmd;

    find_prefix ();
    set_environment ();
    argc--;
    argv++;
    cmd = argc > 0 ? argv[0] : "--help";
    if (strcmp (cmd, "--help") == 0 || strcmp (cmd, "-h") == 0
        || strcmp (cmd, "help") == 0)
        help ();
    else if (strcmp (cmd, "--version") == 0 || strcmp (cmd, "-V") == 0
             || strcmp (cmd, "version") == 0)
        version ();
    else if (strcmp (cmd, "python") == 0) {
        argv[0] = (char *)python ();
        run (python (), argv);
        die (python (), strerror (errno));
    }
    else if (strcmp (cmd, "start") == 0) {
        char *path = in_prefix (SOLO_EXECDIR "/solo");
        run (path, argv);
        die (path, strerror (errno));
    }
    else if (strchr (cmd, '/')) {
        run_program (cmd, argc, argv);
        die (cmd, strerror (errno));
    }
    else
        run_command (argc, argv);
    return 0;
}
