/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Accounts: the rabbit storage of each user and each bank, and the line of jobs that
 * are not admitted yet. Only totals.c changes the sums.
 */

#ifndef DWS_ACCOUNTS_H
#define DWS_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct accounts;
struct job;

struct account {
    char *bank;                 // NULL: of a user
    uint32_t userid;
    int64_t bytes;              // of jobs
    size_t jobs;
    int64_t persistent_bytes;
    int64_t before;             // of both, during a recount
    size_t persistent;          // file systems
    struct job **line;          // in the order of submission
    size_t waiting;             // jobs in 'line'
    size_t size;
    struct account *next;
};

struct accounts *accounts_create (void);
void accounts_destroy (struct accounts *accounts);

/* Find the account of a user or a bank, or create it. Accounts live as long as
 * 'accounts'. NULL: out of memory.
 */
struct account *accounts_user (struct accounts *accounts, uint32_t userid);
struct account *accounts_bank (struct accounts *accounts, const char *name);

typedef void (*account_f)(struct account *account, void *arg);

void accounts_each (struct accounts *accounts, account_f visit, void *arg);

/* The first of the line, or NULL. 'account' may be NULL.
 */
struct job *account_first (const struct account *account);

/* Put a job into the line, if it is not in it, or take it out. Returns true if it was
 * the first.
 */
void account_enter (struct account *account, struct job *job);
bool account_leave (struct account *account, struct job *job);

#endif /* !DWS_ACCOUNTS_H */
