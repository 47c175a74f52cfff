/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The rows of the table in reconcile.c: a small function for each kind of row. The
 * table says when a row applies.
 */

#ifndef LIBDWS_ROWS_PRIVATE_H
#define LIBDWS_ROWS_PRIVATE_H

#include "row_helpers_private.h"

/* Is there a workflow?
 */
void row_look (struct view *v);

/* The way to the job's start
 */
void row_create (struct view *v);
void row_offer (struct view *v);
void row_reserve (struct view *v);
void row_offer_staged (struct view *v);
void row_keep_staged (struct view *v);
void row_unstage (struct view *v);
void row_place (struct view *v);
void row_set_up (struct view *v);
void row_next (struct view *v);
void row_mount (struct view *v);
void row_release_prolog (struct view *v);

/* In PreRun and PostRun: have NNF look at the devices of the job's nodes (touch.c).
 */
void keep_touching (struct view *v);

/* Let the job into the queue, for nodes and storage (data_first.c).
 */
void offer (struct view *v);

/* Has Computes been written, for a workflow that had its data before the job had
 * nodes? Asks for that otherwise.
 */
bool have_computes (struct view *v);

/* The prolog has taken too long: the job fails, and nothing else is to be done.
 */
bool prolog_overdue (struct view *v);

/* Trouble
 */
void row_transient (struct view *v);
void row_transient_run (struct view *v);
void row_start_over (struct view *v);
void row_fail_setup (struct view *v);
void row_replace (struct view *v);
void row_let_go (struct view *v);
void row_tear_down (struct view *v);

/* The nodes that the job does without, in PostRun and in Teardown.
 */
enum waived {
    WAIVED_NONE,                // nothing is to be done about them
    WAIVED_HANDLED,
    WAIVED_TEAR_DOWN,           // nothing else helps
};

enum waived pass_waived (struct view *v);
void keep_waived (struct view *v);

/* A stage-out that has failed and may be tried again: keep_failed() returns false
 * if it is to be given up, make_good() true when no loss is on record any more. Its
 * time limit begins at stage_out_begin().
 */
bool keep_failed (struct view *v);
bool make_good (struct view *v);
double stage_out_begin (struct view *v);

/* From the job's end on
 */
void row_unmount (struct view *v);
void row_give_up (struct view *v);
void row_lose (struct view *v);
void row_begin_teardown (struct view *v);
void row_fail_teardown (struct view *v);
void row_end (struct view *v);
void row_release_epilog (struct view *v);

/* After the job
 */
void row_finish (struct view *v);
void row_remove_workflow (struct view *v);
void row_recall (struct view *v);
void row_fetch (struct view *v);
void row_fetch_unmount (struct view *v);
void row_fetch_fail (struct view *v);
void row_undrain (struct view *v);
void row_orphan (struct view *v);
void row_abandon (struct view *v);
void row_end_abandoned (struct view *v);

#endif /* !LIBDWS_ROWS_PRIVATE_H */
