/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The text of attributes.system.dw as a list of checked #DW directives.
 *
 * Directives that are known to be wrong are rejected here, at submission, with the
 * word at fault. Words that only the cluster's own rules can judge (keys and daemons
 * that are not near to a known one, commands of the test driver) pass with a warning.
 */

#ifndef LIBDWS_DIRECTIVE_H
#define LIBDWS_DIRECTIVE_H

#include <stddef.h>
#include <jansson.h>

#include "libdws/util/error.h"

struct dws_directives;

/* Bounds on the directives of one job: users can submit any text, and the job manager
 * waits while it is parsed.
 */
struct dws_directive_limits {
    int bytes;          // of the text, before presets are put in its place
    int count;          // directives
};

/* The default for a site without a setting, and the most that a site may allow.
 */
extern const struct dws_directive_limits dws_directive_limits_default;
extern const struct dws_directive_limits dws_directive_limits_max;

/* Where a fault is: lines of 'dw', counted from 1, each string of an array
 * beginning a new one; 0 if the fault is on no line. 'other' is the line of the
 * directive that contradicts the one at fault.
 */
struct dws_directive_where {
    size_t line;
    size_t other;
};

/* Parse 'dw', a string or an array of strings. Each string holds directives
 * and names of presets, one or more to a line:
 * - words are separated by blanks and tabs; other white space, control and format
 *   characters are refused, as DWS or a person may take them for something else;
 * - the word "#DW" begins a directive, anywhere on a line;
 * - any other word that begins with '#' begins a comment, to the line's end;
 * - a line that ends in '\' goes on in the next one, as does a directive
 *   whose following line begins with a key=value word;
 * - a line without "#DW" is the name of a preset.
 * 'presets' maps a name to a string or an array of strings, or, of one that this
 * job cannot use, to {"error": TEXT} (presets.h), and may be NULL.
 * An empty or blank 'dw', or JSON null, gives an empty list; one with comments
 * only is refused.
 * 'limits' may be NULL: dws_directive_limits_max. The time is linear in the limits.
 * Returns NULL with errno EINVAL and 'error' set to a text for the user. The second
 * also sets 'where', whether or not it fails.
 */
struct dws_directives *dws_directives_parse (
    json_t *dw,
    json_t *presets,
    const struct dws_directive_limits *limits,
    dws_error_t *error);
struct dws_directives *dws_directives_parse_where (
    json_t *dw,
    json_t *presets,
    const struct dws_directive_limits *limits,
    struct dws_directive_where *where,
    dws_error_t *error);
void dws_directives_destroy (struct dws_directives *dirs);

/* Variables in paths (copy_in, copy_out, DW_GLOBAL_*), which the job's values replace.
 */
enum dws_variable {
    DWS_VARIABLE_USER = 1 << 0, // the name of its user: $USER, ${USER}
    DWS_VARIABLE_ID = 1 << 1,   // its id: {{id}}
};

/* The variables in the paths of all directives, or-ed.
 */
int dws_directives_variables (const struct dws_directives *dirs);

/* Replace the variables with 'user' and 'id'; NULL leaves a variable as it is. Fails
 * with EINVAL if the result is no path, or with ENOMEM.
 */
int dws_directives_fill (struct dws_directives *dirs, const char *user,
                         const char *id, dws_error_t *error);

/* 0 if 'dirs' is NULL.
 */
size_t dws_directives_count (const struct dws_directives *dirs);

/* The strings belong to 'dirs'. Returns NULL when 'index' is out of range or the
 * directive lacks the key (a bare key has the value "").
 * text: "#DW command key=value ...", the words joined by single spaces.
 */
const char *dws_directives_text (const struct dws_directives *dirs,
                                 size_t index);
const char *dws_directives_command (const struct dws_directives *dirs,
                                    size_t index);
const char *dws_directives_arg (const struct dws_directives *dirs,
                                size_t index,
                                const char *key);

/* The line of 'dw' on which a directive, or the preset that it is from, begins.
 * 0 when 'index' is out of range.
 */
size_t dws_directives_line (const struct dws_directives *dirs, size_t index);

/* The n-th key of a directive, for going through all of them.
 */
const char *dws_directives_key (const struct dws_directives *dirs,
                                size_t index,
                                size_t n);

/* Words that were passed on although libdws does not know them.
 */
size_t dws_directives_warning_count (const struct dws_directives *dirs);
const char *dws_directives_warning (const struct dws_directives *dirs,
                                    size_t index);

/* Read texts that have been checked, as dws_directives_encode() and DWS store them: a
 * JSON array of strings, NULL for none. Words are separated by blanks, tabs and
 * newlines; texts stay as they are. An entry that is no string, or does not begin with
 * "#DW", becomes a directive without a command. Faults are not reported: the caller is
 * past the point where a directive can be rejected. Returns NULL with errno ENOMEM.
 */
struct dws_directives *dws_directives_read (json_t *texts);

/* The texts as a new JSON array of strings. Parsing the result again gives
 * the same list. Returns NULL with errno ENOMEM.
 */
json_t *dws_directives_encode (const struct dws_directives *dirs);

#endif /* !LIBDWS_DIRECTIVE_H */
