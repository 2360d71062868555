// SPDX-License-Identifier: Apache-2.0
#include "common/wire/proto_enums.h"

#include "common/base/strings.h"
#include "sampler.pb.h"

namespace millrace {

absl::Status UnknownEnumerator(std::string_view field, int number) {
  return absl::InvalidArgumentError(StrCat("unknown ", field, " ", number));
}

absl::StatusOr<DType> DTypeFromProto(int number, std::string_view field) {
  if (!v1::DType_IsValid(number)) return UnknownEnumerator(field, number);
  return static_cast<DType>(number);
}

}  // namespace millrace
