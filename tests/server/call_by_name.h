// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace millrace::testing {

// Calls a method of any service; returns the reply as bytes.
absl::StatusOr<std::string> CallByName(const std::string& address,
                                       const std::string& method,
                                       const std::string& message);

// What grpc.health.v1.Health/Check says of a service.
enum class Health { kServing, kNotServing, kError };
Health CheckHealth(const std::string& address, const std::string& service);

}  // namespace millrace::testing
