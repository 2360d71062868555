// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace {
namespace {

using State = FleetMemberInfo::State;
using ::testing::HasSubstr;

// Clears a terminal's screen and moves to its first line; then bytes that are
// not UTF-8.
constexpr char kTakesOver[] = "\x1b[2J\x1b[H\r\xc2\x9b\xff";
constexpr char kShown[] = R"(\x1b[2J\x1b[H\x0d\xc2\x9b\xff)";

TEST(StatusTableTest, WhatServersSayCannotDisturbATerminal) {
  FleetMemberInfo answers;
  answers.address = "a:1";
  answers.state = State::kRefused;
  answers.version = std::string("version") + kTakesOver;
  answers.failure = std::string("failure") + kTakesOver;
  answers.damaged = {{3, std::string("damage") + kTakesOver}};
  answers.error =
      absl::UnavailableError(std::string("error") + kTakesOver + "\nadvice");
  FleetMemberInfo silent;
  silent.address = "b:1";
  silent.state = State::kUnreachable;
  silent.error = absl::UnavailableError(std::string("silent") + kTakesOver);
  const std::string table = StatusTable({answers, silent});
  for (const unsigned char c : table) {
    EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f)) << table;
  }
  for (const char* what : {"version", "failure", "damage", "error", "silent"}) {
    EXPECT_THAT(table, HasSubstr(std::string(what) + kShown));
  }
}

TEST(StatusTableTest, TellsWhatIsWrongBelowTheTable) {
  FleetMemberInfo member;
  member.address = "a:1";
  member.state = State::kReady;
  member.version = "1";
  member.failure = "a GPU has failed";
  member.damaged = {{3, "part-00003/x"}};
  member.leaf_only = true;
  const std::string table = StatusTable({member});
  EXPECT_THAT(table, HasSubstr("\na:1: a GPU has failed: restart this server\n"
                               "a:1: partition 3 is damaged: part-00003/x\n"
                               "a:1: ready for leaf calls only: "));
}

}  // namespace
}  // namespace millrace
