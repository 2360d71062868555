// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include <string>
#include <string_view>

namespace millrace {

// Names whoever made a call, for fair shares: the name in the certificate that
// the client showed ("tls:NAME"; the first of several), else the address of
// its host ("127.0.0.1", "2001:db8::7"), whatever its port.
std::string ClientName(const ::grpc::CallbackServerContext& context);

// The host of a gRPC peer such as "ipv4:127.0.0.1:4711" or
// "ipv6:%5B::1%5D:4711"; `peer` itself where it has no such form.
std::string HostOfPeer(std::string_view peer);

}  // namespace millrace
