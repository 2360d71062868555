// SPDX-License-Identifier: Apache-2.0
#include "client/train/device/accelerator.h"

namespace millrace {
namespace {

class Cpu final : public Accelerator {
 public:
  c10::Device device() const override { return c10::kCPU; }
  std::string name() const override { return "the CPU"; }
  absl::Status CheckMemory(std::string_view what,
                           const MemoryNeed& need) const override {
    return millrace::CheckMemory(what, need);
  }
};

}  // namespace

Accelerator& CpuAccelerator() {
  static Cpu cpu;
  return cpu;
}

}  // namespace millrace
