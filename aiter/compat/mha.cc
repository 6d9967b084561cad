// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// AITER's structs become calls of the C ABI. Compiled once for each pin, with the headers of that.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "aiter/attn.h"
#include "aiter/compat/cache.h"
#include "aiter/compat/call.h"
#include "aiter/compat/hip.h"
#include "aiter/compat/questions.h"
#include "aiter/compat/reading.h"
#include "aiter/runtime/error.h"
#include "mha_bwd.h"
#include "mha_fwd.h"

namespace AITER_ATTN_NAMESPACE::compat {
namespace {

using runtime::fail;
using runtime::Field;
using runtime::refuse;
using runtime::Status;

constexpr int64_t kElementSize = 2;  // fp16, bf16
// Offsets of dropout's numbers from head to head (attn.h).
constexpr uint64_t kOffsetsPerHead = 64;

template <typename Args>
void set_lengths(const Args& a, attn_problem* p) {
  const auto pointer = [](const void* array) { return static_cast<const int32_t*>(array); };
  if (!a.is_group_mode) {
    constexpr char kBatch[] =
        " in batch mode: set is_group_mode, and seqstart_q_ptr and "
        "seqstart_k_ptr to where sequences begin";
    require_null("seqstart_q_ptr", a.seqstart_q_ptr, kBatch);
    require_null("seqstart_k_ptr", a.seqstart_k_ptr, kBatch);
    require_null("seqlen_q_ptr", a.seqlen_q_ptr, kBatch);
    require_null("seqlen_k_ptr", a.seqlen_k_ptr, kBatch);
    if (std::is_same_v<Args, ::aiter::mha_bwd_args>) {
      require_null("cu_seqlen_q_ptr", a.cu_seqlen_q_ptr, kBatch);
      require_null("cu_seqlen_k_ptr", a.cu_seqlen_k_ptr, kBatch);
    }
    p->cu_seqused_q = pointer(a.cu_seqlen_q_ptr);
    p->cu_seqused_k = pointer(a.cu_seqlen_k_ptr);
    if (a.max_seqlen_q != a.seqlen_q) {
      refuse("max_seqlen_q", a.max_seqlen_q, "must be seqlen_q, ", a.seqlen_q, ", in batch mode");
    }
    p->seqlen_q = a.seqlen_q;
    p->seqlen_k = a.seqlen_k;
    return;
  }
  // Sums that are the starts tell of no padding.
  const auto sums = [&pointer](const void* used, const void* starts) {
    return used == starts ? nullptr : pointer(used);
  };
  p->cu_seqlens_q = pointer(a.seqstart_q_ptr);
  p->cu_seqlens_k = pointer(a.seqstart_k_ptr);
  p->seqused_q = pointer(a.seqlen_q_ptr);
  p->seqused_k = pointer(a.seqlen_k_ptr);
  p->cu_seqused_q = sums(a.cu_seqlen_q_ptr, a.seqstart_q_ptr);
  p->cu_seqused_k = sums(a.cu_seqlen_k_ptr, a.seqstart_k_ptr);
  p->total_q = a.seqlen_q;
  p->total_k = a.seqlen_k;
  p->seqlen_q = a.max_seqlen_q;
}

template <typename Args>
void set_dropout(const Args& a, attn_problem* p) {
  p->dropout_p = a.p_drop;
  if (a.p_drop == 0) return;
  if (const auto* numbers = std::get_if<std::pair<uint64_t, uint64_t>>(&a.drop_seed_offset)) {
    p->dropout_seed = numbers->first;
    p->dropout_offset = numbers->second;
    return;
  }
  const auto& [seed, offset] = std::get<std::pair<const void*, const void*>>(a.drop_seed_offset);
  p->rng_state = static_cast<const uint64_t*>(seed);
  if (!seed || p->rng_state + 1 != offset) {
    fail(Status::kUnsupported, Field("drop_seed_offset"), " is the pointers ", seed, " and ",
         offset, ", but the offset must lie behind the seed, 8 bytes from it: pass two parts of ",
         "one array");
  }
}

template <typename Args>
attn_problem problem_of(const Args& a, float scale, const ck_tile::stream_config& s) {
  attn_problem p = {};
  p.struct_size = sizeof(p);
  p.mode = a.is_group_mode ? ATTN_MODE_GROUP : ATTN_MODE_BATCH;
  p.device_type = ATTN_DEVICE_ROCM;
  p.stream = s.stream_id_;
  p.dtype = dtype_of("data_type", a.data_type,
                     "call attn_fwd of aiter/attn.h, which takes its scales as numbers");
  p.batch = a.batch;
  p.heads_q = a.nhead_q;
  p.heads_k = a.nhead_k;
  p.head_size_qk = a.hdim_q;
  p.head_size_v = a.hdim_v;
  p.softmax_scale = scale;
  if (a.bias_type < 0 || a.bias_type > static_cast<int>(bias_enum::alibi)) {
    refuse("bias_type", a.bias_type, "must be 0 (none), 1 (elementwise) or 2 (ALiBi)");
  }
  p.bias = a.bias_type;
  if (p.bias != ATTN_BIAS_NONE && !a.bias_ptr) {
    refuse("bias_ptr", "NULL", "bias_type ", a.bias_type, " needs one");
  }
  set_lengths(a, &p);
  set_mask(a.mask_type, a.window_size_left, a.window_size_right, &p);
  return p;
}

template <typename Args, typename AttnArgs>
void set_operands(const Args& a, AttnArgs* args) {
  args->struct_size = sizeof(*args);
  args->q = tensor(a.q_ptr, a.batch_stride_q, a.stride_q, a.nhead_stride_q);
  args->k = tensor(a.k_ptr, a.batch_stride_k, a.stride_k, a.nhead_stride_k);
  args->v = tensor(a.v_ptr, a.batch_stride_v, a.stride_v, a.nhead_stride_v);
  args->o = tensor(a.o_ptr, a.batch_stride_o, a.stride_o, a.nhead_stride_o);
  if (a.bias_type == ATTN_BIAS_ELEMENTWISE) {
    args->bias = tensor(a.bias_ptr, a.batch_stride_bias, a.stride_bias, a.nhead_stride_bias);
  } else if (a.bias_type == ATTN_BIAS_ALIBI) {
    args->alibi_slopes = static_cast<const float*>(a.bias_ptr);
    args->alibi_stride_batch = a.stride_bias;
  }
}

int rounding_of(const char* field, int conversion) {
  if (conversion < ATTN_ROUNDING_NEAREST_EVEN || conversion > ATTN_ROUNDING_TOWARD_ZERO) {
    refuse(field, conversion,
           "must be 0 (nearest, ties to even), 1 (nearest, ties away from zero) ",
           "or 2 (toward zero)");
  }
  return conversion;
}

Forward forward_call(const ::aiter::mha_fwd_args& a, const ck_tile::stream_config& s) {
  Forward call = {problem_of(a, a.scale_s, s), {}};
  attn_problem& p = call.problem;
  if (a.qscale_type != 0) {
    fail(Status::kUnsupported, Field("qscale_type"), " is ", a.qscale_type,
         ", but must be 0: ", "scales on the device are not served");
  }
  if (a.s_randval) {
    fail(Status::kUnsupported, Field("s_randval"), " is true, but must be false: random numbers ",
         "are not stored; attn_dropout_mask of aiter/attn.h tells which weights stay");
  }
  require_no_sink_size(a.sink_size);
  p.logits_soft_cap = a.logits_soft_cap;
  set_dropout(a, &p);
  set_operands(a, &call.args);
  if (a.has_lse) {
    if (!a.lse_ptr) refuse("lse_ptr", "NULL", "has_lse needs one");
    call.args.lse = static_cast<float*>(a.lse_ptr);
    set_lse({"nhead_stride_lse", a.nhead_stride_lse, "batch_stride_lse", a.batch_stride_lse}, &p);
  }
  if (a.is_group_mode) {
    // The greatest number of keys is not told: no sequence has more than all, nor more than a row
    // of the bias has room for.
    p.seqlen_k = p.total_k;
    if (p.bias == ATTN_BIAS_ELEMENTWISE && a.stride_bias > 0) {
      p.seqlen_k = std::min<int32_t>(p.seqlen_k, a.stride_bias);
    }
    call.args.min_seqlen_q = a.min_seqlen_q;
  }
  call.args.sink = static_cast<const float*>(a.sink_ptr);
  p.device_id = current_device();
  return call;
}

float forward(const ::aiter::mha_fwd_args& a, const ck_tile::stream_config& s) {
  return run({forward_call(a, s)},
             {a.use_asm_v3, a.v3_api_check, rounding_of("how_v3_bf16_cvt", a.how_v3_bf16_cvt)}, s,
             {});
}

// Fields that not every pin has.

template <typename Args>
auto set_sink(const Args& a, attn_bwd_args* args, int) -> decltype(a.sink_ptr, void()) {
  args->sink = static_cast<const float*>(a.sink_ptr);
  args->dsink = static_cast<float*>(a.d_sink_ptr);
  if (a.sink_ptr && a.batch > 1) {
    fail(Status::kUnsupported, Field("sink_ptr"), " is ", a.sink_ptr, ", [batch, nhead_q], but ",
         "sinks that differ from batch entry to batch entry are not served: batch is ", a.batch,
         " and must be 1");
  }
}
template <typename Args>
void set_sink(const Args&, attn_bwd_args*, long) {}

template <typename Args>
auto workspace_of(const Args& a, int) -> decltype(a.workspace_alloc, WorkspaceAlloc()) {
  if (!a.workspace_alloc) return {};
  return [&alloc = a.workspace_alloc](size_t bytes) { return alloc(bytes, false); };
}
template <typename Args>
WorkspaceAlloc workspace_of(const Args&, long) {
  return {};
}

void advance(attn_tensor* t, int64_t elements) {
  if (t->data) t->data = static_cast<char*>(t->data) + elements * kElementSize;
}

void advance_all(attn_bwd_args* args, int64_t batch, int64_t key_head, int64_t group) {
  for (attn_tensor* t : {&args->q, &args->o, &args->dout, &args->dq, &args->dk, &args->dv,
                         &args->bias, &args->dbias}) {
    advance(t, batch * t->stride_batch + key_head * group * t->stride_head);
  }
  for (attn_tensor* t : {&args->k, &args->v}) {
    advance(t, batch * t->stride_batch + key_head * t->stride_head);
  }
}

// AITER's dk and dv have a head for each query head, and those of the C ABI one for each key head.
// So each query head gets a key head of its own, which lies where others' do: of one key head by a
// stride of 0; of several by calls that have one each as a batch entry, or each for itself.
std::vector<Backward> with_own_key_heads(const Backward& whole) {
  const attn_problem& p = whole.problem;
  const bool is_valid = p.heads_k >= 1 && p.heads_q % p.heads_k == 0 && p.batch >= 1;
  if (!is_valid || p.heads_k == p.heads_q) return {whole};
  const int64_t group = p.heads_q / p.heads_k;
  const auto shared = [group](Backward call) {
    call.problem.heads_q = call.problem.heads_k = static_cast<int32_t>(group);
    call.args.k.stride_head = call.args.v.stride_head = 0;
    return call;
  };
  if (p.heads_k == 1) return {shared(whole)};
  const auto unsupported = [&p](const char* field, const char* what) {
    fail(Status::kUnsupported, Field("nhead_k"), " is ", p.heads_k, " beside nhead_q ", p.heads_q,
         ", which is not served with ", what, " (", field, "): repeat k and v");
  };
  std::vector<Backward> calls;
  if (p.mode == ATTN_MODE_GROUP) {
    if (p.dropout_p != 0) unsupported("p_drop", "dropout in group mode");
    for (int64_t h = 0; h < p.heads_k; ++h) {
      Backward call = whole;
      advance_all(&call.args, 0, h, group);
      if (call.args.lse) call.args.lse += h * group * p.total_q;
      if (call.args.alibi_slopes) call.args.alibi_slopes += h * group;
      if (call.args.sink) call.args.sink += h * group;
      if (call.args.dsink) call.args.dsink += h * group;
      calls.push_back(shared(call));
    }
    return calls;
  }
  if (whole.args.sink) unsupported("sink_ptr", "a sink in batch mode");
  if (p.rng_state && p.batch > 1) {
    unsupported("drop_seed_offset", "dropout's offset on the device and more than one batch entry");
  }
  for (int64_t b = 0; b < p.batch; ++b) {
    Backward call = whole;
    advance_all(&call.args, b, 0, group);
    for (attn_tensor* t : {&call.args.q, &call.args.o, &call.args.dout, &call.args.dq,
                           &call.args.dk, &call.args.dv, &call.args.bias, &call.args.dbias}) {
      t->stride_batch = group * t->stride_head;
    }
    for (attn_tensor* t : {&call.args.k, &call.args.v}) t->stride_batch = t->stride_head;
    if (call.args.lse) call.args.lse += b * p.heads_q * p.seqlen_q;
    if (call.args.alibi_slopes) {
      call.args.alibi_slopes += b * whole.args.alibi_stride_batch;
      call.args.alibi_stride_batch = group;
    }
    call.problem.batch = p.heads_k;
    if (p.dropout_p != 0 && !p.rng_state) {
      call.problem.dropout_offset += static_cast<uint64_t>(b * p.heads_q) * kOffsetsPerHead;
    }
    calls.push_back(shared(call));
  }
  return calls;
}

std::vector<Backward> backward_calls(const ::aiter::mha_bwd_args& a,
                                     const ck_tile::stream_config& s) {
  Backward call = {problem_of(a, a.scale, s), {}};
  attn_problem& p = call.problem;
  if (a.is_store_randval) {
    fail(Status::kUnsupported, Field("is_store_randval"), " is true, but must be false: random ",
         "numbers are not stored; attn_dropout_mask of aiter/attn.h tells which weights stay");
  }
  if (a.is_group_mode) {
    p.seqlen_k = a.max_seqlen_k;
  } else if (a.max_seqlen_k != a.seqlen_k) {
    refuse("max_seqlen_k", a.max_seqlen_k, "must be seqlen_k, ", a.seqlen_k, ", in batch mode");
  }
  if (a.has_dropout) {
    if (!(std::fabs(1 - a.p_drop - a.p_undrop) <= 1e-6f)) {
      refuse("p_undrop", a.p_undrop, "must be 1 - p_drop, ", 1 - a.p_drop);
    }
    set_dropout(a, &p);
  }
  if (a.has_dbias && p.bias != ATTN_BIAS_ELEMENTWISE) {
    refuse("has_dbias", "true", "bias_type is ", a.bias_type, ": only an elementwise bias (1) has ",
           "a gradient");
  }
  set_operands(a, &call.args);
  set_sink(a, &call.args, 0);
  attn_bwd_args& args = call.args;
  args.lse = static_cast<const float*>(a.lse_ptr);
  args.dout = tensor(a.do_ptr, a.batch_stride_do, a.stride_do, a.nhead_stride_do);
  args.dq = tensor(a.dq_ptr, a.batch_stride_dq, a.stride_dq, a.nhead_stride_dq);
  args.dk = tensor(a.dk_ptr, a.batch_stride_dk, a.stride_dk, a.nhead_stride_dk);
  args.dv = tensor(a.dv_ptr, a.batch_stride_dv, a.stride_dv, a.nhead_stride_dv);
  if (a.has_dbias) {
    args.bias_grad = 1;
    args.dbias = tensor(a.dbias_ptr, a.batch_stride_dbias, a.stride_dbias, a.nhead_stride_dbias);
  }
  args.deterministic = a.is_deterministic ? 1 : 0;
  set_lse({"nhead_stride_lsed", a.nhead_stride_lsed, "batch_stride_lsed", a.batch_stride_lsed}, &p);
  p.device_id = current_device();
  return with_own_key_heads(call);
}

float backward(const ::aiter::mha_bwd_args& a, const ck_tile::stream_config& s) {
  return run(backward_calls(a, s),
             {a.use_asm_v3, a.v3_api_check, rounding_of("v3_bf16_cvt", a.v3_bf16_cvt)}, s,
             workspace_of(a, 0));
}

// In group mode the C ABI's lengths are the greatest ones.
Names forward_names(bool group) {
  Names names = common_names();
  names.insert(names.end(), {{"softmax_scale", "scale_s"}, {"rounding", "how_v3_bf16_cvt"}});
  if (group) names.emplace_back("seqlen_q", "max_seqlen_q");
  return names;
}

Names backward_names(bool group) {
  Names names = common_names();
  names.insert(names.end(), {{"softmax_scale", "scale"}, {"rounding", "v3_bf16_cvt"}});
  if (group)
    names.insert(names.end(), {{"seqlen_q", "max_seqlen_q"}, {"seqlen_k", "max_seqlen_k"}});
  return names;
}

// An address in the place of one that a question lacks: it is never followed.
const uint64_t kNowhere[2] = {};

template <typename Args>
void set_missing_pointers(Args* a) {
  if (!a->bias_ptr) a->bias_ptr = kNowhere;
  if (a->is_group_mode) {
    if (!a->seqstart_q_ptr) a->seqstart_q_ptr = kNowhere;
    if (!a->seqstart_k_ptr) a->seqstart_k_ptr = kNowhere;
  }
}

}  // namespace

bool is_served(const ::aiter::mha_fwd_args& args) {
  ::aiter::mha_fwd_args a = args;
  set_missing_pointers(&a);
  if (!a.lse_ptr) a.lse_ptr = const_cast<uint64_t*>(kNowhere);
  bool served = false;
  // A call that is wrong is not served; the reason is for whoever makes it.
  try {
    served = is_served(forward_call(a, {}), a.use_asm_v3);
  } catch (const runtime::Error&) {
  }
  return served;
}

size_t workspace_size(const ::aiter::mha_bwd_args& args) {
  ::aiter::mha_bwd_args a = args;
  set_missing_pointers(&a);
  size_t most = 0;
  answered(
      "qola::mha_bwd_workspace_size", [&] { return backward_names(a.is_group_mode); },
      [&] {
        // Which kernels will be asked for is not known.
        for (const bool use_asm : {false, true}) {
          most = std::max<size_t>(most, workspace_size(backward_calls(a, {}), use_asm));
        }
        return 0.0f;
      });
  return most;
}

}  // namespace AITER_ATTN_NAMESPACE::compat

namespace compat = ::AITER_ATTN_NAMESPACE::compat;

float aiter::mha_fwd(mha_fwd_args args, const ck_tile::stream_config& stream) {
  return compat::answered(
      "aiter::mha_fwd", [&] { return compat::forward_names(args.is_group_mode); },
      [&] { return compat::forward(args, stream); });
}

float aiter::by_offsets::mha_fwd_splitkv(mha_fwd_splitkv_args args,
                                         const ck_tile::stream_config& stream,
                                         std::string q_dtype_str, bool is_group_mode,
                                         mask_enum mask_type, bias_enum bias_type, bool has_lse,
                                         bool /*has_sink*/) {
  return compat::splitkv(args, {q_dtype_str, is_group_mode, mask_type, bias_type, has_lse}, stream);
}

float aiter::by_offsets::mha_batch_prefill(mha_batch_prefill_args args,
                                           const ck_tile::stream_config& stream,
                                           std::string q_dtype_str, bool is_group_mode,
                                           mask_enum mask_type, bias_enum bias_type, bool has_lse,
                                           quant_scale_enum qscale_type, bool /*use_ext_asm*/) {
  return compat::batch_prefill(args, {q_dtype_str, is_group_mode, mask_type, bias_type, has_lse},
                               qscale_type, stream);
}

#ifdef PIN_HAS_SPLITS
int aiter::mha_fwd_calculate_num_splits(const mha_fwd_args&) { return 1; }

size_t aiter::mha_fwd_workspace_size(const mha_fwd_args&) { return 0; }
#endif

float aiter::mha_bwd(mha_bwd_args args, const ck_tile::stream_config& stream) {
  return compat::answered(
      "aiter::mha_bwd", [&] { return compat::backward_names(args.is_group_mode); },
      [&] { return compat::backward(args, stream); });
}
