// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

// The connections to one server, each of which is a channel of gRPC. One thread
// at a time receives on a connection and one sends, so calls are spread over
// several.
// Threads: any thread may call any method, except that no channel may be
// destroyed on a thread of gRPC (see MemberKeeper): Restore() and the
// destructor must not run on one.
class ChannelSet {
 public:
  // Makes a channel without waiting for it.
  using Connect = std::function<std::shared_ptr<::grpc::Channel>()>;

  // Makes `count` channels. Must be called once, before all other methods.
  void Open(int count, Connect connect);

  // Returns the channels in turn. They are shared with calls in flight.
  std::shared_ptr<::grpc::Channel> Next();

  // Makes the channels without a connection connect at once, rather than when
  // gRPC tries again. Meant to be called about once a second while the server
  // does not answer. A channel that has had no connection for kPatience is
  // replaced: gRPC's timers are late after the clock has been set back, and an
  // attempt to connect that depends on one of them ends in no other way.
  void Restore(SteadyTime now);

 private:
  struct Connection {
    std::shared_ptr<::grpc::Channel> channel;
    // When it was first found without a connection since it last had one.
    SteadyTime lost = SteadyTime::InfiniteFuture();
  };

  // Longer than gRPC lets an attempt to connect take (channel_args.cc).
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  Mutex mutex_;
  Connect connect_ ABSL_GUARDED_BY(mutex_);
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // Kept until no call holds them, so that none is destroyed where a call ends.
  std::vector<std::shared_ptr<::grpc::Channel>> replaced_
      ABSL_GUARDED_BY(mutex_);
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
