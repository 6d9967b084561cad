// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A real kit makes the code objects that the build made, from their specs alone. KIT: its folder in
// the runfiles; SPECS: files NAME.spec, NAME.hsaco beside each.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "aiter/runtime/kit/kit.h"
#include "aiter/runtime/store/cache.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) ADD_FAILURE() << "cannot read " << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(CompileKit, MakesTheBytesOfTheBuild) {
  const fs::path cache = fs::path(::testing::TempDir()) / "cache";
  fs::remove_all(cache);
  CacheOptions kept;
  kept.folder = cache / "code-objects";
  kept.warn = [](const std::string& line) { ADD_FAILURE() << line; };
  KitOptions options;
  options.version = AITER_ATTN_VERSION;
  options.work_place = cache / "compiling";
  const std::string kit = fs::path(std::getenv("TEST_SRCDIR")) / std::getenv("KIT");
  CacheProvider compiling(kept, open_kit(kit, options));

  int alone = 0;
  std::istringstream specs(std::getenv("SPECS"));
  for (fs::path path; specs >> path;) {
    const CodeObjectSpec spec = CodeObjectSpec::parse(read(path));
    if (!spec.group.empty()) continue;  // kit_test.cc has them
    ++alone;
    const std::string object = read(fs::path(path).replace_extension("hsaco"));
    const Digest digest = sha256(object.data(), object.size());
    const CodeObjectRef ref = {spec.key(), digest, [&spec] { return spec; }};
    EXPECT_EQ(compiling.look(ref).text, "compiles it at its first use");
    const Clock::time_point start = Clock::now();
    const std::optional<Bytes> made = compiling.get(ref);
    ASSERT_TRUE(made) << path;
    EXPECT_EQ(std::string(made->begin(), made->end()), object) << path;
    std::printf("%.2f s %s\n", std::chrono::duration<double>(Clock::now() - start).count(),
                path.stem().c_str());
    // Another process has it without the kit.
    EXPECT_EQ(CacheProvider(kept, nullptr).get(ref), made) << path;
  }
  EXPECT_GT(alone, 0);
  EXPECT_TRUE(fs::is_empty(cache / "compiling"));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
