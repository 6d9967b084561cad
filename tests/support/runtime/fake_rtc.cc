// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A stand-in for libnvrtc (FAKE_RTC=nvrtc) and libhiprtc (FAKE_RTC=hiprtc). Its code is a text that
// names the request. A source with "#error" does not compile: the log has its text. A source with
// "crash" ends the process.
//
// Environment, read at every call:
//   AITER_FAKE_RTC_VERSION  "13.0" (default)
//   AITER_FAKE_RTC_ARCHS    "80,90" (default): what NVRTC supports
//   AITER_FAKE_RTC_FAIL     "nvrtcCompileProgram=7,...": the function returns the result
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "aiter/runtime/rtc/rtc_api.h"
#include "tests/support/runtime/fake_hip_environment.h"

#define FAKE_RTC_JOINED(prefix, name) prefix##name
#define FAKE_RTC_NAME(prefix, name) FAKE_RTC_JOINED(prefix, name)
#define FAKE_RTC_TEXT(text) #text
#define FAKE_RTC_STRING(text) FAKE_RTC_TEXT(text)
#define FAKE_RTC_SYMBOL(name) FAKE_RTC_NAME(FAKE_RTC, name)
#define FAKE_RTC_API extern "C" __attribute__((visibility("default")))
#define FAKE_RTC_MAY_FAIL(name) \
  if (int result = asked_failure(FAKE_RTC_STRING(FAKE_RTC) #name)) return result

namespace {

namespace rtc = AITER_ATTN_NAMESPACE::runtime::rtc;

struct FakeProgram {
  std::string description;
  std::string source;
  std::string log;
  std::string code;
};

FakeProgram& fake(rtc::Program program) { return *static_cast<FakeProgram*>(program); }

int asked_failure(const char* function) {
  return fake_hip::asked_failure("AITER_FAKE_RTC_FAIL", function);
}

std::vector<std::string> archs() { return fake_hip::listed("AITER_FAKE_RTC_ARCHS", "80,90"); }

// As both libraries count it: with the NUL.
int size_of(const std::string& text, size_t* size) {
  *size = text.size() + 1;
  return rtc::kSuccess;
}

int copy(const std::string& text, char* bytes) {
  std::memcpy(bytes, text.c_str(), text.size() + 1);
  return rtc::kSuccess;
}

}  // namespace

FAKE_RTC_API const char* FAKE_RTC_SYMBOL(GetErrorString)(int) { return "asked to fail"; }

FAKE_RTC_API int FAKE_RTC_SYMBOL(Version)(int* major, int* minor) {
  FAKE_RTC_MAY_FAIL(Version);
  const char* version = std::getenv("AITER_FAKE_RTC_VERSION");
  char* end = nullptr;
  *major = static_cast<int>(std::strtol(version ? version : "13.0", &end, 10));
  *minor = static_cast<int>(std::strtol(end + 1, nullptr, 10));
  return rtc::kSuccess;
}

FAKE_RTC_API int FAKE_RTC_SYMBOL(CreateProgram)(void** program, const char* source,
                                                const char* name, int header_count,
                                                const char* const* headers,
                                                const char* const* header_names) {
  FAKE_RTC_MAY_FAIL(CreateProgram);
  auto* made = new FakeProgram;
  made->source = source;
  made->description = std::string(name) + "=" + source;
  for (int i = 0; i < header_count; ++i) {
    made->description += std::string(" ") + header_names[i] + "=" + headers[i];
  }
  *program = made;
  return rtc::kSuccess;
}

FAKE_RTC_API int FAKE_RTC_SYMBOL(CompileProgram)(void* program, int option_count,
                                                 const char* const* options) {
  FAKE_RTC_MAY_FAIL(CompileProgram);
  FakeProgram& made = fake(program);
  if (made.source.find("crash") != made.source.npos) std::abort();
  if (const size_t at = made.source.find("#error"); at != made.source.npos) {
    made.log = made.source.substr(at);
    return rtc::kErrorCompilation;
  }
  made.code = made.description;
  for (int i = 0; i < option_count; ++i) made.code += std::string(" ") + options[i];
  return rtc::kSuccess;
}

FAKE_RTC_API int FAKE_RTC_SYMBOL(DestroyProgram)(void** program) {
  delete &fake(*program);
  *program = nullptr;
  return rtc::kSuccess;
}

FAKE_RTC_API int FAKE_RTC_SYMBOL(GetProgramLogSize)(void* program, size_t* size) {
  return size_of(fake(program).log, size);
}

FAKE_RTC_API int FAKE_RTC_SYMBOL(GetProgramLog)(void* program, char* log) {
  return copy(fake(program).log, log);
}

#ifdef FAKE_RTC_IS_HIP

FAKE_RTC_API int hiprtcGetCodeSize(void* program, size_t* size) {
  return size_of("hip " + fake(program).code, size);
}

FAKE_RTC_API int hiprtcGetCode(void* program, char* code) {
  FAKE_RTC_MAY_FAIL(GetCode);
  return copy("hip " + fake(program).code, code);
}

#else

FAKE_RTC_API int nvrtcGetPTXSize(void* program, size_t* size) {
  return size_of("ptx " + fake(program).code, size);
}

FAKE_RTC_API int nvrtcGetPTX(void* program, char* code) {
  return copy("ptx " + fake(program).code, code);
}

#ifndef FAKE_RTC_IS_OLD

FAKE_RTC_API int nvrtcGetCUBINSize(void* program, size_t* size) {
  return size_of("cubin " + fake(program).code, size);
}

FAKE_RTC_API int nvrtcGetCUBIN(void* program, char* code) {
  FAKE_RTC_MAY_FAIL(GetCUBIN);
  return copy("cubin " + fake(program).code, code);
}

#endif

FAKE_RTC_API int nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(archs().size());
  return rtc::kSuccess;
}

FAKE_RTC_API int nvrtcGetSupportedArchs(int* supported) {
  for (const std::string& arch : archs()) *supported++ = std::stoi(arch);
  return rtc::kSuccess;
}

#endif
