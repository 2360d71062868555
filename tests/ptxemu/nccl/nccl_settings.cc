// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/nccl/nccl_settings.h"

#include <array>
#include <cstdio>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/ptxemu/environment.h"
#include "tests/ptxemu/settings.h"

namespace millrace::ncclemu {
namespace {

using ptxemu::NumberVariable;
using ptxemu::RefuseVariable;
using ptxemu::TextVariable;

constexpr std::array<const char*, ncclNumResults> kResultNames = {
    "ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
    "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
    "ncclRemoteError",   "ncclInProgress"};

AdditionOrder ReadOrder() {
  const std::string value = TextVariable("NCCLEMU_ORDER", "rank");
  if (value == "rank") return AdditionOrder::kRank;
  if (value == "ring") return AdditionOrder::kRing;
  if (value == "tree") return AdditionOrder::kTree;
  if (value == "random") return AdditionOrder::kRandom;
  RefuseVariable("NCCLEMU_ORDER", value);
}

uint64_t DefaultDelay() {
  switch (ptxemu::GetSettings().schedule) {
    case ptxemu::Schedule::kEager:
      return 0;
    case ptxemu::Schedule::kRandom:
      return 500;
    case ptxemu::Schedule::kLazy:
      return 3000;
  }
  return 0;
}

// Whether the variable has its one value; it must have that or none.
bool IsSet(const char* name, const char* value) {
  const std::string text = TextVariable(name, "");
  if (!text.empty() && text != value) RefuseVariable(name, text);
  return !text.empty();
}

bool ReadResult(absl::string_view text, ncclResult_t* result) {
  int number = 0;
  for (int k = 0; k < ncclNumResults; ++k) {
    if (text == kResultNames[k]) {
      *result = static_cast<ncclResult_t>(k);
      return true;
    }
  }
  if (!absl::SimpleAtoi(text, &number)) return false;
  *result = static_cast<ncclResult_t>(number);
  return number >= 0 && number < ncclNumResults;
}

// Reads "ncclAllReduce@1:3=ncclRemoteError".
bool ReadPlannedResult(absl::string_view item, PlannedResult* planned) {
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(item, absl::MaxSplits('=', 1));
  const std::pair<absl::string_view, absl::string_view> caller_and_call =
      absl::StrSplit(sides.first, absl::MaxSplits(':', 1));
  const std::pair<std::string, std::string> function_and_rank =
      absl::StrSplit(caller_and_call.first, absl::MaxSplits('@', 1));
  planned->function = function_and_rank.first;
  int rank = 0;
  if (!function_and_rank.second.empty()) {
    if (!absl::SimpleAtoi(function_and_rank.second, &rank)) return false;
    planned->rank = rank;
  }
  return absl::SimpleAtoi(caller_and_call.second, &planned->call) &&
         ReadResult(sides.second, &planned->result);
}

std::vector<PlannedResult> ReadPlannedResults() {
  std::vector<PlannedResult> all;
  const std::string value = TextVariable("NCCLEMU_FAIL", "");
  for (const absl::string_view item :
       absl::StrSplit(value, ',', absl::SkipEmpty())) {
    PlannedResult planned;
    if (!ReadPlannedResult(item, &planned)) {
      RefuseVariable("NCCLEMU_FAIL", value);
    }
    all.push_back(std::move(planned));
  }
  return all;
}

NcclSettings ReadSettings() {
  return {.folder = TextVariable("NCCLEMU_DIR", "/dev/shm"),
          .order = ReadOrder(),
          .init_delay =
              absl::Milliseconds(NumberVariable("NCCLEMU_INIT_DELAY_MS", 0)),
          .max_delay = absl::Microseconds(
              NumberVariable("NCCLEMU_DELAY_US", DefaultDelay())),
          .reports_dead = IsSet("NCCLEMU_DEAD", "report"),
          .mismatch_hangs = IsSet("NCCLEMU_MISMATCH", "hang"),
          .planned_results = ReadPlannedResults()};
}

}  // namespace

const NcclSettings& GetNcclSettings() {
  static const auto* settings = new NcclSettings(ReadSettings());
  return *settings;
}

void Say(const std::string& text) {
  std::fprintf(stderr, "ncclemu: %s\n", text.c_str());
}

}  // namespace millrace::ncclemu
