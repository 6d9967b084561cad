// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/launch.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "aiter/dispatch.h"
#include "aiter/error.h"
#include "aiter/sum_heads.h"
#include "aiter/workspace.h"

namespace aiter_attn {
namespace {

constexpr uint32_t kMinusInfinity = 0xff800000;  // as fp32
// CK's unpadded instances load this many bytes at a time.
constexpr int64_t kVectorBytes = 16;

// One problem's way to the GPU. The problem's device is current.
class Launcher {
 public:
  Launcher(const attn_problem& p, Driver& driver, Loader& loader)
      : problem_(p), driver_(driver), loader_(loader) {}

  void launch(const Instance& instance, std::string_view arch, const KernelLaunch& launch) {
    if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) return;
    if (uint64_t{launch.grid[0]} * instance.block_size > std::numeric_limits<uint32_t>::max()) {
      fail(ATTN_ERROR_INVALID_ARGUMENT, "the problem needs ", launch.grid[0], " workgroups of ",
           instance.block_size, " for ", instance.name,
           ", more than a GPU launches at once: pass smaller batches");
    }
    const Function function =
        loader_.function(problem_.device_id, *find_code_object(instance, arch), instance.symbol);
    driver_.launch(function, instance.symbol, launch, instance.block_size, problem_.stream);
  }

  void fill(float* data, uint32_t word, uint64_t count) {
    if (count) driver_.fill_words(data, word, count, problem_.stream);
  }

  // Zeroes a tensor: as few and as wide fills as its strides allow.
  void zero(const attn_tensor& t, const Extents& e) {
    if (e.batch == 0 || e.seq == 0) return;
    const size_t element = dtype_size(problem_.dtype);
    std::vector<std::pair<int64_t, int64_t>> steps;  // stride, extent
    for (const auto& [stride, extent] :
         {std::pair(t.stride_batch, e.batch), std::pair(t.stride_seq, e.seq),
          std::pair(t.stride_head, e.heads)}) {
      if (extent > 1) steps.push_back({stride, extent});
    }
    std::sort(steps.begin(), steps.end());
    int64_t width = e.head_size;
    size_t merged = 0;
    while (merged < steps.size() && steps[merged].first == width) width *= steps[merged++].second;
    steps.erase(steps.begin(), steps.begin() + merged);
    steps.resize(3, {width, 1});

    for (int64_t i = 0; i < steps[2].second; ++i) {
      for (int64_t j = 0; j < steps[1].second; ++j) {
        char* data = static_cast<char*>(t.data) +
                     (i * steps[2].first + j * steps[1].first) * static_cast<int64_t>(element);
        driver_.zero_rows(data, steps[0].first * element, width * element, steps[0].second,
                          problem_.stream);
      }
    }
  }

 private:
  const attn_problem& problem_;
  Driver& driver_;
  Loader& loader_;
};

// The stride of a dimension with one entry means nothing; kernels still narrow it to 32 bits, and
// some size their bounds checks by it. It becomes what a contiguous tensor has.
void make_canonical(attn_tensor* t, const Extents& e, Mode mode) {
  if (e.heads <= 1) t->stride_head = e.head_size;
  if (e.seq <= 1) t->stride_seq = e.heads * e.head_size;
  if (e.batch <= 1 || mode == Mode::kGroup) t->stride_batch = 0;
}

// A window as wide as the sequences is no window; CK adds to it in 32 bits.
void make_canonical(attn_problem* p) {
  const int64_t open = int64_t{p->seqlen_q} + p->seqlen_k;
  if (p->window_left >= open) p->window_left = -1;
  if (p->window_right >= open) p->window_right = -1;
}

struct NamedTensor {
  const char* name;
  const attn_tensor& tensor;
  Extents extents;
};

void require_alignment(const std::vector<NamedTensor>& tensors, bool padded,
                       const Instance& instance, const attn_problem& p) {
  const int64_t element = static_cast<int64_t>(dtype_size(p.dtype));
  const int64_t elements = padded ? instance.head_size_alignment : kVectorBytes / element;
  if (elements <= 1) return;
  const int64_t bytes = elements * element;
  for (const NamedTensor& named : tensors) {
    const attn_tensor& t = named.tensor;
    const auto require = [&](bool holds, const char* field, int64_t value) {
      if (holds) return;
      fail(ATTN_ERROR_INVALID_ARGUMENT, named.name, ".", field, " is ", value, ", but ",
           instance.name, " loads ", bytes, " bytes at a time: data must be a multiple of ", bytes,
           " bytes and strides of ", elements, " elements; pass a contiguous copy");
    };
    require(reinterpret_cast<uintptr_t>(t.data) % bytes == 0, "data",
            static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data)));
    require(named.extents.batch <= 1 || t.stride_batch % elements == 0, "stride_batch",
            t.stride_batch);
    require(named.extents.seq <= 1 || t.stride_seq % elements == 0, "stride_seq", t.stride_seq);
    require(named.extents.heads <= 1 || t.stride_head % elements == 0, "stride_head",
            t.stride_head);
  }
}

void* at(void* base, const BwdWorkspace::Piece& piece) {
  return static_cast<char*>(base) + piece.offset;
}

attn_tensor contiguous(void* data, const Extents& e) {
  return {data, e.seq * e.heads * e.head_size, e.heads * e.head_size, e.head_size};
}

// What lies in the workspace is contiguous over all heads; kernels address one sequence of it by
// 32-bit offsets in bytes, and step from sequence to sequence by 31-bit ones in elements.
void require_addressable(const char* name, const Extents& e, int32_t seqlen, int64_t element) {
  const int64_t most = std::numeric_limits<uint32_t>::max() / std::max<int64_t>(element, 2);
  const int64_t rows = std::min<int64_t>(e.seq, seqlen);
  if (rows > most / (e.heads * e.head_size)) {
    fail(ATTN_ERROR_INVALID_ARGUMENT, name, " has ", rows, " rows of ", e.heads * e.head_size,
         " elements in a sequence, but a GPU kernel addresses ", most,
         " elements of it: split the heads over several calls");
  }
}

}  // namespace

void launch_fwd(attn_fwd_args args, Mode mode, Driver& driver, Loader& loader) {
  attn_problem& p = args.problem;
  const std::string arch = driver.arch(p.device_id);
  const Extents query = query_extents(p, mode, p.head_size_qk);
  const Extents out = query_extents(p, mode, p.head_size_v);
  const Extents key = key_extents(p, mode, p.heads_k, p.head_size_qk);
  const Extents value = key_extents(p, mode, p.heads_k, p.head_size_v);
  if (query_rows(p, mode) == 0) return;

  const DeviceScope scope(driver, p.device_id);
  Launcher launcher(p, driver, loader);
  if (key_rows(p, mode) == 0) {
    launcher.zero(args.o, out);
    if (args.lse) launcher.fill(args.lse, kMinusInfinity, query_rows(p, mode) * p.heads_q);
    return;
  }

  const Instance& fwd = *select_fwd(launch_table(), make_request(args, mode, arch)).fwd;
  require_alignment({{"q", args.q, query}, {"k", args.k, key}}, fwd.traits.pad_head_size_qk, fwd,
                    p);
  require_alignment({{"v", args.v, value}, {"o", args.o, out}}, fwd.traits.pad_head_size_v, fwd, p);

  make_canonical(&p);
  make_canonical(&args.q, query, mode);
  make_canonical(&args.k, key, mode);
  make_canonical(&args.v, value, mode);
  make_canonical(&args.o, out, mode);
  KernelLaunch launch = {};
  fwd.make_fwd(args, &launch);
  launcher.launch(fwd, arch, launch);
}

void launch_bwd(attn_bwd_args args, Mode mode, Driver& driver, Loader& loader) {
  attn_problem& p = args.problem;
  const std::string arch = driver.arch(p.device_id);
  const Extents query = query_extents(p, mode, p.head_size_qk);
  const Extents out = query_extents(p, mode, p.head_size_v);
  const Extents key = key_extents(p, mode, p.heads_k, p.head_size_qk);
  const Extents value = key_extents(p, mode, p.heads_k, p.head_size_v);
  const bool any_query = query_rows(p, mode) != 0;
  const bool any_key = key_rows(p, mode) != 0;
  if (!any_query && !any_key) return;

  const BwdWorkspace layout = bwd_workspace(p, mode);
  if (args.workspace_size < layout.size) {
    fail(ATTN_ERROR_INVALID_ARGUMENT, "workspace_size is ", args.workspace_size,
         ", but this problem needs ", layout.size, " bytes: ask attn_bwd_workspace_size");
  }
  if (layout.size != 0 && !args.workspace) {
    fail(ATTN_ERROR_INVALID_ARGUMENT, "workspace is NULL, but this problem needs ", layout.size,
         " bytes of device memory");
  }
  if (reinterpret_cast<uintptr_t>(args.workspace) % kWorkspaceAlignment != 0) {
    fail(ATTN_ERROR_INVALID_ARGUMENT, "workspace is ", args.workspace, ", but must be aligned to ",
         kWorkspaceAlignment, " bytes");
  }

  const DeviceScope scope(driver, p.device_id);
  Launcher launcher(p, driver, loader);
  if (!any_query || !any_key) {
    launcher.zero(args.dq, query);
    launcher.zero(args.dk, key);
    launcher.zero(args.dv, value);
    return;
  }

  const BwdPlan plan = select_bwd(launch_table(), make_request(args, mode, arch));
  const Instance& main = *plan.dq_dk_dv;
  require_alignment(
      {{"q", args.q, query}, {"k", args.k, key}, {"dq", args.dq, query}, {"dk", args.dk, key}},
      main.traits.pad_head_size_qk, main, p);
  require_alignment(
      {{"v", args.v, value}, {"o", args.o, out}, {"dout", args.dout, out}, {"dv", args.dv, value}},
      main.traits.pad_head_size_v, main, p);

  make_canonical(&p);
  make_canonical(&args.q, query, mode);
  make_canonical(&args.k, key, mode);
  make_canonical(&args.v, value, mode);
  make_canonical(&args.o, out, mode);
  make_canonical(&args.dout, out, mode);
  make_canonical(&args.dq, query, mode);
  make_canonical(&args.dk, key, mode);
  make_canonical(&args.dv, value, mode);

  BwdBuffers buffers = {};
  buffers.delta = static_cast<float*>(at(args.workspace, layout.delta));
  buffers.dq_acc = static_cast<float*>(at(args.workspace, layout.dq_acc));
  buffers.dk = args.dk;
  buffers.dv = args.dv;
  if (plan.sum_heads) {
    const Extents expanded_key = key_extents(p, mode, p.heads_q, p.head_size_qk);
    const Extents expanded_value = key_extents(p, mode, p.heads_q, p.head_size_v);
    const int64_t element = static_cast<int64_t>(dtype_size(p.dtype));
    require_addressable("dk, before the sum over shared heads,", expanded_key, p.seqlen_k, element);
    require_addressable("dv, before the sum over shared heads,", expanded_value, p.seqlen_k,
                        element);
    buffers.dk = contiguous(at(args.workspace, layout.dk), expanded_key);
    buffers.dv = contiguous(at(args.workspace, layout.dv), expanded_value);
  }
  require_addressable("dq, while it is summed in fp32,", query, p.seqlen_q, sizeof(float));

  const auto run = [&](const Instance& instance) {
    KernelLaunch launch = {};
    instance.make_bwd(args, buffers, &launch);
    launcher.launch(instance, arch, launch);
  };
  run(*plan.dot_do_o);
  launcher.fill(buffers.dq_acc, 0, layout.dq_acc.size / sizeof(float));
  run(*plan.dq_dk_dv);
  run(*plan.convert_dq);
  if (plan.sum_heads) {
    launcher.launch(*plan.sum_heads, arch, make_sum_heads(p, key, buffers.dk, args.dk));
    launcher.launch(*plan.sum_heads, arch, make_sum_heads(p, value, buffers.dv, args.dv));
  }
}

uint64_t bwd_workspace_size(const attn_bwd_args& args, Mode mode) {
  return bwd_workspace(args.problem, mode).size;
}

}  // namespace aiter_attn
