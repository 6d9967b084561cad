// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The provider of compile kits, with kits whose compiler is a script: each does something wrong.
#include "aiter/runtime/kit/kit.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"
#include "aiter/runtime/store/cache.h"
#include "aiter/runtime/store/coming.h"
#include "aiter/runtime/store/pack_file.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/forked_child.h"
#include "tests/support/runtime/kernel_sources.h"
#include "tests/support/runtime/pack.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using testing::bytes;
using testing::digest;
using testing::error_of;
using ::testing::HasSubstr;
using testing::in_forked_child;
using ::testing::Not;
using testing::read;
using ::testing::StartsWith;
using testing::write;

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr char kVersion[] = "1.2.3";
const std::string kToolchain(64, 'a'), kHeaders(64, 'b');

// A kit that copies the source to the object, which its scripts do behind what they add.
class Kit : public ::testing::Test {
 protected:
  Kit() {
    fs::remove_all(folder_);
    fs::create_directories(kit_ / "external/llvm/bin");
    fs::create_directories(folder_ / "cache");
    fs::copy_file(std::getenv("LAUNCH"), kit_ / "launch");
    describe(text());
    testing::write_kernel_sources(kit_ / "sources.attnpack", {source_}, kVersion);
    compiler("");
    spec_ = {"gfx942", {"-O3", "-Done word"}, kHeaders, hex(digest(source_)), kToolchain, ""};
  }
  ~Kit() override {
    // Nothing half-written is left by any of it, in the cache or beside it.
    if (fs::exists(work_)) {
      EXPECT_TRUE(fs::is_empty(work_));
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache")) {
      EXPECT_NE(entry.path().extension(), ".new") << entry.path();
    }
  }

  static std::string text(const std::string& version = kVersion) {
    return "aiter-attn-compile-kit 1\nversion " + version + "\ntoolchain " + kToolchain +
           "\narch gfx942\narch gfx950\nheaders " + kHeaders + "\nend\n";
  }
  void describe(const std::string& description) const { write(kit_ / "kit", bytes(description)); }
  // The compiler: its lines, and then the right ones.
  void compiler(const std::string& lines) const {
    const fs::path path = kit_ / "external/llvm/bin/clang++";
    write(path, bytes("#!/bin/sh\n"
                      "while [ \"$1\" != -c ]; do shift; done\n"
                      "source=$2; object=$4\n" +
                      lines + "\ncat \"$source\" > \"$object\"\n"));
    fs::permissions(path, fs::perms::owner_all);
  }
  // The compiler's output, whatever the source.
  void makes(const Bytes& object) const {
    write(folder_ / "output", object);
    compiler(count_lines() + "; cat " + (folder_ / "output").string() + " > \"$object\"; exit 0");
  }
  CodeObjectRef ref() const {
    return {spec_.key(), digest(source_), [spec = spec_] { return spec; }};
  }
  KitOptions options() const {
    KitOptions options;
    options.version = kVersion;
    options.work_place = work_;
    options.limit = std::chrono::seconds(60);
    return options;
  }
  std::optional<Bytes> get() const { return open_kit(kit_, options())->get(ref()); }
  Error error() const {
    return error_of([this] { get(); });
  }
  // The cache before the kit, as in the library.
  CacheProvider cached() const {
    CacheOptions options;
    options.folder = folder_ / "cache/code-objects";
    options.warn = [](const std::string& line) { ADD_FAILURE() << line; };
    options.patience = std::chrono::seconds(60);
    return CacheProvider(options, open_kit(kit_, this->options()));
  }
  std::string failed() const {
    return folder_ / "cache/code-objects" / (hex(spec_.key()) + ".failed");
  }
  int compiles() const {
    const std::string said = read(folder_ / "compiles");
    return static_cast<int>(said.size());
  }
  std::string count_lines() const { return "printf x >> " + (folder_ / "compiles").string(); }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "kit_test", kit_ = folder_ / "kit",
                 work_ = folder_ / "cache/compiling";
  const std::string source_ = "a kernel's source";
  const Bytes elf_ = testing::tiny_code_object("kernel", "plain");
  CodeObjectSpec spec_;
};

TEST_F(Kit, CompilesByTheSpec) {
  const std::string said = folder_ / "said";
  compiler("pwd > " + said + "; env | sort >> " + said);
  EXPECT_EQ(get(), bytes(source_));
  const std::string told = read(said);
  EXPECT_THAT(told, StartsWith(kit_.string() + "\n"));
  // Nothing of this process's environment is there; PWD and the like are the shell's.
  EXPECT_THAT(told, HasSubstr("LC_ALL=C\n"));
  EXPECT_THAT(told, HasSubstr("TMPDIR=" + work_.string() + "/compile."));
  EXPECT_THAT(told, Not(HasSubstr("LAUNCH=")));
}

TEST_F(Kit, GivesFlagsAsTheyAre) {
  const std::string said = folder_ / "said";
  write(kit_ / "external/llvm/bin/clang++",
        bytes("#!/bin/sh\nprintf '<%s>' \"$@\" > " + said + "\nexit 1\n"));
  spec_.flags = {"-O3", "-D$(touch x);'\"", ""};
  EXPECT_EQ(error().status(), Status::kInternal);
  EXPECT_THAT(read(said), StartsWith("<-O3><-D$(touch x);'\"><><--offload-arch=gfx942><-c></"));
}

TEST_F(Kit, ThatCannotMakeItSaysWhy) {
  const CodeObjectSpec right = spec_;
  const auto told = [this] {
    const Error get = error();
    const Error look = error_of([this] { open_kit(kit_, options())->look(ref()); });
    EXPECT_EQ(std::string(look.what()), get.what());
    EXPECT_EQ(get.status(), Status::kUnsupported);
    return std::string(get.what());
  };
  spec_.toolchain = std::string(64, 'c');
  EXPECT_EQ(told(), "has the toolchain " + kToolchain + ", but the kernel is made with " +
                        spec_.toolchain + "; install the kit of this library's build");
  spec_ = right;
  spec_.arch = "gfx1201";
  EXPECT_THAT(told(), HasSubstr("is for gfx942 gfx950, and not for gfx1201"));
  spec_ = right;
  spec_.headers = std::string(64, 'c');
  EXPECT_THAT(told(), HasSubstr("has not the headers " + spec_.headers));
  spec_ = right;
  spec_.source = std::string(64, 'c');
  EXPECT_THAT(told(), HasSubstr("has not the kernel's source, " + spec_.source));
  spec_ = right;
  spec_.group = std::string(64, 'c');
  EXPECT_THAT(told(), HasSubstr("compiles single kernels, but this object was compiled together"));
  spec_ = right;
  EXPECT_EQ(open_kit(kit_, options())->look(ref()).text, "compiles it at its first use");
  EXPECT_FALSE(fs::exists(work_));
}

TEST_F(Kit, WithoutADigestMakesFilesForAmdGpus) {
  CodeObjectRef unproven = ref();
  unproven.sha256.reset();
  EXPECT_THAT(error_of([&] { open_kit(kit_, options())->get(unproven); }).what(),
              AllOf(HasSubstr("its compiler's output is no ELF file for AMD GPUs"),
                    HasSubstr("install aiter-attn-compile-kit==1.2.3 again")));
  EXPECT_EQ(open_kit(kit_, options())->look(unproven).text, "compiles it at its first use");
  makes(elf_);
  EXPECT_EQ(open_kit(kit_, options())->get(unproven), elf_);

  unproven.kernel = KernelFacts{"kernel", 24, 256};
  makes(testing::tiny_code_object("kernel", "", testing::TinyMetadata{32, 256}));
  EXPECT_THAT(error_of([&] { open_kit(kit_, options())->get(unproven); }).what(),
              AllOf(HasSubstr("its compiler's output has kernel with 32 bytes of arguments, but "
                              "this library's host code makes 24"),
                    HasSubstr("install aiter-attn-compile-kit==1.2.3 again")));
  const Bytes right = testing::tiny_code_object("kernel", "", testing::TinyMetadata{24, 256});
  makes(right);
  EXPECT_EQ(open_kit(kit_, options())->get(unproven), right);
}

// A kernel of a compile group: its exact object, by the digest of which nothing is here, and its
// plain compile, which is the kit's ELF file.
class KitOfGroups : public Kit {
 protected:
  KitOfGroups() {
    spec_.group = std::string(64, 'd');
    makes(elf_);
  }
  CodeObjectRef grouped() const {
    CodeObjectRef grouped = ref();
    grouped.sha256 = sha256(exact_.data(), exact_.size());
    grouped.plain = [alone = spec_.alone()] {
      return CodeObjectRef{alone.key(), {}, [alone] { return alone; }};
    };
    return grouped;
  }
  // As the library's: packs, the user's cache, the kit. A store is a process's.
  Store store(bool with_pack, bool with_kit = true) const {
    std::vector<std::unique_ptr<Provider>> providers;
    if (with_pack) {
      const fs::path pack = folder_ / "exact.attnpack";
      write(pack, testing::make_pack_file({{spec_.key(), exact_}}, kVersion));
      providers.push_back(open_pack_file(pack, kVersion));
    }
    CacheOptions options;
    options.folder = folder_ / "cache/code-objects";
    options.warn = [](const std::string& line) { ADD_FAILURE() << line; };
    providers.push_back(std::make_unique<CacheProvider>(options, nullptr));
    if (with_kit) {
      providers.push_back(
          std::make_unique<CacheProvider>(options, open_kit(kit_, this->options())));
    }
    return Store(std::move(providers));
  }
  fs::path file(const Digest& key) const {
    return folder_ / "cache/code-objects" / (hex(key) + ".object");
  }

  const Bytes exact_ = testing::tiny_code_object("kernel", "exact");
};

TEST_F(KitOfGroups, CompilesAMemberByItselfUnderTheKeyOfThat) {
  EXPECT_EQ(store(false).serve(grouped()), elf_);
  EXPECT_EQ(compiles(), 1);
  EXPECT_TRUE(fs::exists(file(spec_.alone().key())));
  EXPECT_FALSE(fs::exists(file(spec_.key())));
  // The next process has it from the cache, without a kit as well.
  EXPECT_EQ(store(false).serve(grouped()), elf_);
  EXPECT_EQ(store(false, false).serve(grouped()), elf_);
  EXPECT_EQ(compiles(), 1);
  // The exact key has no bytes.
  EXPECT_EQ(error_of([&] { store(false).get(grouped()); }).status(), Status::kUnsupported);
  // A file that is not what its head says is made again.
  fs::resize_file(file(spec_.alone().key()), 100);
  CacheOptions options;
  options.folder = folder_ / "cache/code-objects";
  std::string warned;
  options.warn = [&](const std::string& line) { warned += line; };
  CacheProvider cache(options, open_kit(kit_, this->options()));
  EXPECT_EQ(cache.get(grouped().plain()), elf_);
  EXPECT_THAT(warned, HasSubstr("is cut off"));
  EXPECT_EQ(compiles(), 2);
}

TEST_F(KitOfGroups, CompilesNothingThatAPackHas) {
  EXPECT_EQ(store(true).serve(grouped()), exact_);
  EXPECT_EQ(compiles(), 0);
  EXPECT_FALSE(fs::exists(file(spec_.alone().key())));
}

TEST_F(KitOfGroups, ComesBehindAnExactObjectThatAppearsLater) {
  EXPECT_EQ(store(false).serve(grouped()), elf_);
  EXPECT_EQ(store(true).serve(grouped()), exact_);
  EXPECT_EQ(store(false).serve(grouped()), elf_);
  EXPECT_EQ(compiles(), 1);
}

TEST_F(KitOfGroups, SaysWhichObjectServes) {
  const std::string key = hex(spec_.alone().key());
  const auto last = [](const Store& store, const CodeObjectRef& ref) {
    const std::vector<Store::Told> told = store.look(ref);
    return told.empty() ? Store::Told() : told.back();
  };
  Store::Told told = last(store(false), grouped());
  EXPECT_THAT(told.provider, HasSubstr(open_kit(kit_, options())->name()));
  EXPECT_TRUE(told.is_of_other);
  EXPECT_EQ(told.answer.text, "its plain compile, key " + key + ": compiles it at its first use");
  EXPECT_EQ(compiles(), 0);
  store(false).serve(grouped());
  told = last(store(false, false), grouped());
  EXPECT_THAT(told.provider, StartsWith("the cache '"));
  EXPECT_EQ(told.answer.text, "its plain compile, key " + key + ": keeps it");
}

TEST_F(Kit, IsNotAskedForWhatItIsNotFor) {
  const CodeObjectRef foreign = {digest("key"), digest("object")};
  const SourceFile source = {"norm.cu", ""};
  CodeObjectRef norm = ref();
  norm.source = &source;
  for (const char* state : {"right", "refused"}) {
    const std::unique_ptr<Provider> kit = open_kit(kit_, options());
    for (const CodeObjectRef& other : {foreign, norm}) {
      EXPECT_FALSE(kit->may_have(other)) << state;
      EXPECT_FALSE(kit->get(other)) << state;
      EXPECT_FALSE(kit->look(other).has) << state;
    }
    describe(text("1.2.4"));
  }
}

TEST_F(Kit, ThatIsNotThisLibrarysIsRefused) {
  const auto told = [this](const std::string& description) {
    describe(description);
    return std::string(error().what());
  };
  EXPECT_EQ(told(text("1.2.4")),
            "was made with aiter-attn 1.2.4, but this is 1.2.3; install "
            "aiter-attn-compile-kit==1.2.3");
  EXPECT_THAT(told("aiter-attn-compile-kit 2\nend\n"),
              AllOf(HasSubstr("begins with 'aiter-attn-compile-kit 2', but this library reads"),
                    HasSubstr("install aiter-attn-compile-kit==1.2.3")));
  EXPECT_THAT(told("\x7f"
                   "ELF\xff"),
              HasSubstr("begins with '\x7f"
                        "ELF\xef\xbf\xbd'"));
  EXPECT_THAT(told(text().substr(0, text().size() - 4)),
              HasSubstr("is cut off; install aiter-attn-compile-kit==1.2.3 again"));
  EXPECT_THAT(told(""), HasSubstr("begins with ''"));
  EXPECT_THAT(told(std::string((1 << 20) + 1, 'x')), HasSubstr("is no kit's description"));
  fs::remove(kit_ / "kit");
  EXPECT_THAT(error().what(),
              AllOf(HasSubstr("No such file"), HasSubstr("AITER_ATTN_COMPILE_KIT")));
  fs::create_directory(kit_ / "kit");
  EXPECT_THAT(error().what(), HasSubstr("is no kit's description"));
}

TEST_F(Kit, WithoutItsPartsSaysWhich) {
  fs::remove(kit_ / "external/llvm/bin/clang++");
  EXPECT_THAT(error().what(),
              HasSubstr("launch: cannot run 'external/llvm/bin/clang++': No such file"));
  fs::remove(kit_ / "launch");
  const Error error = this->error();
  EXPECT_EQ(error.status(), Status::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("cannot start '" + (kit_ / "launch").string()));
  fs::remove(kit_ / "sources.attnpack");
  EXPECT_THAT(this->error().what(), HasSubstr("No such file"));
}

TEST_F(Kit, WhoseSourceIsDamagedIsRefused) {
  std::string pack = read(kit_ / "sources.attnpack");
  pack.back() ^= 1;
  write(kit_ / "sources.attnpack", bytes(pack));
  const Error error = this->error();
  EXPECT_EQ(error.status(), Status::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr(hex(digest(source_))));
}

TEST_F(Kit, WhoseCompilerFailsTellsAllThatHelps) {
  compiler("echo 'kernel.cpp:1:1: error: this and that'; exit 3");
  const Error error = this->error();
  EXPECT_EQ(error.status(), Status::kInternal);
  EXPECT_THAT(error.what(), StartsWith("code object " + hex(spec_.key()) +
                                       " does not compile: "
                                       "its compiler's exit status is 3; in '"));
  EXPECT_THAT(error.what(),
              HasSubstr("external/llvm/bin/clang++ -O3 '-Done word' --offload-arch=gfx942 -c /"));
  EXPECT_THAT(error.what(), HasSubstr("\nkernel.cpp:1:1: error: this and that\n"));
}

TEST_F(Kit, WhoseCompilerCrashesSaysSo) {
  compiler("kill -SEGV $$");
  EXPECT_THAT(error().what(), HasSubstr("exit status is 139"));  // 128 and SIGSEGV
  compiler("kill -KILL $PPID");
  EXPECT_THAT(error().what(), HasSubstr("its compiler was ended by signal 9"));
}

TEST_F(Kit, WhoseCompilerHangsIsStoppedWithItsChildren) {
  const std::string pids = folder_ / "pids";
  compiler("sleep 1000 & echo $! > " + pids + "\ntrap '' TERM\nwait");
  KitOptions options = this->options();
  options.limit = std::chrono::seconds(1);
  const Clock::time_point start = Clock::now();
  const Error error = error_of([&] { open_kit(kit_, options)->get(ref()); });
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
  EXPECT_EQ(error.status(), Status::kInternal);
  EXPECT_THAT(error.what(),
              HasSubstr("it was stopped after 1 s; raise AITER_ATTN_COMPILE_SECONDS"));
  // The sleep is a zombie for a moment, until init takes it.
  const std::string status = "/proc/" + std::to_string(std::stoi(read(pids))) + "/stat";
  for (int i = 0; i < 1000 && read(status).find(") Z ") == std::string::npos; ++i) {
    if (!fs::exists(status)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(!fs::exists(status) || read(status).find(") Z ") != std::string::npos);
}

TEST_F(Kit, WhoseCompilerLeavesAChildBehindIsNotWaitedFor) {
  compiler("sleep 1000 &");
  const Clock::time_point start = Clock::now();
  EXPECT_EQ(get(), bytes(source_));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
}

TEST_F(Kit, WhoseCompilerPrintsMegabytesFillsNothing) {
  compiler("head -c 20000000 /dev/zero | tr '\\0' y; exit 1");
  const std::string what = error().what();
  EXPECT_LT(what.size(), 4000u);
  EXPECT_THAT(what, HasSubstr("yyy..."));
  compiler("yes");
  KitOptions options = this->options();
  options.limit = std::chrono::seconds(1);
  EXPECT_THAT(error_of([&] { open_kit(kit_, options)->get(ref()); }).what(),
              AllOf(HasSubstr("stopped after 1 s"), HasSubstr("y\ny\n")));
  // Megabytes are no failure.
  compiler("head -c 20000000 /dev/zero");
  EXPECT_EQ(get(), bytes(source_));
}

TEST_F(Kit, WhoseCompilerWantsAllMemoryGetsEightGigabytes) {
  compiler("ulimit -v; exit 1");
  EXPECT_THAT(error().what(), HasSubstr("\n8388608\n"));
}

TEST_F(Kit, WithWrongBytesIsRefusedByBothDigests) {
  compiler("echo other > \"$object\"; exit 0");
  const Error error = this->error();
  EXPECT_EQ(error.status(), Status::kInternal);
  EXPECT_THAT(error.what(), HasSubstr("output has sha256 " + hex(digest("other\n")) +
                                      " instead of " + hex(digest(source_))));
  EXPECT_THAT(error.what(), HasSubstr("install aiter-attn-compile-kit==1.2.3 again"));
}

TEST_F(Kit, WithoutAnObjectIsRefused) {
  for (const char* nothing :
       {"exit 0", "ln -s \"$source\" \"$object\"; exit 0", "mkdir \"$object\"; exit 0",
        "mkfifo \"$object\"; exit 0", "truncate -s 300M \"$object\"; exit 0"}) {
    compiler(nothing);
    EXPECT_THAT(error().what(), HasSubstr("its compiler wrote no object of up to")) << nothing;
  }
}

TEST_F(Kit, IsInterruptedWithItsCompiler) {
  compiler("sleep 1000");
  int polls = 0;
  thread_interrupt() = {[](void* context) { return ++*static_cast<int*>(context) > 3 ? 1 : 0; },
                        &polls};
  const Clock::time_point start = Clock::now();
  const Error error = this->error();
  thread_interrupt() = {};
  EXPECT_EQ(error.status(), Status::kInterrupted);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
}

TEST_F(Kit, InheritsNoFileOfThisProcess) {
  const int file = open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  compiler("ls /proc/self/fd | tr '\\n' ' '; exit 1");
  // 3 is that of ls.
  EXPECT_THAT(error().what(), HasSubstr("\n0 1 2 3 "));
  EXPECT_THAT(error().what(), Not(HasSubstr("0 1 2 3 4")));
  close(file);
}

TEST_F(Kit, ServesAProcessThatIgnoresItsChildren) {
  EXPECT_EQ(in_forked_child([this] {
              signal(SIGCHLD, SIG_IGN);
              return get() == bytes(source_) ? 0 : 1;
            }),
            0);
}

TEST_F(Kit, WritesNowhereElseWhereItsPlaceIsOthersToWriteTo) {
  const fs::path elsewhere = folder_ / "tmp";
  fs::create_directory(elsewhere);
  fs::create_directory(work_);
  chmod(work_.c_str(), 0777);
  setenv("TMPDIR", elsewhere.c_str(), 1);
  compiler("echo \"$object\"; exit 1");
  const Error error = this->error();
  unsetenv("TMPDIR");
  EXPECT_THAT(error.what(), HasSubstr("\n" + elsewhere.string() + "/compile."));
  EXPECT_TRUE(fs::is_empty(elsewhere));
}

TEST_F(Kit, WithNoPlaceToWriteToSaysSo) {
  KitOptions options = this->options();
  options.work_place = "/proc/compiling";
  setenv("TMPDIR", "/proc/nowhere", 1);
  const Error error = error_of([&] { open_kit(kit_, options)->get(ref()); });
  unsetenv("TMPDIR");
  EXPECT_EQ(error.status(), Status::kUnsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot make a folder to compile in, neither in "
                                            "'/proc/compiling' nor in '/proc/nowhere'"),
                                  HasSubstr("TMPDIR")));
}

TEST_F(Kit, RemovesWhatAKilledProcessLeft) {
  compiler("sleep 0.3; kill -KILL " + std::string("$(cat ") + (folder_ / "pid").string() +
           ")\nsleep 1000");
  const int end = in_forked_child([this] {
    write(folder_ / "pid", bytes(std::to_string(getpid())));
    return get() ? 0 : 1;
  });
  ASSERT_EQ(end, -SIGKILL);
  ASSERT_FALSE(fs::is_empty(work_));
  compiler("");
  EXPECT_EQ(get(), bytes(source_));
  EXPECT_TRUE(fs::is_empty(work_));
}

TEST_F(Kit, DiesWithItsProcess) {
  const std::string pids = folder_ / "pids";
  compiler("sleep 1000 & echo $! > " + pids + "\nkill -KILL $(cat " + (folder_ / "pid").string() +
           ")\nwait");
  const int end = in_forked_child([this] {
    write(folder_ / "pid", bytes(std::to_string(getpid())));
    return get() ? 0 : 1;
  });
  ASSERT_EQ(end, -SIGKILL);
  const std::string status = "/proc/" + std::to_string(std::stoi(read(pids))) + "/stat";
  bool gone = false;
  for (int i = 0; i < 3000 && !gone; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    gone = !fs::exists(status) || read(status).find(") Z ") != std::string::npos;
  }
  EXPECT_TRUE(gone);
  compiler("");
  EXPECT_EQ(get(), bytes(source_));  // and removes what is left
}

TEST_F(Kit, IsAskedOnceByTheCache) {
  compiler(count_lines());
  EXPECT_EQ(cached().get(ref()), bytes(source_));
  EXPECT_EQ(cached().get(ref()), bytes(source_));
  EXPECT_EQ(compiles(), 1);
}

// ROUNDS of 64 processes; without it, one of 8.
TEST_F(Kit, CompilesOnceForManyProcesses) {
  compiler(count_lines() + "; sleep 0.2");
  const char* const asked = std::getenv("ROUNDS");
  const int rounds = asked ? std::stoi(asked) : 1;
  const size_t processes = asked ? 64 : 8;
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    fs::remove_all(folder_ / "cache/code-objects");
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> waiting;
    std::vector<int> ends(processes, -1);
    for (int& end : ends) {
      waiting.emplace_back(
          [this, &end] { end = in_forked_child([this] { return cached().get(ref()) ? 0 : 1; }); });
    }
    for (std::thread& thread : waiting) thread.join();
    ASSERT_THAT(ends, ::testing::Each(0)) << "round " << round;
    ASSERT_EQ(compiles(), round + 1);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("%d rounds of %zu processes: %d compiles; a round takes %.2f s (median)\n", rounds,
              processes, compiles(), seconds[seconds.size() / 2]);
}

TEST_F(Kit, WhoseCompileFailedIsNotAskedAgain) {
  compiler(count_lines() + "; exit 1");
  CacheProvider cache = cached();
  const std::string first = error_of([&] { cache.get(ref()); }).what();
  EXPECT_EQ(error_of([&] { cache.get(ref()); }).what(), first);
  // Another process does not either.
  const Error known = error_of([&] { cached().get(ref()); });
  EXPECT_EQ(known.status(), Status::kInternal);
  EXPECT_THAT(
      known.what(),
      AllOf(StartsWith("code object " + hex(spec_.key()) + " does not compile: "),
            HasSubstr("clang++ -O3"), HasSubstr("\nthat was "), HasSubstr("once '" + failed())));
  const Answer answer = cached().look(ref());
  EXPECT_FALSE(answer.has);
  EXPECT_THAT(answer.text, AllOf(StartsWith("could not make it "), HasSubstr(failed())));
  EXPECT_EQ(compiles(), 1);
  // A kit that was mended serves both.
  compiler("");
  EXPECT_EQ(cached().get(ref()), bytes(source_));
  EXPECT_FALSE(fs::exists(failed()));
  EXPECT_EQ(cache.get(ref()), bytes(source_));
}

TEST_F(Kit, WhoseCompileFailedIsAskedAgainAfterAWhile) {
  compiler(count_lines() + "; exit 1");
  error_of([&] { cached().get(ref()); });
  const auto now = fs::file_time_type::clock::now();
  // Over, and with a clock that was set back.
  for (const std::chrono::minutes age : {std::chrono::minutes(11), std::chrono::minutes(-5)}) {
    fs::last_write_time(failed(), now - age);
    const int before = compiles();
    error_of([&] { cached().get(ref()); });
    EXPECT_EQ(compiles(), before + 1);
  }
  // And once its file is gone, also in the process that made it.
  CacheProvider last = cached();
  for (int i = 0; i < 2; ++i) {
    const int before = compiles();
    fs::remove(failed());
    error_of([&] { last.get(ref()); });
    error_of([&] { last.get(ref()); });
    EXPECT_EQ(compiles(), before + 1);
  }
  // Of this process as well.
  CacheOptions options;
  options.folder = folder_ / "cache/code-objects";
  options.failure_life = std::chrono::seconds(0);
  CacheProvider cache(options, open_kit(kit_, this->options()));
  error_of([&] { cache.get(ref()); });
  error_of([&] { cache.get(ref()); });
  EXPECT_EQ(compiles(), 7);
}

TEST_F(Kit, WhoseCompileFailedKeepsAllThatWasSaid) {
  compiler("echo first; head -c 10000 /dev/zero | tr '\\0' y; echo last; exit 1");
  const std::string what = error_of([&] { cached().get(ref()); }).what();
  EXPECT_THAT(what, AllOf(HasSubstr("\nfirst\nyyy"), Not(HasSubstr("last")),
                          HasSubstr("\nall that it said is in '" + failed() + "'")));
  EXPECT_THAT(read(failed()), AllOf(StartsWith("ATTNFAIL1\n"), HasSubstr("yyylast\n")));
  // A file that others could have written, or that is damaged, is not believed.
  for (const std::string& text : {std::string("ATTNFAIL1\n"), std::string(), read(failed())}) {
    fs::permissions(failed(), fs::perms::owner_all);
    write(failed(), bytes(text));
    if (!text.empty() && text.size() > 20) fs::permissions(failed(), fs::perms::all);
    compiler(count_lines() + "; exit 1");
    const int before = compiles();
    error_of([&] { cached().get(ref()); });
    EXPECT_EQ(compiles(), before + 1);
  }
}

TEST_F(Kit, SaysAfterASecondWhatItCompiles) {
  compiler("sleep 1.3");
  CodeObjectRef named = ref();
  named.name = [] { return std::string("fmha_fwd"); };
  const auto said = [&] {
    ::testing::internal::CaptureStderr();
    open_kit(kit_, options())->get(named);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(), "aiter-attn: compiling fmha_fwd for gfx942, at most 60 s\n");
  int more = 1;
  thread_coming() = {
      [](const void* count, const Digest&) { return *static_cast<const int*>(count); }, &more};
  EXPECT_EQ(said(),
            "aiter-attn: compiling fmha_fwd for gfx942, then 1 more kernel, at most 60 s each\n");
  more = 3;
  EXPECT_EQ(said(),
            "aiter-attn: compiling fmha_fwd for gfx942, then 3 more kernels, at most 60 s each\n");
  thread_coming() = {};
  compiler("");
  EXPECT_EQ(said(), "");
}

TEST_F(Kit, SaysEachCommandAndItsTimeWhereItIsToldTo) {
  KitOptions options = this->options();
  options.tells_commands = true;
  ::testing::internal::CaptureStderr();
  open_kit(kit_, options)->get(ref());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex("aiter-attn: a kernel for gfx942: in '.*/kit': "
                                      "external/llvm/bin/clang\\+\\+ -O3 .* -o .*/kernel.hsaco\n"
                                      "aiter-attn: a kernel for gfx942: compiled in [0-9]+ ms\n"));
}

TEST(FindKit, TakesTheNamedOneFirst) {
  const fs::path folder = fs::path(::testing::TempDir()) / "find_kit";
  fs::create_directories(folder);
  unsetenv(kKitVariable);
  EXPECT_EQ(find_kit({}), "");
  EXPECT_EQ(find_kit({folder}), "");
  std::ofstream(folder / "kit") << "any";
  EXPECT_EQ(find_kit({"/nowhere", folder}), folder);
  setenv(kKitVariable, "/named", 1);
  EXPECT_EQ(find_kit({folder}), "/named");
  setenv(kKitVariable, "kit", 1);
  const Error error = error_of([&] { find_kit({folder}); });
  EXPECT_EQ(error.status(), Status::kInvalidArgument);
  EXPECT_THAT(error.what(),
              HasSubstr("AITER_ATTN_COMPILE_KIT is 'kit', but must be an absolute path"));
  unsetenv(kKitVariable);
}

TEST(KitLimit, IsAWholeNumberOfSeconds) {
  unsetenv(kKitSecondsVariable);
  EXPECT_EQ(kit_limit(), std::chrono::seconds(600));
  for (const char* right : {"1", "86400", "007"}) {
    setenv(kKitSecondsVariable, right, 1);
    EXPECT_EQ(kit_limit(), std::chrono::seconds(std::atol(right)));
  }
  for (const char* wrong : {"0", "-1", "86401", "1e3", "10s", " 1", "99999999999999999999"}) {
    setenv(kKitSecondsVariable, wrong, 1);
    const Error error = error_of([] { kit_limit(); });
    EXPECT_EQ(error.status(), Status::kInvalidArgument) << wrong;
    EXPECT_THAT(error.what(),
                HasSubstr(std::string("AITER_ATTN_COMPILE_SECONDS is '") + wrong +
                          "', but must be a whole number of seconds from 1 to 86400"));
  }
  unsetenv(kKitSecondsVariable);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
