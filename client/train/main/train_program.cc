// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/train_program.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

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
#include "common/base/processors.h"
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
  return std::max(1, UsableProcessors() / workers);
}

// Turns off c10d's log and its stack traces unless the user has asked for them,
// since errors reach the user as statuses.
void SetUpTorchLog() {
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
  static WarningLines lines;
  c10::WarningUtils::set_warning_handler(&lines);
}

void SetUpTorchThreads(int threads) {
  // Fails here if the system cannot start that many threads; LibTorch would
  // wait for them forever.
  ThreadPool("check", threads, /*capacity=*/0).Close();
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
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
  LogInfo(
      StrCat("training on the CPU", other ? ", with gloo instead of nccl" : ""),
      {{"why", FirstLine(why)}});
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
  LogInfo("listening for metrics",
          {{"url", StrCat("http://", pages->address(), "/")}});
  return pages;
}

// Starts the server of --serve and waits until it is ready; null without
// --serve.
absl::StatusOr<std::unique_ptr<ColocatedServer>> StartServer(
    const TrainCommand& command) {
  const ServeFlags& serve = command.serve;
  if (!serve.given()) return nullptr;
  MILLRACE_RETURN_IF_ERROR(serve.CheckStore(command.source));
  MILLRACE_ASSIGN_OR_RETURN(const SourceOptions options,
                            command.source.Options());
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<ColocatedServer> server,
      ColocatedServer::Start(
          StrCat("the server of --partition ", serve.partition()),
          serve.ServerArguments(command.source)));
  MILLRACE_RETURN_IF_ERROR(server->WaitUntilReady(options.partition_wait));
  return server;
}

// Each host has one server: its launcher has started it, or its first rank
// does. Null for the others.
absl::StatusOr<std::unique_ptr<ColocatedServer>> StartServerOfHost(
    const TrainCommand& command, const GroupAddress& group) {
  if (command.is_worker || group.local_rank.value_or(0) != 0) return nullptr;
  return StartServer(command);
}

absl::StatusOr<std::shared_ptr<BatchSource>> OpenTrainSource(
    const TrainCommand& command, const std::optional<OwnGpu>& gpu) {
  if (!command.serve.given()) return command.source.Open(gpu);
  SourceFlags fleet = command.source;
  fleet.ReadFromServers(command.serve.Servers());
  return fleet.Open(gpu);
}

// A trainer that is ready to run. Parts may refer to those above them.
struct OpenedRun {
  TrainOptions options;
  std::unique_ptr<Accelerator> device;  // null for the CPU
  std::unique_ptr<TrainPages> pages;    // null without --metrics
  std::shared_ptr<BatchSource> source;  // shared with the pages and the trainer
  std::unique_ptr<Trainer> trainer;
};

absl::StatusOr<OpenedRun> OpenRun(const TrainCommand& command,
                                  const GroupAddress& group,
                                  TrainOptions options,
                                  Collectives& collectives) {
  OpenedRun run;
  run.options = std::move(options);
  MILLRACE_ASSIGN_OR_RETURN(run.device, OpenAccelerator(command, group));
  Accelerator& accelerator =
      run.device == nullptr ? CpuAccelerator() : *run.device;
  MILLRACE_ASSIGN_OR_RETURN(run.pages, StartPages(command, group));
  MILLRACE_ASSIGN_OR_RETURN(
      run.source, OpenTrainSource(command, GpuOf(accelerator, run.options)));
  if (command.flags.InferSeedType(run.source->manifest(), run.options.job) &&
      group.rank == 0) {
    LogSeedType(run.options.job);
  }
  if (run.pages != nullptr) run.pages->SetSource(run.source);
  MILLRACE_ASSIGN_OR_RETURN(
      run.trainer,
      Trainer::Create(run.source, collectives, run.options, accelerator,
                      run.pages == nullptr ? nullptr : run.pages->monitor()));
  return run;
}

// Whether this trainer logs how its life begins and ends: of the workers of a
// launcher, which share a log, only rank 0 does.
bool LogsItsLife(const TrainCommand& command, const GroupAddress& group) {
  return group.rank == 0 || !command.is_worker;
}

TrainPlace PlaceOf(const TrainCommand& command, const GroupAddress& group) {
  TrainPlace place = {.rank = group.rank, .world = group.world};
  // The launcher adds it to all events.
  if (command.is_worker && CurrentLogFormat() == LogFormat::kJson) {
    place.rank.reset();
  }
  return place;
}

absl::Status LogSetup(const TrainCommand& command, const GroupAddress& group,
                      int threads, const TrainOptions& training) {
  MILLRACE_ASSIGN_OR_RETURN(const SourceOptions options,
                            command.source.Options());
  TrainSetup setup = {.place = PlaceOf(command, group),
                      .source = command.source.Describe(),
                      .options = options,
                      .device = command.flags.device(),
                      .threads = threads,
                      .metrics = "",
                      .training = training};
  if (command.flags.has_metrics()) {
    MILLRACE_ASSIGN_OR_RETURN(
        const HostPort address,
        command.flags.MetricsAddress(group.local_rank.value_or(0)));
    setup.metrics = address.WithPort(address.port);
  }
  LogTrainSetup(setup);
  return absl::OkStatus();
}

// Trains, unless opening the run has failed, and logs the start and the end.
absl::Status RunLogged(const TrainCommand& command, const GroupAddress& group,
                       const absl::StatusOr<OpenedRun>& opened) {
  if (!opened.ok()) return WithTrainAdvice(opened.status());
  const bool logs = LogsItsLife(command, group);
  if (logs) {
    LogTrainStart({.place = PlaceOf(command, group),
                   .device = opened->trainer->model().device().str(),
                   .manifest = opened->source->manifest(),
                   .options = opened->options});
  }
  Trainer& trainer = *opened->trainer;
  const SteadyTime begin = SteadyNow();
  absl::Status status = WithTrainAdvice(trainer.Run());
  if (logs) LogTrainEnd(status, trainer.state(), SteadyNow() - begin);
  return status;
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
  SetUpTorchThreads(threads);
  if (LogsItsLife(command, group)) {
    MILLRACE_RETURN_IF_ERROR(LogSetup(command, group, threads, options));
  }
  // Gloo writes to a rank that may have died. As in Python, where SIGPIPE is
  // ignored, the write fails, and the group reports which rank it has lost.
  if (group.world > 1) std::signal(SIGPIPE, SIG_IGN);
  // Ends last: other hosts need it until all ranks have finished.
  absl::StatusOr<std::unique_ptr<ColocatedServer>> server = nullptr;
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Collectives> collectives,
                            Collectives::Connect(group));
  server = StartServerOfHost(command, group);
  {
    const absl::StatusOr<OpenedRun> run =
        server.ok() ? OpenRun(command, group, std::move(options), *collectives)
                    : server.status();
    absl::Status status = RunLogged(command, group, run);
    if (!status.ok()) {
      // Other ranks show their users what failed here. They need not wait until
      // this one has closed its source.
      collectives->Fail(status);
      return status;
    }
  }
  return collectives->Finish();
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
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<ColocatedServer> server,
                            StartServer(command));
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
