// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// measure HEADERS_AND_SOURCE... -- COUNT ARCH FLAG...: the cost of a first use. Compiles the last
// file COUNT times, each time another kernel (-DKERNEL=i) through the cache, and reads all of them
// back in a second pass. Prints milliseconds: the first compile, with the opening of the compiler,
// the median, the greatest; of the wall clock, and of the processor, which another program's load
// does not change; and the same from the cache. Peak memory shows whether NVRTC gives its memory
// back. NVRTC 13 has a cache of its own where there is a driver: CUDA_CACHE_DISABLE=1.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "aiter/runtime/rtc/compiling.h"
#include "aiter/runtime/source_kernels.h"
#include "aiter/runtime/store/cache.h"

namespace {

using namespace AITER_ATTN_NAMESPACE::runtime;
using Clock = std::chrono::steady_clock;

double processor_ms() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

void print(const char* what, std::vector<double> times) {
  const double first = times.front();
  std::sort(times.begin(), times.end());
  std::printf("%s: first %.2f ms, median %.2f ms, greatest %.2f ms\n", what, first,
              times[times.size() / 2], times.back());
}

// Removed at the end.
struct TemporaryFolder {
  TemporaryFolder() {
    if (!mkdtemp(path)) throw std::runtime_error(std::string("cannot make ") + path);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  char path[sizeof("/tmp/measure.XXXXXX")] = "/tmp/measure.XXXXXX";
};

}  // namespace

int main(int argc, char** argv) try {
  SourceKernelsOptions options;
  int i = 1;
  for (; i < argc && std::string(argv[i]) != "--"; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    const std::filesystem::path path = argv[i];
    options.headers.push_back({path.filename(), {std::istreambuf_iterator<char>(in), {}}});
  }
  if (argc - i < 3 || options.headers.empty()) {
    std::fprintf(stderr, "usage: measure HEADER... SOURCE -- COUNT ARCH FLAG...\n");
    return 2;
  }
  const int count = std::atoi(argv[i + 1]);
  const std::string arch = argv[i + 2];
  options.sources.push_back(options.headers.back());
  options.headers.pop_back();
  options.flags = {"-std=c++17"};
  const std::string source = options.sources[0].name;
  const std::vector<std::string> flags(argv + i + 3, argv + argc);

  const TemporaryFolder folder;
  for (const char* pass : {"compiled", "from the cache"}) {
    // Anew: objects in memory do not count.
    Compilers compilers([](const std::string& arch) { return open_compiler(arch, {}); });
    options.compilers = &compilers;
    const SourceKernels kernels(options);
    CacheOptions cache_options;
    cache_options.folder = folder.path;
    CacheProvider cache(std::move(cache_options), std::make_unique<CompilingProvider>(compilers));
    std::vector<double> times, processor_times;
    for (int kernel = 0; kernel < count; ++kernel) {
      std::vector<std::string> own = flags;
      own.push_back("-DKERNEL=" + std::to_string(kernel));
      const auto start = Clock::now();
      const double processor_start = processor_ms();
      const SourceCodeObject object = kernels.code_object({source, own}, arch);
      cache.get(object.ref());
      processor_times.push_back(processor_ms() - processor_start);
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    std::printf("%s\n", pass);
    print("  wall clock", times);
    print("  processor", processor_times);
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("peak memory %ld MiB\n", usage.ru_maxrss / 1024);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "measure: %s\n", error.what());
  return 1;
}
