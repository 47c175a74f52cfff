/* SPDX-License-Identifier: LGPL-3.0-only */
/* flux/taskmap.h - which tasks run on which node; opaque here. */
#ifndef SOLO_FLUX_TASKMAP_H
#define SOLO_FLUX_TASKMAP_H

struct taskmap;

#endif
