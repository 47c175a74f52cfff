/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the unit tests of reconcile.c share: the facts of a job, and what is
 * decided from them.
 */

#ifndef TEST_FACTS_H
#define TEST_FACTS_H

#include "libdws/decide/reconcile.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"

/* Each time limit is another one.
 */
extern const struct dws_policy policy;

/* A job and a workflow in some state, which a test then changes.
 */
struct facts {
    struct dws_job job;
    struct dws_workflow wf;
    struct dws_actions out;
    const struct dws_policy *policy;
};

struct facts facts (enum dws_phase phase, enum dws_state state, bool ready);

/* The names of the actions, joined by blanks.
 */
const char *decide (struct facts *f, double now);

/* The first action raises an exception of that type with text in its note.
 */
void check_raise (const struct facts *f, const char *type, const char *text);

#endif /* !TEST_FACTS_H */
