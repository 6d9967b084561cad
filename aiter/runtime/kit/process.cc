// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/kit/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostLog = 64 << 10;
constexpr int kMillisecondsOfAStep = 10;

// Both ends of a pipe, neither of which other programs get.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) {
      fail(Status::kUnsupported, "cannot make a pipe: ", std::strerror(errno));
    }
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    ::close(ends_[0]);
    close_write_end();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2];
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

// The files that this process has open: they may be sockets, or a GPU's.
std::vector<int> open_files() {
  std::vector<int> files;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir("/proc/self/fd"), ::closedir);
  if (!listing) return files;
  while (const dirent* entry = ::readdir(listing.get())) {
    // 0 of "." and ".."
    const int fd = static_cast<int>(std::strtol(entry->d_name, nullptr, 10));
    if (fd > STDERR_FILENO) files.push_back(fd);
  }
  return files;
}

// All that a child needs, in this process's memory.
struct Prepared {
  char* const* arguments;
  char* const* environment;
  int nothing, output;
  int why;  // takes the error of exec; closed by an exec that succeeds
  const int* files;
  size_t file_count;
  rlim_t address_space, seconds;  // 0: no limit
};

// The child between vfork and exec: calls of the system, and nothing else.
[[noreturn]] void become(const Prepared& prepared) {
  ::setpgid(0, 0);
  // Of the program itself; its children end at their limits.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (prepared.address_space != 0) {
    const rlimit space = {prepared.address_space, prepared.address_space}, no_core = {0, 0};
    const rlimit processor = {prepared.seconds, prepared.seconds};
    ::setrlimit(RLIMIT_AS, &space);
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::setrlimit(RLIMIT_CPU, &processor);
  }
  ::dup2(prepared.nothing, STDIN_FILENO);
  ::dup2(prepared.output, STDOUT_FILENO);
  ::dup2(prepared.output, STDERR_FILENO);
  for (size_t i = 0; i < prepared.file_count; ++i) ::close(prepared.files[i]);
  // No signal of this process is blocked or ignored there.
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(prepared.arguments[0], prepared.arguments, prepared.environment);
  const int error = errno;
  static_cast<void>(::write(prepared.why, &error, sizeof(error)));
  ::_exit(127);
}

[[noreturn]] void cannot_start(const Command& command, int error) {
  fail(error == ENOMEM || error == EAGAIN ? Status::kOutOfMemory : Status::kUnsupported,
       "cannot start '", utf8(command.arguments[0]), "': ", std::strerror(error));
}

// posix_spawn sets no limits, and a limit that is set from outside comes too late. A fork would
// copy the page tables of a process that has a GPU's memory mapped.
pid_t start(const Command& command, int output, int why) {
  const std::vector<char*> arguments = pointers(command.arguments);
  const std::vector<char*> environment = pointers(command.environment);
  const File nothing("/dev/null", O_RDONLY);
  std::vector<int> files = open_files();
  files.erase(std::remove(files.begin(), files.end(), why), files.end());
  const Prepared prepared = {arguments.data(),
                             environment.data(),
                             nothing.get(),
                             output,
                             why,
                             files.data(),
                             files.size(),
                             static_cast<rlim_t>(command.address_space),
                             static_cast<rlim_t>(command.limit.count())};
  sigset_t all, before;
  sigfillset(&all);
  // Linux's is of the calling thread. A handler would run in the child, on this memory.
  ::sigprocmask(SIG_SETMASK, &all, &before);
  // NOLINTBEGIN(*vfork,*Vfork,bugprone-unsafe-functions): see above; the child makes calls alone
  const pid_t pid = ::vfork();
  if (pid == 0) become(prepared);
  // NOLINTEND(*vfork,*Vfork,bugprone-unsafe-functions)
  const int error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) cannot_start(command, error);
  return pid;
}

// A child that is killed with its group, and waited for, at the end.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Whether it has ended. It stays a zombie, so that its group's number is not given to others.
  bool has_ended() const {
    siginfo_t info = {};
    const int got = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return (got == 0 && info.si_pid == pid_) || (got != 0 && errno == ECHILD);
  }
  // Kills all of its group, and waits for it. Nothing: its status is not to be had.
  std::optional<int> end() {
    if (pid_ < 0) return std::nullopt;
    ::kill(-pid_, SIGKILL);
    int status = 0;
    pid_t got;
    do {
      got = ::waitpid(pid_, &status, 0);
    } while (got < 0 && errno == EINTR);
    const bool known = got == pid_;
    pid_ = -1;
    if (!known) return std::nullopt;
    return status;
  }

 private:
  pid_t pid_;
};

// Takes what is there, up to some of it; false: nothing will come any more.
bool drain(int fd, Outcome& outcome) {
  // One that writes without a pause must not keep the caller from looking at the clock.
  constexpr int kMostReads = 64;
  std::array<char, 16 << 10> room;
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t got = ::read(fd, room.data(), room.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    const size_t size = std::min(static_cast<size_t>(got), kMostLog - outcome.log.size());
    outcome.log.append(room.data(), size);
    if (size < static_cast<size_t>(got)) outcome.log_is_cut = true;
  }
  return true;
}

}  // namespace

Outcome run(const Command& command) {
  Pipe pipe, why;
  const Clock::time_point started = Clock::now();
  Child child(start(command, pipe.write_end(), why.write_end()));
  pipe.close_write_end();
  Outcome outcome = {Outcome::End::kExited, 0, {}, false};
  bool is_open = true, told = false;
  while (!child.has_ended()) {
    pollfd waited = {is_open ? pipe.read_end() : -1, POLLIN, 0};
    ::poll(&waited, 1, kMillisecondsOfAStep);
    if (waited.revents) is_open = drain(pipe.read_end(), outcome);
    const Clock::duration elapsed = Clock::now() - started;
    if (elapsed > command.limit) {
      outcome.end = Outcome::End::kTimedOut;
      break;
    }
    check_interrupt();
    if (!told && elapsed > std::chrono::seconds(1)) {
      told = true;
      if (command.takes_long) command.takes_long();
    }
  }
  const std::optional<int> status = child.end();
  drain(pipe.read_end(), outcome);
  if (outcome.end == Outcome::End::kTimedOut) return outcome;
  int error = 0;
  if (::read(why.read_end(), &error, sizeof(error)) == sizeof(error)) cannot_start(command, error);
  if (!status) {
    outcome.end = Outcome::End::kUnknown;
  } else if (WIFSIGNALED(*status)) {
    outcome.end = Outcome::End::kSignal;
    outcome.status = WTERMSIG(*status);
  } else {
    outcome.status = WEXITSTATUS(*status);
  }
  return outcome;
}

std::string shell_form(const std::vector<std::string>& arguments) {
  constexpr char kPlain[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%";
  std::string line;
  for (const std::string& argument : arguments) {
    if (!line.empty()) line += ' ';
    if (!argument.empty() && argument.find_first_not_of(kPlain) == argument.npos) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
