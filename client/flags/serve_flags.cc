// SPDX-License-Identifier: Apache-2.0
#include "client/flags/serve_flags.h"

#include <algorithm>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/addresses.h"
#include "common/cli/partition_list.h"
#include "common/graph/partitions_on_host.h"
#include "common/graph/store.h"
#include "common/grpc/fleet/address_list.h"
#include "common/net/host_port.h"

namespace millrace {
namespace {

bool IsWildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

}  // namespace

void ServeFlags::AddTo(CLI::App& app) {
  CLI::Option_group* group = app.add_option_group("Server beside the trainer");
  group
      ->add_option("--serve", serve_,
                   "keep a millrace-server here that serves --partition of "
                   "--store at this address, and read from the servers of "
                   "--peers; one for all trainers of this host")
      ->type_name("HOST:PORT")
      ->check(HostPortText(/*min_port=*/1));
  group
      ->add_option("--partition", partition_,
                   "--serve: partitions to serve: a number, a list 0,2 or all; "
                   "this host needs the files of no others")
      ->type_name("N,...|all");
  group
      ->add_option("--peers", peers_,
                   "--serve: all servers of the fleet, this one too: "
                   "host:port,host:port | @FILE | dns:///name:port")
      ->type_name("LIST")
      ->check(ServerList());
  group
      ->add_option("--advertise", advertise_,
                   "--serve: this server's address in --peers, if it is not "
                   "that of --serve")
      ->type_name("HOST:PORT")
      ->check(HostPortText(/*min_port=*/1));
  group->add_flag("--plaintext", plaintext_,
                  "--serve: also serve other hosts, without TLS");
  group
      ->add_option("--serve-config", config_,
                   "--serve: the server's other options, as a file for its "
                   "--config")
      ->type_name("FILE");
}

absl::Status ServeFlags::Check(const SourceFlags& source) const {
  if (!given()) {
    const std::pair<const char*, bool> others[] = {
        {"--partition", !partition_.empty()},
        {"--peers", !peers_.empty()},
        {"--advertise", !advertise_.empty()},
        {"--plaintext", plaintext_},
        {"--serve-config", !config_.empty()}};
    for (const auto& [option, is_given] : others) {
      if (!is_given) continue;
      return UsageError(StrCat(option,
                               " is for a server beside the trainer, but there "
                               "is no --serve\ngive --serve HOST:PORT, or "
                               "leave ",
                               option, " out"));
    }
    return absl::OkStatus();
  }
  if (source.store().empty()) {
    return UsageError(
        "--serve serves a store of this host, but there is no --store\ngive "
        "--store, with --peers LIST in place of --servers LIST");
  }
  if (partition_.empty()) {
    return UsageError(
        StrCat("--serve ", serve_,
               " needs --partition, which says what to serve\ngive the number "
               "of this host's partition, or all"));
  }
  MILLRACE_RETURN_IF_ERROR(ParsePartitions(partition_).status());
  MILLRACE_RETURN_IF_ERROR(CheckTls(source.tls()));
  return CheckPeers();
}

absl::Status ServeFlags::CheckTls(const TlsOptions& tls) const {
  MILLRACE_RETURN_IF_ERROR(CheckExposure({.option = "--serve",
                                          .address = serve_,
                                          .tls = tls.enabled(),
                                          .plaintext = plaintext_}));
  if (tls.enabled() && (tls.cert.empty() || tls.key.empty())) {
    return UsageError(
        "--serve with TLS needs a certificate of this host\ngive --tls-cert "
        "and --tls-key, which the server and the trainer show");
  }
  return absl::OkStatus();
}

// If the trainers' list lacked their own server, they would wait in vain for
// its partition.
absl::Status ServeFlags::CheckPeers() const {
  if (peers_.empty()) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(const AddressList list, AddressList::Parse(peers_));
  if (list.kind() != AddressList::Kind::kStatic) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<std::string> known, list.Read());
  MILLRACE_ASSIGN_OR_RETURN(const HostPort serve, ParseHostPort(serve_));
  const bool port_alone = advertise_.empty() && IsWildcard(serve.host);
  const std::string& own = advertise_.empty() ? serve_ : advertise_;
  for (const std::string& address : known) {
    const auto parsed = ParseHostPort(address);
    if (address == own ||
        (port_alone && parsed.ok() && parsed->port == serve.port)) {
      return absl::OkStatus();
    }
  }
  return UsageError(
      StrCat("--peers ", peers_, " does not name the server of --serve, ", own,
             "\nadd it, or say with --advertise under which address --peers "
             "names it"));
}

absl::Status ServeFlags::CheckStore(const SourceFlags& source) const {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int> partitions,
                            ParsePartitions(partition_));
  MILLRACE_ASSIGN_OR_RETURN(const Manifest manifest,
                            ReadManifest(source.store()));
  const int all = manifest.partition_count();
  MILLRACE_ASSIGN_OR_RETURN(
      partitions, ChoosePartitions(source.store(), all, std::move(partitions)));
  const auto served = static_cast<int>(partitions.size());
  if (!peers_.empty() || served == all) return absl::OkStatus();
  return UsageError(
      StrCat("--partition ", partition_, " is ", served, " of the ", all,
             " partitions of the store, and there is no --peers\nname the "
             "servers of all partitions with --peers LIST, or serve "
             "--partition all"));
}

std::string ServeFlags::OwnAddress() const {
  if (!advertise_.empty()) return advertise_;
  absl::StatusOr<HostPort> address = ParseHostPort(serve_);
  if (!address.ok() || !IsWildcard(address->host)) return serve_;
  address->host = address->host == "::" ? "::1" : "127.0.0.1";
  return address->WithPort(address->port);
}

std::string ServeFlags::Servers() const {
  return peers_.empty() ? OwnAddress() : peers_;
}

std::vector<std::string> ServeFlags::ServerArguments(
    const SourceFlags& source) const {
  const TlsOptions& tls = source.tls();
  std::vector<std::string> arguments;
  const std::pair<const char*, const std::string&> options[] = {
      {"--config", config_},       {"--store", source.store()},
      {"--partition", partition_}, {"--listen", serve_},
      {"--advertise", advertise_}, {"--peers", peers_},
      {"--tls-cert", tls.cert},    {"--tls-key", tls.key},
      {"--tls-ca", tls.ca},        {"--tls-server-name", tls.server_name}};
  for (const auto& [option, value] : options) {
    if (!value.empty()) arguments.insert(arguments.end(), {option, value});
  }
  if (plaintext_) arguments.emplace_back("--plaintext");
  const std::vector<std::string> memory = source.memory().Words();
  arguments.insert(arguments.end(), memory.begin(), memory.end());
  return arguments;
}

}  // namespace millrace
