/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The words of directives that have been parsed: "#DW command key=value ...",
 * as dws_directives_text() has them and as a workflow keeps them. Nothing is
 * checked here: who asks is past the point where a directive can be refused.
 */

#ifndef LIBDWS_COMMAND_H
#define LIBDWS_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

/* Bits, so that those of a job's directives go into one number.
 */
enum dws_command {
    DWS_COMMAND_JOBDW = 1 << 0,
    DWS_COMMAND_PERSISTENTDW = 1 << 1,
    DWS_COMMAND_CREATE_PERSISTENT = 1 << 2,
    DWS_COMMAND_DESTROY_PERSISTENT = 1 << 3,
    DWS_COMMAND_COPY_IN = 1 << 4,
    DWS_COMMAND_COPY_OUT = 1 << 5,
    DWS_COMMAND_CONTAINER = 1 << 6,
};

/* The command that a directive begins with, 0 if libdws knows no such command.
 */
unsigned int dws_command (const char *directive);

/* The commands of an array of directives, or-ed. 0 if 'directives' is no array.
 */
unsigned int dws_commands (json_t *directives);

/* A number that tells arrays of directives apart.
 */
uint64_t dws_commands_hash (json_t *directives);

/* The value of 'key' in a directive, copied to 'buf' and cut to fit, or NULL
 * if the key is not there or has no value.
 */
const char *dws_command_arg (const char *directive,
                             const char *key,
                             char *buf,
                             size_t size);

/* What an array of directives has copied out: a new array of "SOURCE -> DESTINATION".
 * Returns NULL with errno ENOMEM.
 */
json_t *dws_commands_copied_out (json_t *directives);

/* How long a persistent file system is to be kept. DWS has no such key: this is for
 * Flux alone.
 */
#define DWS_LIFETIME_KEY "expires"

/* How long the directive wants its file system to be kept (s): INFINITY for one that
 * is never to go, or -1 if it does not say.
 */
double dws_command_lifetime (const char *directive);

/* The directives as DWS is to see them: a new array without these words. '*lifetime'
 * is set to what they say, -1 if none does. Returns NULL with errno ENOMEM.
 */
json_t *dws_commands_for_dws (json_t *directives, double *lifetime);

#endif /* !LIBDWS_COMMAND_H */
