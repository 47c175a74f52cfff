/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See drivers.h. An entry has a message for the user, "KIND error: TEXT", and
 * an error for the administrator, "kind error: CONTEXT: ...: TEXT".
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libdws/util/error.h"
#include "drivers.h"

/* The most bytes of a driver's error in a message: the error may have a chain for each
 * drive of a rabbit.
 */
#define DETAIL_MAX 200

#define NODE "Node: "
#define UNANSWERED " has not been reconciled after "
#define DIRECTIVE "DW Directive "
#define OWNER "persistent storage user ID "

static const char *text_of (json_t *o, const char *key)
{
    const char *s = json_string_value (json_object_get (o, key));

    return s ? s : "";
}

/* Rank an entry by its status, 0: nothing to report.
 */
static int rank_entry (json_t *entry)
{
    const char *status = text_of (entry, "status");

    if (!strcmp (status, "Error"))
        return 4;
    if (!strcmp (status, "TransientCondition"))
        return 3;
    if (*text_of (entry, "error"))
        return 2;
    return *text_of (entry, "message") ? 1 : 0;
}

static bool is_of (json_t *entry, const char *state)
{
    return !strcmp (state, text_of (entry, "watchState"));
}

/* Entries of other states are about the past, or have not begun.
 */
static json_t *entry_at_fault (json_t *drivers, const char *state)
{
    json_t *found = NULL;
    json_t *entry;
    size_t index;
    int best = 0;

    json_array_foreach (drivers, index, entry) {
        if (is_of (entry, state)
            && !json_is_true (json_object_get (entry, "completed"))
            && rank_entry (entry) > best) {
            best = rank_entry (entry);
            found = entry;
        }
    }
    return found;
}

static const char *after (const char *s, const char *part)
{
    const char *found = strstr (s, part);

    return found ? found + strlen (part) : NULL;
}

/* The text behind "KIND error: ", and how long that is.
 */
static const char *skip_kind (const char *s, int *length)
{
    static const char *const kinds[] = {
        "user error: ", "wlm error: ", "internal error: ",
        "User error: ", "WLM error: ", "Internal error: ",
    };

    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++) {
        *length = strlen (kinds[i]);
        if (!strncmp (s, kinds[i], *length))
            return s + *length;
    }
    *length = 0;
    return s;
}

static const char *kind_name (const char *s)
{
    return !strncasecmp (s, "user", 4) ? "User error: "
           : !strncasecmp (s, "wlm", 3) ? "WLM error: " : "Internal error: ";
}

static void cut_text (char *buf, size_t size, const char *s)
{
    if (snprintf (buf, size, "%s", s) < (int)size)
        return;
    buf[size - sizeof ("...")] = '\0';
    dws_trim_utf8 (buf, strlen (buf));
    strcat (buf, "...");
}

static bool names_node (const char *text, const char *node)
{
    char name[DWS_RABBIT_SIZE];

    snprintf (name, sizeof (name), "%.*s", (int)strcspn (node, ":"), node);
    return strstr (text, name) != NULL;
}

/* The driver's error. An error that names the owner of another user's file system is
 * left out: the message says that the file system is not the job's.
 */
static const char *error_of (json_t *entry)
{
    const char *error = text_of (entry, "error");

    return strstr (error, OWNER) ? "" : error;
}

/* Join message and error. An error that contains the message replaces it; another error
 * follows the message, unless it is a rabbit's long story and the message already
 * names the rabbit.
 */
static void join_entry (json_t *entry, char buf[DWS_DRIVERS_TEXT_SIZE])
{
    const char *message = text_of (entry, "message");
    const char *error = error_of (entry);
    char head[DWS_DRIVERS_TEXT_SIZE - DETAIL_MAX - 8];
    char detail[DETAIL_MAX];
    int kind;
    int length;
    const char *text = skip_kind (message, &kind);
    const char *story = skip_kind (error, &length);
    const char *node = after (story, NODE);

    cut_text (detail, sizeof (detail), node ? node : story);
    cut_text (head, sizeof (head), message);
    if (!*detail || strstr (text, detail)
        || (*text && node && names_node (text, node)))
        snprintf (buf, DWS_DRIVERS_TEXT_SIZE, "%s", head);
    else if (!*text || strstr (detail, text))
        snprintf (buf, DWS_DRIVERS_TEXT_SIZE, "%s%s",
                  kind || length ? kind_name (kind ? message : error) : "",
                  detail);
    else
        snprintf (buf, DWS_DRIVERS_TEXT_SIZE, "%s (%s)", head, detail);
}

static const char *skip_directive (const char *message)
{
    const char *s = message + strlen (DIRECTIVE);

    if (strncmp (message, DIRECTIVE, strlen (DIRECTIVE)) != 0)
        return message;
    s += strspn (s, "0123456789");
    return strncmp (s, ": ", 2) ? message : s + 2;
}

const char *dws_drivers_text (json_t *drivers, const char *state,
                              const char *message,
                              char buf[DWS_DRIVERS_TEXT_SIZE])
{
    json_t *entry = entry_at_fault (drivers, state);

    *buf = '\0';
    if (entry)
        join_entry (entry, buf);
    return *buf || !message ? buf : skip_directive (message);
}

bool dws_drivers_trouble (json_t *drivers, const char *state)
{
    json_t *entry = entry_at_fault (drivers, state);

    return entry && rank_entry (entry) > 1;
}

const char *dws_drivers_silent (json_t *drivers, const char *state,
                                char buf[DWS_RABBIT_SIZE])
{
    json_t *entry;
    size_t index;

    json_array_foreach (drivers, index, entry) {
        const char *error = text_of (entry, "error");
        const char *node = after (error, NODE);
        size_t len = node ? strcspn (node, ":") : 0;

        if (is_of (entry, state)
            && !json_is_true (json_object_get (entry, "completed"))
            && strstr (error, UNANSWERED)
            && len > 0 && len < DWS_RABBIT_SIZE) {
            snprintf (buf, DWS_RABBIT_SIZE, "%.*s", (int)len, node);
            return buf;
        }
    }
    return NULL;
}

bool dws_drivers_refused (json_t *drivers, const char *state)
{
    static const char *const refusals[] = {
        "denied the request: ",         // a webhook: 403
        "\" is invalid: ",              // the schema, or rules for names: 422
    };
    json_t *entry = entry_at_fault (drivers, state);
    const char *error = entry ? text_of (entry, "error") : "";

    /* The controller had read an object that is not there any more. */
    if (strstr (error, "metadata.resourceVersion"))
        return false;
    for (size_t i = 0; i < sizeof (refusals) / sizeof (refusals[0]); i++) {
        if (strstr (error, refusals[i]))
            return true;
    }
    return false;
}

bool dws_drivers_recovered (json_t *drivers, const char *state)
{
    bool at_work = false;
    json_t *entry;
    size_t index;

    json_array_foreach (drivers, index, entry) {
        if (!is_of (entry, state) || rank_entry (entry) == 0
            || json_is_true (json_object_get (entry, "completed")))
            continue;
        if (!strcmp (text_of (entry, "status"), "Error"))
            return false;
        at_work = true;
    }
    return at_work;
}

bool dws_drivers_outdated (const char *message)
{
    return strstr (message, "Allocation request does not meet directive "
                            "requirements")
        || strstr (message, "Servers resource does not meet storage "
                            "requirements");
}
