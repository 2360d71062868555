// SPDX-License-Identifier: Apache-2.0
#include "client/train/task/batch_loop.h"

#include <optional>
#include <utility>

#include "client/train/device/device_work.h"
#include "common/base/interrupt.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"

namespace millrace {

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
    {
      const DeviceWork work(device);  // ends before the batch's memory does
      MILLRACE_RETURN_IF_ERROR(use(*step->batch));
    }
    if (progress.has_value()) progress->Add(1);
  }
}

}  // namespace millrace
