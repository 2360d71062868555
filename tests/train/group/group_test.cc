// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/group.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace millrace::testing {
namespace {

using Variables = std::map<std::string, std::string>;

// The group in an environment with only these launcher variables.
absl::StatusOr<GroupAddress> GroupOf(const Variables& variables) {
  for (const char* name : {"RANK",
                           "WORLD_SIZE",
                           "LOCAL_WORLD_SIZE",
                           "LOCAL_RANK",
                           "OMPI_COMM_WORLD_LOCAL_RANK",
                           "MV2_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID",
                           "SLURM_LOCALID",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                           "MV2_COMM_WORLD_RANK",
                           "MV2_COMM_WORLD_SIZE",
                           "MV2_COMM_WORLD_LOCAL_SIZE",
                           "PMI_RANK",
                           "PMI_SIZE",
                           "MPI_LOCALNRANKS",
                           "SLURM_PROCID",
                           "SLURM_NTASKS",
                           "SLURM_NODEID",
                           "SLURM_STEP_ID",
                           "SLURM_STEP_NUM_TASKS",
                           "SLURM_STEP_NODELIST",
                           "SLURM_STEP_TASKS_PER_NODE",
                           "SLURM_JOB_ID",
                           "SLURM_JOB_NODELIST",
                           "SLURM_LAUNCH_NODE_IPADDR"}) {
    unsetenv(name);
  }
  for (const auto& [name, value] : variables) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  return GroupFromEnvironment();
}

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

std::string MessageOf(const Variables& variables) {
  const absl::Status status = GroupOf(variables).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// The variables that srun sets in the second of three processes on two hosts.
const Variables kSrun = {{"SLURM_PROCID", "1"},
                         {"SLURM_NTASKS", "3"},
                         {"SLURM_NODEID", "0"},
                         {"SLURM_STEP_ID", "2"},
                         {"SLURM_STEP_NUM_TASKS", "3"},
                         {"SLURM_STEP_NODELIST", "n[07-08]"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
                         {"SLURM_JOB_ID", "1000"},
                         {"SLURM_JOB_NODELIST", "n[05-08]"},
                         {"SLURM_LAUNCH_NODE_IPADDR", "192.0.2.1"}};

const Variables kTorchrun = {{"RANK", "2"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "first.example"},
                             {"MASTER_PORT", "29500"}};

TEST(GroupTest, WithoutVariablesItIsAGroupOfOne) {
  const auto group = GroupOf({});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->rank, 0);
  EXPECT_EQ(group->world, 1);
  EXPECT_EQ(group->origin, "");
}

TEST(GroupTest, ReadsTorchrunsVariablesBeforeAllOthers) {
  const auto group =
      GroupOf(With(With(kSrun, kTorchrun), {{"OMPI_COMM_WORLD_RANK", "3"},
                                            {"OMPI_COMM_WORLD_SIZE", "9"}}));
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->rank, 2);
  EXPECT_EQ(group->world, 4);
  EXPECT_EQ(group->local_world, 2);
  EXPECT_EQ(group->host, "first.example");
  EXPECT_EQ(group->port, 29500);
  EXPECT_EQ(group->origin,
            "rank 2 of 4 (RANK, WORLD_SIZE), which meet at "
            "first.example:29500 (MASTER_ADDR, MASTER_PORT)");
}

TEST(GroupTest, KnowsWhetherTorchrunListens) {
  EXPECT_FALSE(GroupOf(kTorchrun)->agent_listens);
  for (const auto& [value, listens] :
       {std::pair("True", true), std::pair("False", false)}) {
    EXPECT_EQ(
        GroupOf(With(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", value}}))
            ->agent_listens,
        listens);
  }
}

TEST(GroupTest, NamesTheVariableThatIsMissing) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Variables some = kTorchrun;
    some.erase(name);
    EXPECT_NE(MessageOf(some).find(std::string(" but ") + name + " is not"),
              std::string::npos)
        << MessageOf(some);
  }
  EXPECT_EQ(MessageOf({{"PMI_RANK", "0"}})
                .find("PMI_RANK is set but PMI_SIZE is not"),
            0u);
}

TEST(GroupTest, NamesTheVariableWithABadValue) {
  EXPECT_EQ(MessageOf(With(kTorchrun, {{"RANK", "4"}})),
            "RANK is \"4\", not a number from 0 to 3");
  EXPECT_EQ(MessageOf(With(kTorchrun, {{"MASTER_PORT", "x"}})),
            "MASTER_PORT is \"x\", not a number from 1 to 65535");
  EXPECT_EQ(MessageOf(With(kSrun, {{"SLURM_STEP_NODELIST", "n["}})),
            "SLURM_STEP_NODELIST is \"n[\", not a list of hosts");
  EXPECT_EQ(MessageOf(With(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "2(x"}})),
            "SLURM_STEP_TASKS_PER_NODE is \"2(x\", not a number of tasks for "
            "each host");
}

TEST(GroupTest, ReadsSrunsVariables) {
  const auto group = GroupOf(kSrun);
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->rank, 1);
  EXPECT_EQ(group->world, 3);
  EXPECT_EQ(group->local_world, 2);
  EXPECT_EQ(group->host, "n07");
  EXPECT_EQ(group->origin,
            "rank 1 of 3 (SLURM_PROCID, SLURM_STEP_NUM_TASKS), which meet at "
            "n07:11002 (SLURM_STEP_NODELIST, SLURM_JOB_ID)");
}

TEST(GroupTest, StepsAndJobsMeetAtDifferentPorts) {
  const auto port = [](const char* job, const char* step) {
    return GroupOf(
               With(kSrun, {{"SLURM_JOB_ID", job}, {"SLURM_STEP_ID", step}}))
        ->port;
  };
  EXPECT_EQ(port("77", "0"), port("77", "0"));
  EXPECT_NE(port("77", "0"), port("77", "1"));
  EXPECT_NE(port("77", "0"), port("78", "0"));
}

TEST(GroupTest, ExplicitAddressesOverrideSlurms) {
  const auto group = GroupOf(With(
      kSrun, {{"MASTER_ADDR", "first.example"}, {"MASTER_PORT", "29500"}}));
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->rank, 1);
  EXPECT_EQ(group->host, "first.example");
  EXPECT_EQ(group->port, 29500);
}

TEST(GroupTest, AStepOnOneHostMeetsOnLoopback) {
  const auto group = GroupOf(With(kSrun, {{"SLURM_STEP_NODELIST", "n07"},
                                          {"SLURM_STEP_TASKS_PER_NODE", "3"}}));
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->local_world, 3);
  EXPECT_EQ(group->host, "127.0.0.1");
}

// SLURM_PROCID is not set in the shell of salloc, but it is in a batch script.
TEST(GroupTest, WithoutSrunAProcessOfAnAllocationTrainsAlone) {
  const Variables allocation = {{"SLURM_NTASKS", "3"},
                                {"SLURM_JOB_ID", "1000"},
                                {"SLURM_JOB_NODELIST", "n[07-08]"}};
  for (const Variables& variables :
       {allocation,
        With(allocation, {{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}})}) {
    const auto group = GroupOf(variables);
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_EQ(group->world, 1);
    EXPECT_EQ(group->origin,
              "training alone: SLURM_NTASKS is 3, but srun did not start this "
              "process");
  }
}

// If salloc opens its shell on a host of the allocation, that shell is a job
// step.
TEST(GroupTest, TheStepOfAnInteractiveShellIsAGroupOfOne) {
  const auto group = GroupOf({{"SLURM_PROCID", "0"},
                              {"SLURM_NTASKS", "3"},
                              {"SLURM_STEP_ID", "4294967290"},
                              {"SLURM_STEP_NUM_TASKS", "1"}});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->world, 1);
}

TEST(GroupTest, ReadsMpirunsVariables) {
  for (const std::string prefix : {"OMPI_COMM_WORLD_", "MV2_COMM_WORLD_"}) {
    // Ranks on one host need no address.
    const auto group = GroupOf({{prefix + "RANK", "1"},
                                {prefix + "SIZE", "2"},
                                {prefix + "LOCAL_SIZE", "2"},
                                {"MASTER_PORT", "29500"}});
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_EQ(group->rank, 1);
    EXPECT_EQ(group->world, 2);
    EXPECT_EQ(group->host, "127.0.0.1");
  }
  EXPECT_NE(MessageOf({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}})
                .find("PMI_SIZE is set but MASTER_ADDR is not"),
            std::string::npos);
}

TEST(GroupTest, KnowsItsPlaceOnItsHost) {
  EXPECT_EQ(GroupOf({})->local_rank, std::nullopt);
  EXPECT_EQ(GroupOf(kTorchrun)->local_rank, std::nullopt);
  EXPECT_EQ(GroupOf(With(kTorchrun, {{"LOCAL_RANK", "1"}}))->local_rank, 1);
  EXPECT_EQ(GroupOf(With(kSrun, {{"SLURM_LOCALID", "1"}}))->local_rank, 1);
  // How many ranks this host has is not known.
  Variables uncounted = With(kSrun, {{"SLURM_LOCALID", "1"}});
  uncounted.erase("SLURM_NODEID");
  EXPECT_EQ(GroupOf(uncounted)->local_rank, 1);
  // All ranks are on this host.
  EXPECT_EQ(GroupOf(With(kTorchrun, {{"LOCAL_WORLD_SIZE", "4"}}))->local_rank,
            2);
  const Variables mpi = {{"PMI_RANK", "1"},
                         {"PMI_SIZE", "6"},
                         {"MPI_LOCALRANKID", "5"},
                         {"MASTER_ADDR", "first.example"},
                         {"MASTER_PORT", "29500"}};
  EXPECT_EQ(GroupOf(mpi)->local_rank, 5);
  EXPECT_EQ(MessageOf(With(mpi, {{"MPI_LOCALNRANKS", "2"}})),
            "MPI_LOCALRANKID is \"5\", not a number from 0 to 1");
  EXPECT_EQ(MessageOf(With(kTorchrun, {{"LOCAL_RANK", "2"}})),
            "LOCAL_RANK is \"2\", not a number from 0 to 1");
}

// srun has started mpirun's helpers, one per host.
TEST(GroupTest, MpirunUnderSlurmMeetsAtTheFirstHostOfTheJob) {
  const auto group = GroupOf(With(
      kSrun, {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}}));
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->rank, 5);
  EXPECT_EQ(group->world, 8);
  EXPECT_EQ(group->host, "n05");
}

TEST(GroupTest, UsesSrunsVariablesIfPmisAgree) {
  const auto group =
      GroupOf(With(kSrun, {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}));
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->local_world, 2);
  // These variables belong to another launcher.
  EXPECT_EQ(GroupOf(With(kSrun, {{"PMI_RANK", "6"}, {"PMI_SIZE", "9"}}))->rank,
            6);
}

// 10000 + (61 * job + step) mod 20000.
TEST(GroupTest, ThePortFollowsFromJobAndStep) {
  const auto port = [](const char* job, const char* step) {
    return GroupOf(
               With(kSrun, {{"SLURM_JOB_ID", job}, {"SLURM_STEP_ID", step}}))
        ->port;
  };
  EXPECT_EQ(port("0", "0"), 10000);
  EXPECT_EQ(port("1", "5"), 10066);
  EXPECT_EQ(port("327", "52"), 29999);
  EXPECT_EQ(port("327", "53"), 10000);
  Variables variables = kSrun;
  variables.erase("SLURM_STEP_ID");
  EXPECT_EQ(GroupOf(variables)->port, 11000);
  EXPECT_EQ(MessageOf(With(kSrun, {{"SLURM_JOB_ID", "x"}})),
            "SLURM_JOB_ID is \"x\", not a number");
  EXPECT_EQ(MessageOf(With(kSrun, {{"SLURM_STEP_ID", "x"}})),
            "SLURM_STEP_ID is \"x\", not a number");
  variables.erase("SLURM_JOB_ID");
  EXPECT_EQ(MessageOf(variables).find(
                "SLURM_STEP_NUM_TASKS is set but MASTER_PORT is not"),
            0u);
}

// mpirun's helpers may belong to several steps.
TEST(GroupTest, MpirunsPortDoesNotFollowFromTheStep) {
  const auto group = GroupOf(With(
      kSrun, {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}}));
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->port, 11000);
  EXPECT_EQ(group->local_world, 1);
}

TEST(GroupTest, NumbersHaveLimits) {
  const auto with = [](const char* name, const char* value) {
    return GroupOf(With(kTorchrun, {{name, value}}));
  };
  for (const auto& [name, least, most, limits] :
       {std::tuple("RANK", "0", "3", "0 to 3"),
        std::tuple("LOCAL_WORLD_SIZE", "1", "4", "1 to 4"),
        std::tuple("MASTER_PORT", "1", "65535", "1 to 65535")}) {
    EXPECT_TRUE(with(name, least).ok()) << name;
    EXPECT_TRUE(with(name, most).ok()) << name;
    for (const int beyond : {std::atoi(least) - 1, std::atoi(most) + 1}) {
      const std::string value = std::to_string(beyond);
      EXPECT_EQ(with(name, value.c_str()).status().message(),
                std::string(name) + " is \"" + value +
                    "\", not a number from " + limits);
    }
  }
  EXPECT_TRUE(with("WORLD_SIZE", "1048576").ok());
  EXPECT_EQ(with("WORLD_SIZE", "1048577").status().message(),
            "WORLD_SIZE is \"1048577\", not a number from 1 to 1048576");
  EXPECT_EQ(with("WORLD_SIZE", "0").status().message(),
            "WORLD_SIZE is \"0\", not a number from 1 to 1048576");
}

TEST(GroupTest, AGroupOfOneNeedsNoAddress) {
  const auto group = GroupOf({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->world, 1);
  EXPECT_EQ(group->local_world, 1);
  EXPECT_EQ(group->origin, "");
}

TEST(GroupTest, EmptyVariablesAreNotSet) {
  const auto group =
      GroupOf({{"RANK", ""}, {"WORLD_SIZE", ""}, {"SLURM_NTASKS", ""}});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->world, 1);
  EXPECT_EQ(group->origin, "");
}

TEST(GroupTest, TheHostsOfAStepComeBeforeThoseOfItsJob) {
  Variables variables = kSrun;
  variables.erase("SLURM_STEP_NODELIST");
  EXPECT_EQ(GroupOf(variables)->host, "n05");
  variables.erase("SLURM_JOB_NODELIST");
  EXPECT_EQ(GroupOf(variables)->host, "192.0.2.1");
  variables.erase("SLURM_LAUNCH_NODE_IPADDR");
  EXPECT_EQ(MessageOf(variables).find(
                "SLURM_STEP_NUM_TASKS is set but MASTER_ADDR is not"),
            0u);
}

// Without these, how many ranks share a host is not known.
TEST(GroupTest, TheRanksOfAHostAreThoseOfItsNumber) {
  EXPECT_EQ(GroupOf(With(kSrun, {{"SLURM_PROCID", "2"}, {"SLURM_NODEID", "1"}}))
                ->local_world,
            1);
  Variables variables = kSrun;
  variables.erase("SLURM_NODEID");
  EXPECT_EQ(GroupOf(variables)->local_world, 1);
  variables = kSrun;
  variables.erase("SLURM_STEP_TASKS_PER_NODE");
  EXPECT_EQ(GroupOf(variables)->local_world, 1);
  EXPECT_EQ(MessageOf(With(kSrun, {{"SLURM_NODEID", "3"}})),
            "SLURM_NODEID is \"3\", not a number from 0 to 2");
}

}  // namespace
}  // namespace millrace::testing
