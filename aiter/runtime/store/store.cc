// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/store.h"

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {

Store::Store(std::vector<std::unique_ptr<Provider>> providers) : providers_(std::move(providers)) {}

Bytes Store::get(const CodeObjectRef& ref) const {
  std::string answers;
  Status status = Status::kUnsupported;
  for (const auto& provider : providers_) {
    std::string answer = "does not have it";
    try {
      if (std::optional<Bytes> bytes = provider->get(ref)) return *std::move(bytes);
    } catch (const Error& error) {
      // The next provider may still have it.
      if (status == Status::kUnsupported) status = error.status();
      answer = error.what();
    }
    answers += (answers.empty() ? "" : "; ") + provider->name() + ": " + answer;
  }
  const std::string remedy = ref.remedy ? ref.remedy() : "";
  fail(status, "no code object with key '", hex(ref.key), "' (", answers, ")",
       remedy.empty() ? "" : ": ", remedy);
}

std::vector<Store::Told> Store::look(const CodeObjectRef& ref) const {
  std::vector<Told> told;
  told.reserve(providers_.size());
  for (const auto& provider : providers_) {
    Answer answer;
    try {
      answer = provider->look(ref);
    } catch (const Error& error) {
      answer = {false, error.what()};
    }
    told.push_back({provider->name(), std::move(answer)});
  }
  return told;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
