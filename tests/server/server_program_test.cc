// SPDX-License-Identifier: Apache-2.0
// The millrace-server program: start, port file, SIGTERM, exit status.
#include "tests/support/server_program.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/store_builder.h"

namespace millrace {
namespace {

using testing::Program;

class ServerProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TestDirectory("server_program");
    const auto graph = testing::SmallGraph();
    ASSERT_TRUE(testing::BuildStore(graph, 2,
                                    testing::SpreadAssignment(graph, 2),
                                    directory_ / "store")
                    .ok());
  }

  std::vector<std::string> Arguments(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "--store",     (directory_ / "store").string(),
        "--listen",    "127.0.0.1:0",
        "--port-file", (directory_ / "port").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::filesystem::path directory_;
};

TEST_F(ServerProgramTest, ServesUntilSigtermAndExitsWithZero) {
  Program server(Arguments({"--partition", "0"}));
  ASSERT_TRUE(server.AwaitLog("serving partitions [0] of 2 on 127.0.0.1:"))
      << server.log();
  int port = 0;
  std::ifstream(directory_ / "port") >> port;
  EXPECT_GT(port, 0);
  EXPECT_NE(server.log().find(":" + std::to_string(port)), std::string::npos);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST_F(ServerProgramTest, ServesAllPartitionsFromMemory) {
  Program server(Arguments({"--partition", "all", "--graph-memory", "ram",
                            "--feature-memory", "ram", "--verify-on-start",
                            "--metrics", "127.0.0.1:0"}));
  ASSERT_TRUE(server.AwaitLog("serving partitions [0,1] of 2")) << server.log();
  server.Signal(SIGINT);
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST_F(ServerProgramTest, RefusesWhatItCannotServe) {
  const auto status = [this](std::vector<std::string> more) {
    Program server(Arguments(std::move(more)));
    server.AwaitLog("no such text");
    return server.ExitStatus();
  };
  EXPECT_EQ(status({"--partition", "2"}), 1);
  EXPECT_EQ(status({"--partition", "x"}), 2);
  EXPECT_EQ(status({"--partition", "0", "--graph-memory", "cuda"}), 2);
  EXPECT_EQ(status({"--partition", "0", "--peers", "nobody"}), 2);
  EXPECT_EQ(status({"--partition", "0", "--drain-timeout", "soon"}), 2);
  EXPECT_EQ(status({}), 2);
}

}  // namespace
}  // namespace millrace
