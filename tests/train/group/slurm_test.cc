// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/slurm.h"

#include <gtest/gtest.h>

namespace millrace::testing {
namespace {

TEST(SlurmTest, FindsTheFirstHostOfAList) {
  for (const auto& [list, first] : {
           std::pair("login", "login"),
           std::pair("b,a", "b"),
           std::pair("n[1-3]", "n1"),
           std::pair("n[007-010,2],m1", "n007"),
           std::pair("n[9,3-4]-ib", "n9-ib"),
           std::pair("rack[02-04,7]-node[1-2],login", "rack02-node1"),
           std::pair("[5-6]", "5"),
       }) {
    const auto host = FirstSlurmHost(list);
    ASSERT_TRUE(host.ok()) << list << ": " << host.status();
    EXPECT_EQ(*host, first) << list;
  }
}

TEST(SlurmTest, RefusesWhatIsNotAListOfHosts) {
  for (const char* list : {"", ",a", "n[1-2", "n[]", "n[-3]"}) {
    EXPECT_FALSE(FirstSlurmHost(list).ok()) << list;
  }
}

TEST(SlurmTest, CountsTheTasksOfAHost) {
  EXPECT_EQ(*SlurmTasksOnHost("4", 0), 4);
  for (const auto& [host, tasks] :
       {std::pair(0, 2), std::pair(2, 2), std::pair(3, 1), std::pair(4, 7)}) {
    EXPECT_EQ(*SlurmTasksOnHost("2(x3),1,7(x2)", host), tasks) << host;
  }
}

TEST(SlurmTest, RefusesWhatLacksTheTasksOfAHost) {
  EXPECT_FALSE(SlurmTasksOnHost("2(x3),1", 4).ok());
  for (const char* list : {"", "x", "2(x3", "2(xy)", "0", "-1", "2(3)"}) {
    EXPECT_FALSE(SlurmTasksOnHost(list, 0).ok()) << list;
  }
}

}  // namespace
}  // namespace millrace::testing
