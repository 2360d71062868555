// SPDX-License-Identifier: Apache-2.0
// What a program with CUDA can do, for code that is built with and without.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/memory_options.h"
#include "common/sample/topology_sampler.h"

namespace millrace {

// Copies the graph to the memory of a device, and samples there.
// FAILED_PRECONDITION: there is no device, or this program was built without
// CUDA. RESOURCE_EXHAUSTED: the graph does not fit.
absl::StatusOr<std::unique_ptr<TopologySampler>> MakeDeviceSampler(
    std::shared_ptr<const Store> store, int device, DeviceFallback fallback);

}  // namespace millrace
