/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Variables in presets. In the text of a preset $NAME or ${NAME} stands for a
 * value, and $$ for a dollar. Names that begin with DW_ belong to the storage system,
 * and stay as they are. Other names are UID, USER, JOBID, QUEUE and BANK. A value is
 * one word of letters, digits and "._-/:@+,", so that it cannot become anything but a
 * part of a word.
 */

#ifndef LIBDWS_PRESETS_H
#define LIBDWS_PRESETS_H

#include <jansson.h>

#include "libdws/util/error.h"

/* In the place of $USER, to judge presets for a job whose user has no known name yet.
 */
#define DWS_PRESETS_USER "user"

/* Are all presets as they should be? Fails with EINVAL and the preset at fault, or with
 * ENOMEM.
 */
int dws_presets_check (json_t *presets, dws_error_t *error);

/* Expand the presets for one job, for dws_directives_parse(): 'values' has the variables
 * of the job, {NAME: VALUE}. A preset with a variable that is missing, or is no word,
 * becomes an object {"error": TEXT}: the parser fails if the job uses this preset.
 * Returns a new reference, NULL if 'presets' is. Fails with ENOMEM.
 */
json_t *dws_presets_bind (json_t *presets, json_t *values,
                          dws_error_t *error);

#endif /* !LIBDWS_PRESETS_H */
