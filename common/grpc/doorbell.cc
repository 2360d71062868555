// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/doorbell.h"

namespace millrace {

void Doorbell::Ring() {
  const std::lock_guard lock(mutex_);
  rung_ = true;
  ring_.notify_one();
}

void Doorbell::Await(absl::Duration wait) {
  std::unique_lock lock(mutex_);
  ring_.wait_for(lock, absl::ToChronoNanoseconds(wait),
                 [this] { return rung_; });
  rung_ = false;
}

}  // namespace millrace
