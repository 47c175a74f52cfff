/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * From the text of a JSON object to the members of a struct, with no values in
 * between, and tolerant as it has to be with objects of Kubernetes: a member that is
 * not there, or of another type, leaves what is in the struct. What is read is checked
 * as jsonparse.h does; what nobody reads is passed over (jsonscan.h).
 */

#ifndef LIBDWS_JSONPICK_H
#define LIBDWS_JSONPICK_H

#include <stddef.h>
#include <jansson.h>

#include "jsonscan.h"

enum dws_pick {
    DWS_PICK_NOTHING,           // but members or entries of it
    DWS_PICK_STRING,            // struct dws_text: what it says, decoded
    DWS_PICK_TRUE,              // bool: it is true
    DWS_PICK_INTEGER,           // json_int_t
    DWS_PICK_VALUE,             // struct dws_text: as it is written. What is in an
                                //  object or array is not checked
};

/* Reads the entry that 'text' begins with, and goes past it. 'to' is where the array
 * goes, 'decoded' as below. Returns 0, or -1 with errno.
 */
typedef int (*dws_each_f) (struct dws_text *text, void *to, json_t **decoded);

/* A member that is read, and where it goes. The last one of an object has no key.
 */
struct dws_member {
    const char *key;
    const struct dws_member *members;   // of that object, or NULL
    enum dws_pick type;
    size_t offset;                      // in the struct
    dws_each_f each;                    // of that array, or NULL
};

/* Read the value that 'text' begins with, and go past it. Strings are borrowed from the
 * text, but for those that have to be decoded: these are kept in 'decoded', an array
 * that is made when it is needed, and must be NULL or one before. Fails with EINVAL, also
 * if one of these members is there twice, or with ENOMEM.
 */
int dws_text_pick (struct dws_text *text, const struct dws_member *members,
                   void *to, json_t **decoded);

/* What the string 'value' says. Returns 1, 0 if it is a value of another type, which is
 * checked, or -1 with errno as above.
 */
int dws_text_string (struct dws_text value, struct dws_text *string,
                     json_t **decoded);

/* Keep a value as long as 'decoded'. Takes over the reference. Fails with ENOMEM, also
 * if 'value' is NULL.
 */
int dws_text_keep (json_t *value, json_t **decoded);

#endif /* !LIBDWS_JSONPICK_H */
