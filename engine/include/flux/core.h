/* SPDX-License-Identifier: LGPL-3.0-only */
/* flux/core.h - the one header that users of libflux-core include.
 * It stands in for flux-core's where flux-core is not installed: the ABI is
 * that of version 0.88.  What each function does is in its manual page.
 */
#ifndef SOLO_FLUX_CORE_H
#define SOLO_FLUX_CORE_H

#include "core/base.h"
#include "core/conf.h"
#include "core/message.h"
#include "core/reactor.h"
#include "core/handle.h"
#include "core/dispatch.h"
#include "core/future.h"
#include "core/codec.h"
#include "core/module.h"
#include "core/plugin.h"
#include "core/kvs.h"
#include "core/job.h"
#include "core/subprocess.h"

#endif
