// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The rules by which all of AITER's structs are read. The functions throw what they refuse.
#pragma once

#include <cstdint>
#include <string>

#include "aiter/attn.h"
#include "aiter/compat/call.h"

namespace AITER_ATTN_NAMESPACE::compat {

// The names that the structs share.
Names common_names();

// An attn_dtype. field: where the name stands; otherwise: what fp8 is left to.
int32_t dtype_of(const char* field, const std::string& data_type, const char* otherwise);

// A field that counts for nothing must be unset, so that no caller relies on it.
void require_null(const char* field, const void* pointer, const char* remedy);

void require_no_sink_size(int32_t sink_size);

// mask_type, window_size_left, window_size_right.
void set_mask(int mask_type, int left, int right, attn_problem* p);

attn_tensor tensor(const void* data, int64_t stride_batch, int64_t stride_seq, int64_t stride_head);

// lse is contiguous in the C ABI: its strides must say so. Group mode: the stride from head to head
// is that of all rows, which may be more than the caller's sequences have.
struct LseStrides {
  const char* head_field;
  int64_t head;
  const char* batch_field;
  int64_t batch;
};

void set_lse(const LseStrides& s, attn_problem* p);

}  // namespace AITER_ATTN_NAMESPACE::compat
