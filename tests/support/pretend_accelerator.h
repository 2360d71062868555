// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "client/train/device/accelerator.h"
#include "client/train/device/host_reducer.h"
#include "tests/support/known_memory.h"
#include "tests/support/pretend_device.h"

namespace millrace {

// The pretend device as trainers use it. All ranks of a host may share it.
class PretendAccelerator final : public Accelerator {
 public:
  // Adds up by Gloo, whatever it says.
  explicit PretendAccelerator(Backend backend = Backend::kGloo)
      : backend_(backend) {}

  std::string kind() const override { return "pretend"; }
  c10::Device device() const override { return PretendDevice(); }
  std::string name() const override { return "pretend:0"; }
  std::shared_ptr<ArrayMemory> memory() override { return memory_; }
  absl::Status CheckMemory(std::string_view what,
                           const MemoryNeed& need) const override {
    return millrace::CheckMemory(what, need);
  }
  Backend backend() const override { return backend_; }
  absl::StatusOr<std::unique_ptr<Reducer>> MakeReducer(
      Collectives& collectives) override {
    return std::make_unique<HostReducer>(collectives);
  }

 private:
  const Backend backend_;
  const std::shared_ptr<ArrayMemory> memory_ =
      std::make_shared<testing::KnownMemory>(PretendDevice().index());
};

}  // namespace millrace
