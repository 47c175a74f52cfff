/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the drivers of a Workflow say of the state that it is in. The workflow's
 * own message repeats one driver's, with the number of a directive that need not
 * be the one at fault; it may be empty, or say less than the driver's error.
 */

#ifndef LIBDWS_DRIVERS_H
#define LIBDWS_DRIVERS_H

#include <stdbool.h>
#include <jansson.h>

/* The driver at fault in 'status', that of a Workflow, in words for the owner of
 * the job: "KIND error: TEXT", with the name of what is at fault where only the
 * driver's error has it; or what the driver waits for; or the workflow's message
 * without the number of a directive. "" if nobody says anything. The caller
 * frees it. Returns NULL with errno ENOMEM.
 */
char *dws_drivers_text (json_t *status);

/* Does a driver report an error, which may pass by itself?
 */
bool dws_drivers_trouble (json_t *status);

/* The rabbit whose controller a driver has waited for in vain, which nothing
 * else tells: copied to 'buf' and returned, or NULL.
 */
#define DWS_RABBIT_SIZE 256
const char *dws_drivers_silent (json_t *status, char buf[DWS_RABBIT_SIZE]);

#endif /* !LIBDWS_DRIVERS_H */
