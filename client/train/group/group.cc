// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/group.h"

#include <cstdlib>
#include <optional>

#include "absl/strings/numbers.h"
#include "client/train/group/slurm.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// The variables with which a launcher tells a process its place.
struct LaunchVariables {
  const char* rank;
  const char* world;
  const char* local_world;
  const char* local_rank;
  bool srun = false;
};

// The first one that is set counts. srun comes last: mpirun uses it to start
// its helpers, and the ranks inherit their variables.
constexpr LaunchVariables kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE",
     "MV2_COMM_WORLD_LOCAL_RANK"}};
constexpr LaunchVariables kPmi = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS",
                                  "MPI_LOCALRANKID"};
constexpr char kSlurmTasks[] = "SLURM_NTASKS";
constexpr char kSlurmHost[] = "SLURM_NODEID";
constexpr char kSlurmJob[] = "SLURM_JOB_ID";
constexpr char kSlurmStep[] = "SLURM_STEP_ID";
constexpr char kStepHosts[] = "SLURM_STEP_NODELIST";
constexpr char kJobHosts[] = "SLURM_JOB_NODELIST";
constexpr char kLaunchHost[] = "SLURM_LAUNCH_NODE_IPADDR";
constexpr char kMasterAddr[] = "MASTER_ADDR";
constexpr char kMasterPort[] = "MASTER_PORT";

// Returns null if the variable is not set or empty.
const char* Variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

absl::Status BadValue(const char* name, std::string_view why) {
  return absl::InvalidArgumentError(
      StrCat(name, " is \"", Variable(name), "\", ", why));
}

// Returns the value of a variable, which must be set.
absl::StatusOr<int> NumberFrom(const char* name, int low, int high) {
  int value = 0;
  if (absl::SimpleAtoi(Variable(name), &value) && value >= low &&
      value <= high) {
    return value;
  }
  return BadValue(name, StrCat("not a number from ", low, " to ", high));
}

absl::Status Missing(const char* set, const char* missing) {
  return WithReason(absl::InvalidArgumentError(
                        StrCat(set, " is set but ", missing, " is not")),
                    Reason{"incomplete_group"});
}

absl::StatusOr<bool> IsSet(const LaunchVariables& launcher) {
  const bool rank = Variable(launcher.rank) != nullptr;
  const bool world = Variable(launcher.world) != nullptr;
  if (rank && !world) return Missing(launcher.rank, launcher.world);
  if (world && !rank) return Missing(launcher.world, launcher.rank);
  return rank;
}

// A batch script and the shell of salloc have many of Slurm's variables as
// well, but none of those below.
std::optional<LaunchVariables> Srun() {
  LaunchVariables srun = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                          "SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID", true};
  if (Variable(srun.world) == nullptr) srun.world = kSlurmTasks;
  if (Variable(srun.rank) == nullptr || Variable(srun.world) == nullptr) {
    return std::nullopt;
  }
  for (const char* name :
       {kSlurmStep, "SLURM_STEP_NUM_TASKS", kStepHosts, kLaunchHost}) {
    if (Variable(name) != nullptr) return srun;
  }
  return std::nullopt;
}

bool AreEqual(const char* one, const char* other) {
  return std::string_view(Variable(one)) == Variable(other);
}

absl::StatusOr<std::optional<LaunchVariables>> FindLauncher() {
  for (const LaunchVariables& launcher : kLaunchers) {
    MILLRACE_ASSIGN_OR_RETURN(const bool set, IsSet(launcher));
    if (set) return launcher;
  }
  const std::optional<LaunchVariables> srun = Srun();
  MILLRACE_ASSIGN_OR_RETURN(const bool pmi, IsSet(kPmi));
  // srun --mpi=pmi2 sets these too, but its own variables say more.
  if (pmi && !(srun.has_value() && AreEqual(kPmi.rank, srun->rank) &&
               AreEqual(kPmi.world, srun->world))) {
    return kPmi;
  }
  return srun;
}

// How many ranks are on this host, if that is known.
absl::StatusOr<std::optional<int>> LocalWorld(const LaunchVariables& launcher,
                                              int world) {
  const char* name = launcher.local_world;
  if (Variable(name) == nullptr) return std::nullopt;
  if (!launcher.srun) return NumberFrom(name, 1, world);
  if (Variable(kSlurmHost) == nullptr) return std::nullopt;
  MILLRACE_ASSIGN_OR_RETURN(const int host,
                            NumberFrom(kSlurmHost, 0, world - 1));
  const absl::StatusOr<int> tasks = SlurmTasksOnHost(Variable(name), host);
  if (tasks.ok()) return *tasks;
  return BadValue(name, "not a number of tasks for each host");
}

// This process's place among the ranks of its host, if that is known.
absl::StatusOr<std::optional<int>> LocalRank(const LaunchVariables& launcher,
                                             const GroupAddress& group,
                                             std::optional<int> local_world) {
  if (Variable(launcher.local_rank) != nullptr) {
    return NumberFrom(launcher.local_rank, 0,
                      local_world.value_or(group.world) - 1);
  }
  return local_world == group.world ? std::optional(group.rank) : std::nullopt;
}

template <typename Value>
struct Found {
  Value value;
  const char* variable;
};

absl::StatusOr<Found<std::string>> FindHost(const LaunchVariables& launcher,
                                            const GroupAddress& group) {
  if (const char* host = Variable(kMasterAddr)) return {{host, kMasterAddr}};
  if (group.local_world == group.world) {
    return {{"127.0.0.1", launcher.local_world}};
  }
  // A step may have only some of the job's hosts. That of mpirun's helpers may
  // lack the first one, so mpirun's ranks meet at the first host of the job.
  const char* hosts =
      launcher.srun && Variable(kStepHosts) != nullptr ? kStepHosts : kJobHosts;
  if (const char* list = Variable(hosts)) {
    absl::StatusOr<std::string> first = FirstSlurmHost(list);
    if (!first.ok()) return BadValue(hosts, "not a list of hosts");
    return {{*std::move(first), hosts}};
  }
  if (launcher.srun && Variable(kLaunchHost) != nullptr) {
    return {{Variable(kLaunchHost), kLaunchHost}};
  }
  return Missing(launcher.world, kMasterAddr);
}

absl::StatusOr<Found<uint16_t>> FindPort(const LaunchVariables& launcher) {
  if (Variable(kMasterPort) != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(const int port,
                              NumberFrom(kMasterPort, 1, 65535));
    return {{static_cast<uint16_t>(port), kMasterPort}};
  }
  const char* text = Variable(kSlurmJob);
  if (text == nullptr) return Missing(launcher.world, kMasterPort);
  uint64_t job = 0;
  if (!absl::SimpleAtoi(text, &job)) return BadValue(kSlurmJob, "not a number");
  // mpirun's helpers may belong to several steps.
  uint64_t step = 0;
  if (const char* number = Variable(kSlurmStep); launcher.srun && number) {
    if (!absl::SimpleAtoi(number, &step)) {
      return BadValue(kSlurmStep, "not a number");
    }
  }
  // Jobs and steps that share a host get different ports, all below those that
  // the system chooses for outgoing connections.
  return {
      {static_cast<uint16_t>(10000 + (61 * job + step) % 20000), kSlurmJob}};
}

}  // namespace

absl::StatusOr<GroupAddress> GroupFromEnvironment() {
  GroupAddress group;
  MILLRACE_ASSIGN_OR_RETURN(const std::optional<LaunchVariables> launcher,
                            FindLauncher());
  if (!launcher.has_value()) {
    const char* tasks = Variable(kSlurmTasks);
    if (tasks != nullptr && tasks != std::string_view("1")) {
      group.origin = StrCat("training alone: ", kSlurmTasks, " is ", tasks,
                            ", but srun did not start this process");
    }
    return group;
  }
  MILLRACE_ASSIGN_OR_RETURN(group.world,
                            NumberFrom(launcher->world, 1, 1 << 20));
  MILLRACE_ASSIGN_OR_RETURN(group.rank,
                            NumberFrom(launcher->rank, 0, group.world - 1));
  group.local_rank = 0;
  if (group.world == 1) return group;
  MILLRACE_ASSIGN_OR_RETURN(const std::optional<int> local_world,
                            LocalWorld(*launcher, group.world));
  group.local_world = local_world.value_or(1);
  MILLRACE_ASSIGN_OR_RETURN(group.local_rank,
                            LocalRank(*launcher, group, local_world));
  MILLRACE_ASSIGN_OR_RETURN(const auto host, FindHost(*launcher, group));
  MILLRACE_ASSIGN_OR_RETURN(const auto port, FindPort(*launcher));
  group.host = host.value;
  group.port = port.value;
  // A bool as Python prints it. Only torchrun sets it, together with RANK.
  const char* agent = Variable("TORCHELASTIC_USE_AGENT_STORE");
  group.agent_listens = agent != nullptr && agent == std::string_view("True");
  group.origin =
      StrCat("rank ", group.rank, " of ", group.world, " (", launcher->rank,
             ", ", launcher->world, "), which meet at ", group.host, ":",
             group.port, " (", host.variable, ", ", port.variable, ")");
  return group;
}

}  // namespace millrace
