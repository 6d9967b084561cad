// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The fields of the C ABI's structs (attn.h, norm.h) as data: one list per struct, of which
// bindings are expansions. A field that is in a header and not in its list, or differs there, does
// not compile. attn_tensor and attn_rows, which are frozen, are values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "aiter/attn.h"
#include "aiter/norm.h"

namespace AITER_ATTN_NAMESPACE::fields {

enum class Kind {
  kStructSize,
  kReserved,
  kStruct,  // points to another struct, in host memory

  // Numbers.
  kPlace,   // where the call runs
  kExtent,  // follows from the arrays' shapes and dtypes
  kOption,  // the caller's choice
  kRandom,  // where dropout's numbers start
  kStride,  // of an array that is a pointer here

  // Memory of the problem's device.
  kTensor,  // attn_tensor
  kScores,  // attn_tensor that may be repeated: [batch, heads, queries, keys]
  kRows,    // attn_rows
  kArray,   // contiguous
  kWorkspace,
  kWorkspaceSize,

  kAnswer,  // the library's
};

// X(kind, type, name), in the order of the struct.

#define ATTN_PROBLEM_FIELDS(X)            \
  X(kStructSize, uint32_t, struct_size)   \
  X(kExtent, int32_t, mode)               \
  X(kPlace, int32_t, device_type)         \
  X(kPlace, int32_t, device_id)           \
  X(kPlace, void*, stream)                \
  X(kExtent, int32_t, dtype)              \
  X(kExtent, int32_t, batch)              \
  X(kExtent, int32_t, heads_q)            \
  X(kExtent, int32_t, heads_k)            \
  X(kExtent, int32_t, head_size_qk)       \
  X(kExtent, int32_t, head_size_v)        \
  X(kOption, int32_t, seqlen_q)           \
  X(kOption, int32_t, seqlen_k)           \
  X(kExtent, int32_t, total_q)            \
  X(kExtent, int32_t, total_k)            \
  X(kArray, const int32_t*, cu_seqlens_q) \
  X(kArray, const int32_t*, cu_seqlens_k) \
  X(kOption, float, softmax_scale)        \
  X(kOption, int32_t, mask)               \
  X(kOption, int32_t, window_left)        \
  X(kOption, int32_t, window_right)       \
  X(kOption, int32_t, bias)               \
  X(kOption, float, logits_soft_cap)      \
  X(kOption, float, dropout_p)            \
  X(kReserved, uint32_t, reserved)        \
  X(kRandom, uint64_t, dropout_seed)      \
  X(kRandom, uint64_t, dropout_offset)    \
  X(kArray, const uint64_t*, rng_state)   \
  X(kOption, int32_t, kernels)            \
  X(kOption, int32_t, rounding)           \
  X(kArray, const int32_t*, seqused_q)    \
  X(kArray, const int32_t*, seqused_k)    \
  X(kArray, const int32_t*, cu_seqused_q) \
  X(kArray, const int32_t*, cu_seqused_k)

#define ATTN_FWD_ARGS_FIELDS(X)               \
  X(kStructSize, uint32_t, struct_size)       \
  X(kReserved, uint32_t, reserved)            \
  X(kStruct, const attn_problem*, problem)    \
  X(kTensor, attn_tensor, q)                  \
  X(kTensor, attn_tensor, k)                  \
  X(kTensor, attn_tensor, v)                  \
  X(kTensor, attn_tensor, o)                  \
  X(kArray, float*, lse)                      \
  X(kScores, attn_tensor, bias)               \
  X(kArray, const float*, alibi_slopes)       \
  X(kStride, int64_t, alibi_stride_batch)     \
  X(kOption, int32_t, min_seqlen_q)           \
  X(kOption, int32_t, v_layout)               \
  X(kOption, float, descale_q)                \
  X(kOption, float, descale_k)                \
  X(kOption, float, descale_v)                \
  X(kOption, float, scale_o)                  \
  X(kWorkspace, void*, workspace)             \
  X(kWorkspaceSize, uint64_t, workspace_size) \
  X(kArray, const float*, sink)               \
  X(kExtent, int32_t, o_dtype)                \
  X(kReserved, uint32_t, reserved2)

#define ATTN_BWD_ARGS_FIELDS(X)               \
  X(kStructSize, uint32_t, struct_size)       \
  X(kReserved, uint32_t, reserved)            \
  X(kStruct, const attn_problem*, problem)    \
  X(kTensor, attn_tensor, q)                  \
  X(kTensor, attn_tensor, k)                  \
  X(kTensor, attn_tensor, v)                  \
  X(kTensor, attn_tensor, o)                  \
  X(kTensor, attn_tensor, dout)               \
  X(kArray, const float*, lse)                \
  X(kTensor, attn_tensor, dq)                 \
  X(kTensor, attn_tensor, dk)                 \
  X(kTensor, attn_tensor, dv)                 \
  X(kWorkspace, void*, workspace)             \
  X(kWorkspaceSize, uint64_t, workspace_size) \
  X(kScores, attn_tensor, bias)               \
  X(kArray, const float*, alibi_slopes)       \
  X(kStride, int64_t, alibi_stride_batch)     \
  X(kScores, attn_tensor, dbias)              \
  X(kOption, int32_t, bias_grad)              \
  X(kOption, int32_t, deterministic)          \
  X(kOption, int32_t, dbias_sums)             \
  X(kReserved, uint32_t, reserved2)           \
  X(kArray, const float*, sink)               \
  X(kArray, float*, dsink)

#define ATTN_DROPOUT_MASK_ARGS_FIELDS(X)   \
  X(kStructSize, uint32_t, struct_size)    \
  X(kReserved, uint32_t, reserved)         \
  X(kStruct, const attn_problem*, problem) \
  X(kArray, uint8_t*, kept)

#define ATTN_KVCACHE_FIELDS(X)            \
  X(kStructSize, uint32_t, struct_size)   \
  X(kExtent, int32_t, entries)            \
  X(kArray, const int32_t*, seqlens_k)    \
  X(kArray, const int32_t*, batch_index)  \
  X(kExtent, int32_t, page_size)          \
  X(kReserved, uint32_t, reserved)        \
  X(kArray, const int32_t*, block_table)  \
  X(kStride, int64_t, block_table_stride) \
  X(kArray, const int32_t*, page_indptr)  \
  X(kArray, const int32_t*, page_indices)

#define ATTN_KVCACHE_FWD_ARGS_FIELDS(X)          \
  X(kStructSize, uint32_t, struct_size)          \
  X(kOption, int32_t, splits)                    \
  X(kStruct, const attn_problem*, problem)       \
  X(kStruct, const attn_kvcache*, cache)         \
  X(kTensor, attn_tensor, q)                     \
  X(kTensor, attn_tensor, k)                     \
  X(kTensor, attn_tensor, v)                     \
  X(kTensor, attn_tensor, o)                     \
  X(kArray, float*, lse)                         \
  X(kArray, const float*, alibi_slopes)          \
  X(kStride, int64_t, alibi_stride_batch)        \
  X(kOption, int32_t, min_seqlen_q)              \
  X(kReserved, uint32_t, reserved)               \
  X(kWorkspace, void*, workspace)                \
  X(kWorkspaceSize, uint64_t, workspace_size)    \
  X(kStruct, const attn_append_kv_args*, append) \
  X(kArray, const float*, sink)

#define ATTN_APPEND_KV_ARGS_FIELDS(X)      \
  X(kStructSize, uint32_t, struct_size)    \
  X(kExtent, int32_t, seqlen_new)          \
  X(kStruct, const attn_problem*, problem) \
  X(kStruct, const attn_kvcache*, cache)   \
  X(kTensor, attn_tensor, q)               \
  X(kTensor, attn_tensor, k)               \
  X(kTensor, attn_tensor, v)               \
  X(kTensor, attn_tensor, k_new)           \
  X(kTensor, attn_tensor, v_new)           \
  X(kOption, int32_t, rotary)              \
  X(kExtent, int32_t, rotary_size)         \
  X(kArray, const void*, rotary_cos)       \
  X(kArray, const void*, rotary_sin)       \
  X(kExtent, int32_t, rotary_length)       \
  X(kReserved, uint32_t, reserved)

using CodeObjectKey = char[72];

#define ATTN_KERNEL_INFO_FIELDS(X)       \
  X(kStructSize, uint32_t, struct_size)  \
  X(kReserved, uint32_t, reserved)       \
  X(kAnswer, const char*, name)          \
  X(kAnswer, const char*, arch)          \
  X(kAnswer, const char*, kind)          \
  X(kAnswer, CodeObjectKey, key)         \
  X(kAnswer, uint64_t, code_object_size) \
  X(kAnswer, uint64_t, embedded_size)    \
  X(kAnswer, const char*, provider)

#define ATTN_NORM_PROBLEM_FIELDS(X)     \
  X(kStructSize, uint32_t, struct_size) \
  X(kOption, int32_t, kind)             \
  X(kPlace, int32_t, device_type)       \
  X(kPlace, int32_t, device_id)         \
  X(kPlace, void*, stream)              \
  X(kExtent, int64_t, rows)             \
  X(kExtent, int64_t, hidden)           \
  X(kExtent, int32_t, x_dtype)          \
  X(kExtent, int32_t, weight_dtype)     \
  X(kExtent, int32_t, y_dtype)          \
  X(kOption, int32_t, zero_centred)     \
  X(kOption, float, epsilon)            \
  X(kReserved, uint32_t, reserved)

#define ATTN_NORM_FWD_ARGS_FIELDS(X)            \
  X(kStructSize, uint32_t, struct_size)         \
  X(kReserved, uint32_t, reserved)              \
  X(kStruct, const attn_norm_problem*, problem) \
  X(kRows, attn_rows, x)                        \
  X(kRows, attn_rows, y)                        \
  X(kRows, attn_rows, residual)                 \
  X(kRows, attn_rows, sum)                      \
  X(kArray, const void*, gamma)                 \
  X(kArray, const void*, beta)                  \
  X(kArray, float*, mean)                       \
  X(kArray, float*, rstd)                       \
  X(kArray, const float*, scale)                \
  X(kArray, float*, amax)                       \
  X(kArray, void*, barrier)                     \
  X(kArray, void*, scales)                      \
  X(kOption, int32_t, scales_kind)              \
  X(kReserved, uint32_t, reserved2)

#define ATTN_NORM_BWD_ARGS_FIELDS(X)            \
  X(kStructSize, uint32_t, struct_size)         \
  X(kReserved, uint32_t, reserved)              \
  X(kStruct, const attn_norm_problem*, problem) \
  X(kRows, attn_rows, x)                        \
  X(kRows, attn_rows, dy)                       \
  X(kRows, attn_rows, dx)                       \
  X(kRows, attn_rows, dh)                       \
  X(kArray, const void*, gamma)                 \
  X(kArray, const float*, mean)                 \
  X(kArray, const float*, rstd)                 \
  X(kArray, void*, dgamma)                      \
  X(kArray, void*, dbeta)                       \
  X(kWorkspace, void*, workspace)               \
  X(kWorkspaceSize, uint64_t, workspace_size)

#define ATTN_SOFTMAX_PROBLEM_FIELDS(X)  \
  X(kStructSize, uint32_t, struct_size) \
  X(kOption, int32_t, mask_kind)        \
  X(kPlace, int32_t, device_type)       \
  X(kPlace, int32_t, device_id)         \
  X(kPlace, void*, stream)              \
  X(kExtent, int64_t, rows)             \
  X(kExtent, int64_t, columns)          \
  X(kExtent, int64_t, queries)          \
  X(kExtent, int64_t, mask_repeat)      \
  X(kExtent, int32_t, dtype)            \
  X(kOption, float, scale)

#define ATTN_SOFTMAX_FWD_ARGS_FIELDS(X)            \
  X(kStructSize, uint32_t, struct_size)            \
  X(kReserved, uint32_t, reserved)                 \
  X(kStruct, const attn_softmax_problem*, problem) \
  X(kRows, attn_rows, x)                           \
  X(kRows, attn_rows, y)                           \
  X(kArray, const uint8_t*, mask)                  \
  X(kArray, void*, barrier)

#define ATTN_SOFTMAX_BWD_ARGS_FIELDS(X)            \
  X(kStructSize, uint32_t, struct_size)            \
  X(kReserved, uint32_t, reserved)                 \
  X(kStruct, const attn_softmax_problem*, problem) \
  X(kRows, attn_rows, y)                           \
  X(kRows, attn_rows, dy)                          \
  X(kRows, attn_rows, dx)                          \
  X(kArray, void*, barrier)

template <typename Struct>
struct List;

constexpr size_t sum(std::initializer_list<size_t> sizes) {
  size_t all = 0;
  for (const size_t size : sizes) all += size;
  return all;
}

#define ATTN_FIELD_DECLARED(kind, type, name) type name;
#define ATTN_FIELD_SIZE(kind, type, name) sizeof(type),
#define ATTN_FIELD_HELD(kind, type, name)                                 \
  static_assert(offsetof(Listed, name) == offsetof(Struct, name), #name); \
  static_assert(std::is_same_v<type, decltype(Struct::name)>, #name);
#define ATTN_FIELD_VISITED(kind, type, name) \
  visit(std::integral_constant<Kind, Kind::kind>{}, #name, &Struct::name);

// The list of a struct, held to it: the same fields with the same types at the same places, none
// missing, and no room between them.
#define ATTN_FIELDS(structure, FIELDS)                                                      \
  template <>                                                                               \
  struct List<structure> {                                                                  \
    using Struct = structure;                                                               \
    struct Listed {                                                                         \
      FIELDS(ATTN_FIELD_DECLARED)                                                           \
    };                                                                                      \
    static_assert(sum({FIELDS(ATTN_FIELD_SIZE)}) == sizeof(Struct), #structure " differs"); \
    FIELDS(ATTN_FIELD_HELD)                                                                 \
    template <typename Visit>                                                               \
    static void each(const Visit& visit) {                                                  \
      FIELDS(ATTN_FIELD_VISITED)                                                            \
    }                                                                                       \
  };

ATTN_FIELDS(attn_problem, ATTN_PROBLEM_FIELDS)
ATTN_FIELDS(attn_fwd_args, ATTN_FWD_ARGS_FIELDS)
ATTN_FIELDS(attn_bwd_args, ATTN_BWD_ARGS_FIELDS)
ATTN_FIELDS(attn_dropout_mask_args, ATTN_DROPOUT_MASK_ARGS_FIELDS)
ATTN_FIELDS(attn_kvcache, ATTN_KVCACHE_FIELDS)
ATTN_FIELDS(attn_kvcache_fwd_args, ATTN_KVCACHE_FWD_ARGS_FIELDS)
ATTN_FIELDS(attn_append_kv_args, ATTN_APPEND_KV_ARGS_FIELDS)
ATTN_FIELDS(attn_kernel_info_t, ATTN_KERNEL_INFO_FIELDS)
ATTN_FIELDS(attn_norm_problem, ATTN_NORM_PROBLEM_FIELDS)
ATTN_FIELDS(attn_norm_fwd_args, ATTN_NORM_FWD_ARGS_FIELDS)
ATTN_FIELDS(attn_norm_bwd_args, ATTN_NORM_BWD_ARGS_FIELDS)
ATTN_FIELDS(attn_softmax_problem, ATTN_SOFTMAX_PROBLEM_FIELDS)
ATTN_FIELDS(attn_softmax_fwd_args, ATTN_SOFTMAX_FWD_ARGS_FIELDS)
ATTN_FIELDS(attn_softmax_bwd_args, ATTN_SOFTMAX_BWD_ARGS_FIELDS)

// visit(kind, name, member) for each field: kind is an integral_constant, member a pointer to it.
template <typename Struct, typename Visit>
void for_each_field(const Visit& visit) {
  List<Struct>::each(visit);
}

}  // namespace AITER_ATTN_NAMESPACE::fields
