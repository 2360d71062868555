// SPDX-License-Identifier: Apache-2.0
// millrace-server: serves partitions of a store until SIGTERM.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/block.h"
#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/cli/addresses.h"
#include "common/cli/durations.h"
#include "common/cli/memory_flags.h"
#include "common/cli/metrics_flags.h"
#include "common/cli/numbers.h"
#include "common/cli/partition_list.h"
#include "common/cli/program.h"
#include "common/cli/words.h"
#include "common/file/file.h"
#include "common/graph/store.h"
#include "common/graph/verify.h"
#include "common/net/host_port.h"
#include "common/tier/load_store.h"
#include "server/life_events.h"
#include "server/server.h"
#include "server/status_pages.h"

namespace millrace {
namespace {

struct Arguments {
  std::string store;
  std::string partition;
  std::string advertise;
  std::string port_file;
  MetricsFlags metrics;
  MemoryFlags memory;
  double cache_ratio = 0;
  std::string drain_timeout = "30s";
  std::string trace_slow = "0";
  bool verify = false;
  bool plaintext = false;
  std::string client_auth;  // empty if not given
  ServerOptions server;
};

void AddServing(CLI::App& group, Arguments& args) {
  group.add_option("--store", args.store, "store to serve")
      ->required()
      ->type_name("STORE");
  group
      .add_option("--partition", args.partition,
                  "partitions to serve: a number, a list 0,2 or all")
      ->required()
      ->type_name("N,...|all");
  group
      .add_option("--listen", args.server.listen,
                  "address to listen on; port 0 picks a free one; 0.0.0.0 "
                  "means every IPv4 address, [::] every address")
      ->required()
      ->type_name("HOST:PORT")
      ->check(HostPortText(/*min_port=*/0));
  group
      .add_option("--advertise", args.advertise,
                  "address at which others reach this server, for the log")
      ->type_name("HOST:PORT");
  group
      .add_option("--peers", args.server.peers,
                  "servers of the fleet: host:port,host:port | @FILE | "
                  "dns:///name:port; this one may be among them")
      ->type_name("LIST");
  group
      .add_option("--port-file", args.port_file,
                  "write the port here once the server is ready")
      ->type_name("FILE");
  group
      .add_option("--drain-timeout", args.drain_timeout,
                  "how long SIGTERM waits for running calls, such as 30s or "
                  "2m")
      ->type_name("DURATION");
  group.add_flag("--verify-on-start", args.verify,
                 "check every checksum before serving");
  group
      .add_option("--scrub", args.server.scrub_bytes_per_second,
                  "bytes per second, such as 20M, at which all files are "
                  "reread while serving, bypassing the page cache, to verify "
                  "their checksums; 0 turns this off")
      ->transform(ByteSize());
}

void AddTls(CLI::App& group, Arguments& args) {
  TlsOptions& tls = args.server.tls;
  group
      .add_option("--tls-cert", tls.cert,
                  "PEM file with this server's certificate, which is also "
                  "shown to peers; all files are reloaded when they change")
      ->type_name("FILE");
  group.add_option("--tls-key", tls.key, "PEM file of the key of --tls-cert")
      ->type_name("FILE");
  group
      .add_option("--tls-ca", tls.ca,
                  "PEM file of the CA that signs the certificates of clients "
                  "and peers")
      ->type_name("FILE");
  group
      .add_option("--tls-client-auth", args.client_auth,
                  "require (the default with --tls-ca): clients must show a "
                  "certificate signed by --tls-ca; none: they need not")
      ->check(OneOf({"require", "none"}));
  group
      .add_option("--tls-allow", args.server.clients.allow,
                  "names of the clients and peers to admit: a DNS or URI name "
                  "or the common name in their certificates; *.NAME matches a "
                  "DNS name with one label before NAME; by default, all are "
                  "admitted")
      ->type_name("NAME,...")
      ->delimiter(',');
  group
      .add_option("--tls-server-name", tls.server_name,
                  "name that peers' certificates must have, instead of the "
                  "host in --peers")
      ->type_name("NAME");
  group.add_flag("--plaintext", args.plaintext,
                 "also serve other hosts, without TLS");
}

void AddMetrics(CLI::App& group, Arguments& args) {
  args.metrics.AddTo(
      group,
      "address for a page to look at (/), Prometheus metrics (/metrics) and "
      "probes (/healthz, /readyz), over HTTP without TLS; port 0 picks a free "
      "one",
      "also serve --metrics to other hosts; --plaintext implies it");
  group
      .add_option("--trace-slow", args.trace_slow,
                  "log where a call spent its time if it took longer than "
                  "this, such as 500ms; at most 10 calls a second; 0 turns "
                  "this off")
      ->type_name("DURATION");
}

void AddResources(CLI::App& group, Arguments& args) {
  group
      .add_option("--threads", args.server.threads,
                  "sampling threads; 0 means one per core")
      ->check(WholeNumber(0, 4096));
  group
      .add_option("--max-connections", args.server.connections.all,
                  "how many connections may be open; 0 means three quarters of "
                  "the files that this process may open (ulimit -n), at most "
                  "16384")
      ->check(WholeNumber(0, 1 << 20));
  group
      .add_option("--max-connections-per-address",
                  args.server.connections.per_address,
                  "the same for one IPv4 address or one IPv6 /64 network; 0 "
                  "means a quarter of --max-connections")
      ->check(WholeNumber(0, 1 << 20));
  args.memory.AddTo(group);
  group
      .add_option("--cache-ratio", args.cache_ratio,
                  "share of each partition's feature rows, hottest first, that "
                  "GPUs keep, while the others are pinned")
      ->check(Number(0, 1));
  group
      .add_option("--max-inflight-bytes", args.server.max_inflight_bytes,
                  "memory of all batches being made, such as 2G; 0 means a "
                  "quarter of the memory")
      ->transform(ByteSize());
}

void AddOptions(CLI::App& app, Arguments& args) {
  AddServing(*app.add_option_group("Serving"), args);
  AddTls(*app.add_option_group("TLS"), args);
  AddMetrics(*app.add_option_group("Metrics and probes"), args);
  AddResources(*app.add_option_group("Resources"), args);
  app.footer(
      "  millrace-server --store cora-2 --partition 0 --listen "
      "127.0.0.1:7001 \\\n      --peers 127.0.0.1:7001,127.0.0.1:7002");
}

// Fills in the default of --tls-client-auth, and refuses to serve other hosts
// in plaintext unless asked to.
absl::Status DecideTls(const Arguments& args, ServerOptions& server) {
  const TlsOptions& tls = server.tls;
  server.clients.require_certificate = args.client_auth.empty()
                                           ? !tls.ca.empty()
                                           : args.client_auth == "require";
  return CheckExposure({.option = "--listen",
                        .address = server.listen,
                        .tls = tls.enabled(),
                        .plaintext = args.plaintext});
}

absl::Status WritePortFile(const std::string& path, int port) {
  return ReplaceFile(path, StrCat(path, ".tmp.", getpid()),
                     [port](const std::filesystem::path& temporary) {
                       return WriteNewFile(temporary, StrCat(port, "\n"));
                     });
}

// Blocks the signals in all threads started from here on, so that only
// AwaitSignal() receives them and none is lost before it runs.
sigset_t HoldSignals() {
  sigset_t held, before;
  sigemptyset(&held);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &held, &before);
  return before;
}

// Returns null without --metrics.
absl::StatusOr<std::unique_ptr<StatusPages>> StartPages(const Arguments& args) {
  if (!args.metrics.given()) return std::unique_ptr<StatusPages>();
  MILLRACE_ASSIGN_OR_RETURN(const HostPort address,
                            args.metrics.Address(args.plaintext));
  // The threads of the pages must not receive the signals. Restores the mask,
  // because opening the store must stay interruptible.
  const sigset_t before = HoldSignals();
  auto pages = StatusPages::Start(address);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pages.ok()) {
    LogInfo(LogComponent::kServer, "listening for metrics",
            {{"url", StrCat("http://", (*pages)->address(), "/")}});
  }
  return pages;
}

// Waits for SIGINT or SIGTERM; the next one ends the process at once.
void AwaitSignal(const sigset_t& before) {
  while (!Interrupted()) sigsuspend(&before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

MemoryOptions MemoryOf(const Arguments& args) {
  MemoryOptions memory = args.memory.Options();
  memory.cache_ratio = args.cache_ratio;
  return memory;
}

absl::StatusOr<LoadedStore> OpenStore(const Arguments& args) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int> partitions,
                            ParsePartitions(args.partition));
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
                            Store::Open(args.store, std::move(partitions)));
  if (args.verify) MILLRACE_RETURN_IF_ERROR(VerifyFiles(*store));
  return LoadStore(std::move(store), MemoryOf(args));
}

void DrainAndStop(SamplerServer& server, absl::Duration timeout) {
  LogInfo(
      LogComponent::kServer, "draining",
      {{"why", InterruptName()}, {"timeout", absl::FormatDuration(timeout)}});
  const SteadyTime start = SteadyNow();
  if (server.Drain(timeout)) {
    LogInfo(LogComponent::kServer, "drained",
            {{"seconds", LogSeconds(SteadyNow() - start)}});
  } else {
    LogWarning(LogComponent::kServer,
               "calls were still running and are ended now",
               {{"timeout", absl::FormatDuration(timeout)}});
  }
  server.Stop();
}

// The durations among the arguments.
struct Waits {
  absl::Duration drain;
  absl::Duration trace_slow;
};

absl::StatusOr<Waits> ParseWaits(const Arguments& args) {
  Waits waits;
  MILLRACE_ASSIGN_OR_RETURN(
      waits.drain, ParseDurationOption("--drain-timeout", args.drain_timeout));
  MILLRACE_ASSIGN_OR_RETURN(
      waits.trace_slow, ParseDurationOption("--trace-slow", args.trace_slow));
  return waits;
}

absl::Status ServeWith(const Arguments& args, const ServerOptions& options,
                       absl::Duration drain_timeout) {
  const SteadyTime start = SteadyNow();
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<StatusPages> pages,
                            StartPages(args));
  MILLRACE_ASSIGN_OR_RETURN(LoadedStore loaded, OpenStore(args));
  const std::shared_ptr<const Store> store = loaded.store;
  KeepFreedMemory();
  const sigset_t signals = HoldSignals();
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<SamplerServer> started,
                            SamplerServer::Start(std::move(loaded), options));
  // Shared with the status pages.
  const std::shared_ptr<SamplerServer> server = std::move(started);
  if (pages != nullptr) pages->SetServer(server);
  if (!args.port_file.empty()) {
    MILLRACE_RETURN_IF_ERROR(WritePortFile(args.port_file, server->port()));
  }
  LogServing(*server, *store,
             args.advertise.empty() ? server->address() : args.advertise,
             SteadyNow() - start);
  AwaitSignal(signals);
  DrainAndStop(*server, drain_timeout);
  return absl::OkStatus();
}

absl::Status Serve(const Arguments& args) {
  MILLRACE_ASSIGN_OR_RETURN(const Waits waits, ParseWaits(args));
  ServerOptions options = args.server;
  options.advertise = args.advertise;
  options.trace_slow = waits.trace_slow;
  MILLRACE_RETURN_IF_ERROR(DecideTls(args, options));
  const SteadyTime start = SteadyNow();
  LogStarting({.store = args.store,
               .partitions = args.partition,
               .metrics = args.metrics.text(),
               .memory = MemoryOf(args),
               .verify = args.verify,
               .drain_timeout = absl::FormatDuration(waits.drain),
               .options = options});
  const absl::Status status = ServeWith(args, options, waits.drain);
  LogEnded(status, SteadyNow() - start);
  return status;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  CLI::App app("Millrace: serves partitions of a store", "millrace-server");
  millrace::Arguments args;
  millrace::AddOptions(app, args);
  millrace::FinishOptions(app);
  return millrace::RunProgram(
      app, argc, argv,
      [&args] {
        return millrace::WithNames(millrace::Serve(args), millrace::OptionName);
      },
      millrace::LogComponent::kServer);
}
