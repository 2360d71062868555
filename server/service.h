// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "server/core.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace millrace {

// The RPCs of proto/sampler.proto over `core`, which must outlive the service.
std::unique_ptr<::grpc::Service> MakeSamplerService(ServerCore& core);

}  // namespace millrace
