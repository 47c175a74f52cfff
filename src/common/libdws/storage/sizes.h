/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The bytes that directives ask for, and those that NNF takes of rabbits for them:
 * it has a smallest allocation, a profile may add to each, and file systems of Lustre
 * come with targets for metadata. Limits, quota and policies count what is taken.
 */

#ifndef LIBDWS_SIZES_H
#define LIBDWS_SIZES_H

#include <stdint.h>
#include <jansson.h>

#include "libdws/directive/capacity.h"
#include "libdws/directive/directive.h"
#include "breakdowns.h"

struct dws_size {
    int64_t asked;
    int64_t taken;
};

struct dws_sizes {
    struct dws_size job;        // on all nodes, over all directives
    struct dws_size node;       // on each of them; what nodes share in equal parts
};

/* Fill in the sizes of a job with these resources and directives (NULL: none), or with
 * 'type' (NULL: any) of what has that type.
 * Resources that dws_resources_apply() would refuse count as one node. Without
 * 'breakdowns' what profiles add is not known, and not in it.
 *
 * The rabbits of the nodes are not known either: storage, once laid out, may take less
 * by up to 64 KiB an allocation. dws_drives_taken() is exact then.
 */
void dws_sizes_read (json_t *resources,
                     const struct dws_directives *directives,
                     const struct dws_breakdowns *breakdowns,
                     const char *type,
                     struct dws_sizes *sizes);

/* For people: "500 GiB of rabbit storage per node, and 300 MiB of NNF's own", with
 * ' of rabbit storage per node' as 'what'. The second half is there only if more
 * is taken than was asked for.
 */
#define DWS_SIZE_TEXT_SIZE 160
const char *dws_size_text (const struct dws_size *size,
                           const char *what,
                           char buf[DWS_SIZE_TEXT_SIZE]);

/* The same as the beginning of a sentence that ends with what is allowed: "500 GiB is
 * more than", or "500 GiB, and 300 MiB of NNF's own: more than".
 */
const char *dws_size_more (const struct dws_size *size,
                           const char *what,
                           char buf[DWS_SIZE_TEXT_SIZE]);

#endif /* !LIBDWS_SIZES_H */
