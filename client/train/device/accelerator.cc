// SPDX-License-Identifier: Apache-2.0
#include "client/train/device/accelerator.h"

#include "client/train/device/host_reducer.h"

namespace millrace {
namespace {

class Cpu final : public Accelerator {
 public:
  std::string kind() const override { return "cpu"; }
  c10::Device device() const override { return c10::kCPU; }
  std::string name() const override { return "the CPU"; }
  absl::Status CheckMemory(std::string_view what,
                           const MemoryNeed& need) const override {
    return millrace::CheckMemory(what, need);
  }
  absl::StatusOr<std::unique_ptr<Reducer>> MakeReducer(
      Collectives& collectives) override {
    return std::make_unique<HostReducer>(collectives);
  }
};

}  // namespace

Accelerator& CpuAccelerator() {
  static Cpu cpu;
  return cpu;
}

}  // namespace millrace
