// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace millrace {

enum class Precision {
  kFloat32,
  // Matrix products take and give bfloat16, as in LibTorch's autocast, and
  // layers may add up such products. Parameters, what goes from layer to layer,
  // the loss and gradients are float32.
  kBfloat16,
};

// Computes with a precision on a device, on this thread, for its own lifetime.
// Throws what LibTorch throws.
class ScopedPrecision {
 public:
  ScopedPrecision(c10::Device device, Precision precision);
  ~ScopedPrecision();
  ScopedPrecision(const ScopedPrecision&) = delete;
  ScopedPrecision& operator=(const ScopedPrecision&) = delete;

 private:
  const c10::DeviceType type_;
  const bool enabled_before_;
  const c10::ScalarType dtype_before_;
};

}  // namespace millrace
