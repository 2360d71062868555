// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/channel_args.h"

#include <grpc/compression.h>
#include <grpc/grpc.h>

#include "common/grpc/library_log.h"

namespace millrace {
namespace {

struct IntArgument {
  const char* name;
  int value;
};

// Settings for both clients and servers.
constexpr IntArgument kTransport[] = {
    {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, (16 << 20) - 1},
    {GRPC_ARG_HTTP2_BDP_PROBE, 0},
    {GRPC_ARG_TCP_READ_CHUNK_SIZE, 1 << 20},
    {GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 8 << 20},
    {GRPC_ARG_KEEPALIVE_TIME_MS, 10'000},
    {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000},
    {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
    // gRPC inflates a message, to up to a thousand times its size, before it
    // checks the size. We do not compress any.
    {GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},
};

constexpr IntArgument kClient[] = {
    {GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
     1 << GRPC_COMPRESS_NONE},
    {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 20},
    // Otherwise channels with equal settings would share one connection, and a
    // connection is a single stream of bytes.
    {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},
    {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
    {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
    // We retry ourselves: all calls are idempotent and streams restart as a
    // whole.
    {GRPC_ARG_ENABLE_RETRIES, 0},
    {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100},
    {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000},
    {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000},
};

constexpr IntArgument kServer[] = {
    // Enough for a typical request to be sent without waiting. Whatever else a
    // client sends before it is asked to is held in the server's memory.
    {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20},
    {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000},
    {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},
};

}  // namespace

::grpc::ChannelArguments ClientChannelArguments(int max_receive_bytes) {
  TakeGrpcLog();
  ::grpc::ChannelArguments arguments;
  for (const auto& [name, value] : kTransport) arguments.SetInt(name, value);
  for (const auto& [name, value] : kClient) arguments.SetInt(name, value);
  arguments.SetMaxReceiveMessageSize(max_receive_bytes);
  arguments.SetMaxSendMessageSize(-1);
  return arguments;
}

void ConfigureServer(::grpc::ServerBuilder& builder) {
  TakeGrpcLog();
  for (const auto& [name, value] : kTransport) {
    builder.AddChannelArgument(name, value);
  }
  for (const auto& [name, value] : kServer) {
    builder.AddChannelArgument(name, value);
  }
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(-1);
}

}  // namespace millrace
