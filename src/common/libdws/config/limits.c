/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See limits.h. Rules have names rather than numbers: rules of several files are merged
 * instead of replaced, and the name in an error text stays the same.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/directive/capacity.h"
#include "libdws/util/jsonmake.h"
#include "libutil/errno_safe.h"
#include "config_checks_private.h"
#include "limits.h"

#define ADMINS "the admins of this machine"
#define CONTACT_MAX 128
#define NAME_MAX_BYTES 64

#define NOT_SET -1
#define UNLIMITED INT64_MAX

struct dws_limit_rule {
    const char *name;           // all texts belong to the table
    const char *user;
    const char *group;
    const char *bank;
    const char *queue;
    int64_t value[DWS_LIMIT_COUNT];     // bytes, or for allow 0 or 1
};

struct dws_limits {
    json_t *table;
    const char *contact;
    struct dws_limit_rule *rules;
    size_t count;
};

/* The configuration
 */

static int unexpected (const struct dws_limit_rule *rule, const char *key,
                       const char *what, json_t *value, dws_error_t *error)
{
    char full[160];

    snprintf (full, sizeof (full), "limits.%s.%s", rule->name, key);
    return dws_config_expected (full, what, value, error);
}

static int set_text (const struct dws_limit_rule *rule, const char *key,
                     const char **target, json_t *value, dws_error_t *error)
{
    if (json_string_length (value) == 0)
        return unexpected (rule, key, "a name", value, error);
    *target = json_string_value (value);
    return 0;
}

static int set_bytes (struct dws_limit_rule *rule, const char *key,
                      enum dws_limit what, json_t *value, dws_error_t *error)
{
    const char *s = json_string_value (value);
    char guess[DWS_CAPACITY_GUESS_SIZE];

    if (s && !strcmp (s, "unlimited"))
        rule->value[what] = UNLIMITED;
    else if (s && dws_capacity_parse (s, &rule->value[what]) == 0)
        return 0;
    else if (s && dws_capacity_guess (s, guess))
        return dws_error (error, EINVAL, "rabbit.limits.%s.%s: expected a size such "
                          "as \"20TiB\", or \"unlimited\", got \"%s\", did you mean "
                          "\"%s\"?", rule->name, key, s, guess);
    else
        return unexpected (rule, key, "a size such as \"20TiB\", or "
                           "\"unlimited\"", value, error);
    return 0;
}

static int set_allow (struct dws_limit_rule *rule, json_t *value,
                      dws_error_t *error)
{
    if (!json_is_boolean (value))
        return unexpected (rule, "allow", "true or false", value, error);
    rule->value[DWS_LIMIT_ALLOW] = json_is_true (value);
    return 0;
}

/* Check 'per', which says whose total the rule limits; which_total() reads it.
 */
static int check_per (const struct dws_limit_rule *rule, json_t *table,
                      json_t *value, dws_error_t *error)
{
    const char *s = json_string_value (value);

    if (!s || (strcmp (s, "user") != 0 && strcmp (s, "bank") != 0))
        return unexpected (rule, "per", "\"user\" or \"bank\"", value, error);
    if (!json_object_get (table, "total"))
        return dws_error (error, EINVAL, "rabbit.limits.%s.per: the rule has no "
                          "total", rule->name);
    return 0;
}

static enum dws_limit which_total (json_t *table)
{
    const char *s = json_string_value (json_object_get (table, "per"));

    return s && !strcmp (s, "bank") ? DWS_LIMIT_BANK : DWS_LIMIT_USER;
}

static int set_key (struct dws_limit_rule *rule, json_t *table,
                    const char *key, json_t *value, dws_error_t *error)
{
    static const char *const keys[] = {
        "user", "group", "bank", "queue", "allow", "job", "node", "total", "per", NULL
    };
    char full[160];

    if (!strcmp (key, "user"))
        return set_text (rule, key, &rule->user, value, error);
    if (!strcmp (key, "group"))
        return set_text (rule, key, &rule->group, value, error);
    if (!strcmp (key, "bank"))
        return set_text (rule, key, &rule->bank, value, error);
    if (!strcmp (key, "queue"))
        return set_text (rule, key, &rule->queue, value, error);
    if (!strcmp (key, "allow"))
        return set_allow (rule, value, error);
    if (!strcmp (key, "job"))
        return set_bytes (rule, key, DWS_LIMIT_JOB, value, error);
    if (!strcmp (key, "node"))
        return set_bytes (rule, key, DWS_LIMIT_NODE, value, error);
    if (!strcmp (key, "total"))
        return set_bytes (rule, key, which_total (table), value, error);
    if (!strcmp (key, "per"))
        return check_per (rule, table, value, error);
    snprintf (full, sizeof (full), "limits.%s.%s", rule->name, key);
    return dws_config_unknown_key (full, key, keys, error);
}

/* A rule that allows nothing would look like one that does.
 */
static int set_rule (struct dws_limit_rule *rule, const char *name,
                     json_t *table, dws_error_t *error)
{
    const char *key;
    json_t *value;
    bool any = false;

    rule->name = name;
    for (int i = 0; i < DWS_LIMIT_COUNT; i++)
        rule->value[i] = NOT_SET;
    if (strlen (name) > NAME_MAX_BYTES)
        return dws_error (error, EINVAL, "rabbit.limits.%.60s...: the name is "
                          "longer than %d bytes", name, NAME_MAX_BYTES);
    if (!json_is_object (table)) {
        char full[96];

        snprintf (full, sizeof (full), "limits.%s", name);
        return dws_config_expected (full, "a table", table, error);
    }
    json_object_foreach (table, key, value) {
        if (set_key (rule, table, key, value, error) < 0)
            return -1;
    }
    for (int i = 0; i < DWS_LIMIT_COUNT; i++)
        any |= rule->value[i] != NOT_SET;
    if (!any)
        return dws_error (error, EINVAL, "rabbit.limits.%s: one of allow, job, "
                          "node and total is required", name);
    return 0;
}

static int set_contact (struct dws_limits *limits, json_t *value,
                        dws_error_t *error)
{
    size_t len = json_string_length (value);

    if (len == 0 || len > CONTACT_MAX)
        return dws_config_expected ("limits.contact", "a text of 1 to 128 "
                                    "bytes", value, error);
    limits->contact = json_string_value (value);
    return 0;
}

struct dws_limits *dws_limits_create (json_t *table, dws_error_t *error)
{
    struct dws_limits *limits;
    const char *name;
    json_t *value;

    if (table && !json_is_object (table)) {
        dws_config_expected ("limits", "a table", table, error);
        return NULL;
    }
    if (!(limits = calloc (1, sizeof (*limits)))
        || !(limits->rules = calloc (json_object_size (table) + 1,
                                     sizeof (limits->rules[0])))) {
        free (limits);
        dws_error_nomem (error);
        return NULL;
    }
    limits->table = json_incref (table);
    limits->contact = ADMINS;
    json_object_foreach (table, name, value) {
        int rc;

        if (!strcmp (name, "contact"))
            rc = set_contact (limits, value, error);
        else
            rc = set_rule (&limits->rules[limits->count++], name, value,
                           error);
        if (rc < 0) {
            dws_limits_destroy (limits);
            return NULL;
        }
    }
    return limits;
}

void dws_limits_destroy (struct dws_limits *limits)
{
    if (limits) {
        ERRNO_SAFE_BLOCK;
        json_decref (limits->table);
        free (limits->rules);
        free (limits);
    }
}

int dws_config_check_limits (const char *name,
                             json_t *value,
                             dws_error_t *error)
{
    struct dws_limits *limits = dws_limits_create (value, error);

    (void)name;
    dws_limits_destroy (limits);
    return limits ? 0 : -1;
}

bool dws_limits_have (const struct dws_limits *limits, enum dws_limit what)
{
    for (size_t i = 0; limits && i < limits->count; i++) {
        if (limits->rules[i].value[what] != NOT_SET)
            return true;
    }
    return false;
}

bool dws_limits_any (const struct dws_limits *limits)
{
    return limits && limits->count > 0;
}

/* Matching rules to subjects
 */

static enum dws_known fits_text (const char *wanted, const char *text,
                                 bool open)
{
    if (!wanted)
        return DWS_KNOWN_YES;
    if (!text)
        return open ? DWS_KNOWN_NOT : DWS_KNOWN_NO;
    return strcmp (wanted, text) == 0 ? DWS_KNOWN_YES : DWS_KNOWN_NO;
}

/* A name, or a number.
 */
static enum dws_known fits_user (const char *wanted,
                                 const struct dws_subject *subject)
{
    char *end;
    unsigned long number;

    if (!wanted)
        return DWS_KNOWN_YES;
    number = strtoul (wanted, &end, 10);
    if (*wanted >= '0' && *wanted <= '9' && *end == '\0')
        return number == subject->userid ? DWS_KNOWN_YES : DWS_KNOWN_NO;
    return fits_text (wanted, subject->user, true);
}

/* Match the group last: looking it up may take a while.
 */
static enum dws_known fits (const struct dws_limit_rule *rule,
                            const struct dws_subject *subject)
{
    const enum dws_known known[] = {
        fits_text (rule->queue, subject->queue, false),
        fits_text (rule->bank, subject->bank, subject->bank_open),
        fits_user (rule->user, subject),
    };
    enum dws_known result = DWS_KNOWN_YES;

    for (size_t i = 0; i < sizeof (known) / sizeof (known[0]); i++) {
        if (known[i] == DWS_KNOWN_NO)
            return DWS_KNOWN_NO;
        if (known[i] == DWS_KNOWN_NOT)
            result = DWS_KNOWN_NOT;
    }
    if (!rule->group)
        return result;
    if (!subject->member)
        return DWS_KNOWN_NOT;
    switch (subject->member (rule->group, subject->arg)) {
        case DWS_KNOWN_NO:
            return DWS_KNOWN_NO;
        case DWS_KNOWN_YES:
            return result;
        default:
            return DWS_KNOWN_NOT;
    }
}

/* A job that has no bank, and gets none, counts for no bank's total.
 */
static bool concerns (const struct dws_subject *subject, enum dws_limit what)
{
    return what != DWS_LIMIT_BANK || subject->bank || subject->bank_open;
}

bool dws_limits_find (const struct dws_limits *limits,
                      const struct dws_subject *subject,
                      struct dws_applying *out)
{
    bool known = true;

    *out = (struct dws_applying){ 0 };
    for (int what = 0; what < DWS_LIMIT_COUNT; what++) {
        enum dws_known fit = DWS_KNOWN_NO;

        if (!concerns (subject, what))
            continue;
        for (size_t i = 0;
             limits && i < limits->count && fit == DWS_KNOWN_NO;
             i++) {
            const struct dws_limit_rule *rule = &limits->rules[i];

            if (rule->value[what] == NOT_SET)
                continue;
            fit = fits (rule, subject);
            if (fit == DWS_KNOWN_YES)
                out->rules[what] = rule;
        }
        out->open[what] = fit == DWS_KNOWN_NOT;
        known &= !out->open[what];
    }
    return known;
}

/* What they say
 */

int64_t dws_limits_bytes (const struct dws_applying *applying,
                          enum dws_limit what)
{
    const struct dws_limit_rule *rule = applying->rules[what];

    return rule && rule->value[what] != UNLIMITED ? rule->value[what] : -1;
}

static json_t *describe_value (enum dws_limit what, int64_t value)
{
    if (what == DWS_LIMIT_ALLOW)
        return json_boolean (value != 0);
    return value == UNLIMITED ? json_null () : json_integer (value);
}

json_t *dws_limits_describe (const struct dws_applying *applying)
{
    static const char *const keys[DWS_LIMIT_COUNT] = {
        [DWS_LIMIT_ALLOW] = "allow",
        [DWS_LIMIT_JOB] = "job",
        [DWS_LIMIT_NODE] = "node",
        [DWS_LIMIT_USER] = "user",
        [DWS_LIMIT_BANK] = "bank",
    };
    json_t *o = json_object ();

    for (int what = 0; what < DWS_LIMIT_COUNT; what++) {
        const struct dws_limit_rule *rule = applying->rules[what];

        if (rule)
            dws_json_set (&o, keys[what],
                          json_pack ("{s:s s:o}",
                                     "rule", rule->name,
                                     "value", describe_value (
                                         what, rule->value[what])));
    }
    return o;
}

int dws_limits_check (const struct dws_limits *limits,
                      const struct dws_applying *applying,
                      const struct dws_sizes *sizes,
                      dws_error_t *error)
{
    static const struct {
        enum dws_limit what;
        const char *key;
        const char *words;
    } kinds[] = {
        { DWS_LIMIT_JOB, "job", "that a job may have" },
        { DWS_LIMIT_NODE, "node", "that a job may have per node" },
        { DWS_LIMIT_USER, "total", "that a user may have at one time" },
        { DWS_LIMIT_BANK, "total", "that a bank may have at one time" },
    };
    const struct dws_limit_rule *rule = applying->rules[DWS_LIMIT_ALLOW];
    char is[DWS_SIZE_TEXT_SIZE];
    char max[DWS_CAPACITY_TEXT_SIZE];

    if (rule && rule->value[DWS_LIMIT_ALLOW] == 0)
        return dws_error (error, EPERM, "rabbit storage is not allowed for this "
                          "job by rabbit.limits.%s.allow; ask %s",
                          rule->name, limits->contact);
    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++) {
        int64_t bytes = dws_limits_bytes (applying, kinds[i].what);
        bool node = kinds[i].what == DWS_LIMIT_NODE;
        const struct dws_size *size = node ? &sizes->node : &sizes->job;

        if (bytes >= 0 && size->taken > bytes)
            return dws_error (error, EPERM, "%s the %s %s by rabbit.limits.%s.%s; "
                              "ask %s",
                              dws_size_more (size,
                                             node ? " of rabbit storage per node"
                                                  : " of rabbit storage",
                                             is),
                              dws_capacity_text (bytes, max),
                              kinds[i].words,
                              applying->rules[kinds[i].what]->name,
                              kinds[i].key,
                              limits->contact);
    }
    return 0;
}

static const char *plural (size_t count)
{
    return count == 1 ? "" : "s";
}

const char *dws_limits_text (const struct dws_applying *applying,
                             enum dws_limit what,
                             const char *bank,
                             const struct dws_in_use *use,
                             const struct dws_size *size,
                             char buf[DWS_LIMITS_TEXT_SIZE])
{
    char is[DWS_CAPACITY_TEXT_SIZE];
    char max[DWS_CAPACITY_TEXT_SIZE];
    char wanted[DWS_SIZE_TEXT_SIZE];
    char persistent[64] = "";
    char whose[128] = "its user";

    if (what == DWS_LIMIT_BANK)
        snprintf (whose, sizeof (whose), "bank %.100s", bank ? bank : "");
    if (use->persistent > 0)
        snprintf (persistent, sizeof (persistent),
                  " and %zu persistent file system%s",
                  use->persistent, plural (use->persistent));
    snprintf (buf, DWS_LIMITS_TEXT_SIZE,
              "%s: %s of the %s that %s may have are in use by "
              "%zu job%s%s (rabbit.limits.%s.total)",
              dws_size_text (size, "", wanted),
              dws_capacity_rough (use->bytes, is),
              dws_capacity_text (dws_limits_bytes (applying, what), max),
              whose,
              use->jobs, plural (use->jobs), persistent,
              applying->rules[what] ? applying->rules[what]->name : "");
    dws_whole_utf8 (buf);
    return buf;
}
