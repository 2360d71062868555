// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/signed_store.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/interrupt.h"

namespace millrace::testing {
namespace {

using Kind = SignedStore::Value::Kind;

const MessageSigner kSigner("sixteen bytes or more", "run");

class SignedStoreTest : public ::testing::Test {
 protected:
  SignedStoreTest() {
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    raw_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    store_ = c10::make_intrusive<SignedStore>(raw_, kSigner);
  }

  void SetRaw(const std::string& key, const std::string& value) {
    raw_->set("millrace/" + key,
              std::vector<uint8_t>(value.begin(), value.end()));
  }
  c10::intrusive_ptr<c10d::TCPStore> raw_;
  c10::intrusive_ptr<SignedStore> store_;
};

TEST_F(SignedStoreTest, HoldsWhatWasWritten) {
  EXPECT_EQ(store_->Read("a").kind, Kind::kAbsent);
  store_->Write("a", "message");
  EXPECT_EQ(store_->Read("a").kind, Kind::kSigned);
  EXPECT_EQ(store_->Read("a").message, "message");
  store_->Remove("a");
  EXPECT_EQ(store_->Read("a").kind, Kind::kAbsent);
}

TEST_F(SignedStoreTest, DistinguishesAStrangersValueFromAMessage) {
  for (const std::string& value :
       {std::string(), std::string("?"), std::string("message"),
        std::string(100, '\0')}) {
    SetRaw("a", value);
    const SignedStore::Value seen = store_->Read("a");
    EXPECT_NE(seen.kind, Kind::kSigned);
    EXPECT_EQ(seen.message, "");
    EXPECT_FALSE(store_->check({"a"}));
  }
}

TEST_F(SignedStoreTest, ReadingChangesNothing) {
  store_->Read("a");
  EXPECT_FALSE(raw_->check({"millrace/a"}));
  SetRaw("a", "message");
  store_->Read("a");
  EXPECT_EQ(raw_->get_to_str("millrace/a"), "message");
}

TEST_F(SignedStoreTest, AMessageCountsUnderItsKeyOnly) {
  store_->Write("a", "message");
  SetRaw("b", raw_->get_to_str("millrace/a"));
  EXPECT_EQ(store_->Read("b").kind, Kind::kNotSigned);
}

TEST_F(SignedStoreTest, WaitsForASignedMessage) {
  const std::chrono::milliseconds soon(20);
  EXPECT_THROW(store_->wait({"a"}, soon), c10::DistStoreError);
  SetRaw("a", "a stranger's");
  EXPECT_THROW(store_->wait({"a"}, soon), c10::DistStoreError);
  store_->Write("a", "message");
  store_->wait({"a"}, soon);
  EXPECT_EQ(store_->get_to_str("a"), "message");
}

TEST_F(SignedStoreTest, IsAStoreForGloo) {
  EXPECT_FALSE(store_->hasExtendedApi());
  store_->set("a", std::vector<uint8_t>{'x', 'y'});
  EXPECT_EQ(store_->Read("a").message, "xy");
  EXPECT_EQ(store_->get("a"), (std::vector<uint8_t>{'x', 'y'}));
  const auto clone = store_->clone();
  EXPECT_EQ(clone->get("a"), (std::vector<uint8_t>{'x', 'y'}));
  EXPECT_TRUE(store_->check({"a"}));
  EXPECT_FALSE(store_->check({"a", "b"}));
  EXPECT_FALSE(store_->check({"b", "a"}));
  EXPECT_TRUE(store_->check({}));
  const std::chrono::milliseconds soon(20);
  EXPECT_THROW(store_->wait({"a", "b"}, soon), c10::DistStoreError);
  EXPECT_THROW(store_->add("a", 1), c10::Error);
  EXPECT_THROW(store_->deleteKey("a"), c10::Error);
  EXPECT_THROW(store_->getNumKeys(), c10::Error);
}

void InterruptAndWait(c10d::Store& store) {
  InstallInterruptHandler();
  raise(SIGTERM);
  try {
    store.wait({"a"}, std::chrono::hours(1));
  } catch (const c10::DistStoreError& error) {
    std::fputs(error.what_without_backtrace(), stderr);
    std::_Exit(0);
  }
  std::_Exit(1);
}

TEST_F(SignedStoreTest, InterruptEndsTheWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(InterruptAndWait(*store_), ::testing::ExitedWithCode(0),
              "interrupted");
}

}  // namespace
}  // namespace millrace::testing
