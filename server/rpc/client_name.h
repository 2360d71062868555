// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include <string>
#include <string_view>

namespace millrace {

// Names the client that made a call, for fair shares: "tls:NAME" with the name
// in the certificate that the client presented (the first if there are
// several), else NetworkOfPeer().
std::string ClientName(const ::grpc::CallbackServerContext& context);

// The part of a gRPC peer's address that a client cannot easily change: the
// host "127.0.0.1" for "ipv4:127.0.0.1:4711"; the 64-bit network
// "2001:db8::/64" for "ipv6:%5B2001:db8::7%5D:4711", since one host may own
// every address in such a network; `peer` itself if it has neither form.
std::string NetworkOfPeer(std::string_view peer);

}  // namespace millrace
