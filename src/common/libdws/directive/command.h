/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the commands of directives mean for the workload manager. A list that is NULL has
 * no directives.
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

/* What the directives copy out: a new array of "SOURCE -> DESTINATION". Returns NULL
 * with errno ENOMEM.
 */
json_t *dws_commands_copied_out (const struct dws_directives *dirs);

/* The name of the persistent file system that a directive creates, uses or destroys.
 * It belongs to 'dirs'; a copy of it takes so many bytes. NULL for other commands.
 */
#define DWS_PERSISTENT_NAME_SIZE 256
const char *dws_command_persistent (const struct dws_directives *dirs, size_t index);

/* How long a persistent file system is to be kept. DWS has no such key: this is for
 * Flux alone.
 */
#define DWS_LIFETIME_KEY "expires"

/* How long the directive wants its file system to be kept (s): INFINITY for one that
 * never expires, or -1 if it does not say.
 */
double dws_command_lifetime (const struct dws_directives *dirs, size_t index);

/* Take the lifetime, which DWS does not know, out of the directives: they are then as
 * DWS is to have them. '*lifetime' is set to what they said, -1 if none did. Fails with
 * ENOMEM.
 */
int dws_commands_take_lifetime (struct dws_directives *dirs, double *lifetime);

#endif /* !LIBDWS_COMMAND_H */
