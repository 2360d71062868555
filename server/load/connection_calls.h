// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"

namespace millrace {

// Limits the unfinished calls of each connection. HTTP/2 limits the streams of
// a connection, but it forgets a stream as soon as the client resets it, while
// the call lives on here until it notices.
// Threads: any.
class ConnectionCalls {
 public:
  // One call's place among those of its connection, given back on destruction.
  // The ConnectionCalls must outlive it. Not thread-safe.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : calls_(std::exchange(other.calls_, nullptr)),
          connection_(std::move(other.connection_)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(calls_, other.calls_);
      std::swap(connection_, other.connection_);
      return *this;
    }
    ~Place() {
      if (calls_ != nullptr) calls_->Leave(connection_);
    }

   private:
    friend class ConnectionCalls;
    Place(ConnectionCalls* calls, std::string connection)
        : calls_(calls), connection_(std::move(connection)) {}

    ConnectionCalls* calls_ = nullptr;
    std::string connection_;
  };

  // `max_calls` is the limit for each connection.
  explicit ConnectionCalls(int max_calls) : max_calls_(max_calls) {}
  ConnectionCalls(const ConnectionCalls&) = delete;
  ConnectionCalls& operator=(const ConnectionCalls&) = delete;

  // Adds a call of `connection`, gRPC's name for the peer, such as
  // "ipv4:127.0.0.1:4711".
  // RESOURCE_EXHAUSTED: the connection has reached its limit; says when to
  // retry.
  absl::StatusOr<Place> Enter(std::string connection);

 private:
  void Leave(const std::string& connection);

  const int max_calls_;

  Mutex mutex_;
  // Has only connections with calls.
  absl::flat_hash_map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
