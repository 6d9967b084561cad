// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A launch table by hand, in place of //kernels:launch_table. Its rows have the traits and tiles of
// real instances, their code objects are tiny ELF files, and their launches are made to be read
// back: kernel arguments are a copy of the launch that the row was asked for.
#pragma once

#include <string>
#include <string_view>

#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::testing {

// The kernel arguments of the table's rows.
using TestKernarg = kernels::LaunchArgs;

// The rows:
//   fwd        d64, d128; fp16, bf16; batch, group; mask, no mask; lse. pad_seqlen_k only, and in
//              batch mode also without
//   bwd_*      as fwd, padded in seqlen; d128 also padded in head size
//   sum_heads  fp16, bf16
//   dropout_mask
//   and of d64 fp16 one of each for each feature: fwd with _bias, _alibi, _dropout, _cap, and in
//   group mode _skip; bwd_dq_dk_dv with _bias (and its gradient), _alibi, _dropout, and with
//   bwd_convert_dq _det (deterministic); and of d64 fp8, batch: fwd, without lse and padding; of
//   fp8bf16 and fp8fp32 with _psk, which any number of queries and of keys is for
//   fp16, batch and group:
//   fwd_splitkv  d64, d128; mask, no mask; in place, _paged; _psk and in batch mode _npad as fwd;
//                with _psk also padded in head size, _pd
//   combine      d64, d128; lse, none; also padded in head size, _pd
//   fwd_pagedkv  d128; mask, no mask; no lse; _skip and without
//   append       d64, d128; in place and _paged; without rotary embedding, _halves and
//                _interleaved; and with _pad any number of queries and any head size
//   batch_prefill  d128; group; mask, no mask; lse
// on gfx942 and gfx950; gfx950 has no group mode of d128 forward, and the code object of
// kCorruptName does not have its digest.
inline constexpr char kCorruptName[] = "fwd_d128_bf16_group_mask_psk";
inline constexpr const char* kTestArchs[] = {"gfx942", "gfx950"};

// The row of a name; throws where there is none.
const kernels::Row& test_row(std::string_view name);
// The key of a row's code object, as 64 hex digits.
std::string test_key(std::string_view name, std::string_view arch);

// The embedded packs are two: that of the table, and one with this object, which no row has.
extern const char kKeyWithoutRow[];  // 64 hex digits
inline constexpr char kObjectWithoutRow[] = "a norm's";

}  // namespace AITER_ATTN_NAMESPACE::testing
