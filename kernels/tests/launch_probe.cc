// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// launch_probe [NAME=VALUE...]: prints, for every row of the launch table, one line of JSON with
// what upstream's host code makes of a problem: kernel arguments and grid. Numbers are as in
// attn.h; pointers are given as numbers, so that the kernels can be run elsewhere on real buffers.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "kernels/launch_table/launch_table.h"

using namespace AITER_ATTN_NAMESPACE::kernels;

namespace {

class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const char* equals = std::strchr(argv[i], '=');
      if (!equals) {
        std::fprintf(stderr, "launch_probe: %s is not NAME=VALUE\n", argv[i]);
        std::exit(1);
      }
      values_[std::string(argv[i], static_cast<size_t>(equals - argv[i]))] = equals + 1;
    }
  }

  int64_t integer(const char* name, int64_t otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::atoll(found->second.c_str());
  }

  double real(const char* name, double otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::atof(found->second.c_str());
  }

  template <typename T>
  T* pointer(const char* name) const {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(integer(name, 0)));
  }

 private:
  std::map<std::string, std::string> values_;
};

attn_problem make_problem(const Options& options, bool group_mode) {
  attn_problem problem{};
  problem.device_type = ATTN_DEVICE_ROCM;
  problem.batch = static_cast<int32_t>(options.integer("batch", 2));
  problem.heads_q = static_cast<int32_t>(options.integer("heads_q", 4));
  problem.heads_k = static_cast<int32_t>(options.integer("heads_k", problem.heads_q));
  problem.head_size_qk = static_cast<int32_t>(options.integer("head_size_qk", 64));
  problem.head_size_v = static_cast<int32_t>(options.integer("head_size_v", problem.head_size_qk));
  problem.seqlen_q = static_cast<int32_t>(options.integer("seqlen_q", 200));
  problem.seqlen_k = static_cast<int32_t>(options.integer("seqlen_k", 300));
  problem.softmax_scale = static_cast<float>(options.real("softmax_scale", 0.125));
  problem.mask = static_cast<int32_t>(options.integer("mask", ATTN_MASK_BOTTOM_RIGHT));
  problem.window_left = static_cast<int32_t>(options.integer("window_left", -1));
  problem.window_right = static_cast<int32_t>(options.integer("window_right", 0));
  if (group_mode) {
    problem.total_q = static_cast<int32_t>(options.integer("total_q", 350));
    problem.total_k = static_cast<int32_t>(options.integer("total_k", 450));
    problem.cu_seqlens_q = options.pointer<const int32_t>("cu_seqlens_q");
    problem.cu_seqlens_k = options.pointer<const int32_t>("cu_seqlens_k");
  }
  return problem;
}

// Contiguous [.., seqlen, heads, size] at the address that the option `name` gives.
attn_tensor contiguous(const Options& options, const char* name, int64_t seqlen, int64_t heads,
                       int64_t size) {
  return {options.pointer<void>(name), seqlen * heads * size, heads * size, size};
}

LaunchArgs launch_args(const Options& options, bool group_mode) {
  LaunchArgs args{};
  args.problem = make_problem(options, group_mode);
  const attn_problem& p = args.problem;
  args.q = contiguous(options, "q", p.seqlen_q, p.heads_q, p.head_size_qk);
  args.k = contiguous(options, "k", p.seqlen_k, p.heads_k, p.head_size_qk);
  args.v = contiguous(options, "v", p.seqlen_k, p.heads_k, p.head_size_v);
  args.o = contiguous(options, "o", p.seqlen_q, p.heads_q, p.head_size_v);
  args.dout = contiguous(options, "dout", p.seqlen_q, p.heads_q, p.head_size_v);
  args.dq = contiguous(options, "dq", p.seqlen_q, p.heads_q, p.head_size_qk);
  args.dk = contiguous(options, "dk", p.seqlen_k, p.heads_q, p.head_size_qk);
  args.dv = contiguous(options, "dv", p.seqlen_k, p.heads_q, p.head_size_v);
  args.lse = options.pointer<float>("lse");
  args.delta = options.pointer<float>("delta");
  args.dq_acc = options.pointer<float>("dq_acc");
  args.sum_from = contiguous(options, "q", p.seqlen_k, p.heads_q, p.head_size_qk);
  args.sum_to = contiguous(options, "k", p.seqlen_k, p.heads_k, p.head_size_qk);
  args.sum_head_size = p.head_size_qk;
  return args;
}

void print_row(const Options& options, const LaunchTable& table, const Row& row) {
  alignas(16) unsigned char kernarg[kMostKernargSize];
  Launch launch{};
  launch.kernarg = kernarg;
  table.launch(row)(launch_args(options, row.traits.group_mode), &launch);
  std::printf("{\"name\": \"%s\", \"grid\": [%u, %u, %u], \"blocks\": {", table.name(row).data(),
              launch.grid[0], launch.grid[1], launch.grid[2]);
  const char* separator = "";
  for (uint32_t a = 0; a < table.arch_count(); ++a) {
    const CodeObjectRow* const object = table.object(row, static_cast<int>(a));
    if (!object) continue;
    std::printf("%s\"%s\": [%u, %u, %u]", separator, table.arch(a).data(), object->block[0],
                object->block[1], object->block[2]);
    separator = ", ";
  }
  std::printf("}, ");
  std::printf("\"kernarg_size\": %u, \"dynamic_lds\": %u, \"kernarg\": \"", row.kernarg_size,
              launch.dynamic_lds);
  for (uint32_t i = 0; i < launch.kernarg_size; ++i) std::printf("%02x", kernarg[i]);
  std::printf("\"}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  const LaunchTable& table = launch_table();
  for (uint32_t i = 0; i < table.row_count(); ++i) print_row(options, table, table.row(i));
  return 0;
}
