// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/core.h"

namespace millrace {

// The RPCs of proto/sampler.proto over `core`, which must outlive the service.
std::unique_ptr<::grpc::Service> MakeSamplerService(ServerCore& core);

}  // namespace millrace
