// SPDX-License-Identifier: Apache-2.0
// The HTTP/2 settings of both ends. gRPC's defaults make large streams slow
// (the bandwidth probe and small frames); docs/performance.md has figures.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

namespace millrace {

// Largest message that is received: frames, requests and replies.
inline constexpr int kMaxMessageBytes = 16 << 20;

// For channels. Every channel made with these has its own connection; dead
// connections are noticed by keepalive within 20 s, lost ones are retried
// every second; proxies in the environment are ignored. Compressed replies end
// their call, UNIMPLEMENTED.
::grpc::ChannelArguments ClientChannelArguments(
    int max_receive_bytes = kMaxMessageBytes);

// Compressed requests are answered UNIMPLEMENTED.
void ConfigureServer(::grpc::ServerBuilder& builder);

}  // namespace millrace
