/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The commands and keys of #DW directives, as one table, and the check of a
 * single directive against it. The table holds what every known rule set of
 * the DWS controllers has in common.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libdws/util/bounds.h"
#include "libdws/util/duration.h"
#include "libdws/util/spelling.h"
#include "capacity.h"
#include "command.h"
#include "grammar_private.h"
#include "hints_private.h"
#include "path_private.h"

#define MAX_KEYS 6
#define MAX_WORDS 5

enum value_type {
    V_WORD,               // one of 'words'
    V_WORDS,              // comma separated, sites may have more than 'words'
    V_NAME,
    V_OBJECT,             // the name of an object of Kubernetes
    V_LABEL,              // and the value of labels, too
    V_CAPACITY,
    V_LIFETIME,
    V_PATH,               // of storage of the job, or of a global file system
};

struct key_rule {
    const char *key;
    enum value_type type;
    bool required;
    const char *words[MAX_WORDS];
};

struct command_rule {
    const char *command;
    bool storage_keys;    // takes DW_JOB_*, DW_PERSISTENT_*, DW_GLOBAL_*
    struct key_rule keys[MAX_KEYS];
};

#define FS_TYPES { "raw", "xfs", "gfs2", "lustre" }
#define DAEMONS { "copy-offload", "user-container-auth" }

static const struct command_rule rules[] = {
    { "jobdw", false, {
        { "type", V_WORD, true, FS_TYPES },
        { "capacity", V_CAPACITY, true, { NULL } },
        { "name", V_NAME, true, { NULL } },
        { "profile", V_OBJECT, false, { NULL } },
        { "requires", V_WORDS, false, DAEMONS },
    } },
    { "create_persistent", false, {
        { "type", V_WORD, true, FS_TYPES },
        { "capacity", V_CAPACITY, false, { NULL } },
        { "name", V_LABEL, true, { NULL } },
        { "profile", V_OBJECT, false, { NULL } },
        { DWS_LIFETIME_KEY, V_LIFETIME, false, { NULL } },
    } },
    { "destroy_persistent", false, {
        { "name", V_OBJECT, true, { NULL } },
    } },
    { "persistentdw", false, {
        { "name", V_LABEL, true, { NULL } },
        { "requires", V_WORDS, false, DAEMONS },
    } },
    { "copy_in", false, {
        { "source", V_PATH, true, { NULL } },
        { "destination", V_PATH, true, { NULL } },
        { "profile", V_OBJECT, false, { NULL } },
    } },
    { "copy_out", false, {
        { "source", V_PATH, true, { NULL } },
        { "destination", V_PATH, true, { NULL } },
        { "profile", V_OBJECT, false, { NULL } },
    } },
    { "container", true, {
        { "name", V_NAME, true, { NULL } },
        { "profile", V_OBJECT, true, { NULL } },
    } },
};

static const size_t rule_count = sizeof (rules) / sizeof (rules[0]);

/* Arguments of all checks of one directive.
 */
struct check {
    const struct dws_directive *dir;
    size_t index;
    grammar_warn_f warn;
    void *warn_arg;
    size_t *line;         // of what is looked at
    dws_error_t *error;
};

#define FAULT(c, fmt, ...)                                                  \
    dws_error ((c)->error,                                                  \
               EINVAL,                                                      \
               "#DW directive %zu: " fmt,                                   \
               (c)->index + 1,                                              \
               ##__VA_ARGS__)

static void join (char *buf, size_t size, const char *word)
{
    size_t used = strlen (buf);

    snprintf (buf + used, size - used, "%s%s", used ? ", " : "", word);
}

static int warn_unknown (struct check *c, const char *what, const char *word)
{
    char text[192];

    snprintf (text,
              sizeof (text),
              "#DW directive %zu: %s '%.60s' is not known here and is left"
              " for the storage system to judge",
              c->index + 1,
              what,
              word);
    dws_whole_utf8 (text);
    if (c->warn (c->warn_arg, text) < 0)
        return dws_error_nomem (c->error);
    return 0;
}

/* Only the storage system knows the use of such a word, so the word must have nothing
 * that a shell interprets.
 */
static int check_plain (struct check *c, const char *what, const char *word,
                        bool value)
{
    char found[16];

    if (path_word_fault (word, value, found, sizeof (found)))
        return FAULT (c,
                      "%s '%.60s' has '%s' in it; if it is not known here it is"
                      " of letters, digits and %s",
                      what,
                      word,
                      found,
                      value ? "._-+=@:,/" : "._-");
    return 0;
}

static int check_path (struct check *c, const char *key, const char *value,
                       bool storage)
{
    dws_error_t why;

    if (path_check (value, storage, &why) < 0)
        return FAULT (c, "%.60s '%.60s' %s", key, value, why.text);
    return 0;
}

static int check_name (struct check *c, const char *key, const char *value)
{
    size_t len = strlen (value);
    bool ok = len >= 2 && *value >= 'a' && *value <= 'z';
    char buf[HINT_SIZE];
    const char *hint;

    if (strspn (value, "abcdefghijklmnopqrstuvwxyz0123456789-") != len)
        ok = false;
    if (!ok) {
        hint = hint_name (key, value, buf);
        return FAULT (c,
                      "%s '%.60s' must begin with a lower case letter and"
                      " have two or more characters of a-z, 0-9 and '-'%s%s",
                      key,
                      value,
                      hint ? ": " : "",
                      hint ? hint : "");
    }
    return 0;
}

/* Limits of Kubernetes for names of objects and values of labels. The name of a
 * persistent file system is both, as NNF labels its parts with it: a file system with a
 * longer name is made, and never ready, but can be destroyed.
 */
#define OBJECT_MAX 253
#define LABEL_MAX 63

static int check_object (struct check *c,
                         const char *key,
                         const char *value,
                         size_t max)
{
    size_t len = strlen (value);

    if (check_name (c, key, value) < 0)
        return -1;
    if (len > max)
        return FAULT (c,
                      "%s '%.60s' has %zu characters, there can be at most"
                      " %zu",
                      key,
                      value,
                      len,
                      max);
    if (value[len - 1] == '-')
        return FAULT (c,
                      "%s '%.60s%s' must end in one of a-z and 0-9",
                      key,
                      len > 60 ? "..." : "",
                      len > 60 ? value + len - 57 : value);
    return 0;
}

static int check_capacity (struct check *c,
                           const char *key,
                           const char *value)
{
    int64_t bytes;
    char buf[HINT_SIZE];
    const char *hint;

    if (dws_capacity_parse (value, &bytes) < 0) {
        if (errno == ERANGE)
            return FAULT (c, "%s '%.60s' is too large", key, value);
        hint = hint_capacity (key, value, buf);
        return FAULT (c,
                      "%s '%.60s' must be a whole number followed by one of "
                      DWS_CAPACITY_UNITS "%s%s",
                      key,
                      value,
                      hint ? ": " : "",
                      hint ? hint : "");
    }
    if (bytes == 0)
        return FAULT (c, "%s '%.60s' must not be zero", key, value);
    return 0;
}

static int check_lifetime (struct check *c,
                           const char *key,
                           const char *value)
{
    double seconds;

    if (dws_duration_parse (value, &seconds) < 0 || !(seconds > 0.))
        return FAULT (c,
                      "%s '%.60s' must be how long the file system is kept,"
                      " such as 30d, 12h or 90m",
                      key,
                      value);
    return 0;
}

/* A list that is not closed may include words of the site, and one of these may well be
 * the beginning of a known word: only misspellings are faults there.
 */
static int check_word (struct check *c,
                       const struct key_rule *rule,
                       const char *value,
                       bool closed)
{
    char allowed[128] = "";
    char buf[HINT_SIZE];
    const char *similar = NULL;
    const char *hint;

    for (size_t i = 0; i < MAX_WORDS && rule->words[i]; i++) {
        if (strcmp (value, rule->words[i]) == 0)
            return 0;
        if (!similar
            && (closed ? dws_is_similar (value, rule->words[i])
                       : dws_is_misspelt (value, rule->words[i])))
            similar = rule->words[i];
        join (allowed, sizeof (allowed), rule->words[i]);
    }
    if (closed && (hint = hint_type (value, buf)))
        return FAULT (c, "%s '%.60s' %s", rule->key, value, hint);
    if (similar)
        return FAULT (c,
                      "%s '%.60s' is not one of %s; did you mean '%s'?",
                      rule->key,
                      value,
                      allowed,
                      similar);
    if (closed)
        return FAULT (c,
                      "%s '%.60s' is not one of %s",
                      rule->key,
                      value,
                      allowed);
    if (check_plain (c, rule->key, value, false) < 0)
        return -1;
    return warn_unknown (c, rule->key, value);
}

static int check_words (struct check *c,
                        const struct key_rule *rule,
                        const char *value)
{
    const char *s = value;

    for (size_t count = 1;; count++) {
        size_t len = strcspn (s, ",");
        char word[64];

        if (count > DWS_MAX_LIST)
            return FAULT (c,
                          "%s has more than %d words",
                          rule->key,
                          DWS_MAX_LIST);
        if (len == 0 || len >= sizeof (word))
            return FAULT (c,
                          "%s '%.60s' must be words separated by single"
                          " commas",
                          rule->key,
                          value);
        snprintf (word, sizeof (word), "%.*s", (int)len, s);
        if (check_word (c, rule, word, false) < 0)
            return -1;
        for (const char *t = value; t < s; t += strcspn (t, ",") + 1) {
            if (strcspn (t, ",") == len && memcmp (t, s, len) == 0)
                return FAULT (c,
                              "%s '%s' is there twice",
                              rule->key,
                              word);
        }
        if (s[len] == '\0')
            return 0;
        s += len + 1;
    }
}

static int check_value (struct check *c,
                        const struct key_rule *rule,
                        const char *value)
{
    if (!value || !*value)
        return FAULT (c,
                      "'%s' needs a value: %s=...",
                      rule->key,
                      rule->key);
    switch (rule->type) {
        case V_WORD:
            return check_word (c, rule, value, true);
        case V_WORDS:
            return check_words (c, rule, value);
        case V_NAME:
            return check_name (c, rule->key, value);
        case V_OBJECT:
            return check_object (c, rule->key, value, OBJECT_MAX);
        case V_LABEL:
            return check_object (c, rule->key, value, LABEL_MAX);
        case V_CAPACITY:
            return check_capacity (c, rule->key, value);
        case V_LIFETIME:
            return check_lifetime (c, rule->key, value);
        case V_PATH:
            return check_path (c, rule->key, value, true);
    }
    return 0;
}

static int check_unknown_arg (struct check *c, const struct dws_arg *arg)
{
    *c->line = arg->line;
    if (check_plain (c, "key", arg->key, false) < 0)
        return -1;
    return arg->value ? check_plain (c, arg->key, arg->value, true) : 0;
}

static int warn_unknown_arg (struct check *c, const struct dws_arg *arg)
{
    if (check_unknown_arg (c, arg) < 0)
        return -1;
    return warn_unknown (c, "key", arg->key);
}

static int unknown_key (struct check *c,
                        const struct command_rule *rule,
                        const struct dws_arg *arg)
{
    const char *key = arg->key;
    char allowed[128] = "";
    const char *similar = NULL;

    for (size_t i = 0; i < MAX_KEYS && rule->keys[i].key; i++) {
        if (!similar && dws_is_similar (key, rule->keys[i].key))
            similar = rule->keys[i].key;
        join (allowed, sizeof (allowed), rule->keys[i].key);
    }
    if (rule->storage_keys)
        join (allowed, sizeof (allowed), "DW_(JOB|PERSISTENT|GLOBAL)_*");
    if (similar)
        return FAULT (c,
                      "unknown key '%.60s', did you mean '%s'? %s takes %s",
                      key,
                      similar,
                      rule->command,
                      allowed);
    return warn_unknown_arg (c, arg);
}

static bool is_global (const char *key)
{
    return strncmp (key, "DW_GLOBAL_", 10) == 0;
}

static bool is_storage_key (const char *key)
{
    return strncmp (key, "DW_JOB_", 7) == 0
           || strncmp (key, "DW_PERSISTENT_", 14) == 0
           || is_global (key);
}

static int check_storage_key (struct check *c, const struct dws_arg *arg)
{
    const char *name = strchr (arg->key + 3, '_') + 1;
    size_t len = strlen (name);

    if (!arg->value || !*arg->value)
        return FAULT (c, "'%.60s' needs a value", arg->key);
    if (is_global (arg->key)
        && check_path (c, arg->key, arg->value, false) < 0)
        return -1;
    if (len < 2
        || *name < 'a' || *name > 'z'
        || strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789_") != len)
        return warn_unknown_arg (c, arg);
    /* The name becomes that of a volume. */
    if (len > LABEL_MAX || name[len - 1] == '_')
        return FAULT (c,
                      "'%.60s': the name in it must end in one of a-z and 0-9,"
                      " and can have at most %d characters",
                      arg->key,
                      LABEL_MAX);
    return 0;
}

static int check_arg (struct check *c,
                      const struct command_rule *rule,
                      const struct dws_arg *arg)
{
    *c->line = arg->line;
    for (size_t i = 0; i < MAX_KEYS && rule->keys[i].key; i++) {
        if (strcmp (arg->key, rule->keys[i].key) == 0)
            return check_value (c, &rule->keys[i], arg->value);
    }
    if (rule->storage_keys && is_storage_key (arg->key))
        return check_storage_key (c, arg);
    return unknown_key (c, rule, arg);
}

static const struct command_rule *find_rule (const char *command)
{
    for (size_t i = 0; i < rule_count; i++) {
        if (strcmp (command, rules[i].command) == 0)
            return &rules[i];
    }
    return NULL;
}

/* The rule set of DWS's test driver, which a cluster may have besides that of
 * NNF, has states for commands.
 */
static bool is_test_command (const char *command)
{
    static const char *const states[] = {
        "Proposal", "Setup", "DataIn", "PreRun", "PostRun", "DataOut",
        "Teardown",
    };

    for (size_t i = 0; i < sizeof (states) / sizeof (states[0]); i++) {
        if (strcmp (command, states[i]) == 0)
            return true;
    }
    return false;
}

static int unknown_command (struct check *c)
{
    char allowed[128] = "";
    char buf[HINT_SIZE];
    const char *similar = NULL;
    const char *hint = hint_command (c->dir->command, buf);

    for (size_t i = 0; i < rule_count; i++) {
        if (!similar && dws_is_similar (c->dir->command, rules[i].command))
            similar = rules[i].command;
        join (allowed, sizeof (allowed), rules[i].command);
    }
    if (is_test_command (c->dir->command)) {
        for (size_t i = 0; i < c->dir->nargs; i++) {
            if (check_unknown_arg (c, &c->dir->args[i]) < 0)
                return -1;
        }
        return warn_unknown (c, "command", c->dir->command);
    }
    if (hint)
        return FAULT (c, "unknown command '%.60s'%s", c->dir->command, hint);
    if (similar)
        return FAULT (c,
                      "unknown command '%.60s', did you mean '%s'? Known are %s",
                      c->dir->command,
                      similar,
                      allowed);
    return FAULT (c,
                  "unknown command '%.60s'; known are %s",
                  c->dir->command,
                  allowed);
}

/* Reject words that seem to mean something, but do not.
 */
static int check_hints (struct check *c)
{
    char buf[HINT_SIZE];
    const char *hint;

    for (size_t i = 0; i < c->dir->nargs; i++) {
        if ((hint = hint_arg (c->dir, i, buf))) {
            *c->line = c->dir->args[i].line;
            return FAULT (c, "%s", hint);
        }
    }
    return 0;
}

/* A word that begins with '=', or ends in it before one that has none: the key, '=' and
 * the value are one word.
 */
static int check_blanks (struct check *c)
{
    for (size_t i = 0; i < c->dir->nargs; i++) {
        const struct dws_arg *arg = &c->dir->args[i];
        const struct dws_arg *next = i + 1 < c->dir->nargs ? arg + 1 : NULL;
        const char *key = arg->key;
        const char *value = arg->value && *arg->value ? arg->value
                            : next && !next->value ? next->key : "VALUE";

        *c->line = arg->line;
        if (*key == '\0')
            key = i > 0 ? arg[-1].key : c->dir->command;
        else if (!arg->value || *arg->value || !next || next->value)
            continue;
        return FAULT (c, "there is a blank at the '=' of '%.60s': write"
                      " '%.60s=%.60s', as one word", key, key, value);
    }
    return 0;
}

/* An example value for a key that the directive lacks.
 */
static const char *example_of (const struct key_rule *rule)
{
    switch (rule->type) {
        case V_WORD:
        case V_WORDS:
            return "xfs, gfs2, raw or lustre";
        case V_CAPACITY:
            return "10GiB, or what is needed";
        case V_PATH:
            return "PATH";
        case V_OBJECT:
            return "NAME";
        default:
            return "scratch, or another name";
    }
}

int grammar_check_directive (const struct dws_directive *dir,
                             size_t index,
                             grammar_warn_f warn,
                             void *arg,
                             size_t *line,
                             dws_error_t *error)
{
    struct check c = {
        .dir = dir,
        .index = index,
        .warn = warn,
        .warn_arg = arg,
        .line = line,
        .error = error,
    };
    const struct command_rule *rule;

    *line = dir->line;
    if (!dir->command)
        return FAULT (&c, "there is no command after '#DW'");
    if (check_blanks (&c) < 0)
        return -1;
    /* For DataWarp, a hint at the command says more than one at its arguments. */
    if ((rule = find_rule (dir->command)) && check_hints (&c) < 0)
        return -1;
    for (size_t i = 0; i < dir->nargs; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp (dir->args[i].key, dir->args[j].key) == 0) {
                *line = dir->args[i].line;
                return FAULT (&c,
                              "key '%.60s' is there twice",
                              dir->args[i].key);
            }
        }
    }
    if (!rule)
        return unknown_command (&c);
    for (size_t i = 0; i < dir->nargs; i++) {
        if (check_arg (&c, rule, &dir->args[i]) < 0)
            return -1;
    }
    *line = dir->line;
    for (size_t i = 0; i < MAX_KEYS && rule->keys[i].key; i++) {
        if (rule->keys[i].required
            && !list_arg (dir, rule->keys[i].key))
            return FAULT (&c,
                          "%s lacks '%s=': add %s=%s",
                          rule->command,
                          rule->keys[i].key,
                          rule->keys[i].key,
                          example_of (&rule->keys[i]));
    }
    return 0;
}

bool grammar_is_path (const struct dws_directive *dir, const struct dws_arg *arg)
{
    const struct command_rule *rule = find_rule (dir->command);

    for (size_t i = 0; rule && i < MAX_KEYS && rule->keys[i].key; i++) {
        if (strcmp (arg->key, rule->keys[i].key) == 0)
            return rule->keys[i].type == V_PATH;
    }
    return rule && rule->storage_keys && is_global (arg->key) && arg->value;
}
