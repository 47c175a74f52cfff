/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What is kept of Kubernetes objects with a job, for ever and where every user
 * can make more of it: so it is bounded.
 */

#ifndef LIBDWS_RECORD_H
#define LIBDWS_RECORD_H

#include <jansson.h>

/* Bytes of compact JSON, of a workflow's record and of all movements of a job.
 */
#define DWS_RECORD_MAX 65536

/* A copy of 'object' that is not larger. What is too large loses the ends of
 * long texts and arrays first, and has "truncated": true. Fails with ENOMEM.
 */
json_t *dws_record_object (json_t *object);

/* The same from text to text, to be freed. That of Kubernetes is valid: no more is
 * looked at than whether it begins as an object, if it is small enough as it is. Fails
 * with ENOMEM or EINVAL.
 */
char *dws_record_text (const char *object);

/* An array of up to 'max' of these NnfDataMovements, those that have failed
 * first, each a bounded copy, and no more than fit. Fails with ENOMEM.
 */
json_t *dws_record_movements (json_t *movements, int max);

#endif /* !LIBDWS_RECORD_H */
