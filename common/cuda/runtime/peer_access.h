// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"

namespace millrace::cuda {

// Lets kernels of `device` read memory of `peer` that cudaMalloc() gives, until
// the process ends. Returns false if the devices have no way to do so. Both
// must be open.
// UNAVAILABLE: a device does not work.
absl::StatusOr<bool> EnablePeerAccess(int device, int peer);

// Does the same for each of the devices and each other one. Returns whether all
// pairs have a way.
absl::StatusOr<bool> EnablePeerAccess(const std::vector<int>& devices);

}  // namespace millrace::cuda
