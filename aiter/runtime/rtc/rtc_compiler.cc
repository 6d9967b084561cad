// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/rtc/rtc_compiler.h"

#include <algorithm>

#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> found;
  found.reserve(texts.size());
  for (const std::string& text : texts) found.push_back(text.c_str());
  return found;
}

}  // namespace

// A program of the compiler's, destroyed at the end.
class RtcCompiler::OpenProgram {
 public:
  OpenProgram(const RtcCompiler& compiler, const SourceFile& source,
              const std::vector<SourceFile>& headers)
      : compiler_(compiler) {
    std::vector<const char*> texts, names;
    for (const SourceFile& header : headers) {
      texts.push_back(header.text.c_str());
      names.push_back(header.name.c_str());
    }
    compiler_.check(
        compiler_.create_program_(&program_, source.text.c_str(), source.name.c_str(),
                                  static_cast<int>(headers.size()), texts.data(), names.data()),
        "CreateProgram(" + source.name + ")");
  }
  ~OpenProgram() { compiler_.destroy_program_(&program_); }
  OpenProgram(const OpenProgram&) = delete;
  OpenProgram& operator=(const OpenProgram&) = delete;

  rtc::Program get() const { return program_; }

  std::string log() const {
    size_t size = 0;
    compiler_.check(compiler_.get_log_size_(program_, &size), "GetProgramLogSize");
    std::string log(size, '\0');
    if (size > 0) compiler_.check(compiler_.get_log_(program_, log.data()), "GetProgramLog");
    log.resize(std::min(log.find('\0'), log.size()));
    return utf8(log);
  }

 private:
  const RtcCompiler& compiler_;
  rtc::Program program_ = nullptr;
};

RtcCompiler::RtcCompiler(SharedLibrary library, std::string name, std::string prefix,
                         std::string versions)
    : library_(std::move(library)),
      name_(std::move(name)),
      prefix_(std::move(prefix)),
      versions_(std::move(versions)) {
  rtc::Version version;
  bind("GetErrorString", &get_error_string_);
  bind("Version", &version);
  bind("CreateProgram", &create_program_);
  bind("CompileProgram", &compile_program_);
  bind("DestroyProgram", &destroy_program_);
  bind("GetProgramLogSize", &get_log_size_);
  bind("GetProgramLog", &get_log_);
  check(version(&version_.first, &version_.second), "Version");
  identity_ = concat(prefix_, " ", version_.first, ".", version_.second, " ", library_.identity());
}

std::string RtcCompiler::describe() const {
  return concat(name_, " ", version_.first, ".", version_.second, " (", library_.path(), ")");
}

std::string RtcCompiler::identity() const { return identity_; }

void RtcCompiler::check(rtc::Result result, const std::string& call) const {
  if (result == rtc::kSuccess) return;
  const char* text = get_error_string_(result);
  const std::string next_step = remedy(result);
  fail(result == rtc::kErrorOutOfMemory ? Status::kOutOfMemory : Status::kDriver, prefix_, call,
       " failed: ", text ? utf8(text) : "no text", " (", result, "), ", library_.path(),
       next_step.empty() ? "" : "; ", next_step);
}

RtcCompiler::CodeGetter RtcCompiler::code_getter(const std::string& name) const {
  CodeGetter code;
  code.name = name;
  bind("Get" + name + "Size", &code.size);
  bind("Get" + name, &code.bytes);
  return code;
}

Bytes RtcCompiler::compile_with(const SourceFile& source, const std::vector<SourceFile>& headers,
                                const std::vector<std::string>& options,
                                const CodeGetter& code) const {
  const OpenProgram program(*this, source, headers);
  const rtc::Result result =
      compile_program_(program.get(), static_cast<int>(options.size()), pointers(options).data());
  if (result == rtc::kErrorCompilation || result == rtc::kErrorInvalidOption) {
    std::string list;
    for (const std::string& option : options) list += " " + option;
    throw CompileError(concat(describe(), " does not compile ", source.name, list), program.log());
  }
  check(result, concat("CompileProgram(", source.name, ")"));
  size_t size = 0;
  check(code.size(program.get(), &size), "Get" + code.name + "Size");
  Bytes bytes(size);
  check(code.bytes(program.get(), reinterpret_cast<char*>(bytes.data())), "Get" + code.name);
  if (bytes.empty()) fail(Status::kDriver, describe(), " gave no code for ", source.name);
  return bytes;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
