// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/channel_set.h"

#include <algorithm>
#include <utility>

namespace millrace {

void ChannelSet::Open(int count, Connect connect) {
  MutexLock lock(&mutex_);
  connect_ = std::move(connect);
  for (int i = 0; i < count; ++i) connections_.push_back({connect_()});
}

std::shared_ptr<::grpc::Channel> ChannelSet::Next() {
  MutexLock lock(&mutex_);
  return connections_[turn_++ % connections_.size()].channel;
}

void ChannelSet::Restore(SteadyTime now) {
  MutexLock lock(&mutex_);
  replaced_.erase(std::remove_if(replaced_.begin(), replaced_.end(),
                                 [](const auto& channel) {
                                   return channel.use_count() == 1;
                                 }),
                  replaced_.end());
  for (Connection& connection : connections_) {
    const grpc_connectivity_state state =
        connection.channel->GetState(/*try_to_connect=*/false);
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_IDLE) {
      connection.lost = SteadyTime::InfiniteFuture();
      continue;
    }
    connection.lost = std::min(connection.lost, now);
    if (now - connection.lost < kPatience) {
      ::grpc::experimental::ChannelResetConnectionBackoff(
          connection.channel.get());
    } else {
      replaced_.push_back(std::exchange(connection.channel, connect_()));
      connection.lost = SteadyTime::InfiniteFuture();
    }
  }
}

}  // namespace millrace
