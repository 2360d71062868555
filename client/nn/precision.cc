// SPDX-License-Identifier: Apache-2.0
#include "client/nn/precision.h"

#include <ATen/autocast_mode.h>

namespace millrace {

ScopedPrecision::ScopedPrecision(c10::Device device, Precision precision)
    : type_(device.type()),
      enabled_before_(at::autocast::is_autocast_enabled(type_)),
      dtype_before_(at::autocast::get_autocast_dtype(type_)) {
  if (precision == Precision::kFloat32) return;
  at::autocast::set_autocast_dtype(type_, at::kBFloat16);
  at::autocast::set_autocast_enabled(type_, true);
}

ScopedPrecision::~ScopedPrecision() {
  // Copies of parameters, which the next step changes.
  if (!enabled_before_) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(type_, enabled_before_);
  at::autocast::set_autocast_dtype(type_, dtype_before_);
}

}  // namespace millrace
