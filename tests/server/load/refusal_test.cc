// SPDX-License-Identifier: Apache-2.0
#include "server/load/refusal.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "common/grpc/status.h"
#include "common/wire/error_info.h"
#include "server/load/active_calls.h"
#include "server/load/admission.h"
#include "server/load/connection_calls.h"

namespace millrace {
namespace {

TEST(RefusalTest, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (const RefusalReason reason : kRefusalReasons) {
    EXPECT_TRUE(names.insert(RefusalName(reason)).second);
    EXPECT_EQ(RefusalOf(WithRefusal(absl::UnavailableError("x"), reason)),
              reason);
  }
  EXPECT_EQ(RefusalOf(absl::UnavailableError("x")), std::nullopt);
  EXPECT_EQ(RefusalOf(absl::OkStatus()), std::nullopt);
}

TEST(RefusalTest, StaysInThisProcess) {
  const absl::Status status = WithErrorInfo(
      WithRefusal(absl::UnavailableError("x"), RefusalReason::kDraining),
      {.partition = 3});
  EXPECT_EQ(RefusalOf(status), RefusalReason::kDraining);
  const absl::Status received = FromGrpcStatus(ToGrpcStatus(status));
  EXPECT_EQ(RefusalOf(received), std::nullopt);
  EXPECT_EQ(ErrorInfoOf(received).partition, 3);
}

TEST(RefusalTest, PlacesAndDrainingAreToldApart) {
  ActiveCalls calls(1, [](auto*, const absl::Status&) {});
  ::grpc::CallbackServerContext first;
  EXPECT_EQ(calls.Enter(&first, "a", SteadyTime::InfiniteFuture()),
            absl::OkStatus());
  EXPECT_EQ(calls.clients(), 1u);
  EXPECT_EQ(RefusalOf(calls.CheckRoom("a")), RefusalReason::kPlaces);
  calls.StartDraining();
  EXPECT_EQ(RefusalOf(calls.CheckRoom("a")), RefusalReason::kDraining);
  calls.Leave(&first);
  EXPECT_EQ(calls.clients(), 0u);
}

TEST(RefusalTest, MemoryShareAndSizeAreToldApart) {
  Admission admission(100);
  const auto reserve = [&](const std::string& client, uint64_t bytes) {
    return admission.Reserve({.client = client, .end = [] {}}, 0, bytes);
  };
  EXPECT_EQ(RefusalOf(reserve("a", 101).status()), RefusalReason::kTooLarge);
  // The call of `a` is ended for `b`, but has not returned its memory, so that
  // no further call is ended.
  const auto first = reserve("a", 100);
  const auto second = reserve("b", 50);
  const auto third = reserve("c", 33);
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  EXPECT_EQ(RefusalOf(reserve("d", 25).status()), RefusalReason::kMemory);
  EXPECT_EQ(RefusalOf(reserve("d", 34).status()), RefusalReason::kShare);
}

TEST(RefusalTest, ConnectionsWithTooManyCallsAreTold) {
  ConnectionCalls calls(1);
  const auto first = calls.Enter("ipv4:127.0.0.1:4711");
  EXPECT_EQ(RefusalOf(calls.Enter("ipv4:127.0.0.1:4711").status()),
            RefusalReason::kConnection);
}

}  // namespace
}  // namespace millrace
