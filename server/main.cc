// SPDX-License-Identifier: Apache-2.0
// millrace-server: serves partitions of a store until SIGTERM.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/block.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/program.h"
#include "common/graph/store.h"
#include "common/graph/verify.h"
#include "common/net/host_port.h"
#include "server/accept_watch.h"
#include "server/server.h"
#include "server/status_pages.h"
#include "spdlog/spdlog.h"

namespace millrace {
namespace {

struct Arguments {
  std::string store;
  std::string partition;
  std::string advertise;
  std::string port_file;
  std::string metrics;
  std::string graph_memory = "mmap";
  std::string feature_memory = "mmap";
  std::string drain_timeout = "30s";
  bool verify = false;
  bool plaintext = false;
  bool metrics_plaintext = false;
  std::string client_auth;  // empty: not given
  ServerOptions server;
};

std::string CheckListen(const std::string& text) {
  const auto address = ParseHostPort(text, /*least_port=*/0);
  return address.ok() ? "" : std::string(address.status().message());
}

void AddTlsOptions(CLI::App& app, Arguments& args) {
  TlsOptions& tls = args.server.tls;
  app.add_option("--tls-cert", tls.cert,
                 "TLS: PEM file of this server's certificate, which peers see "
                 "too; all files are read again when they change");
  app.add_option("--tls-key", tls.key,
                 "TLS: PEM file of the key of --tls-cert");
  app.add_option("--tls-ca", tls.ca,
                 "TLS: PEM file of the CA that signs the certificates of "
                 "clients and peers");
  app.add_option("--tls-client-auth", args.client_auth,
                 "require (the default with --tls-ca): clients must show a "
                 "certificate that --tls-ca signs; none")
      ->check(CLI::IsMember({"require", "none"}));
  app.add_option("--tls-allow", args.server.clients.allow,
                 "Names of clients and peers that are let in, one of their "
                 "certificates' DNS or URI names or the common name; *.NAME "
                 "for a DNS name with one label before NAME; without it all "
                 "are")
      ->delimiter(',');
  app.add_option("--tls-server-name", tls.server_name,
                 "Name that peers' certificates must have, instead of the host "
                 "in --peers");
  app.add_flag("--plaintext", args.plaintext,
               "Serve without TLS beyond this host too");
}

void AddOptions(CLI::App& app, Arguments& args) {
  app.add_option("--store", args.store, "Store to serve")->required();
  app.add_option("--partition", args.partition,
                 "Partitions to serve: a number, a list 0,2 or all")
      ->required();
  app.add_option("--listen", args.server.listen,
                 "HOST:PORT to serve at; port 0 takes a free one")
      ->required()
      ->check(CheckListen);
  app.add_option("--advertise", args.advertise,
                 "HOST:PORT that others reach this server at, for the log");
  app.add_option("--peers", args.server.peers,
                 "Servers of the fleet: host:port,host:port or @FILE or "
                 "dns:///name:port; this one may be among them");
  app.add_option("--port-file", args.port_file,
                 "Write the port here once the server is ready");
  AddTlsOptions(app, args);
  app.add_option("--metrics", args.metrics,
                 "HOST:PORT of Prometheus metrics (/metrics) and of probes "
                 "(/healthz, /readyz), over HTTP without TLS; port 0 takes a "
                 "free one")
      ->check(CheckListen);
  app.add_flag("--metrics-plaintext", args.metrics_plaintext,
               "Serve --metrics beyond this host too; --plaintext implies it");
  app.add_option("--threads", args.server.threads,
                 "Sampling threads; 0: one per core")
      ->check(CLI::Range(0, 4096));
  const CLI::IsMember tiers({"mmap", "ram", "pinned", "cuda"});
  app.add_option("--graph-memory", args.graph_memory,
                 "Where the graph lives: mmap or ram")
      ->check(tiers);
  app.add_option("--feature-memory", args.feature_memory,
                 "Where features live: mmap or ram")
      ->check(tiers);
  app.add_option("--max-inflight-bytes", args.server.max_inflight_bytes,
                 "Memory of all batches being made, such as 2G; 0: a quarter "
                 "of the memory")
      ->transform(ByteSize());
  app.add_option("--drain-timeout", args.drain_timeout,
                 "How long SIGTERM waits for running calls, such as 30s or 2m");
  app.add_flag("--verify-on-start", args.verify,
               "Check every checksum before serving");
  app.add_option("--scrub", args.server.scrub_bytes_per_second,
                 "Bytes a second, such as 20M, at which all files are read "
                 "again and again while serving, past the page cache, and "
                 "their checksums compared; 0: not at all")
      ->transform(ByteSize());
}

absl::StatusOr<std::vector<int>> ParsePartitions(const std::string& text) {
  if (text == "all") return std::vector<int>();
  std::vector<int> partitions;
  for (const absl::string_view piece : absl::StrSplit(text, ',')) {
    int number = 0;
    if (!absl::SimpleAtoi(piece, &number) || number < 0) {
      return absl::InvalidArgumentError(
          StrCat("--partition ", text, ": \"", std::string(piece),
                 "\" is no partition; use a number, a list 0,2 or all"));
    }
    partitions.push_back(number);
  }
  std::sort(partitions.begin(), partitions.end());
  partitions.erase(std::unique(partitions.begin(), partitions.end()),
                   partitions.end());
  return partitions;
}

// Fills in what --tls-client-auth leaves open; plaintext beyond this host is
// served only where it is asked for.
absl::Status DecideTls(const Arguments& args, ServerOptions& server) {
  const TlsOptions& tls = server.tls;
  server.clients.require_certificate = args.client_auth.empty()
                                           ? !tls.ca.empty()
                                           : args.client_auth == "require";
  if (args.plaintext && tls.enabled()) {
    return absl::InvalidArgumentError(
        "--plaintext and TLS options exclude each other; leave one out");
  }
  const auto listen = ParseHostPort(server.listen, /*least_port=*/0);
  if (tls.enabled() || args.plaintext || !listen.ok() ||
      IsLoopback(listen->host)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("--listen ", server.listen,
             " is beyond this host, and there is no --tls-cert\ngive "
             "--tls-cert, --tls-key and --tls-ca, or --plaintext where "
             "everyone in the network may read the graph"));
}

// Like --listen, metrics leave this host only where it is asked for.
absl::Status CheckMetrics(const Arguments& args, const HostPort& address) {
  if (args.plaintext || args.metrics_plaintext || IsLoopback(address.host)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("--metrics ", args.metrics,
             " is beyond this host, and metrics are not encrypted\nadd "
             "--metrics-plaintext where everyone in the network may read "
             "them"));
}

// Whether a memory tier is "ram"; "mmap" is what a store opens with.
absl::StatusOr<bool> InRam(const char* option, const std::string& tier) {
  if (tier == "mmap" || tier == "ram") return tier == "ram";
  return absl::InvalidArgumentError(StrCat(
      option, " ", tier, " needs a GPU build; this build has mmap and ram"));
}

// A reader never sees half a file.
absl::Status WritePortFile(const std::string& path, int port) {
  const std::string temporary = StrCat(path, ".tmp.", getpid());
  std::error_code error;
  {
    std::ofstream file(temporary);
    file << port << '\n';
    if (!file.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(temporary, path, error);
  if (error) {
    return absl::UnavailableError(
        StrCat("cannot write --port-file ", path, ": ", error.message(),
               "\nchoose a path in a directory that exists"));
  }
  return absl::OkStatus();
}

// Signals are held back in all threads made from here on, so that only
// AwaitSignal() takes them and none is lost in between.
sigset_t HoldSignals() {
  sigset_t held, before;
  sigemptyset(&held);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &held, &before);
  return before;
}

// Null without --metrics.
absl::StatusOr<std::unique_ptr<StatusPages>> StartPages(const Arguments& args) {
  if (args.metrics.empty()) return std::unique_ptr<StatusPages>();
  MILLRACE_ASSIGN_OR_RETURN(const HostPort address,
                            ParseHostPort(args.metrics, /*least_port=*/0));
  MILLRACE_RETURN_IF_ERROR(CheckMetrics(args, address));
  // Opening the store can be interrupted, so not from here on.
  const sigset_t before = HoldSignals();
  auto pages = StatusPages::Start(address);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pages.ok()) {
    spdlog::info("metrics and health at http://{}", (*pages)->address());
  }
  return pages;
}

// Waits for SIGINT or SIGTERM; the next one ends the process at once.
void AwaitSignal(const sigset_t& before) {
  while (!Interrupted()) sigsuspend(&before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// False: the server accepted nobody any more, which ends it as a signal does.
bool ServeUntilSignal(const SamplerServer& server, const sigset_t& before) {
  const auto address = ParseHostPort(server.address());
  std::atomic<bool> lost = false;
  const auto end = [&lost] {
    lost = true;
    kill(getpid(), SIGTERM);
  };
  std::optional<AcceptWatch> watch;
  if (address.ok()) watch.emplace(*address, AcceptWatch::Options(), end);
  AwaitSignal(before);
  return !lost;
}

std::string PartitionList(const Store& store) {
  std::string list;
  for (const int part : store.partitions()) {
    list += StrCat(list.empty() ? "" : ",", part);
  }
  return StrCat("[", list, "] of ", store.parts());
}

absl::StatusOr<std::shared_ptr<const Store>> OpenStore(const Arguments& args) {
  MILLRACE_ASSIGN_OR_RETURN(const bool graph_in_ram,
                            InRam("--graph-memory", args.graph_memory));
  MILLRACE_ASSIGN_OR_RETURN(const bool features_in_ram,
                            InRam("--feature-memory", args.feature_memory));
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int> partitions,
                            ParsePartitions(args.partition));
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
                            Store::Open(args.store, std::move(partitions)));
  if (args.verify) MILLRACE_RETURN_IF_ERROR(VerifyFiles(*store));
  if (graph_in_ram) store->LoadIntoMemory(Store::Content::kGraph);
  if (features_in_ram) store->LoadIntoMemory(Store::Content::kFeatures);
  // Shared with the calls that still run when the server ends.
  return std::shared_ptr<const Store>(std::move(store));
}

absl::Status Serve(const Arguments& args) {
  absl::Duration drain_timeout;
  if (!absl::ParseDuration(args.drain_timeout, &drain_timeout) ||
      drain_timeout < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(StrCat("--drain-timeout ",
                                             args.drain_timeout,
                                             " is no duration; use 30s or 2m"));
  }
  ServerOptions options = args.server;
  MILLRACE_RETURN_IF_ERROR(DecideTls(args, options));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<StatusPages> pages,
                            StartPages(args));
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const Store> store,
                            OpenStore(args));
  KeepFreedMemory();
  const sigset_t signals = HoldSignals();
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<SamplerServer> started,
                            SamplerServer::Start(store, options));
  // Shared with the pages.
  const std::shared_ptr<SamplerServer> server = std::move(started);
  if (pages != nullptr) pages->SetServer(server);
  if (!args.port_file.empty()) {
    MILLRACE_RETURN_IF_ERROR(WritePortFile(args.port_file, server->port()));
  }
  spdlog::info("serving partitions {} on {}", PartitionList(*store),
               args.advertise.empty() ? server->address() : args.advertise);
  const bool lost = !ServeUntilSignal(*server, signals);
  spdlog::info("draining, for up to {}", absl::FormatDuration(drain_timeout));
  if (!server->Drain(drain_timeout)) {
    spdlog::warn("calls still ran after {}; they are ended",
                 absl::FormatDuration(drain_timeout));
  }
  server->Stop();
  if (!lost) return absl::OkStatus();
  return absl::UnavailableError(
      StrCat("the server accepted no connection at ", server->address(),
             " any more\nstart it again; if it had too few file descriptors, "
             "with a larger limit (ulimit -n)"));
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  CLI::App app("Millrace: serves partitions of a store", "millrace-server");
  millrace::Arguments args;
  millrace::AddOptions(app, args);
  millrace::FinishOptions(app);
  return millrace::RunProgram(app, argc, argv,
                              [&args] { return millrace::Serve(args); });
}
