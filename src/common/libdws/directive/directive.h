/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The text of attributes.system.dw as a list of checked #DW directives.
 *
 * What is known to be wrong is refused here, at submission, with the word at
 * fault. What only the cluster's own rules can judge (keys and daemons that are
 * not near to a known one, commands of the test driver) is passed on with a
 * warning.
 */

#ifndef LIBDWS_DIRECTIVE_H
#define LIBDWS_DIRECTIVE_H

#include <stddef.h>
#include <jansson.h>

#include "libdws/util/error.h"

struct dws_directives;

/* What one job may have: users can send what they like, and the job manager
 * has no time for more.
 */
struct dws_directive_limits {
    int bytes;          // of the text, before presets are put in its place
    int count;          // directives
};

/* What applies if a site says nothing, and the most that it may allow.
 */
extern const struct dws_directive_limits dws_directive_limits_default;
extern const struct dws_directive_limits dws_directive_limits_max;

/* Where a fault is: lines of 'dw', counted from 1, each string of an array
 * beginning a new one; 0 if it is on none. 'other' is that of the directive
 * with which the one at fault does not agree.
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
 * 'limits' may be NULL: the most that there can be. The time that is taken is linear
 * in what they allow.
 * Returns NULL with errno EINVAL and 'error' set to a text for the user. The second
 * fills in 'where', too, whether or not it fails.
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

/* What paths (of copy_in, copy_out and DW_GLOBAL_*) may have in them, for a job to be
 * filled in.
 */
enum dws_variable {
    DWS_VARIABLE_USER = 1 << 0, // the name of its user: $USER, ${USER}
    DWS_VARIABLE_ID = 1 << 1,   // its id: {{id}}
};

/* Those that are there, or-ed.
 */
int dws_directives_variables (const struct dws_directives *dirs);

/* Put 'user' and 'id' in their place; where one is NULL they stay. Fails with EINVAL if
 * a path is none with it, or with ENOMEM.
 */
int dws_directives_fill (struct dws_directives *dirs, const char *user,
                         const char *id, dws_error_t *error);

/* 0 if 'dirs' is NULL.
 */
size_t dws_directives_count (const struct dws_directives *dirs);

/* These return strings that belong to 'dirs', or NULL when 'index' is out of
 * range or the key is not there (a bare key has the value "").
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

/* Things that were passed on although libdws does not know them.
 */
size_t dws_directives_warning_count (const struct dws_directives *dirs);
const char *dws_directives_warning (const struct dws_directives *dirs,
                                    size_t index);

/* The same list of texts that have been checked, as dws_directives_encode() and DWS keep
 * them: a JSON array of strings, NULL for none. Words are separated by blanks, tabs and
 * newlines; texts stay as they are. What is no string, or has no "#DW" in front, is a
 * directive without a command. Nothing is checked: who asks is past the point where a
 * directive can be refused. Returns NULL with errno ENOMEM.
 */
struct dws_directives *dws_directives_read (json_t *texts);

/* The texts as a new JSON array of strings. Parsing the result again gives
 * the same list. Returns NULL with errno ENOMEM.
 */
json_t *dws_directives_encode (const struct dws_directives *dirs);

#endif /* !LIBDWS_DIRECTIVE_H */
