/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jgf.h. The tree is walked twice in the same order, for the vertices
 * and for the edges; a vertex is known by its number in that order. Values that the
 * many children of a node share are put together once per node.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libdws/util/lists.h"
#include "libutil/errno_safe.h"
#include "jgf.h"
#include "jgf_private.h"
#include "rset.h"

#define GIB (INT64_C (1) << 30)

struct dws_jgf {
    const struct dws_topology *topo;
    struct rset *rs;
    char *cluster;        // JSON string with its quotes
    int chunks;
    uint64_t count;
};

/* The walk: called for each vertex in order, with its parent's number.
 */
struct walk;
typedef void (*vertex_f) (struct walk *w,
                          uint64_t parent,
                          const char *fixed,
                          size_t len,
                          const char *tail,
                          size_t tail_len);

struct walk {
    struct dws_jgf *jgf;
    struct out *out;
    vertex_f vertex;
    uint64_t next;        // number of the next vertex
    bool texts;           // the texts of vertices are needed
    char *text;           // scratch of one vertex
    size_t text_size;
    dws_error_t *error;
};

/* A vertex is {"id":"N","metadata":{ + fixed + tail.
 */
static void put_vertex (struct walk *w,
                        uint64_t parent,
                        const char *fixed,
                        size_t len,
                        const char *tail,
                        size_t tail_len)
{
    if (w->next > 0)
        PUT (w->out, ",");
    PUT (w->out, "{\"id\":\"");
    out_number (w->out, w->next);
    PUT (w->out, "\",\"metadata\":{");
    out_put (w->out, fixed, len);
    out_put (w->out, tail, tail_len);
    PUT (w->out, "}}");
}

static void put_edge (struct walk *w,
                      uint64_t parent,
                      const char *fixed,
                      size_t len,
                      const char *tail,
                      size_t tail_len)
{
    if (w->next == 0)
        return;
    if (w->next > 1)
        PUT (w->out, ",");
    PUT (w->out, "{\"source\":\"");
    out_number (w->out, parent);
    PUT (w->out, "\",\"target\":\"");
    out_number (w->out, w->next);
    PUT (w->out, "\"}");
}

static void count_vertex (struct walk *w,
                          uint64_t parent,
                          const char *fixed,
                          size_t len,
                          const char *tail,
                          size_t tail_len)
{
}

/* Make room for a text of 'len' bytes and its end.
 */
static int reserve (struct walk *w, size_t len)
{
    char *text;

    if (len < w->text_size)
        return 0;
    if (!(text = realloc (w->text, len + 256)))
        return dws_error_nomem (w->error);
    w->text = text;
    w->text_size = len + 256;
    return 0;
}

static uint64_t emit (struct walk *w, uint64_t parent, const char *text)
{
    w->vertex (w, parent, text, strlen (text), "", 0);
    return w->next++;
}

/* 's' as the inside of a JSON string, in new memory.
 */
static char *escape (const char *s)
{
    json_t *o = json_string (s);
    char *quoted = o ? json_dumps (o, JSON_ENCODE_ANY) : NULL;
    char *result = NULL;

    if (quoted)
        result = strndup (quoted + 1, strlen (quoted) - 2);
    free (quoted);
    json_decref (o);
    return result;
}

/* The children of a host all are alike but for their id. The text up to it
 * and after it is made once, the id put in by hand: this is where the time
 * goes.
 */
static int walk_children (struct walk *w,
                          uint64_t parent,
                          const struct rset_host *host,
                          const struct rset_children *c,
                          const char *path)
{
    char *type = NULL;
    char *head = NULL;
    char *tail = NULL;
    int rc = -1;

    if (!w->texts) {
        for (size_t i = 0; i < c->count; i++) {
            w->vertex (w, parent, NULL, 0, NULL, 0);
            w->next++;
        }
        return 0;
    }
    if (!(type = escape (c->type))
        || asprintf (&head, "\"type\":\"%s\",\"id\":", type) < 0)
        goto nomem;
    if (asprintf (&tail,
                  ",\"rank\":%u,\"paths\":{\"containment\":\"%s/%s",
                  host->rank,
                  path,
                  type) < 0) {
        tail = NULL;
        goto nomem;
    }
    if (reserve (w, strlen (head) + strlen (tail) + 64) < 0)
        goto done;
    for (size_t i = 0; i < c->count; i++) {
        static const char end[] = "\"}";
        size_t head_len = strlen (head);
        size_t tail_len = strlen (tail);
        char buf[24];
        size_t len;
        char *id = out_digits (buf, c->ids[i], &len);
        char *s = w->text;

        memcpy (s, head, head_len);
        s += head_len;
        memcpy (s, id, len);
        s += len;
        memcpy (s, tail, tail_len);
        s += tail_len;
        memcpy (s, id, len);
        s += len;
        w->vertex (w, parent, w->text, s - w->text, end, sizeof (end) - 1);
        w->next++;
    }
    rc = 0;
done:
    free (type);
    free (head);
    free (tail);
    return rc;
nomem:
    dws_error_nomem (w->error);
    goto done;
}

/* ,"properties":{...} of a host, or nothing, in new memory.
 */
static char *encode_properties (const struct rset *rs, unsigned int rank)
{
    char *result = strdup ("");

    for (size_t i = 0; result && i < rs->nproperties; i++) {
        char *name;
        char *longer = NULL;

        if (!idset_test (rs->properties[i].ranks, rank))
            continue;
        if ((name = escape (rs->properties[i].name))
            && asprintf (&longer,
                         "%s%s\"%s\":\"\"",
                         result,
                         *result ? "," : ",\"properties\":{",
                         name) < 0)
            longer = NULL;
        free (name);
        free (result);
        result = longer;
    }
    if (result && *result) {
        char *closed = NULL;

        if (asprintf (&closed, "%s}", result) < 0)
            closed = NULL;
        free (result);
        result = closed;
    }
    return result;
}

static int walk_host (struct walk *w,
                      uint64_t parent,
                      const char *parent_path,
                      const struct rset_host *host,
                      bool is_rabbit)
{
    char *properties = NULL;
    char *name = NULL;
    char *path = NULL;
    uint64_t id;
    int rc = -1;

    if (w->texts) {
        if (!(name = escape (host->name))
            || !(properties = encode_properties (w->jgf->rs, host->rank)))
            goto nomem;
        if (asprintf (&path, "%s/%s", parent_path, name) < 0) {
            path = NULL;
            goto nomem;
        }
        if (reserve (w, 2 * strlen (path) + strlen (properties) + 160) < 0)
            goto done;
        snprintf (w->text,
                  w->text_size,
                  "\"type\":\"%s\",\"name\":\"%s\",\"rank\":%u%s%s"
                  ",\"paths\":{\"containment\":\"%s\"}",
                  is_rabbit ? "storage_node" : "node",
                  name,
                  host->rank,
                  is_rabbit ? ",\"exclusive\":true" : "",
                  properties,
                  path);
    }
    id = emit (w, parent, w->text);
    for (size_t i = 0; i < host->entry->count; i++) {
        const struct rset_children *c = &host->entry->children[i];

        if (walk_children (w, id, host, c, path) < 0)
            goto done;
    }
    rc = 0;
done:
    free (properties);
    free (name);
    free (path);
    return rc;
nomem:
    dws_error_nomem (w->error);
    goto done;
}

static int walk_ssds (struct walk *w,
                      uint64_t parent,
                      const char *path,
                      int64_t capacity)
{
    int chunks = w->jgf->chunks;
    long long gib = capacity / chunks / GIB;

    for (int i = 0; i < chunks; i++) {
        if (w->texts)
            snprintf (w->text,
                      w->text_size,
                      "\"type\":\"ssd\",\"unit\":\"GiB\",\"size\":%lld,"
                      "\"paths\":{\"containment\":\"%s/ssd%d\"},"
                      "\"status\":1",
                      gib,
                      path,
                      i);
        emit (w, parent, w->text);
    }
    return 0;
}

/* A vertex that no job requests, for a rabbit without storage_node: Fluxion refuses a job,
 * instead of letting it wait, unless the last chassis that it looks at has a vertex of a
 * type that is not requested (doc/dev/upstream/fluxion-rabbits.rst). Fluxion comes to it
 * before the ssds, as it is added after these.
 */
static void walk_rabbit (struct walk *w, uint64_t parent, const char *path)
{
    if (w->texts)
        snprintf (w->text,
                  w->text_size,
                  "\"type\":\"rabbit\",\"paths\":{\"containment\":\"%s/rabbit\"}",
                  path);
    emit (w, parent, w->text);
}

static int walk_rabbit_hosts (struct walk *w,
                              uint64_t parent,
                              const char *path,
                              int rabbit)
{
    const struct rset *rs = w->jgf->rs;
    const char *hosts = dws_topology_hostlist (w->jgf->topo, rabbit);
    const char *name = dws_topology_name (w->jgf->topo, rabbit);
    const struct rset_host *host;
    struct hostlist *hl;
    const char *s;

    if (!(hl = dws_hostlist_decode (hosts)))
        return dws_error_nomem (w->error);
    for (s = hostlist_first (hl); s; s = hostlist_next (hl)) {
        host = rset_find (rs, s);
        if (host
            && !host->excluded
            && walk_host (w, parent, path, host, false) < 0) {
            hostlist_destroy (hl);
            return -1;
        }
    }
    hostlist_destroy (hl);
    host = rset_find (rs, name);
    if (host && !host->excluded)
        return walk_host (w, parent, path, host, true);
    walk_rabbit (w, parent, path);
    return 0;
}

static int walk_chassis (struct walk *w, int rabbit)
{
    struct dws_jgf *jgf = w->jgf;
    const char *cluster = jgf->cluster;
    char *name = NULL;
    char *path = NULL;
    uint64_t id;
    int rc = -1;

    if (!(name = escape (dws_topology_name (jgf->topo, rabbit))))
        goto nomem;
    if (asprintf (&path, "/%s/chassis%d", cluster, rabbit) < 0) {
        path = NULL;
        goto nomem;
    }
    if (reserve (w, strlen (name) + strlen (path) + 200) < 0)
        goto done;
    snprintf (w->text,
              w->text_size,
              "\"type\":\"chassis\",\"id\":%d,\"properties\":{"
              "\"rabbit\":\"%s\",\"ssdcount\":\"%d\"},"
              "\"paths\":{\"containment\":\"%s\"}",
              rabbit,
              name,
              jgf->chunks,
              path);
    id = emit (w, 0, w->text);
    if (walk_ssds (w,
                   id,
                   path,
                   dws_topology_capacity (jgf->topo, rabbit)) < 0
        || walk_rabbit_hosts (w, id, path, rabbit) < 0)
        goto done;
    rc = 0;
done:
    free (name);
    free (path);
    return rc;
nomem:
    dws_error_nomem (w->error);
    goto done;
}

/* Hosts that neither hang on a rabbit nor are one.
 */
static int walk_others (struct walk *w)
{
    const struct dws_topology *topo = w->jgf->topo;
    const struct rset *rs = w->jgf->rs;
    char *path = NULL;
    int rc = -1;

    if (asprintf (&path, "/%s", w->jgf->cluster) < 0)
        return dws_error_nomem (w->error);
    for (size_t i = 0; i < rs->count; i++) {
        const struct rset_host *host = &rs->hosts[i];

        if (host->excluded
            || dws_topology_find_host (topo, host->name) >= 0
            || dws_topology_find (topo, host->name) >= 0)
            continue;
        if (walk_host (w, 0, path, host, false) < 0)
            goto done;
    }
    rc = 0;
done:
    free (path);
    return rc;
}

static int walk_all (struct dws_jgf *jgf,
                     struct out *out,
                     vertex_f vertex,
                     dws_error_t *error)
{
    struct walk w = {
        .jgf = jgf,
        .out = out,
        .vertex = vertex,
        .texts = vertex == put_vertex,
        .error = error,
    };
    int rc = -1;

    if (reserve (&w, 2 * strlen (jgf->cluster) + 160) < 0)
        return -1;
    snprintf (w.text,
              w.text_size,
              "\"type\":\"cluster\",\"name\":\"%s\","
              "\"paths\":{\"containment\":\"/%s\"}",
              jgf->cluster,
              jgf->cluster);
    emit (&w, 0, w.text);
    for (size_t i = 0; i < dws_topology_count (jgf->topo); i++) {
        if (walk_chassis (&w, i) < 0)
            goto done;
    }
    if (walk_others (&w) < 0)
        goto done;
    jgf->count = w.next;
    rc = 0;
done:
    free (w.text);
    return rc;
}

/* Each host or rabbit of the mapping must have only one rank: the graph would contain the
 * first rank, and no other.
 */
static int check_ranks (const struct dws_jgf *jgf, dws_error_t *error)
{
    const struct rset *rs = jgf->rs;

    for (size_t i = 0; i < rs->count; i++) {
        const struct rset_host *host = &rs->hosts[i];
        const struct rset_host *first = rset_find (rs, host->name);

        if (host != first
            && (dws_topology_find_host (jgf->topo, host->name) >= 0
                || dws_topology_find (jgf->topo, host->name) >= 0))
            return dws_error (error,
                              EINVAL,
                              "R has ranks %u and %u for host %.60s of the"
                              " rabbitmapping",
                              first->rank,
                              host->rank,
                              host->name);
    }
    return 0;
}

/* Every compute node of the mapping must be in R.
 */
static int validate (const struct dws_jgf *jgf, dws_error_t *error)
{
    struct hostlist *missing = hostlist_create ();
    char *s = NULL;
    int rc = -1;

    if (!missing)
        goto nomem;
    for (size_t i = 0; i < dws_topology_count (jgf->topo); i++) {
        const char *hosts = dws_topology_hostlist (jgf->topo, i);
        struct hostlist *hl = dws_hostlist_decode (hosts);
        const char *host;

        if (!hl)
            goto nomem;
        for (host = hostlist_first (hl); host; host = hostlist_next (hl)) {
            if (!rset_find (jgf->rs, host)
                && dws_hostlist_append (missing, host) < 0) {
                hostlist_destroy (hl);
                goto nomem;
            }
        }
        hostlist_destroy (hl);
    }
    if (hostlist_count (missing) > 0) {
        if (!(s = hostlist_encode (missing)))
            goto nomem;
        dws_error (error,
                   EINVAL,
                   "hosts of the rabbitmapping that are not in R: %s",
                   s);
        goto done;
    }
    rc = 0;
done:
    free (s);
    hostlist_destroy (missing);
    return rc;
nomem:
    dws_error_nomem (error);
    goto done;
}

void dws_jgf_destroy (struct dws_jgf *jgf)
{
    if (jgf) {
        ERRNO_SAFE_BLOCK;
        rset_destroy (jgf->rs);
        free (jgf->cluster);
        free (jgf);
    }
}

struct dws_jgf *dws_jgf_create (json_t *R,
                                const struct dws_topology *topo,
                                const struct dws_jgf_opts *opts,
                                dws_error_t *error)
{
    struct dws_jgf *jgf;

    if (!opts->cluster || !*opts->cluster || strchr (opts->cluster, '/')) {
        dws_error (error, EINVAL, "the cluster needs a name without '/'");
        return NULL;
    }
    if (opts->chunks < 1 || opts->chunks > 100000) {
        dws_error (error,
                   EINVAL,
                   "%d chunks per rabbit: must be from 1 to 100000",
                   opts->chunks);
        return NULL;
    }
    if (!(jgf = calloc (1, sizeof (*jgf)))
        || !(jgf->cluster = escape (opts->cluster))) {
        dws_error_nomem (error);
        goto error;
    }
    jgf->topo = topo;
    jgf->chunks = opts->chunks;
    if (!(jgf->rs = rset_create (R, opts->exclude, error))
        || check_ranks (jgf, error) < 0
        || (opts->validate && validate (jgf, error) < 0)
        || walk_all (jgf, NULL, count_vertex, error) < 0)
        goto error;
    return jgf;
error:
    dws_jgf_destroy (jgf);
    return NULL;
}

uint64_t dws_jgf_count (const struct dws_jgf *jgf)
{
    return jgf->count;
}

int dws_jgf_write (struct dws_jgf *jgf,
                   dws_jgf_sink_f sink,
                   void *arg,
                   dws_error_t *error)
{
    struct out out = { .sink = sink, .arg = arg };
    int rc = -1;

    if (!(out.buf = malloc (OUT_SIZE)))
        return dws_error_nomem (error);
    PUT (&out, "{\"graph\":{\"directed\":false,\"nodes\":[");
    if (walk_all (jgf, &out, put_vertex, error) < 0)
        goto done;
    PUT (&out, "],\"edges\":[");
    if (walk_all (jgf, &out, put_edge, error) < 0)
        goto done;
    PUT (&out, "]}}");
    out_flush (&out);
    if (out.errnum) {
        dws_error (error,
                   out.errnum,
                   "could not write the graph: %s",
                   strerror (out.errnum));
        goto done;
    }
    rc = 0;
done:
    free (out.buf);
    return rc;
}
