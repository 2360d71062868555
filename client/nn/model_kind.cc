// SPDX-License-Identifier: Apache-2.0
#include "client/nn/model_kind.h"

#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr bool IsInOrder() {
  size_t place = 0;
  for (const ModelKindInfo& info : kModelKinds) {
    if (info.kind != static_cast<ModelKind>(place++)) return false;
  }
  return true;
}
static_assert(IsInOrder(), "InfoOf finds a kind by its place in the table");

}  // namespace

absl::StatusOr<ModelKind> ModelKindFromName(std::string_view name) {
  std::vector<std::string> names;
  for (const ModelKindInfo& info : kModelKinds) {
    if (info.name == name) return info.kind;
    names.push_back(StrCat(info.name, info.argument));
  }
  return InvalidField(
      {.field = "model",
       .value = StrCat("\"", name, "\""),
       .limit = StrCat("is not one of ", absl::StrJoin(names, ", "))});
}

std::vector<std::string> KindsWith(bool ModelKindInfo::*property) {
  std::vector<std::string> names;
  for (const ModelKindInfo& info : kModelKinds) {
    if (info.*property) names.emplace_back(info.name);
  }
  return names;
}

}  // namespace millrace
