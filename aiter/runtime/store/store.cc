// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/store.h"

#include <iterator>
#include <utility>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/kernel_metadata.h"

namespace AITER_ATTN_NAMESPACE::runtime {

Store::Store(std::vector<std::unique_ptr<Provider>> providers) : providers_(std::move(providers)) {}

// The providers' reasons why none has a key.
struct Store::Failure {
  Status status = Status::kUnsupported;
  std::string answers;        // of all that were asked
  std::string others;         // the same of other objects that would serve, in clauses
  std::vector<Told> refused;  // by providers that cannot say which object they would make
};

// An object of another key that serves as well.
struct Store::Other {
  std::string name;
  CodeObjectRef ref;
};

std::optional<Bytes> Store::ask(Provider& provider, const CodeObjectRef& ref, Failure& failure) {
  std::string answer = Answer().text;
  try {
    if (std::optional<Bytes> bytes = provider.get(ref)) {
      const std::string why = misfit(ref, *bytes);
      if (why.empty()) return bytes;
      fail(Status::kCorrupt, "code object ", hex(ref.key), " ", why);
    }
  } catch (const Error& error) {
    // The caller wants nothing more. Otherwise the next provider may still have it.
    if (error.status() == Status::kInterrupted) throw;
    if (failure.status == Status::kUnsupported) failure.status = error.status();
    answer = error.what();
  }
  failure.answers += concat(failure.answers.empty() ? "" : "; ", provider.name(), ": ", answer);
  return std::nullopt;
}

std::optional<Bytes> Store::ask(const CodeObjectRef& ref, Failure& failure) const {
  for (const auto& provider : providers_) {
    if (std::optional<Bytes> bytes = ask(*provider, ref, failure)) return bytes;
  }
  return std::nullopt;
}

void Store::refuse(const CodeObjectRef& ref, const Failure& failure) {
  const std::string remedy = ref.remedy ? ref.remedy() : "";
  fail(failure.status, "no code object with key '", hex(ref.key), "' (", failure.answers, ")",
       failure.others, remedy.empty() ? "" : ": ", remedy);
}

Bytes Store::get(const CodeObjectRef& ref) const {
  Failure failure;
  if (std::optional<Bytes> bytes = ask(ref, failure)) return *std::move(bytes);
  refuse(ref, failure);
}

std::optional<Bytes> Store::fetch(const CodeObjectRef& ref) const {
  Failure failure;
  for (const auto& provider : providers_) {
    const Answer answer = ask_where(*provider, ref).answer;
    if (!answer.has || answer.is_made) continue;
    if (std::optional<Bytes> bytes = ask(*provider, ref, failure)) return bytes;
  }
  if (failure.status != Status::kUnsupported) refuse(ref, failure);
  return std::nullopt;
}

std::vector<Store::Other> Store::others(const CodeObjectRef& ref, Failure& failure) const {
  std::vector<Other> list;
  const auto add = [&](const std::string& name, CodeObjectRef other) {
    other.kernel = ref.kernel;
    list.push_back({name, std::move(other)});
  };
  if (ref.plain) add("its plain compile", ref.plain());
  for (const auto& provider : providers_) {
    try {
      if (std::optional<CodeObjectRef> own = provider->own(ref)) {
        add(concat("its compile by ", provider->name()), *std::move(own));
      }
    } catch (const Error& error) {
      const std::string why = concat("its compile by ", provider->name(), ": ", error.what());
      failure.others += ", nor " + why;
      failure.refused.push_back({provider->name(), {false, why}, true});
    }
  }
  return list;
}

std::vector<CodeObjectRef> Store::own(const CodeObjectRef& ref) const {
  std::vector<CodeObjectRef> list;
  for (const auto& provider : providers_) {
    try {
      if (std::optional<CodeObjectRef> own = provider->own(ref)) list.push_back(*std::move(own));
    } catch (const Error&) {
      continue;  // a compiler that cannot be had has no keys
    }
  }
  return list;
}

Bytes Store::serve(const CodeObjectRef& ref) const {
  Failure failure;
  if (std::optional<Bytes> bytes = ask(ref, failure)) return *std::move(bytes);
  for (const Other& other : others(ref, failure)) {
    Failure of_other;
    if (std::optional<Bytes> bytes = ask(other.ref, of_other)) return *std::move(bytes);
    if (failure.status == Status::kUnsupported) failure.status = of_other.status;
    failure.others += concat(", nor ", other.name, ", with key '", hex(other.ref.key), "' (",
                             of_other.answers, ")");
  }
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
  if (is_there) return told;
  std::vector<Other> list;
  Failure failure;
  try {
    list = others(ref, failure);
  } catch (const Error&) {
    return told;  // its description is damaged, as a call will say
  }
  for (const Other& other : list) {
    for (const auto& provider : providers_) {
      Told answer = ask_where(*provider, other.ref);
      // Most have nothing to say about it.
      if (!answer.answer.has && answer.answer.text == Answer().text) continue;
      answer.answer.text =
          concat(other.name, ", key ", hex(other.ref.key), ": ", answer.answer.text);
      answer.is_of_other = true;
      told.push_back(std::move(answer));
      if (told.back().answer.has) return told;
    }
  }
  std::move(failure.refused.begin(), failure.refused.end(), std::back_inserter(told));
  return told;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
