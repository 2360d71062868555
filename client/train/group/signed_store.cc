// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/signed_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/interrupt.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

std::string InNamespace(const std::string& key) {
  return StrCat("millrace/", key);
}

std::vector<uint8_t> ToBytes(std::string_view text) {
  return {text.begin(), text.end()};
}

}  // namespace

SignedStore::SignedStore(c10::intrusive_ptr<c10d::TCPStore> store,
                         MessageSigner signer)
    : Store(store->getTimeout()),
      store_(std::move(store)),
      signer_(std::move(signer)) {}

// TCPStore::get() waits if there is no value, and a value that check() has
// found may be gone when get() asks. compareSet() does not wait. Given the same
// value twice, it changes nothing, and returns that value if there is none.
SignedStore::Value SignedStore::Read(const std::string& key) {
  const std::vector<uint8_t> absent = {'?'};
  const std::vector<uint8_t> value =
      store_->compareSet(InNamespace(key), absent, absent);
  if (value == absent) return {};
  std::optional<std::string> message = signer_.Verify(
      key, std::string_view(reinterpret_cast<const char*>(value.data()),
                            value.size()));
  if (!message.has_value()) return {Value::Kind::kNotSigned, ""};
  return {Value::Kind::kSigned, *std::move(message)};
}

void SignedStore::Write(const std::string& key, std::string_view message) {
  store_->set(InNamespace(key), ToBytes(signer_.Sign(key, message)));
}

void SignedStore::Remove(const std::string& key) {
  store_->deleteKey(InNamespace(key));
}

// Polls, because TCPStore's own wait ends with any value.
std::string SignedStore::WaitForMessage(const std::string& key,
                                        SteadyTime deadline) {
  absl::Duration pause = absl::Milliseconds(1);
  while (true) {
    Value value = Read(key);
    if (value.kind == Value::Kind::kSigned) return std::move(value.message);
    TORCH_CHECK_WITH(DistStoreError, !Interrupted(), "interrupted");
    TORCH_CHECK_WITH(DistStoreError, SteadyNow() < deadline,
                     "nobody has written the key ", key, " in time");
    absl::SleepFor(pause);
    pause = std::min(2 * pause, absl::Milliseconds(50));
  }
}

c10::intrusive_ptr<c10d::Store> SignedStore::clone() {
  return c10::make_intrusive<SignedStore>(
      c10::static_intrusive_pointer_cast<c10d::TCPStore>(store_->clone()),
      signer_);
}

void SignedStore::set(const std::string& key,
                      const std::vector<uint8_t>& value) {
  Write(key, std::string_view(reinterpret_cast<const char*>(value.data()),
                              value.size()));
}

std::vector<uint8_t> SignedStore::get(const std::string& key) {
  return ToBytes(WaitForMessage(key, SteadyNow() + absl::FromChrono(timeout_)));
}

bool SignedStore::check(const std::vector<std::string>& keys) {
  return std::all_of(keys.begin(), keys.end(), [this](const std::string& key) {
    return Read(key).kind == Value::Kind::kSigned;
  });
}

void SignedStore::wait(const std::vector<std::string>& keys) {
  wait(keys, timeout_);
}

void SignedStore::wait(const std::vector<std::string>& keys,
                       const std::chrono::milliseconds& timeout) {
  const SteadyTime deadline = SteadyNow() + absl::FromChrono(timeout);
  for (const std::string& key : keys) WaitForMessage(key, deadline);
}

int64_t SignedStore::add(const std::string& /*key*/, int64_t /*value*/) {
  TORCH_CHECK(false, "a signed store does not add");
}

bool SignedStore::deleteKey(const std::string& /*key*/) {
  TORCH_CHECK(false, "a signed store does not delete");
}

int64_t SignedStore::getNumKeys() {
  TORCH_CHECK(false, "a signed store does not count");
}

}  // namespace millrace
