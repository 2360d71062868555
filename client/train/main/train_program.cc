// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/train_program.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "client/flags/job_flags.h"
#include "client/flags/option_errors.h"
#include "client/flags/serve_flags.h"
#include "client/train/group/collectives.h"
#include "client/train/group/group_secret.h"
#include "client/train/group/launcher.h"
#include "client/train/main/colocated_server.h"
#include "client/train/main/cuda_program.h"
#include "client/train/main/life_events.h"
#include "client/train/main/train_advice.h"
#include "client/train/main/train_flags.h"
#include "client/train/main/train_pages.h"
#include "client/train/main/warning_lines.h"
#include "client/train/trainer.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
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

// A parsed command line, and the kinds of devices this program can train on.
struct TrainCommand {
  const SourceFlags& source;
  const ServeFlags& serve;
  const TrainFlags& flags;
  std::vector<AcceleratorKind> kinds;  // besides the CPU
  bool is_worker = false;              // of a launcher
};

// Rows that are kept on a GPU serve only batches that go there, which those of
// --consumed-log do not.
std::optional<OwnGpu> GpuOf(Accelerator& accelerator,
                            const TrainOptions& options) {
  const std::shared_ptr<ArrayMemory> memory = accelerator.memory();
  if (memory == nullptr) return std::nullopt;
  return OwnGpu{memory->device(), options.consumed_log.empty()
                                      ? accelerator.MakeDeviceCache()
                                      : nullptr};
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

// For --device auto, which takes the CPU whatever the backend.
void LogCpu(const absl::Status& why, const TrainFlags& flags) {
  const bool other = flags.backend() == Backend::kNccl;
  LogInfo(StrCat("training on the CPU",
                 other ? ", with gloo instead of nccl" : "", ": ",
                 FirstLine(why)));
}

// Opens the device that --device names; null for the CPU.
absl::StatusOr<std::unique_ptr<Accelerator>> OpenAccelerator(
    const TrainCommand& command, const GroupAddress& rank) {
  const TrainFlags& flags = command.flags;
  const bool any = flags.device() == kAuto;
  for (const AcceleratorKind& kind : command.kinds) {
    if (kind.name != flags.device() && !any) continue;
    absl::StatusOr<std::unique_ptr<Accelerator>> opened =
        kind.open(rank, flags.backend().value_or(kind.backend));
    if (opened.ok() || !any) return opened;
    LogCpu(opened.status(), flags);
  }
  return nullptr;
}

// Starts the pages of --metrics; null without it.
absl::StatusOr<std::unique_ptr<TrainPages>> StartPages(
    const TrainCommand& command, const GroupAddress& rank) {
  if (!command.flags.has_metrics()) return nullptr;
  MILLRACE_ASSIGN_OR_RETURN(
      const HostPort address,
      command.flags.MetricsAddress(rank.local_rank.value_or(0)));
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<TrainPages> pages,
      TrainPages::Start(address, command.source.Describe()));
  LogInfo(StrCat("status and metrics at http://", pages->address(), "/"));
  return pages;
}

// Logs the start and the end of a run. Of the workers of a launcher, which
// share a log, only rank 0 does.
absl::Status RunLogged(TrainStart start, Trainer& trainer, bool is_worker) {
  const bool logs = start.rank == 0 || !is_worker;
  start.device = trainer.model().device().str();
  if (logs) LogTrainStart(start);
  const SteadyTime begin = SteadyNow();
  absl::Status run = trainer.Run();
  if (logs) LogTrainEnd(run, trainer.state(), SteadyNow() - begin);
  return run;
}

// Starts the server of --serve, if there is to be one, and waits until it is
// ready. Each host has one.
absl::Status StartServer(const TrainCommand& command,
                         std::unique_ptr<ColocatedServer>& server) {
  const ServeFlags& serve = command.serve;
  if (!serve.given()) return absl::OkStatus();
  MILLRACE_RETURN_IF_ERROR(serve.CheckStore(command.source));
  MILLRACE_ASSIGN_OR_RETURN(const SourceOptions options,
                            command.source.Options());
  server = std::make_unique<ColocatedServer>(
      StrCat("the server of --partition ", serve.partition()),
      serve.ServerArguments(command.source));
  return server->WaitUntilReady(options.partition_wait);
}

absl::StatusOr<std::shared_ptr<BatchSource>> OpenTrainSource(
    const TrainCommand& command, const std::optional<OwnGpu>& gpu) {
  if (!command.serve.given()) return command.source.Open(gpu);
  SourceFlags fleet = command.source;
  fleet.ReadFromServers(command.serve.Servers());
  return fleet.Open(gpu);
}

// `server` is what StartServer() sets, if this rank starts its host's.
absl::Status TrainInGroup(const TrainCommand& command,
                          const GroupAddress& group, TrainOptions options,
                          Collectives& collectives,
                          std::unique_ptr<ColocatedServer>& server) {
  if (!command.is_worker && group.local_rank.value_or(0) == 0) {
    MILLRACE_RETURN_IF_ERROR(StartServer(command, server));
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Accelerator> opened,
                            OpenAccelerator(command, group));
  Accelerator& accelerator = opened == nullptr ? CpuAccelerator() : *opened;
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<TrainPages> pages,
                            StartPages(command, group));
  MILLRACE_ASSIGN_OR_RETURN(
      std::shared_ptr<BatchSource> source,
      OpenTrainSource(command, GpuOf(accelerator, options)));
  if (command.flags.InferSeedType(source->manifest(), options.job) &&
      collectives.rank() == 0) {
    LogSeedType(options.job);
  }
  if (pages != nullptr) pages->SetSource(source);
  const TrainStart start = {.source = command.source.name(),
                            .rank = group.rank,
                            .world = group.world,
                            .device = command.flags.device(),
                            .options = options};
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Trainer> trainer,
      Trainer::Create(std::move(source), collectives, options, accelerator,
                      pages == nullptr ? nullptr : pages->monitor()));
  const absl::Status run = RunLogged(start, *trainer, command.is_worker);
  // The others need not wait until this rank has left the group.
  if (!run.ok()) collectives.Fail(WithTrainAdvice(run));
  return run;
}

absl::StatusOr<GroupAddress> FindGroup(const TrainCommand& command) {
  const TrainFlags& flags = command.flags;
  const bool worker = command.is_worker;
  // A single worker is a group of one, whatever the environment says.
  if (!worker && flags.has_workers()) return GroupAddress();
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

absl::Status Train(const TrainCommand& command) {
  MILLRACE_ASSIGN_OR_RETURN(const GroupAddress group, FindGroup(command));
  MILLRACE_ASSIGN_OR_RETURN(TrainOptions options,
                            command.flags.Options(group.world));
  options.ranks_on_host = group.local_world;
  const int threads =
      ThreadsPerRank(command.source.threads(), group.local_world);
  // Fails here if the system cannot start that many threads; LibTorch would
  // wait for them forever.
  ThreadPool("check", threads, /*capacity=*/0).Close();
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
  // Ends last: other hosts need it until all ranks have finished.
  std::unique_ptr<ColocatedServer> server;
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Collectives> collectives,
                            Collectives::Connect(group));
  // Other ranks show their users what failed here.
  absl::Status status = WithTrainAdvice(
      TrainInGroup(command, group, std::move(options), *collectives, server));
  if (status.ok()) return collectives->Finish();
  collectives->Fail(status);
  return status;
}

// Wrong options show before GPUs are looked for.
absl::Status CheckOptions(const TrainFlags& flags, int workers) {
  const int count = std::max(workers, 1);
  if (flags.has_metrics()) {
    MILLRACE_RETURN_IF_ERROR(flags.MetricsAddress(count - 1).status());
  }
  return flags.Options(count).status();
}

// A GPU that cannot be opened.
AcceleratorKind UnusableKind(const absl::Status& why) {
  return {.name = kCuda,
          .backend = Backend::kNccl,
          .count = [why] { return why; },
          .open = [why](const GroupAddress&, Backend) { return why; }};
}

// Runs millrace-train-cuda in the place of this program, which has no GPUs.
// Returns only if it cannot: OK if the command goes on here (--device auto, or
// a rank that must tell the others).
absl::Status GoToDevice(TrainCommand& command, char** argv) {
  const TrainFlags& flags = command.flags;
  MILLRACE_RETURN_IF_ERROR(CheckOptions(flags, flags.workers()));
  const absl::Status stays = RunCudaProgram(argv, flags.has_workers());
  if (flags.device() == kAuto && !absl::IsCancelled(stays)) {
    LogCpu(stays, flags);
    return absl::OkStatus();
  }
  if (flags.has_workers() || absl::IsCancelled(stays)) return stays;
  // Fails once it has met the other ranks, which would wait for this one.
  command.kinds.push_back(UnusableKind(stays));
  return absl::OkStatus();
}

// Returns the number of trainers that --workers asks for; 0 if it was not
// given.
absl::StatusOr<int> CountWorkers(const TrainCommand& command) {
  const TrainFlags& flags = command.flags;
  if (!flags.worker_for_each_gpu()) return flags.workers();
  MILLRACE_RETURN_IF_ERROR(CheckOptions(flags, 1));
  for (const AcceleratorKind& kind : command.kinds) {
    absl::StatusOr<int> count = kind.count();
    if (count.ok() || flags.device() != kAuto) return count;
    LogCpu(count.status(), flags);
  }
  return 1;
}

absl::Status RunCommand(TrainCommand& command, char** argv) {
  // The launcher of workers has looked for GPUs already.
  if (command.is_worker) return Train(command);
  MILLRACE_RETURN_IF_ERROR(command.serve.Check(command.source));
  if (command.kinds.empty() && command.flags.device() != kCpu) {
    MILLRACE_RETURN_IF_ERROR(GoToDevice(command, argv));
  }
  MILLRACE_ASSIGN_OR_RETURN(const int workers, CountWorkers(command));
  if (workers <= 1) return Train(command);
  // Checks the options here so that wrong usage is reported only once.
  MILLRACE_RETURN_IF_ERROR(CheckOptions(command.flags, workers));
  std::unique_ptr<ColocatedServer> server;
  MILLRACE_RETURN_IF_ERROR(StartServer(command, server));
  return RunWorkers(argv, workers, command.source.threads());
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
  ServeFlags serve;
  TrainFlags flags(DeviceWords(kinds));
  source.AddTo(app);
  flags.AddTo(app);
  source.AddConnectionTo(app, "the GPU of --device, or 0");
  serve.AddTo(app);
  app.footer(
      "  millrace-train --store cora-2 --workers 2 --model sage --hidden 256 "
      "\\\n"
      "      --fanouts 25,10 --batch-size 16 --lr 0.01 --epochs 15 \\\n"
      "      --inference full --checkpoint checkpoint");
  FinishOptions(app);
  TrainCommand command = {source, serve, flags, kinds, worker};
  return RunProgram(
      app, argc, argv,
      [&]() -> absl::Status {
        return WithTrainAdvice(RunCommand(command, argv));
      },
      LogComponent::kTrain);
}

}  // namespace millrace
