// SPDX-License-Identifier: Apache-2.0
// HTTP/2 settings for both ends of a connection. gRPC's defaults (the bandwidth
// probe and small frames) make large streams slow; docs/performance.md has
// figures.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

namespace millrace {

// Size of the largest message accepted, be it a frame, a request or a reply.
inline constexpr int kMaxMessageBytes = 16 << 20;

// Arguments for channels. Every channel made with them has its own connection.
// Keepalive detects dead connections within 20 s, and lost ones are retried
// every second. Proxies set in the environment are ignored. A compressed reply
// fails its call with UNIMPLEMENTED.
::grpc::ChannelArguments ClientChannelArguments(
    int max_receive_bytes = kMaxMessageBytes);

// Configures a server. Compressed requests are answered with UNIMPLEMENTED.
void ConfigureServer(::grpc::ServerBuilder& builder);

}  // namespace millrace
