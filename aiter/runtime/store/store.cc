// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/store.h"

#include <utility>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {

Store::Store(std::vector<std::unique_ptr<Provider>> providers) : providers_(std::move(providers)) {}

// The providers' reasons why none has a key.
struct Store::Failure {
  Status status = Status::kUnsupported;
  std::string answers;  // of all that were asked
  std::string plain;    // the same of its plain compile, in a clause; empty: it was not asked for
};

std::optional<Bytes> Store::ask(const CodeObjectRef& ref, Failure& failure) const {
  for (const auto& provider : providers_) {
    std::string answer = Answer().text;
    try {
      if (std::optional<Bytes> bytes = provider->get(ref)) return bytes;
    } catch (const Error& error) {
      // The caller wants nothing more. Otherwise the next provider may still have it.
      if (error.status() == Status::kInterrupted) throw;
      if (failure.status == Status::kUnsupported) failure.status = error.status();
      answer = error.what();
    }
    failure.answers += concat(failure.answers.empty() ? "" : "; ", provider->name(), ": ", answer);
  }
  return std::nullopt;
}

void Store::refuse(const CodeObjectRef& ref, const Failure& failure) {
  const std::string remedy = ref.remedy ? ref.remedy() : "";
  fail(failure.status, "no code object with key '", hex(ref.key), "' (", failure.answers, ")",
       failure.plain, remedy.empty() ? "" : ": ", remedy);
}

Bytes Store::get(const CodeObjectRef& ref) const {
  Failure failure;
  if (std::optional<Bytes> bytes = ask(ref, failure)) return *std::move(bytes);
  refuse(ref, failure);
}

Bytes Store::serve(const CodeObjectRef& ref) const {
  Failure failure;
  if (std::optional<Bytes> bytes = ask(ref, failure)) return *std::move(bytes);
  if (!ref.plain) refuse(ref, failure);
  const CodeObjectRef plain = ref.plain();
  Failure plain_failure;
  if (std::optional<Bytes> bytes = ask(plain, plain_failure)) return *std::move(bytes);
  if (failure.status == Status::kUnsupported) failure.status = plain_failure.status;
  failure.plain = concat(", nor its plain compile, with key '", hex(plain.key), "' (",
                         plain_failure.answers, ")");
  refuse(ref, failure);
}

Store::Told Store::ask_where(Provider& provider, const CodeObjectRef& ref) const {
  try {
    return {provider.name(), provider.look(ref)};
  } catch (const Error& error) {
    return {provider.name(), {false, error.what()}};
  }
}

std::vector<Store::Told> Store::look(const CodeObjectRef& ref) const {
  std::vector<Told> told;
  told.reserve(providers_.size());
  bool is_there = false;
  for (const auto& provider : providers_) {
    told.push_back(ask_where(*provider, ref));
    is_there |= told.back().answer.has;
  }
  if (is_there || !ref.plain) return told;
  CodeObjectRef plain = {};
  try {
    plain = ref.plain();
  } catch (const Error&) {
    return told;  // its description is damaged, as a call will say
  }
  for (const auto& provider : providers_) {
    Told answer = ask_where(*provider, plain);
    // Most have nothing to say about it.
    if (!answer.answer.has && answer.answer.text == Answer().text) continue;
    answer.answer.text =
        concat("its plain compile, key ", hex(plain.key), ": ", answer.answer.text);
    answer.is_of_plain = true;
    told.push_back(std::move(answer));
    if (told.back().answer.has) break;
  }
  return told;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
