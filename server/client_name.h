// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include <string>
#include <string_view>

namespace millrace {

// Names the client that made a call, for fair shares: the name in the
// certificate that the client showed ("tls:NAME"; the first of several), else
// NetworkOfPeer().
std::string ClientName(const ::grpc::CallbackServerContext& context);

// What a gRPC peer cannot easily change of its address: of
// "ipv4:127.0.0.1:4711" the host, "127.0.0.1"; of "ipv6:%5B2001:db8::7%5D:4711"
// the network of 64 bits, "2001:db8::/64", since a host may have all addresses
// of one. `peer` itself where it has no such form.
std::string NetworkOfPeer(std::string_view peer);

}  // namespace millrace
