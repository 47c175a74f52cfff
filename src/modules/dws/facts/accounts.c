/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See accounts.h. A line is a sorted array: ten thousand jobs may enter in any order,
 * so places are found by binary search.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libutil/idmap.h"
#include "facts/accounts.h"
#include "facts/jobs.h"

struct accounts {
    struct idmap *users;        // userid + 1 -> struct account
    struct account *banks;
};

static void account_destroy (void *value)
{
    struct account *account = value;

    if (account) {
        ERRNO_SAFE_BLOCK;
        free (account->line);
        free (account->bank);
        free (account);
    }
}

struct accounts *accounts_create (void)
{
    struct accounts *accounts;

    if (!(accounts = calloc (1, sizeof (*accounts))))
        return NULL;
    if (!(accounts->users = idmap_create (account_destroy))) {
        accounts_destroy (accounts);
        return NULL;
    }
    return accounts;
}

void accounts_destroy (struct accounts *accounts)
{
    if (accounts) {
        ERRNO_SAFE_BLOCK;
        idmap_destroy (accounts->users);
        while (accounts->banks) {
            struct account *account = accounts->banks;

            accounts->banks = account->next;
            account_destroy (account);
        }
        free (accounts);
    }
}

struct account *accounts_user (struct accounts *accounts, uint32_t userid)
{
    uint64_t key = (uint64_t)userid + 1;
    struct account *account;

    if ((account = idmap_find (accounts->users, key)))
        return account;
    if (!(account = calloc (1, sizeof (*account))))
        return NULL;
    account->userid = userid;
    if (idmap_insert (accounts->users, key, account) < 0) {
        account_destroy (account);
        return NULL;
    }
    return account;
}

/* A linear search is enough: banks are far fewer than jobs, and each job
 * searches once.
 */
struct account *accounts_bank (struct accounts *accounts, const char *name)
{
    struct account *account = accounts->banks;

    while (account && strcmp (account->bank, name) != 0)
        account = account->next;
    if (account)
        return account;
    if (!(account = calloc (1, sizeof (*account)))
        || !(account->bank = strdup (name))) {
        account_destroy (account);
        return NULL;
    }
    account->next = accounts->banks;
    accounts->banks = account;
    return account;
}

void accounts_each (struct accounts *accounts, account_f visit, void *arg)
{
    struct account *user = idmap_next (accounts->users, 0);

    for (; user; user = idmap_next (accounts->users, (uint64_t)user->userid + 1))
        visit (user, arg);
    for (struct account *a = accounts->banks; a; a = a->next)
        visit (a, arg);
}

struct job *account_first (const struct account *account)
{
    return account && account->waiting > 0 ? account->line[0] : NULL;
}

/* The index of a job in the line, or where to insert it.
 */
static size_t find_place (const struct account *account, const struct job *job)
{
    size_t low = 0;
    size_t high = account->waiting;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (account->line[middle]->facts->id < job->facts->id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at (const struct account *account, size_t at,
                   const struct job *job)
{
    return at < account->waiting && account->line[at] == job;
}

/* If memory runs out the job is not in the line, and others may pass it.
 */
void account_enter (struct account *account, struct job *job)
{
    size_t at = find_place (account, job);

    if (is_at (account, at, job))
        return;
    if (account->waiting == account->size) {
        size_t size = account->size > 0 ? account->size * 2 : 8;
        struct job **line = realloc (account->line, size * sizeof (*line));

        if (!line)
            return;
        account->line = line;
        account->size = size;
    }
    memmove (&account->line[at + 1], &account->line[at],
             (account->waiting - at) * sizeof (*account->line));
    account->line[at] = job;
    account->waiting++;
}

bool account_leave (struct account *account, struct job *job)
{
    size_t at = find_place (account, job);

    if (!is_at (account, at, job))
        return false;
    account->waiting--;
    memmove (&account->line[at], &account->line[at + 1],
             (account->waiting - at) * sizeof (*account->line));
    return at == 0;
}
