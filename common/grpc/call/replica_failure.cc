// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/replica_failure.h"

#include <string>

#include "common/wire/error_info.h"

namespace millrace {

ReplicaFailure AssessFailure(const absl::Status& error) {
  if (IsServedElsewhere(error)) {
    return {.refused = true,
            .status = absl::UnavailableError(std::string(error.message()))};
  }
  if (absl::IsCancelled(error)) {
    return {.status = absl::UnavailableError(
                "the call was ended before it was done")};
  }
  return {.status = error};
}

}  // namespace millrace
