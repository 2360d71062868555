// SPDX-License-Identifier: Apache-2.0
#include "client/train/task/batch_loop.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <optional>
#include <utility>

#include "common/base/interrupt.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

// Waits for a device when it goes, unless its work is known to have ended.
class DeviceWork {
 public:
  explicit DeviceWork(c10::Device device) : device_(device) {}
  ~DeviceWork() {
    if (has_ended_ || device_.is_cpu()) return;
    try {
      const c10::impl::VirtualGuardImpl guard(device_.type());
      guard.getStream(device_).synchronize();
    } catch (const std::exception&) {
      // The device is lost, and reads no memory.
    }
  }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  void End() { has_ended_ = true; }

 private:
  const c10::Device device_;
  bool has_ended_ = false;
};

}  // namespace

absl::Status ForEachBatch(
    std::shared_ptr<BatchSource> source, const JobSpec& job,
    LoaderOptions options, const std::string& what, c10::Device device,
    const std::function<absl::Status(const Batch&)>& use) {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Loader> loader,
      Loader::Create(std::move(source), job, std::move(options)));
  std::optional<Progress> progress;
  if (!what.empty()) {
    progress.emplace(what, loader->steps_of_first_epoch(), "batches");
  }
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(std::optional<LoaderStep> step, loader->Next());
    if (!step.has_value()) return absl::OkStatus();
    if (!step->batch.has_value()) continue;
    DeviceWork work(device);  // ends before the batch's memory does
    MILLRACE_RETURN_IF_ERROR(use(*step->batch));
    work.End();
    if (progress.has_value()) progress->Add(1);
  }
}

}  // namespace millrace
