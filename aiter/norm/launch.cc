// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/norm/launch.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "aiter/norm/configure.h"
#include "aiter/norm/kernels.h"
#include "aiter/runtime/driver/driver.h"
#include "aiter/runtime/library_loader.h"
#include "aiter/runtime/once.h"
#include "aiter/runtime/parallel.h"
#include "kernels/norm/arguments.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

using row_kernels::Matrix;
using runtime::Driver;
using runtime::Function;
using runtime::Stream;

constexpr char kSlicesSymbol[] = "norm_backward_slices", kReduceSymbol[] = "norm_backward_reduce";

// norm_columns.cpp
constexpr int kColumnsThreads = 256;
constexpr int kMostSide = 32;  // threads that share a column's parts

// Of a run-time compile, for parallel_for: well worth a thread.
constexpr double kCompileSteps = 1e9;
constexpr double kCompileBytes = 1e8;

// The kernels of a shape on a device, ready to be launched.
struct Plan {
  Kernels kernels;
  int64_t held;  // clusters that the device holds at a time
  Function rows;
  Function slices;  // of the source of the rows, ahead of them, where they are split
  Function reduce;  // of norm_backward, from kColumnsSource
};

// The plans of a device type's GPUs, made at their first use. Threads that want the same plan wait
// for one of them to make it; others are not held up. The next call tries a failed plan again.
class Plans {
 public:
  explicit Plans(Driver& driver)
      : driver_(driver), kernels_(norm_kernels()), loader_(runtime::library_loader()) {}

  Driver& driver() { return driver_; }

  // The device must be current.
  const Plan& get(int device, const Shape& shape) {
    Entry& entry = entry_of(device, shape);
    if (const Plan* ready = entry.ready.load(std::memory_order_acquire)) return *ready;
    const std::lock_guard<std::mutex> lock(entry.mutex);
    if (!entry.plan) {
      entry.plan = std::make_unique<const Plan>(make(device, shape));
      entry.ready.store(entry.plan.get(), std::memory_order_release);
    }
    return *entry.plan;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::unique_ptr<const Plan> plan;
    std::atomic<const Plan*> ready{nullptr};
  };

  Entry& entry_of(int device, const Shape& shape) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Entry>& entry = entries_[{device, shape}];
    if (!entry) entry = std::make_unique<Entry>();
    return *entry;
  }

  Plan make(int device, const Shape& shape) {
    const std::string arch = driver_.arch(device);
    DeviceTraits traits = device_traits(arch, driver_.limits(device).lds);
    Plan plan = make(device, shape, arch, traits);
    if (plan.held == 0 && traits.bulk_copies) {
      // Not every device with clusters holds clusters as large as the table's.
      traits.bulk_copies = false;
      plan = make(device, shape, arch, traits);
    }
    if (plan.held == 0) {
      fail(Status::kUnsupported, "device ", device, " (", arch, ") cannot hold a workgroup of ",
           plan.kernels.symbol, " for rows of ", shape.hidden, " columns: use another GPU, or ",
           "arrays in host memory");
    }
    return plan;
  }

  Plan make(int device, const Shape& shape, const std::string& arch, const DeviceTraits& traits) {
    Plan plan = {configure(shape, traits), 0, nullptr, nullptr, nullptr};
    const Kernels& k = plan.kernels;
    const auto load_rows = [&] {
      const runtime::SourceCodeObject object = kernels_.code_object({k.source, k.flags}, arch);
      plan.rows = loader_.function(driver_, device, object.ref(), k.symbol);
      if (k.slices > 0)
        plan.slices = loader_.function(driver_, device, object.ref(), kSlicesSymbol);
    };
    const auto load_columns = [&] {
      const runtime::SourceCodeObject object =
          kernels_.code_object({kColumnsSource, k.columns_flags}, arch);
      plan.reduce = loader_.function(driver_, device, object.ref(), kReduceSymbol);
    };
    if (k.sums == 0) {
      load_rows();
    } else {
      // Side by side: the caller waits for the longer of two compiles.
      runtime::parallel_for({2, kCompileSteps, kCompileBytes}, [&](int64_t i, runtime::Pulse&) {
        const runtime::DeviceScope scope(driver_, device);
        i == 0 ? load_rows() : load_columns();
      });
    }
    const RowConfiguration& c = k.configuration;
    plan.held = driver_.make_resident(plan.rows, k.symbol,
                                      {static_cast<uint32_t>(c.threads),
                                       static_cast<uint32_t>(c.cluster), k.dynamic_shared_bytes});
    return plan;
  }

  Driver& driver_;
  const runtime::SourceKernels& kernels_;
  runtime::Loader& loader_;
  std::mutex mutex_;
  std::map<std::pair<int, Shape>, std::unique_ptr<Entry>> entries_;
};

Plans& plans_for(int32_t device_type) {
  static runtime::Once<Plans> cuda, rocm;
  Driver& driver = runtime::driver_for(device_type);
  return (device_type == ATTN_DEVICE_CUDA ? cuda : rocm).get([&] {
    return std::make_unique<Plans>(driver);
  });
}

int64_t hidden_of(const attn_norm_problem& p) { return p.hidden; }
int64_t hidden_of(const attn_softmax_problem& p) { return p.columns; }

// A call's plan, and its launches. The call's device is current as long as this lives.
class Launcher {
 public:
  template <typename Call>
  explicit Launcher(const Call& call)
      : plans_(plans_for(call.p.device_type)),
        scope_(plans_.driver(), call.p.device_id),
        stream_(call.p.stream),
        plan_(plans_.get(call.p.device_id, shape_of(call))),
        groups_(groups_for(plan_.kernels.configuration, call.p.rows, plan_.held)),
        is_short_(is_short(call.p.rows, hidden_of(call.p))) {}

  const Plan& plan() const { return plan_; }
  int64_t groups() const { return groups_; }

  // The kernel that takes the rows.
  template <typename Arguments>
  void launch_rows(const Arguments& arguments) {
    const RowConfiguration& c = plan_.kernels.configuration;
    runtime::KernelLaunch rows = {
        {static_cast<uint32_t>(plan_.kernels.column_ctas + groups_ * c.cluster), 1, 1},
        {static_cast<uint32_t>(c.threads), 1, 1},
        plan_.kernels.dynamic_shared_bytes};
    rows.waits_itself = plan_.kernels.waits_itself && is_short_;
    launch(plan_.rows, plan_.kernels.symbol, rows, arguments);
  }

  template <typename Arguments>
  void launch(Function function, const char* symbol, runtime::KernelLaunch launch,
              const Arguments& arguments) {
    launch.args = &arguments;
    launch.args_size = sizeof(arguments);
    plans_.driver().launch(function, symbol, launch, stream_);
  }

 private:
  Plans& plans_;
  const runtime::DeviceScope scope_;
  const Stream stream_;
  const Plan& plan_;
  const int64_t groups_;
  const bool is_short_;
};

Matrix matrix(const attn_rows& m) { return {m.data, m.stride}; }

// Of the arguments that both sources of norm_backward's have.
template <typename Arguments>
Arguments backward_arguments(const NormBackward& call) {
  Arguments a = {};
  a.x = matrix(call.x);
  a.dy = matrix(call.dy);
  a.dh = matrix(call.dh);
  a.dx = call.dx.data, a.dx_stride = call.dx.stride;
  a.gamma = call.gamma;
  a.mean = call.mean, a.rstd = call.rstd;
  a.rows = static_cast<int>(call.p.rows);
  return a;
}

// dx, and the parts of dgamma and dbeta, of rows that are split among workgroups.
void launch_split(Launcher& launcher, const NormBackward& call, const Parts& parts,
                  float* dgamma_parts, float* dbeta_parts) {
  const Kernels& k = launcher.plan().kernels;
  auto a = backward_arguments<row_kernels::NormLongArguments>(call);
  a.dgamma_parts = dgamma_parts, a.dbeta_parts = dbeta_parts;
  a.slices = dgamma_parts + k.sums * parts.count * call.p.hidden;
  a.rows_per_part = static_cast<int>(parts.rows_each);
  const runtime::KernelLaunch grid = {
      {static_cast<uint32_t>(k.slices), static_cast<uint32_t>(parts.count), 1},
      {static_cast<uint32_t>(k.configuration.threads), 1, 1},
      0};
  launcher.launch(launcher.plan().slices, kSlicesSymbol, grid, a);
  launcher.launch(launcher.plan().rows, k.symbol, grid, a);
}

// Launches with the arguments, to which it adds those that tell rows apart.
template <typename Call, typename Arguments>
void launch_rows(const Call& call, Arguments& a) {
  if (call.p.rows == 0) return;
  Launcher launcher(call);
  const bool counts = launcher.plan().kernels.configuration.on_demand != 0;
  a.rows = static_cast<int>(call.p.rows);
  a.groups = static_cast<int>(launcher.groups());
  a.counter = counts ? static_cast<row_kernels::TurnCounter*>(call.barrier) : nullptr;
  launcher.launch_rows(a);
}

}  // namespace

void launch(const NormForward& call) {
  row_kernels::NormForwardArguments a = {};
  a.x = matrix(call.x);
  a.residual = matrix(call.residual);
  a.y = call.y.data, a.y_stride = call.y.stride;
  a.sum = call.sum.data, a.sum_stride = call.sum.stride;
  a.gamma = call.gamma, a.beta = call.beta;
  a.mean = call.mean, a.rstd = call.rstd;
  a.scale = call.scale;
  a.amax = call.scales ? static_cast<float*>(call.scales) : call.amax;
  a.epsilon = call.p.epsilon;
  launch_rows(call, a);
}

void launch(const SoftmaxForward& call) {
  row_kernels::SoftmaxForwardArguments a = {};
  a.x = matrix(call.x);
  a.y = call.y.data, a.y_stride = call.y.stride;
  a.mask = call.mask;
  a.queries = static_cast<int>(call.p.queries);
  a.mask_repeat = static_cast<int>(call.p.mask_repeat);
  a.scale = call.p.scale;
  launch_rows(call, a);
}

void launch(const SoftmaxBackward& call) {
  row_kernels::SoftmaxBackwardArguments a = {};
  a.y = matrix(call.y);
  a.dy = matrix(call.dy);
  a.dx = call.dx.data, a.dx_stride = call.dx.stride;
  a.queries = static_cast<int>(call.p.queries);
  a.scale = call.p.scale;
  launch_rows(call, a);
}

void launch(const NormBackward& call) {
  const attn_norm_problem& p = call.p;
  if (p.rows == 0) {
    Driver& driver = runtime::driver_for(p.device_type);
    const runtime::DeviceScope scope(driver, p.device_id);
    const size_t bytes = static_cast<size_t>(p.hidden * dtype_size(p.weight_dtype));
    if (call.dgamma) driver.zero_rows(call.dgamma, bytes, bytes, 1, p.stream);
    if (call.dbeta) driver.zero_rows(call.dbeta, bytes, bytes, 1, p.stream);
    return;
  }
  Launcher launcher(call);
  const Kernels& k = launcher.plan().kernels;
  const Parts parts = parts_for(k, p.rows, launcher.groups());
  const uint64_t needed = workspace_bytes(k, parts, p.rows, p.hidden);
  if (needed > 0 && (!call.workspace || call.workspace_size < needed)) {
    refuse("workspace_size", call.workspace ? call.workspace_size : 0, "this problem needs ",
           needed, " bytes of device memory: ask attn_norm_bwd_workspace_size");
  }
  float* const dgamma_parts = static_cast<float*>(call.workspace);
  float* dbeta_parts = dgamma_parts;
  if (k.sums == 2) dbeta_parts += parts.count * p.hidden;
  if (k.slices > 0) {
    launch_split(launcher, call, parts, dgamma_parts, dbeta_parts);
  } else {
    auto a = backward_arguments<row_kernels::NormBackwardArguments>(call);
    a.groups = static_cast<int>(launcher.groups());
    const bool are_parts = k.sums > 0;
    a.dgamma = are_parts ? dgamma_parts : call.dgamma;
    a.dbeta = are_parts ? dbeta_parts : call.dbeta;
    launcher.launch_rows(a);
  }
  if (k.sums == 0) return;

  row_kernels::NormReduceArguments r = {};
  uint32_t wanted = 0;
  for (const auto& [from, to] : {std::pair<const float*, void*>(dgamma_parts, call.dgamma),
                                 std::pair<const float*, void*>(dbeta_parts, call.dbeta)}) {
    if (!to) continue;
    r.parts[wanted] = from;
    r.sum[wanted++] = to;
  }
  r.count = static_cast<int>(parts.count);
  r.side = 1;
  while (r.side < std::min(r.count, kMostSide)) r.side *= 2;
  const int64_t columns = int64_t{kColumnsThreads / r.side} * (k.columns_vector % 4 == 0 ? 4 : 1);
  const auto blocks = static_cast<uint32_t>((p.hidden + columns - 1) / columns);
  runtime::KernelLaunch reduce = {{blocks, wanted, 1}, {kColumnsThreads, 1, 1}, 0};
  reduce.waits_itself = k.reduce_waits_itself;
  launcher.launch(launcher.plan().reduce, kReduceSymbol, reduce, r);
}

uint64_t workspace_size(const NormBackward& call) {
  if (call.p.rows == 0) return 0;
  const Launcher launcher(call);
  const Kernels& k = launcher.plan().kernels;
  const Parts parts = parts_for(k, call.p.rows, launcher.groups());
  return workspace_bytes(k, parts, call.p.rows, call.p.hidden);
}

}  // namespace AITER_ATTN_NAMESPACE::norm
