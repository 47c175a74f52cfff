/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Bounded copies of Kubernetes objects, for the record of a job. Bounds are needed since
 * the record is kept for ever, and every user can make objects larger.
 */

#ifndef LIBDWS_RECORD_H
#define LIBDWS_RECORD_H

#include <jansson.h>

/* Bytes of compact JSON, of a workflow's record and of all movements of a job.
 */
#define DWS_RECORD_MAX 65536

/* A copy of 'object' within DWS_RECORD_MAX. A larger object loses the ends of long
 * texts and arrays first, and gets "truncated": true. Fails with ENOMEM.
 */
json_t *dws_record_object (json_t *object);

/* The same from text to text; the caller frees it. Kubernetes sends valid JSON, so a text
 * within the bound is only checked to begin as an object. Fails with ENOMEM or EINVAL.
 */
char *dws_record_text (const char *object);

/* An array of up to 'max' of these NnfDataMovements, those that have failed
 * first, each a bounded copy, and no more than fit. Fails with ENOMEM.
 */
json_t *dws_record_movements (json_t *movements, int max);

#endif /* !LIBDWS_RECORD_H */
