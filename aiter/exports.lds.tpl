/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * All that the library exports. A symbol added here is part of the ABI for good. */
{
  global:
    NAMESPACE_attn_abi_version;
    NAMESPACE_attn_bwd;
    NAMESPACE_attn_bwd_workspace_size;
    NAMESPACE_attn_code_object;
    NAMESPACE_attn_code_object_free;
    NAMESPACE_attn_driver_info;
    NAMESPACE_attn_explain_bwd;
    NAMESPACE_attn_explain_fwd;
    NAMESPACE_attn_fwd;
    NAMESPACE_attn_kernel_count;
    NAMESPACE_attn_kernel_info;
    NAMESPACE_attn_last_error;
    NAMESPACE_attn_norm_bwd;
    NAMESPACE_attn_norm_fwd;
    NAMESPACE_attn_plan_bwd;
    NAMESPACE_attn_plan_fwd;
    NAMESPACE_attn_set_interrupt;
    NAMESPACE_attn_softmax_bwd;
    NAMESPACE_attn_softmax_fwd;
    NAMESPACE_attn_version;
  local:
    *;
};
