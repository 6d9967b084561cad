# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Pools of workers for remote execution. docs/scale.md has the machines of each."""

# Name of the execution group of actions that need more than 1 GB. A rule with such actions declares
# it, and the platform of remote workers has the properties of its pool.
LARGE_MEMORY = "large_memory"

# The property of a worker that says which pool it is in, and its values.
POOL = "pool"
POOLS = {
    "": "default",
    LARGE_MEMORY: "large-memory",
}

def pool_properties():
    """Returns the exec_properties of a platform that has workers of all pools."""
    return {
        (group + "." if group else "") + POOL: pool
        for group, pool in POOLS.items()
    }
