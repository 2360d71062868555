// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/device_gate.h"

#include <map>
#include <utility>

#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/device.h"

namespace millrace::cuda {

class DeviceGate::Shared {
 public:
  explicit Shared(DeviceGate& gate) : gate_(gate) {
    const SteadyTime deadline = SteadyNow() + gate_.patience_;
    const MutexLock lock(&gate_.mutex_);
    ready_ =
        gate_.changed_.WaitUntil(&gate_.mutex_, deadline,
                                 [&gate]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                                     gate.mutex_) { return !gate.alone_; });
    if (ready_) ++gate_.running_;
  }
  ~Shared() {
    if (!ready_) return;
    const MutexLock lock(&gate_.mutex_);
    --gate_.running_;
    gate_.changed_.NotifyAll();
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  // False if the work that is alone has not ended in time.
  bool ready() const { return ready_; }

 private:
  DeviceGate& gate_;
  bool ready_ = false;
};

class DeviceGate::Alone {
 public:
  explicit Alone(DeviceGate& gate) : gate_(gate) {
    const SteadyTime deadline = SteadyNow() + gate_.patience_;
    const MutexLock lock(&gate_.mutex_);
    if (!gate_.changed_.WaitUntil(&gate_.mutex_, deadline,
                                  [&gate]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                                      gate.mutex_) { return !gate.alone_; })) {
      return;
    }
    gate_.alone_ = held_ = true;
    ready_ = gate_.changed_.WaitUntil(
        &gate_.mutex_, deadline,
        [&gate]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate.mutex_) {
          return gate.running_ == 0;
        });
  }
  ~Alone() {
    if (!held_) return;
    const MutexLock lock(&gate_.mutex_);
    gate_.alone_ = false;
    gate_.changed_.NotifyAll();
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  // False if other work has not ended in time.
  bool ready() const { return ready_; }

 private:
  DeviceGate& gate_;
  bool held_ = false;
  bool ready_ = false;
};

std::shared_ptr<DeviceGate> DeviceGate::Of(int device) {
  struct Gates {
    Mutex mutex;
    std::map<int, std::shared_ptr<DeviceGate>> by_device ABSL_GUARDED_BY(mutex);
  };
  static auto* const gates = new Gates;  // there are as many as devices
  const MutexLock lock(&gates->mutex);
  std::shared_ptr<DeviceGate>& gate = gates->by_device[device];
  if (gate == nullptr) {
    gate = std::make_shared<DeviceGate>(device, DeviceGate::kPatience,
                                        [device] { TrimMemory(device); });
  }
  return gate;
}

DeviceGate::Reclaimer::Reclaimer(std::shared_ptr<DeviceGate> gate,
                                 Reclaim reclaim)
    : gate_(std::move(gate)) {
  const MutexLock lock(&gate_->reclaims_mutex_);
  place_ = gate_->reclaims_.insert(gate_->reclaims_.end(), std::move(reclaim));
}

DeviceGate::Reclaimer::~Reclaimer() {
  const MutexLock lock(&gate_->reclaims_mutex_);
  gate_->reclaims_.erase(place_);
}

void DeviceGate::ReclaimAll() {
  const MutexLock lock(&reclaims_mutex_);
  for (const Reclaim& reclaim : reclaims_) reclaim();
  if (finish_ != nullptr) finish_();
}

absl::StatusOr<bool> DeviceGate::Run(absl::FunctionRef<bool()> attempt) {
  {
    const Shared shared(*this);
    if (!shared.ready()) return BusyError();
    if (attempt()) return true;
  }
  const Alone alone(*this);
  if (!alone.ready()) return BusyError();
  ReclaimAll();
  return attempt();
}

absl::Status DeviceGate::BusyError() const {
  return absl::ResourceExhaustedError(
      StrCat("CUDA device ", device_,
             " has too little memory for more work, "
             "and its other work has not finished within ",
             absl::FormatDuration(patience_),
             "\nuse fewer threads, or smaller batches"));
}

}  // namespace millrace::cuda
