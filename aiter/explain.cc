// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/explain.h"

#include <algorithm>
#include <map>
#include <set>

#include "aiter/error.h"

namespace aiter_attn {
namespace {

template <typename Range>
std::string join(const Range& values, const char* separator = ", ") {
  std::string text;
  for (const auto& value : values) text += concat(text.empty() ? "" : separator, value);
  return text;
}

std::string head_size_text(int32_t qk, int32_t v) {
  return qk == v ? concat("head size ", qk) : concat("head sizes ", qk, " (q, k) and ", v, " (v)");
}

std::string describe(const Request& r, bool forward) {
  std::string text =
      concat(dtype_name(r.dtype), ", ", head_size_text(r.head_size_qk, r.head_size_v), ", ",
             name(r.mode), " mode, ", r.mask ? "mask" : "no mask");
  if (forward) text += r.lse ? ", lse" : ", no lse";
  if (r.sum_heads) text += ", shared key heads";
  text += concat(", seqlen ", r.seqlen_q, " x ", r.seqlen_k);
  return text + concat(", on ", r.arch);
}

std::string features(const Traits& t) {
  std::vector<const char*> list;
  if (t.bias == Bias::kElementwise) list.push_back("bias");
  if (t.bias == Bias::kAlibi) list.push_back("alibi");
  if (t.bias_grad) list.push_back("bias gradient");
  if (t.dropout) list.push_back("dropout");
  if (t.logits_soft_cap) list.push_back("soft cap");
  if (t.skip_min_seqlen_q) list.push_back("skip of short queries");
  if (t.deterministic) list.push_back("deterministic dq");
  return join(list);
}

std::string archs(const Instance& instance) {
  std::vector<const char*> list;
  for (uint32_t i = 0; i < instance.code_object_count; ++i) {
    list.push_back(instance.code_objects[i].arch);
  }
  return join(list);
}

// Completes "it is for ..." / "they are for ...".
std::string reason(const Instance& instance, const Request& request) {
  const Traits& t = instance.traits;
  switch (mismatch(instance, request)) {
    case Mismatch::kDtype:
      return dtype_name(t.dtype);
    case Mismatch::kMode:
      return t.group_mode ? "group mode" : "batch mode";
    case Mismatch::kHeadSize:
      return head_size_text(t.head_size_qk, t.head_size_v) + " at most";
    case Mismatch::kFeature:
      return features(t);
    case Mismatch::kMask:
      return t.mask ? "a mask" : "no mask";
    case Mismatch::kLse:
      return t.lse ? "lse wanted (pass an lse buffer)" : "lse not wanted";
    case Mismatch::kSeqlen: {
      std::string text = "lengths in multiples of ";
      if (!t.pad_seqlen_q) text += concat(instance.tile_seqlen_q, " (q)");
      if (!t.pad_seqlen_q && !t.pad_seqlen_k) text += " and ";
      if (!t.pad_seqlen_k) text += concat(instance.tile_seqlen_k, " (k)");
      return text;
    }
    case Mismatch::kAlignment:
      return concat("head sizes in multiples of ",
                    t.pad_head_size_qk ? instance.head_size_alignment : instance.tile_head_size_qk,
                    " (q, k) ", "and ",
                    t.pad_head_size_v ? instance.head_size_alignment : instance.tile_head_size_v,
                    " (v)");
    case Mismatch::kArch:
      return archs(instance);
    case Mismatch::kNone:
      break;
  }
  return "the same, with bounds checks that are not needed here or later in order";
}

std::string explain_choice(const LaunchTable& table, const Instance& chosen,
                           const Request& request) {
  std::string text = concat(kind_name(chosen.traits.kind), ": ", chosen.name, "\n  code object ",
                            find_code_object(chosen, request.arch)->key, "\n");
  std::map<std::string, std::vector<const char*>> others;
  for (uint32_t i = 0; i < table.instance_count; ++i) {
    const Instance& instance = table.instances[i];
    if (&instance == &chosen || instance.traits.kind != chosen.traits.kind) continue;
    others[reason(instance, request)].push_back(instance.name);
  }
  for (const auto& [why, names] : others) {
    text += concat("  not ", names.size(), " for ", why, ", e.g. ", names.front(), "\n");
  }
  return text;
}

}  // namespace

std::string explain_fwd(const LaunchTable& table, const Request& request) {
  const FwdPlan plan = select_fwd(table, request);
  return concat("forward: ", describe(request, true), "\n",
                explain_choice(table, *plan.fwd, request));
}

std::string explain_bwd(const LaunchTable& table, const Request& request) {
  const BwdPlan plan = select_bwd(table, request);
  std::string text = concat("backward: ", describe(request, false), "\n");
  for (const Instance* chosen : {plan.dot_do_o, plan.dq_dk_dv, plan.convert_dq, plan.sum_heads}) {
    if (chosen) text += explain_choice(table, *chosen, request);
  }
  return text;
}

std::string explain_unsupported(const LaunchTable& table, const std::vector<Kind>& missing,
                                const Request& request) {
  const bool forward = std::count(missing.begin(), missing.end(), Kind::kFwd) != 0;
  std::string text = concat("no ", join([&] {
                              std::vector<const char*> names;
                              for (Kind kind : missing) names.push_back(kind_name(kind));
                              return names;
                            }()),
                            " kernel in this build for ", describe(request, forward), ".");

  const std::vector<std::string_view> build_archs(table.archs, table.archs + table.arch_count);
  if (!has_arch(table, request.arch)) {
    std::vector<std::string_view> wanted = build_archs;
    wanted.push_back(request.arch);
    return text + concat(" It has code for ", build_archs.empty() ? "no arch" : join(build_archs),
                         " only: build with --//kernels:archs=", join(wanted, ","));
  }

  std::set<const char*, bool (*)(const char*, const char*)> dtypes(
      [](const char* a, const char* b) { return std::string_view(a) < b; });
  std::set<std::pair<uint16_t, uint16_t>> head_sizes;
  std::set<std::string> modes;
  const Instance* nearest = nullptr;
  for (uint32_t i = 0; i < table.instance_count; ++i) {
    const Instance& instance = table.instances[i];
    const Traits& t = instance.traits;
    if (std::count(missing.begin(), missing.end(), t.kind) == 0) continue;
    dtypes.insert(dtype_name(t.dtype));
    head_sizes.insert({t.head_size_qk, t.head_size_v});
    modes.insert(t.group_mode ? "group" : "batch");
    // The last of equals: buckets grow.
    if (!nearest || mismatch(*nearest, request) <= mismatch(instance, request)) {
      nearest = &instance;
    }
  }
  if (nearest) {
    std::vector<std::string> sizes;
    for (const auto& [qk, v] : head_sizes) {
      sizes.push_back(qk == v ? std::to_string(qk) : concat(qk, "/", v));
    }
    if (mismatch(*nearest, request) != Mismatch::kNone) {
      text += concat(" The nearest, ", nearest->name, ", is for ", reason(*nearest, request), ".");
    }
    text += concat(" In the build: ", join(dtypes), "; head sizes up to ", join(sizes), "; ",
                   join(modes), " mode; ", join(build_archs), ".");
  }
  return text + concat(" Built with --//kernels:variants=", table.variant_set,
                       "; build with a wider variant set for more");
}

}  // namespace aiter_attn
