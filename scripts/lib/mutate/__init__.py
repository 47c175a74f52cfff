# Mutation testing of the C and Python sources (scripts/mutate).
# SPDX-License-Identifier: LGPL-3.0-only
