// SPDX-License-Identifier: Apache-2.0
#include "server/client_name.h"

#include <memory>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/strings.h"

namespace millrace {

std::string HostOfPeer(std::string_view peer) {
  std::string text =
      absl::StrReplaceAll(AbslView(peer), {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "ipv4:") &&
      !absl::ConsumePrefix(&rest, "ipv6:")) {
    return text;
  }
  rest = rest.substr(0, rest.rfind(':'));
  absl::ConsumePrefix(&rest, "[");
  absl::ConsumeSuffix(&rest, "]");
  return std::string(rest);
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
  return HostOfPeer(context.peer());
}

}  // namespace millrace
