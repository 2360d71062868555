// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/client_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <memory>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/strings.h"
#include "common/net/ip_network.h"

namespace millrace {

namespace {

// `host`: an IPv4 address, or an IPv6 address such as "fe80::1%eth0".
std::string NetworkOfHost(const std::string& host) {
  const std::string address = host.substr(0, host.find('%'));
  in6_addr parsed;
  return inet_pton(AF_INET6, address.c_str(), &parsed) == 1 ? NetworkOf(parsed)
                                                            : host;
}

}  // namespace

std::string NetworkOfPeer(std::string_view peer) {
  std::string text = absl::StrReplaceAll(
      AbslView(peer), {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "ipv4:") &&
      !absl::ConsumePrefix(&rest, "ipv6:")) {
    return text;
  }
  rest = rest.substr(0, rest.rfind(':'));
  absl::ConsumePrefix(&rest, "[");
  absl::ConsumeSuffix(&rest, "]");
  return NetworkOfHost(std::string(rest));
}

std::string ClientName(const ::grpc::CallbackServerContext& context) {
  const std::shared_ptr<const ::grpc::AuthContext> auth =
      context.auth_context();
  if (auth != nullptr && auth->IsPeerAuthenticated()) {
    const std::vector<::grpc::string_ref> names = auth->GetPeerIdentity();
    if (!names.empty()) {
      return StrCat("tls:", std::string(names[0].data(), names[0].size()));
    }
  }
  return NetworkOfPeer(context.peer());
}

}  // namespace millrace
