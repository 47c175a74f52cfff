/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Reports of a Workflow's drivers about its state. The workflow's own message repeats
 * that of one driver, with the number of a directive that need not be the one at
 * fault; it may be empty, or say less than the driver's error.
 */

#ifndef LIBDWS_DRIVERS_H
#define LIBDWS_DRIVERS_H

#include <stdbool.h>
#include <jansson.h>

/* The driver at fault, in words for the owner of the job: "KIND error: TEXT", with the
 * name of what is at fault where only the driver's error has it; or what the driver
 * waits for; or the workflow's message without the number of a directive; "" if there is
 * no text. 'drivers', 'state' and 'message' are of the Workflow's status; the last may
 * be NULL. The result is in 'buf' or 'message'.
 */
#define DWS_DRIVERS_TEXT_SIZE 480
const char *dws_drivers_text (json_t *drivers, const char *state,
                              const char *message,
                              char buf[DWS_DRIVERS_TEXT_SIZE]);

/* Does a driver report an error, which may pass by itself?
 */
bool dws_drivers_trouble (json_t *drivers, const char *state);

/* Has the API server refused an object that a driver makes, for what is in it? NNF
 * reports that as an error that may pass, and tries again for ever.
 */
bool dws_drivers_refused (json_t *drivers, const char *state);

/* Is a driver still at work, and none in Error? DWS sums up the entries of drivers later
 * than they change, so the Error of the workflow may be one that has passed.
 */
bool dws_drivers_recovered (json_t *drivers, const char *state);

/* The rabbit whose controller a driver has waited for in vain, which nothing
 * else tells: copied to 'buf' and returned, or NULL.
 */
#define DWS_RABBIT_SIZE 256
const char *dws_drivers_silent (json_t *drivers, const char *state,
                                char buf[DWS_RABBIT_SIZE]);

/* Is the message one of NNF's that says that Servers has not the allocation sets that
 * the directives need? Servers has them before Setup is asked for. NNF reads it from a
 * cache, which may not have been told of that yet, and calls that fatal.
 */
bool dws_drivers_outdated (const char *message);

#endif /* !LIBDWS_DRIVERS_H */
