/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * [rabbit.limits]: how much rabbit storage each subject may take.
 *
 * Each table in it is a rule: its subjects (user, group, bank, queue: all that are set
 * must match, a rule without any matches everybody) and what it allows (allow, job,
 * node, total). Sizes are compared with the bytes taken of rabbits, not with those
 * asked for. Each limit is decided by itself: by the first rule, in the order of the
 * configuration, that matches and sets it. 'total' limits one user or, with
 * per = "bank", one bank.
 */

#ifndef LIBDWS_LIMITS_H
#define LIBDWS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/storage/sizes.h"
#include "libdws/util/error.h"

enum dws_limit {
    DWS_LIMIT_ALLOW,
    DWS_LIMIT_JOB,
    DWS_LIMIT_NODE,
    DWS_LIMIT_USER,             // total
    DWS_LIMIT_BANK,             // total, per = "bank"
    DWS_LIMIT_COUNT,
};

struct dws_limits;
struct dws_limit_rule;

/* Compile the table (NULL: none). The error begins with the full name of the key at
 * fault. Fails with EINVAL or ENOMEM.
 */
struct dws_limits *dws_limits_create (json_t *table, dws_error_t *error);
void dws_limits_destroy (struct dws_limits *limits);

/* Is there any rule with this? False for NULL.
 */
bool dws_limits_have (const struct dws_limits *limits, enum dws_limit what);

/* Is there any rule at all?
 */
bool dws_limits_any (const struct dws_limits *limits);

enum dws_known {
    DWS_KNOWN_NO,
    DWS_KNOWN_YES,
    DWS_KNOWN_NOT,              // not yet
};

/* The owner of a job. The members are borrowed.
 */
struct dws_subject {
    uint32_t userid;
    const char *user;           // NULL: not known
    const char *bank;           // NULL: none
    const char *queue;          // NULL: none
    bool bank_open;             // without a bank it may get one yet
    enum dws_known (*member)(const char *group, void *arg);
                                // NULL: not known
    void *arg;
};

/* The rules that decide for a subject, owned by the limits: NULL where none does. 'open'
 * is set where the deciding rule is not known yet.
 */
struct dws_applying {
    const struct dws_limit_rule *rules[DWS_LIMIT_COUNT];
    bool open[DWS_LIMIT_COUNT];
};

/* Returns true if nothing is open.
 */
bool dws_limits_find (const struct dws_limits *limits,
                      const struct dws_subject *subject,
                      struct dws_applying *out);

/* May a job ever take what it takes, as far as that is known? Fails with EPERM and
 * a text for its owner.
 */
int dws_limits_check (const struct dws_limits *limits,
                      const struct dws_applying *applying,
                      const struct dws_sizes *sizes,
                      dws_error_t *error);

/* For programs: {"allow", "job", "node", "user", "bank"}, each of them only where a
 * rule decides, as {"rule": NAME, "value": B or BYTES, null for "unlimited"}. NULL: no
 * memory.
 */
json_t *dws_limits_describe (const struct dws_applying *applying);

/* The bytes that are allowed, -1 if there is no limit.
 */
int64_t dws_limits_bytes (const struct dws_applying *applying,
                          enum dws_limit what);

/* Storage that a user or a bank holds.
 */
struct dws_in_use {
    int64_t bytes;
    size_t jobs;
    size_t persistent;          // file systems
};

/* Why a job of this size waits for a total, for dws_job.awaits. 'bank' is for that of
 * a bank.
 */
#define DWS_LIMITS_TEXT_SIZE 512
const char *dws_limits_text (const struct dws_applying *applying,
                             enum dws_limit what,
                             const char *bank,
                             const struct dws_in_use *use,
                             const struct dws_size *size,
                             char buf[DWS_LIMITS_TEXT_SIZE]);

#endif /* !LIBDWS_LIMITS_H */
