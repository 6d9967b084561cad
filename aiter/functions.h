/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the C ABI (attn.h, norm.h), by their names without attn_. A name that is added
 * here is part of the ABI for good. */
#ifndef AITER_FUNCTIONS_H_
#define AITER_FUNCTIONS_H_

/* X(name) for each of them. */
#define ATTN_FUNCTIONS(X)       \
  X(abi_version)                \
  X(append_kv)                  \
  X(bwd)                        \
  X(bwd_workspace_size)         \
  X(cache_dir)                  \
  X(code_object)                \
  X(code_object_free)           \
  X(driver_info)                \
  X(dropout_mask)               \
  X(explain_append_kv)          \
  X(explain_bwd)                \
  X(explain_fwd)                \
  X(explain_kvcache_fwd)        \
  X(fetch_code_object)          \
  X(find_code_object)           \
  X(fwd)                        \
  X(fwd_workspace_size)         \
  X(kernel_count)               \
  X(kernel_info)                \
  X(kvcache_fwd)                \
  X(kvcache_fwd_workspace_size) \
  X(last_error)                 \
  X(last_error_field)           \
  X(last_error_index)           \
  X(norm_bwd)                   \
  X(norm_bwd_workspace_size)    \
  X(norm_fwd)                   \
  X(plan_append_kv)             \
  X(plan_bwd)                   \
  X(plan_fwd)                   \
  X(plan_kvcache_fwd)           \
  X(set_cache_dir)              \
  X(set_interrupt)              \
  X(set_kernels)                \
  X(softmax_bwd)                \
  X(softmax_fwd)                \
  X(version)                    \
  X(warm_up)                    \
  X(warm_up_wait)

#endif /* AITER_FUNCTIONS_H_ */
