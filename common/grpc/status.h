// SPDX-License-Identifier: Apache-2.0
// absl::Status <-> grpc::Status; nobody else converts. The codes and what
// they mean are in docs/protocol.md.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace millrace {

// Carries the ErrorInfo payload (common/wire/error_info.h) in
// grpc-status-details-bin, as google.rpc.Status. Long messages are cut.
::grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const ::grpc::Status& status);

}  // namespace millrace
