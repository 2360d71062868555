// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "client/train/group/message_signer.h"
#include "common/base/steady_time.h"

namespace millrace {

// A TCPStore whose values are signed messages of a group's ranks. Values that
// no rank of the group has signed count as absent. Puts its keys into a
// namespace of their own.
// Threads: any. All calls throw what TCPStore throws.
class SignedStore final : public c10d::Store {
 public:
  SignedStore(c10::intrusive_ptr<c10d::TCPStore> store, MessageSigner signer);

  struct Value {
    enum class Kind { kAbsent, kNotSigned, kSigned };
    Kind kind = Kind::kAbsent;
    std::string message;  // empty unless it is signed
  };
  // Returns what is under `key` now, without waiting.
  Value Read(const std::string& key);
  void Write(const std::string& key, std::string_view message);
  void Remove(const std::string& key);

  // For Gloo. Reading waits until there is a signed message, for at most the
  // store's timeout, and throws DistStoreError after that or when the program
  // is interrupted.
  using c10d::Store::set;
  c10::intrusive_ptr<c10d::Store> clone() override;
  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> get(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  bool hasExtendedApi() const override { return false; }
  // Not possible with signed values; these throw.
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  int64_t getNumKeys() override;

 private:
  std::string WaitForMessage(const std::string& key, SteadyTime deadline);

  const c10::intrusive_ptr<c10d::TCPStore> store_;
  const MessageSigner signer_;
};

}  // namespace millrace
