// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/server_failure.h"

#include <gtest/gtest.h>

#include "common/base/field_error.h"
#include "common/base/log.h"

namespace millrace {
namespace {

constexpr char kServer[] = "the server of --partition 0";
// As waitpid() gives them.
constexpr int kFailed = 1 << 8, kWrongUsage = 2 << 8, kKilled = 9;

TEST(ServerFailureTest, GivesTheReasonOfTheServer) {
  const absl::Status status = ServerFailure(
      kServer, kFailed,
      {"2026-11-28T18:30:00.123Z error server ended why=broken",
       "millrace-server: the port is taken", "millrace-server: use another"});
  EXPECT_EQ(status, absl::UnavailableError(
                        "the server of --partition 0 ended with status 1: the "
                        "port is taken\nuse another"));
}

TEST(ServerFailureTest, GivesTheLastErrorOfALogInJson) {
  const absl::Status status = ServerFailure(
      kServer, kWrongUsage,
      {R"({"level":"error","message":"not this","advice":"nor this"})",
       R"({"level":"error","message":"wrong option","advice":"correct it"})",
       R"({"level":"info","message":"later"})"});
  EXPECT_TRUE(IsUsageError(status)) << status;
  EXPECT_EQ(status.message(),
            "the server of --partition 0 ended with status 2: wrong "
            "option\ncorrect it");
}

TEST(ServerFailureTest, SaysWhereToLookIfTheServerGivesNoReason) {
  EXPECT_EQ(ServerFailure(kServer, kKilled, {"one", "two"}),
            absl::UnavailableError(
                "the server of --partition 0 was killed by signal 9 (Killed): "
                "one | two\nsee its log above, after [server]"));
  SetLogFormat(LogFormat::kJson);
  const absl::Status in_json = ServerFailure(kServer, kKilled, {});
  SetLogFormat(LogFormat::kText);
  EXPECT_EQ(in_json,
            absl::UnavailableError(
                "the server of --partition 0 was killed by signal 9 (Killed)\n"
                "see its events above, whose component is \"server\""));
}

}  // namespace
}  // namespace millrace
