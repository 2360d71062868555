// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "server/core/core.h"

namespace millrace {

// Implements the RPCs of proto/sampler.proto.
// Threads: call Register() from one thread; gRPC calls the rest.
class SamplerService {
 public:
  // `core` must outlive the service.
  explicit SamplerService(ServerCore& core);
  ~SamplerService();
  SamplerService(const SamplerService&) = delete;
  SamplerService& operator=(const SamplerService&) = delete;

  // Adds the RPCs to a server, which must be destroyed before the service.
  void Register(::grpc::ServerBuilder& builder);

 private:
  const std::unique_ptr<::grpc::CallbackGenericService> calls_;
  const std::string listed_at_;  // must live as long as the server
  const std::unique_ptr<::grpc::Service> listing_;
};

}  // namespace millrace
