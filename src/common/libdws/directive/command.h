/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The commands of directives, and what they mean for Flux. A list that is NULL has no
 * directives.
 */

#ifndef LIBDWS_COMMAND_H
#define LIBDWS_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "directive.h"

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

/* The command of one directive, 0 if libdws knows no such command; and those of all
 * directives, or-ed.
 */
unsigned int dws_command (const struct dws_directives *dirs, size_t index);
unsigned int dws_commands (const struct dws_directives *dirs);

/* A number that tells lists of directives apart, by their texts.
 */
uint64_t dws_commands_hash (const struct dws_directives *dirs);

/* The copies that directives request after the job: a new array of
 * "SOURCE -> DESTINATION". Returns NULL with errno ENOMEM.
 */
json_t *dws_commands_copied_out (const struct dws_directives *dirs);

/* The name of the persistent file system that a directive creates, uses or destroys, as
 * a string of 'dirs' that fits into DWS_PERSISTENT_NAME_SIZE. NULL for other commands.
 */
#define DWS_PERSISTENT_NAME_SIZE 256
const char *dws_command_persistent (const struct dws_directives *dirs, size_t index);

/* The key for the lifetime of a persistent file system. DWS has no such key: only Flux
 * reads it.
 */
#define DWS_LIFETIME_KEY "expires"

/* How long the directive wants its file system to be kept (s): INFINITY for one that
 * never expires, or -1 if it does not say.
 */
double dws_command_lifetime (const struct dws_directives *dirs, size_t index);

/* Remove the lifetime from the directives before DWS gets them, as it does not know the
 * key. '*lifetime' is set to the value that they had, -1 for none. Fails with ENOMEM.
 */
int dws_commands_take_lifetime (struct dws_directives *dirs, double *lifetime);

#endif /* !LIBDWS_COMMAND_H */
