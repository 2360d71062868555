// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// Signs the messages that the ranks of a group leave for each other under the
// keys of a store, which strangers may be able to reach, and tells them from
// other messages. The signature is HMAC-SHA256 (RFC 2104) with the group's
// secret. It covers the key and the run, so a message that was overheard is
// worthless under another key or in another run.
// Immutable. Threads: any.
class MessageSigner {
 public:
  // With an empty secret anyone can sign. `run` is the run's id, or empty for
  // the messages by which ranks agree on it.
  MessageSigner(std::string secret, std::string run);

  // Returns the signed form of `message`, to be stored under `key`.
  std::string Sign(std::string_view key, std::string_view message) const;
  // Returns the message of a signed form; nullopt unless it was signed with
  // this secret for this key and this run.
  std::optional<std::string> Verify(std::string_view key,
                                    std::string_view signed_message) const;

 private:
  std::string Signature(std::string_view key, std::string_view message) const;

  const std::string secret_;
  const std::string run_;
};

// Returns unpredictable bytes, for secrets and nonces.
std::string RandomBytes(size_t count);

}  // namespace millrace
