/* SPDX-License-Identifier: LGPL-3.0-only */
/* main.c - "flux start": options, directories and signals of an instance.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker.h"
#include "client.h"
#include "rset.h"

enum {
    OPT_HOSTS = 1000, OPT_CORES, OPT_GPUS, OPT_RUNDIR, OPT_STATEDIR,
    OPT_SCHEDULER,
};

static const struct option longopts[] = {
    { "test-size", required_argument, NULL, 's' },
    { "test-hosts", required_argument, NULL, OPT_HOSTS },
    { "test-cores", required_argument, NULL, OPT_CORES },
    { "test-gpus", required_argument, NULL, OPT_GPUS },
    { "resources", required_argument, NULL, 'R' },
    { "config-path", required_argument, NULL, 'c' },
    { "setattr", required_argument, NULL, 'S' },
    { "broker-opts", required_argument, NULL, 'o' },
    { "rundir", required_argument, NULL, OPT_RUNDIR },
    { "statedir", required_argument, NULL, OPT_STATEDIR },
    { "scheduler", required_argument, NULL, OPT_SCHEDULER },
    { "verbose", no_argument, NULL, 'v' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static const char usage[] =
    "Usage: flux start [OPTIONS] [COMMAND...]\n"
    "Start a Flux instance on this machine and run COMMAND, or a shell, in it.\n"
    "\n"
    "  -s, --test-size=N        make up N nodes\n"
    "      --test-hosts=HOSTS   names of the made-up nodes (node[0-N])\n"
    "      --test-cores=N       cores of each made-up node (4)\n"
    "      --test-gpus=N        GPUs of each made-up node (0)\n"
    "  -R, --resources=FILE     take the nodes from R in FILE\n"
    "  -c, --config-path=PATH   TOML or JSON file, or directory of TOML files\n"
    "  -S, --setattr=NAME=VAL   set a broker attribute\n"
    "  -o, --broker-opts=OPTS   -SNAME=VAL and -cPATH, separated by commas\n"
    "      --rundir=DIR         directory of the instance's sockets\n"
    "      --statedir=DIR       keep jobs and KVS in DIR, start again from there\n"
    "      --scheduler=NAME     scheduler module, or none (sched-rabbit)\n"
    "  -v, --verbose            print log messages (twice: debug messages too)\n"
    "  -h, --help               print this\n";

struct options {
    int size;
    const char *hosts;
    int cores;
    int gpus;
    const char *resources;
    const char *config_path;
    const char *rundir;
    const char *statedir;
    const char *scheduler;
    json_t *attrs;              // array of NAME=VALUE
    char **command;
    int verbose;
};

static void __attribute__ ((noreturn)) die (const char *what, const char *why)
{
    fprintf (stderr, "flux start: %s%s%s\n", what, why ? ": " : "", why ? why : "");
    exit (1);
}

static int parse_count (const char *s, const char *name, int min)
{
    char *end;
    long n = strtol (s, &end, 10);

    if (*s == '\0' || *end != '\0' || n < min || n > INT_MAX)
        die (name, "not a valid number");
    return n;
}

/* Two attributes have options of their own.
 */
static void set_attr (struct options *o, const char *arg)
{
    if (!strncmp (arg, "rundir=", 7))
        o->rundir = arg + 7;
    else if (!strncmp (arg, "statedir=", 9))
        o->statedir = arg + 9;
    else
        json_array_append_new (o->attrs, json_string (arg));
}

/* -o-Sname=value,-v: what tests written for flux-core use
 */
static void parse_broker_opts (struct options *o, char *arg)
{
    char *saveptr = NULL;

    for (char *t = strtok_r (arg, ",", &saveptr);
         t != NULL;
         t = strtok_r (NULL, ",", &saveptr)) {
        if (!strncmp (t, "-S", 2))
            set_attr (o, t + 2);
        else if (!strncmp (t, "--setattr=", 10))
            set_attr (o, t + 10);
        else if (!strncmp (t, "-c", 2))
            o->config_path = t + 2;
        else if (!strncmp (t, "--config-path=", 14))
            o->config_path = t + 14;
        else if (!strcmp (t, "-v"))
            o->verbose++;
        else
            die (t, "unknown broker option");
    }
}

static void parse_options (struct options *o, int argc, char *argv[])
{
    int c;

    while ((c = getopt_long (argc, argv, "+s:R:c:S:o:vh", longopts, NULL)) >= 0) {
        switch (c) {
            case 's':
                o->size = parse_count (optarg, "--test-size", 1);
                break;
            case OPT_HOSTS:
                o->hosts = optarg;
                break;
            case OPT_CORES:
                o->cores = parse_count (optarg, "--test-cores", 1);
                break;
            case OPT_GPUS:
                o->gpus = parse_count (optarg, "--test-gpus", 0);
                break;
            case 'R':
                o->resources = optarg;
                break;
            case 'c':
                o->config_path = optarg;
                break;
            case 'S':
                set_attr (o, optarg);
                break;
            case 'o':
                parse_broker_opts (o, optarg);
                break;
            case OPT_RUNDIR:
                o->rundir = optarg;
                break;
            case OPT_STATEDIR:
                o->statedir = optarg;
                break;
            case OPT_SCHEDULER:
                o->scheduler = optarg;
                break;
            case 'v':
                o->verbose++;
                break;
            case 'h':
                fputs (usage, stdout);
                exit (0);
            default:
                fputs ("Try 'flux start --help'.\n", stderr);
                exit (1);
        }
    }
    if (optind < argc)
        o->command = argv + optind;
}

/* Directories
 */

static int remove_entry (const char *path,
                         const struct stat *st,
                         int type,
                         struct FTW *ftw)
{
    return remove (path);
}

static char *temp_rundir;

static void remove_temp_rundir (void)
{
    (void)nftw (temp_rundir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free (temp_rundir);
}

/* A directory that is there must be ours: what is in it is trusted.
 */
static char *make_dir (const char *path)
{
    struct stat st;
    char *dir;

    if ((mkdir (path, 0700) < 0 && errno != EEXIST)
        || !(dir = realpath (path, NULL))
        || stat (dir, &st) < 0)
        die (path, strerror (errno));
    if (!S_ISDIR (st.st_mode))
        die (path, "not a directory");
    if (st.st_uid != geteuid ())
        die (path, "not owned by the instance owner");
    return dir;
}

static char *make_rundir (const char *path)
{
    const char *tmp = getenv ("TMPDIR");
    char *dir = NULL;

    if (path)
        dir = make_dir (path);
    else if (asprintf (&dir, "%s/flux-XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0
             || !mkdtemp (dir)
             || !(temp_rundir = strdup (dir))
             || atexit (remove_temp_rundir) != 0)
        die ("cannot create the run directory", strerror (errno));
    if (strlen (dir) > 80)      // of the 108 bytes of a socket's path
        die (dir, "the path of the run directory is too long");
    return dir;
}

/* Only one instance at a time may use a state directory.
 */
static char *open_statedir (const char *path)
{
    /* Unlike that of flock(2), children do not inherit this lock: one that is
     * about to exec when we are killed does not keep it. */
    struct flock exclusive = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    char *dir = make_dir (path);
    char *lock;
    int fd;

    if (asprintf (&lock, "%s/lock", dir) < 0
        || (fd = open (lock, O_CREAT | O_RDWR | O_CLOEXEC, 0600)) < 0)
        die (dir, strerror (errno));
    if (fcntl (fd, F_SETLK, &exclusive) < 0)
        die (dir, "in use by another instance");
    free (lock);
    return dir;
}

/* Resources: command line, configuration, what the state directory has, or
 * this machine as one node.
 */

static json_t *find_resources (struct options *o,
                               json_t *conf,
                               const char *saved,
                               flux_error_t *error)
{
    json_t *path = NULL;
    char hosts[HOST_NAME_MAX + 32];

    (void)json_unpack (conf,
                       "{s?{s?o}}",
                       "resource",
                         "path", &path);
    if (o->resources)
        return rset_from_file (o->resources, error);
    if (json_is_string (path))
        return rset_from_file (json_string_value (path), error);
    if (o->size == 0 && saved && access (saved, R_OK) == 0)
        return rset_from_file (saved, error);
    if (o->hosts)
        snprintf (hosts, sizeof (hosts), "%s", o->hosts);
    else if (o->size > 1)
        snprintf (hosts, sizeof (hosts), "node[0-%d]", o->size - 1);
    else if (o->size == 1)
        snprintf (hosts, sizeof (hosts), "node0");
    else
        (void)gethostname (hosts, sizeof (hosts));
    if (o->size == 0 && o->cores == 0)
        o->cores = sysconf (_SC_NPROCESSORS_ONLN);
    return rset_make (o->size ? o->size : 1,
                      o->hosts ? o->hosts : hosts,
                      o->cores ? o->cores : 4,
                      o->gpus,
                      error);
}

static void save_resources (const char *dir, json_t *R)
{
    char *path;
    char *tmp;

    if (asprintf (&path, "%s/R", dir) < 0
        || asprintf (&tmp, "%s/R.new", dir) < 0
        || json_dump_file (R, tmp, JSON_COMPACT) < 0
        || rename (tmp, path) < 0)
        die (dir, strerror (errno));
    free (tmp);
    free (path);
}

/* Signals
 */

static void signal_cb (flux_reactor_t *r,
                       flux_watcher_t *w,
                       int revents,
                       void *arg)
{
    struct broker *b = arg;
    int signum = flux_signal_watcher_get_signum (w);

    flux_log (b->h, LOG_INFO, "signal %d", signum);
    if (b->signalled) {
        fprintf (stderr, "flux start: stopped by a second signal\n");
        flux_reactor_stop (r);
        return;
    }
    b->signalled = true;
    // A terminal's signal may have ended the initial program before it is seen here.
    if (!runlevel_stopping (b->runlevel))
        runlevel_shutdown (b->runlevel, 128 + signum);
}

static void heartbeat_cb (flux_reactor_t *r,
                          flux_watcher_t *w,
                          int revents,
                          void *arg)
{
    struct broker *b = arg;
    flux_msg_t *msg;

    if (!router_subscribed (b->router, "heartbeat.pulse"))
        return;
    if (!(msg = flux_event_encode ("heartbeat.pulse", NULL))
        || flux_send_new (b->h, &msg, 0) < 0)
        flux_msg_decref (msg);
}

static void watch_signals (struct broker *b, flux_watcher_t *w[4])
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };

    for (int i = 0; i < 3; i++)
        w[i] = flux_signal_watcher_create (b->reactor, signals[i], signal_cb, b);
    w[3] = flux_timer_watcher_create (b->reactor, 2., 2., heartbeat_cb, b);
    for (int i = 0; i < 4; i++) {
        if (!w[i])
            die ("cannot watch signals", strerror (errno));
        flux_watcher_start (w[i]);
    }
    (void)signal (SIGPIPE, SIG_IGN);
}

/* When the instance is a job of another one.
 */
static void set_parent_attrs (struct broker *b)
{
    const char *uri = getenv ("FLUX_URI");
    const char *jobid = getenv ("FLUX_JOB_ID");
    const char *ns = getenv ("FLUX_KVS_NAMESPACE");
    const char *level = "0";
    const char *path = "/";
    flux_t *h = NULL;

    if (uri && jobid && (h = flux_open (uri, 0))) {
        const char *s = flux_attr_get (h, "instance-level");
        level = s ? s : "0";
        if ((s = flux_attr_get (h, "jobid-path")))
            path = s;
        attr_set (b->attrs, "parent-uri", "%s", uri);
        attr_set (b->attrs, "jobid", "%s", jobid);
        if (ns)
            attr_set (b->attrs, "parent-kvs-namespace", "%s", ns);
        attr_set (b->attrs, "instance-level", "%d", atoi (level) + 1);
        attr_set (b->attrs, "jobid-path", "%s%s%s",
                  path, path[strlen (path) - 1] == '/' ? "" : "/", jobid);
    }
    else {
        attr_set (b->attrs, "instance-level", "0");
        attr_set (b->attrs, "jobid-path", "/");
    }
    flux_close (h);
    unsetenv ("FLUX_JOB_ID");
    unsetenv ("FLUX_KVS_NAMESPACE");
    unsetenv ("FLUX_JOB_TMPDIR");
}

static void set_attrs (struct broker *b,
                       struct options *o,
                       const char *statedir,
                       const char *hosts)
{
    char hostname[HOST_NAME_MAX + 1] = "localhost";
    struct attrs *a = b->attrs;
    flux_error_t error;
    json_t *value;
    size_t i;

    (void)gethostname (hostname, sizeof (hostname));
    set_parent_attrs (b);
    attr_set (a, "rank", "0");
    attr_set (a, "size", "%u", b->size);
    attr_set (a, "version", "%s", flux_core_version_string ());
    attr_set (a, "rundir", "%s", b->rundir);
    attr_set (a, "statedir", "%s", statedir ? statedir : b->rundir);
    attr_set (a, "local-uri", "local://%s/local-0", b->rundir);
    attr_set (a, "security.owner", "%u", b->owner);
    attr_set (a, "hostlist", "%s", hosts);
    attr_set (a, "hostname", "%s", hostname);
    attr_set (a, "broker.pid", "%d", (int)getpid ());
    attr_set (a, "broker.starttime", "%.2f", flux_reactor_time ());
    attr_set (a, "broker.boot-method", "solo");
    attr_set (a, "broker.critical-ranks", "0");
    attr_set (a, "broker.quorum", "1");
    attr_set (a, "tbon.topo", "kary:0");
    attr_set (a, "tbon.level", "0");
    attr_set (a, "tbon.maxlevel", "0");
    attr_set (a, "log-level", "7");
    attr_set (a, "log-stderr-level",
              "%d", o->verbose > 1 ? 7 : o->verbose ? 6 : 3);
    attr_set (a, "log-stderr-mode", "leader");
    json_array_foreach (o->attrs, i, value)
        if (attr_set_cmdline (a, json_string_value (value), &error) < 0)
            die (error.text, NULL);
}

static const struct flux_msg_handler_spec htab[] = {
    FLUX_MSGHANDLER_TABLE_END,
};

/* ping, rusage, debug... as in any module.  These use the attributes of
 * rank and uuid, set here because this thread cannot wait for an answer.
 */
static flux_msg_handler_t **register_default_methods (struct broker *b)
{
    flux_msg_handler_t **handlers;

    if (flux_attr_set_cacheonly (b->h, "rank", "0") < 0
        || flux_aux_set (b->h, "flux::uuid",
                         (char *)attr_get (b->attrs, "broker.uuid"), NULL) < 0
        || flux_register_default_methods (b->h, "broker", &handlers) < 0)
        die ("cannot create the broker", strerror (errno));
    return handlers;
}

static void create_parts (struct broker *b)
{
    if (!(b->reactor = flux_reactor_create (0))
        || !(b->router = router_create (b))
        || router_serve (b->router) < 0
        || !(b->attrs = attrs_create (b))
        || !(b->log = logbuf_create (b))
        || !(b->config = config_create (b))
        || !(b->modules = modules_create (b)))
        die ("cannot create the broker", strerror (errno));
    flux_log_set_appname (b->h, "broker");
}

static void destroy_parts (struct broker *b)
{
    client_server_destroy (b->clients);
    runlevel_destroy (b->runlevel);
    modules_destroy (b->modules);
    config_destroy (b->config);
    logbuf_destroy (b->log);
    router_destroy (b->router);
    attrs_destroy (b->attrs);
    flux_reactor_destroy (b->reactor);
}

int main (int argc, char *argv[])
{
    struct options o = { .scheduler = "sched-rabbit", .attrs = json_array () };
    struct runlevel_opts ro = { 0 };
    struct broker b = { .owner = geteuid () };
    struct rlimit limit;
    flux_watcher_t *w[4];
    flux_msg_handler_t **handlers = NULL;
    flux_msg_handler_t **defaults;
    flux_error_t error;
    char *rundir, *statedir = NULL, *saved = NULL, *hosts = NULL;
    const char *uri;
    json_t *R;
    int size;
    int rc;

    parse_options (&o, argc, argv);
    if (getrlimit (RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit (RLIMIT_NOFILE, &limit);
    }
    (void)umask (022);
    if (o.statedir)
        statedir = open_statedir (o.statedir);
    create_parts (&b);
    if (o.config_path && config_load (b.config, o.config_path, &error) < 0)
        die (error.text, NULL);
    if (statedir && asprintf (&saved, "%s/R", statedir) < 0)
        die ("out of memory", NULL);
    if (!(R = find_resources (&o, config_get (b.config), saved, &error))
        || (size = rset_check (R, &hosts, &error)) < 0)
        die (error.text, NULL);
    b.size = size;
    b.rundir = rundir = make_rundir (o.rundir);
    save_resources (statedir ? statedir : rundir, R);
    json_decref (R);
    set_attrs (&b, &o, statedir, hosts);

    uri = attr_get (b.attrs, "local-uri");
    if (strncmp (uri, "local://", 8) != 0)
        die (uri, "not of the form local://PATH");
    if (!(b.clients = client_server_create (&b, uri + 8)))
        die (uri, strerror (errno));
    setenv ("FLUX_URI", uri, 1);

    ro.scheduler = o.scheduler;
    ro.command = o.command;
    ro.resource_args = json_array ();
    ro.kvs_args = json_array ();
    json_array_append_new (ro.resource_args, json_string ("statedir"));
    if (statedir)
        json_array_append_new (ro.kvs_args, json_string ("statedir"));
    if (!(b.runlevel = runlevel_create (&b, &ro))
        || flux_msg_handler_addvec (b.h, htab, &b, &handlers) < 0)
        die ("cannot create the broker", strerror (errno));
    defaults = register_default_methods (&b);
    watch_signals (&b, w);
    runlevel_start (b.runlevel);

    if (flux_reactor_run (b.reactor, 0) < 0)
        fprintf (stderr, "flux start: reactor: %s\n", strerror (errno));
    rc = runlevel_exit_code (b.runlevel);

    flux_msg_handler_delvec (handlers);
    flux_msg_handler_delvec (defaults);
    for (int i = 0; i < 4; i++)
        flux_watcher_destroy (w[i]);
    destroy_parts (&b);
    json_decref (ro.resource_args);
    json_decref (ro.kvs_args);
    json_decref (o.attrs);
    free (rundir);
    free (statedir);
    free (saved);
    free (hosts);
    return rc;
}
