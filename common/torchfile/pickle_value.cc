// SPDX-License-Identifier: Apache-2.0
#include "common/torchfile/pickle_value.h"

#include <algorithm>

namespace millrace {

std::string_view PickleKindName(PickleKind kind) {
  switch (kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return "a bool";
    case PickleKind::kInteger:
    case PickleKind::kHuge:
      return "an integer";
    case PickleKind::kFloat:
      return "a number";
    case PickleKind::kText:
      return "a string";
    case PickleKind::kBytes:
      return "bytes";
    case PickleKind::kTuple:
      return "a tuple";
    case PickleKind::kList:
      return "a list";
    case PickleKind::kDict:
      return "a dictionary";
    case PickleKind::kGlobal:
      return "a name";
    case PickleKind::kStorage:
      return "a storage";
    case PickleKind::kTensor:
      return "a tensor";
  }
  return "an unknown value";
}

const PickleValue* FindKey(const PickleValue& dict, std::string_view key) {
  const PickleValue* found = nullptr;
  if (dict.kind != PickleKind::kDict) return found;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& name = *dict.items[i];
    if (name.kind == PickleKind::kText && name.bytes == key) {
      found = dict.items[i + 1];
    }
  }
  return found;
}

const PickleValue* FindKey(const PickleValue& dict,
                           std::span<const std::string> key) {
  const PickleValue* found = nullptr;
  if (dict.kind != PickleKind::kDict) return found;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& name = *dict.items[i];
    if (name.kind == PickleKind::kTuple &&
        std::equal(name.items.begin(), name.items.end(), key.begin(), key.end(),
                   [](const PickleValue* part, const std::string& text) {
                     return part->kind == PickleKind::kText &&
                            part->bytes == text;
                   })) {
      found = dict.items[i + 1];
    }
  }
  return found;
}

}  // namespace millrace
