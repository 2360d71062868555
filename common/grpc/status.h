// SPDX-License-Identifier: Apache-2.0
// Converts between absl::Status and grpc::Status; no other code does.
// docs/protocol.md says what the codes mean.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace millrace {

// The ErrorInfo payload (common/wire/error_info.h) travels in
// grpc-status-details-bin, as a google.rpc.Status. Long messages are truncated.
::grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const ::grpc::Status& status);

}  // namespace millrace
