// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace millrace::cuda {

// Lets those that share the memory of a device take turns when it is short.
// Work runs beside other work until there is too little memory for it. Then it
// waits until it is alone, everybody gives back what they keep for later, and
// it tries again.
// Threads: any.
class DeviceGate {
 public:
  // How long work waits until it may begin, and then to be alone.
  static constexpr absl::Duration kPatience = absl::Minutes(1);

  // Gives memory back that is kept for later. Must not use the gate.
  using Reclaim = std::function<void()>;

  // `finish` is called after those who give memory back; may be null.
  explicit DeviceGate(int device, absl::Duration patience = kPatience,
                      Reclaim finish = nullptr)
      : device_(device), patience_(patience), finish_(std::move(finish)) {}
  DeviceGate(const DeviceGate&) = delete;
  DeviceGate& operator=(const DeviceGate&) = delete;

  // The gate of a device, which all its users in this process share.
  static std::shared_ptr<DeviceGate> Of(int device);

  // Has `reclaim` called while work is alone, as long as this object lives.
  class Reclaimer {
   public:
    Reclaimer(std::shared_ptr<DeviceGate> gate, Reclaim reclaim);
    ~Reclaimer();
    Reclaimer(const Reclaimer&) = delete;
    Reclaimer& operator=(const Reclaimer&) = delete;

   private:
    const std::shared_ptr<DeviceGate> gate_;
    std::list<Reclaim>::iterator place_;
  };

  // Calls `attempt`, which returns false if there was too little memory, and
  // then once more, alone. Returns whether there was enough. Must not be called
  // by `attempt`.
  // RESOURCE_EXHAUSTED: there was too little, and other work has not ended in
  // time.
  absl::StatusOr<bool> Run(absl::FunctionRef<bool()> attempt);

 private:
  // Hold the gate, and leave it even if the work throws.
  class Shared;
  class Alone;

  // Has everybody give memory back; only for work that is alone.
  void ReclaimAll();

  absl::Status BusyError() const;

  const int device_;
  const absl::Duration patience_;
  const Reclaim finish_;
  Mutex mutex_;
  CondVar changed_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // not counting work alone
  // Whether some work is alone or waits for that. Then no other starts.
  bool alone_ ABSL_GUARDED_BY(mutex_) = false;
  Mutex reclaims_mutex_;
  std::list<Reclaim> reclaims_ ABSL_GUARDED_BY(reclaims_mutex_);
};

}  // namespace millrace::cuda
