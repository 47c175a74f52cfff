/* SPDX-License-Identifier: LGPL-3.0-only */
/* job_private.h - what the job_*.c files share. */
#ifndef SOLO_JOB_PRIVATE_H
#define SOLO_JOB_PRIVATE_H

#include <stdint.h>

/* Wrap a jobspec as "J" without a signature; the caller frees it. */
char *job_sign_none (const char *payload, uint32_t userid);

#endif
