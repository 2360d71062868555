// SPDX-License-Identifier: Apache-2.0
#include "server/client_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/strings.h"

namespace millrace {

namespace {

// The first half of an IPv6 address such as "2001:db8::7" or "fe80::1%eth0", or
// the IPv4 address in it.
std::string NetworkOf(const std::string& host) {
  in6_addr address;
  if (inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &address) !=
      1) {
    return host;
  }
  char text[INET6_ADDRSTRLEN];
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof text);
    return text;
  }
  std::fill_n(&address.s6_addr[8], 8, 0);
  inet_ntop(AF_INET6, &address, text, sizeof text);
  return StrCat(text, "/64");
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
  return NetworkOf(std::string(rest));
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
