// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/train_program.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "client/flags/job_flags.h"
#include "client/flags/option_errors.h"
#include "client/train/group/collectives.h"
#include "client/train/group/group_secret.h"
#include "client/train/group/launcher.h"
#include "client/train/main/cuda_program.h"
#include "client/train/main/train_advice.h"
#include "client/train/main/train_flags.h"
#include "client/train/trainer.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/thread_pool.h"
#include "common/cli/completion.h"
#include "common/cli/program.h"

namespace millrace {
namespace {

int ThreadsPerRank(int asked, int workers) {
  if (asked > 0) return asked;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores / workers);
}

class WarningLines : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    LogWarning(warning.msg());
  }
};

// Turns off c10d's log and its stack traces unless the user has asked for them,
// since errors reach the user as statuses.
void SetUpTorchLog() {
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
  static WarningLines lines;
  c10::WarningUtils::set_warning_handler(&lines);
}

// Returns the error in the form that users see.
absl::Status WithTrainAdvice(const absl::Status& status) {
  return InTermsOfOptions(status, TrainAdvice());
}

absl::Status TrainInGroup(const SourceFlags& source_flags,
                          const TrainFlags& train_flags, TrainOptions options,
                          Collectives& collectives, Accelerator& accelerator) {
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<BatchSource> source,
                            source_flags.Open(accelerator.MakeDeviceCache()));
  if (train_flags.InferSeedType(source->manifest(), options.job) &&
      collectives.rank() == 0) {
    LogSeedType(options.job);
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                            Trainer::Create(std::move(source), collectives,
                                            std::move(options), accelerator));
  return trainer->Run();
}

absl::StatusOr<GroupAddress> FindGroup(const TrainFlags& flags, bool worker) {
  // --workers 1 asks for a group of one, whatever the environment says.
  if (!worker && flags.workers() > 0) return GroupAddress();
  MILLRACE_ASSIGN_OR_RETURN(GroupAddress group, GroupFromEnvironment());
  if (worker) {
    group.secret = LauncherSecret();
    return group;
  }
  if (!group.origin.empty()) LogInfo(group.origin);
  if (!flags.rendezvous_secret().empty()) {
    MILLRACE_ASSIGN_OR_RETURN(group.secret,
                              ReadGroupSecret(flags.rendezvous_secret()));
  }
  return group;
}

constexpr char kCpu[] = "cpu";
constexpr char kCuda[] = "cuda";
constexpr char kAuto[] = "auto";

std::vector<std::string> DeviceWords(
    const std::vector<AcceleratorKind>& kinds) {
  std::vector<std::string> words = {kCpu};
  for (const AcceleratorKind& kind : kinds) words.push_back(kind.name);
  if (kinds.empty()) words.push_back(kCuda);
  words.push_back(kAuto);
  return words;
}

void LogCpu(const absl::Status& why) {
  LogInfo(StrCat("training on the CPU: ",
                 why.message().substr(0, why.message().find('\n'))));
}

// Opens the device that --device names; null for the CPU.
absl::StatusOr<std::unique_ptr<Accelerator>> OpenAccelerator(
    const std::string& name, const std::vector<AcceleratorKind>& kinds,
    const GroupAddress& rank) {
  for (const AcceleratorKind& kind : kinds) {
    if (kind.name != name && name != kAuto) continue;
    absl::StatusOr<std::unique_ptr<Accelerator>> opened = kind.open(rank);
    if (opened.ok() || name != kAuto) return opened;
    LogCpu(opened.status());
  }
  return nullptr;
}

// For a program without GPUs: goes on as one with GPUs if --device asks for it.
// Returns an error, or OK if this program is to train.
absl::Status GoToDevice(const TrainFlags& flags, char** argv) {
  const std::string& device = flags.device();
  if (device != kCuda && device != kAuto) return absl::OkStatus();
  // Wrong options show before GPUs are looked for.
  MILLRACE_RETURN_IF_ERROR(
      WithTrainAdvice(flags.Options(std::max(flags.workers(), 1)).status()));
  const absl::Status stays = RunCudaProgram(argv);
  if (device != kAuto || absl::IsCancelled(stays)) return stays;
  LogCpu(stays);
  return absl::OkStatus();
}

absl::Status Train(const SourceFlags& source_flags,
                   const TrainFlags& train_flags,
                   const std::vector<AcceleratorKind>& kinds, bool worker) {
  MILLRACE_ASSIGN_OR_RETURN(const GroupAddress group,
                            FindGroup(train_flags, worker));
  MILLRACE_ASSIGN_OR_RETURN(TrainOptions options,
                            train_flags.Options(group.world));
  options.ranks_on_host = group.local_world;
  const int threads = ThreadsPerRank(source_flags.threads(), group.local_world);
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Accelerator> opened,
      OpenAccelerator(train_flags.device(), kinds, group));
  Accelerator& accelerator = opened == nullptr ? CpuAccelerator() : *opened;
  // Fails here if the system cannot start that many threads; LibTorch would
  // wait for them forever.
  ThreadPool("check", threads, /*capacity=*/0).Close();
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Collectives> collectives,
                            Collectives::Connect(group));
  // Other ranks show their users what failed here.
  absl::Status status = WithTrainAdvice(
      TrainInGroup(source_flags, train_flags, std::move(options), *collectives,
                   accelerator));
  if (status.ok()) return collectives->Finish();
  collectives->Fail(status);
  return status;
}

}  // namespace

int RunTrainProgram(int argc, char** argv,
                    const std::vector<AcceleratorKind>& kinds) {
  const bool worker = IsWorker();
  if (!worker && !IsCompletionRequest(argc, argv)) EnsurePassiveThreads(argv);
  SetUpTorchLog();
  CLI::App app("Trains graph neural networks on sampled batches",
               "millrace-train");
  SourceFlags source;
  TrainFlags flags(DeviceWords(kinds));
  source.AddTo(app);
  flags.AddTo(app);
  source.AddConnectionTo(app);
  app.footer(
      "  millrace-train --store cora-2 --workers 2 --model sage --hidden 256 "
      "\\\n"
      "      --fanouts 25,10 --batch-size 16 --lr 0.01 --epochs 15 \\\n"
      "      --inference full --checkpoint checkpoint");
  FinishOptions(app);
  return RunProgram(app, argc, argv, [&]() -> absl::Status {
    // The launcher of workers has gone already.
    if (kinds.empty() && !worker) {
      MILLRACE_RETURN_IF_ERROR(GoToDevice(flags, argv));
    }
    if (worker || flags.workers() <= 1) {
      return WithTrainAdvice(Train(source, flags, kinds, worker));
    }
    // Checks the options here so that wrong usage is reported only once.
    MILLRACE_RETURN_IF_ERROR(
        WithTrainAdvice(flags.Options(flags.workers()).status()));
    return WithTrainAdvice(RunWorkers(argv, flags.workers(), source.threads()));
  });
}

}  // namespace millrace
