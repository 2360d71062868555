// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/base/unix_time.h"
#include "common/grpc/channel_args.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/time.h"
#include "common/grpc/tls/allowed_names.h"
#include "common/grpc/tls/certificates.h"
#include "common/grpc/tls/tls.h"
#include "common/metrics/families.h"
#include "common/metrics/process_metrics.h"
#include "common/net/host_port.h"
#include "common/net/listening_socket.h"
#include "common/tier/device_tier.h"
#include "common/wire/error_info.h"
#include "server/core/core.h"
#include "server/core/scrape.h"
#include "server/core/scraped.h"
#include "server/load/acceptor.h"
#include "server/load/request_limits.h"
#include "server/port_check.h"
#include "server/rpc/leaf_handlers.h"
#include "server/rpc/service.h"
#include "server/scrubber.h"

namespace millrace {
namespace {

using Problem = FieldError::Problem;

// Both settings are process-wide and must precede the first server.
void EnablePlugins() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    ::grpc::EnableDefaultHealthCheckService(true);
    ::grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

// Shared with the credentials for both directions; null for plaintext.
using TlsFilesPtr = std::shared_ptr<TlsFiles>;

absl::StatusOr<TlsFilesPtr> OpenTls(const ServerOptions& options) {
  const TlsOptions& tls = options.tls;
  const TlsClientPolicy& clients = options.clients;
  if (!clients.allow.empty() && !clients.require_certificate) {
    return InvalidField({.problem = Problem::kNeeds,
                         .field = "tls_allow",
                         .other_field = "tls_client_auth",
                         .other_value = "require"});
  }
  MILLRACE_RETURN_IF_ERROR(CheckAllow(clients.allow));
  if (clients.require_certificate && tls.ca.empty()) {
    return InvalidField({.problem = Problem::kNeeds,
                         .field = "tls_client_auth",
                         .value = "require",
                         .other_field = "tls_ca"});
  }
  if (!tls.enabled()) return TlsFilesPtr();
  if (tls.cert.empty()) {
    return InvalidField(
        {.problem = Problem::kMissing,
         .field = "tls_cert",
         .limit = "a server with TLS needs a certificate and its key"});
  }
  if (!options.peers.empty() && tls.ca.empty()) {
    return InvalidField(
        {.problem = Problem::kMissing,
         .field = "tls_ca",
         .limit = "peers are trusted if this CA signed their certificates"});
  }
  MILLRACE_ASSIGN_OR_RETURN(TlsFilesPtr files, TlsFiles::Open(tls));
  const absl::Status own = files->current()->ExplainOwn();
  if (!own.ok()) {
    LogWarning(LogComponent::kTls,
               StrCat("clients and peers that trust the same CA will refuse "
                      "this server's certificate",
                      AdviceOf(own)),
               {{"file", tls.cert}, {"error", FirstLine(own)}});
  }
  return files;
}

absl::StatusOr<std::unique_ptr<ListeningSocket>> Listen(
    const std::string& listen) {
  const auto address = ParseHostPort(listen, /*min_port=*/0);
  if (address.ok()) return ListeningSocket::Open(*address, "listen");
  return InvalidField(
      {.field = "listen", .limit = std::string(address.status().message())});
}

absl::StatusOr<std::unique_ptr<Fleet>> MakeFleet(const Store& store,
                                                 const std::string& peers,
                                                 const TlsFilesPtr& tls) {
  if (peers.empty()) return std::unique_ptr<Fleet>();
  FleetOptions options;
  options.list = peers;
  options.fingerprint = store.manifest().fingerprint;
  options.max_receive_bytes = kMaxPeerMessageBytes;
  options.tls = tls;
  auto fleet = Fleet::Create(std::move(options));
  if (fleet.ok()) return fleet;
  return InvalidField(
      {.field = "peers", .limit = std::string(fleet.status().message())});
}

void WarnIfLeafOnly(const ServerCore& core) {
  if (!core.IsLeafOnly()) return;
  LogWarning(
      LogComponent::kServer,
      "no peers: batches that need other partitions fail",
      {{"partitions", absl::StrJoin(core.store->mapped_partitions(), ",")},
       {"parts", core.store->partition_count()}});
}

// Bytes of incoming requests that gRPC may hold for all clients together;
// beyond that it ends calls. Requests of admitted calls take at most a quarter
// of the limits; the rest is for requests that have not arrived completely.
size_t RequestBytes(const ServerOptions& options) {
  return (options.max_inflight_bytes + options.max_leaf_bytes) / 2;
}

// The last name of a path, even if that ends in a slash.
std::string FolderName(const std::filesystem::path& path) {
  return path.has_filename() ? path.filename().string()
                             : path.parent_path().filename().string();
}

// Passes connections that Acceptor has accepted to gRPC.
using Intake = ::grpc::experimental::ExternalConnectionAcceptor;

void Limit(const ServerOptions& options, ::grpc::ServerBuilder& builder) {
  const auto milliseconds = [](absl::Duration time) {
    return static_cast<int>(absl::ToInt64Milliseconds(time));
  };
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             milliseconds(options.handshake_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             milliseconds(options.idle_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             kMaxCallsPerConnection);
  ::grpc::ResourceQuota quota("requests");
  quota.Resize(RequestBytes(options));
  builder.SetResourceQuota(quota);
}

// gRPC must be running, or it would not close the connection.
void HandOver(UniqueFd connection, Intake& intake) {
  Intake::NewConnectionParameters parameters;
  parameters.fd = connection.release();
  intake.HandleNewConnection(&parameters);
}

}  // namespace

struct SamplerServer::State {
  absl::Status StartGrpc();
  void ReportHealth();
  void StartScrubber();
  void Accept(std::unique_ptr<ListeningSocket> socket);

  TlsFilesPtr tls;
  std::unique_ptr<ServerCore> core;
  std::unique_ptr<SamplerService> service;
  std::unique_ptr<::grpc::Server> server;  // null once stopped
  std::unique_ptr<Intake> intake;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<Scrubber> scrubber;  // null without --scrub
  int port = 0;
  std::string address;
  std::unique_ptr<PortCheck> port_check;
};

SamplerServer::SamplerServer(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

SamplerServer::~SamplerServer() { Stop(); }

// Connections come only from the acceptor, through `intake`.
absl::Status SamplerServer::State::StartGrpc() {
  const ServerOptions& options = core->options;
  ::grpc::ServerBuilder builder;
  ConfigureServer(builder);
  Limit(options, builder);
  using Type = ::grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  intake = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, tls == nullptr ? ::grpc::InsecureServerCredentials()
                                    : ServerCredentials(tls, options.clients));
  service->Register(builder);
  server = builder.BuildAndStart();
  if (server != nullptr) return absl::OkStatus();
  return absl::InternalError("gRPC could not start a server");
}

void SamplerServer::State::ReportHealth() {
  ::grpc::HealthCheckServiceInterface* health = server->GetHealthCheckService();
  for (const int part : core->store->mapped_partitions()) {
    health->SetServingStatus(StrCat("partition/", part), true);
  }
  core->damage.Listen([health, &core = *core](int part) {
    health->SetServingStatus(StrCat("partition/", part), false);
    if (core.damage.AreAllDamaged()) health->SetServingStatus("", false);
  });
  core->on_device_failure = [health] { health->SetServingStatus(false); };
}

void SamplerServer::State::StartScrubber() {
  const uint64_t bytes_per_second = core->options.scrub_bytes_per_second;
  if (bytes_per_second == 0) return;
  scrubber =
      std::make_unique<Scrubber>(core->store, bytes_per_second, core->damage);
}

void SamplerServer::State::Accept(std::unique_ptr<ListeningSocket> socket) {
  acceptor = std::make_unique<Acceptor>(
      std::move(socket), DecideLimits(core->options.connections),
      [&intake = *intake](UniqueFd connection) {
        HandOver(std::move(connection), intake);
      });
}

absl::StatusOr<std::unique_ptr<SamplerServer>> SamplerServer::Start(
    LoadedStore loaded, ServerOptions options) {
  EnablePlugins();
  auto state = std::make_unique<State>();
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<ListeningSocket> socket,
                            Listen(options.listen));
  state->port = socket->port();
  state->address = socket->address();
  MILLRACE_ASSIGN_OR_RETURN(state->tls, OpenTls(options));
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<Fleet> fleet,
      MakeFleet(*loaded.store, options.peers, state->tls));
  state->core = std::make_unique<ServerCore>(
      std::move(loaded), std::move(options), std::move(fleet));
  state->service = std::make_unique<SamplerService>(*state->core);
  WarnIfLeafOnly(*state->core);
  MILLRACE_RETURN_IF_ERROR(state->StartGrpc());
  state->port_check =
      std::make_unique<PortCheck>(socket->local_address(), state->tls);
  state->ReportHealth();
  state->StartScrubber();
  state->Accept(std::move(socket));
  return std::unique_ptr<SamplerServer>(new SamplerServer(std::move(state)));
}

int SamplerServer::port() const { return state_->port; }

const std::string& SamplerServer::address() const { return state_->address; }

const ServerOptions& SamplerServer::options() const {
  return state_->core->options;
}

bool SamplerServer::Drain(absl::Duration timeout) {
  ServerCore& core = *state_->core;
  const SteadyTime deadline = SteadyNow() + timeout;
  core.sample_calls.StartDraining();
  state_->server->GetHealthCheckService()->SetServingStatus(false);
  return core.sample_calls.AwaitNone(deadline) &&
         core.gather_calls.AwaitNone(deadline);
}

void SamplerServer::Stop() {
  if (state_->server == nullptr) return;
  state_->acceptor->Stop();
  // Stop anything that reports damage, because the health service ends with the
  // server. The calls report none once they are done, so only the scrubber
  // matters.
  if (state_->scrubber != nullptr) state_->scrubber->Stop();
  // Leaves replies a moment to be sent, then cancels the calls.
  state_->server->Shutdown(ToGrpcTime(SteadyNow() + absl::Milliseconds(100)));
  state_->server->Wait();
  state_->server.reset();
  state_->core->sample_pool.Close();
  state_->core->leaf_pool.Close();
  state_->core->describe_pool.Close();
}

bool SamplerServer::draining() const {
  return state_->core->sample_calls.draining();
}

bool SamplerServer::HasIntactPartition() const {
  return !state_->core->damage.AreAllDamaged();
}

bool SamplerServer::HasFailedDevice() const {
  return state_->core->device_failed;
}

bool SamplerServer::IsLeafOnly() const { return state_->core->IsLeafOnly(); }

absl::Status SamplerServer::CheckPort(absl::Duration timeout) const {
  return state_->port_check->Ask(timeout);
}

FleetStatus SamplerServer::Status() const {
  const ServerCore& core = *state_->core;
  const Manifest& manifest = core.store->manifest();
  FleetStatus status;
  status.state = HasFailedDevice()       ? "failed"
                 : draining()            ? "draining"
                 : !HasIntactPartition() ? "damaged"
                                         : "ready";
  status.address =
      core.options.advertise.empty() ? state_->address : core.options.advertise;
  status.store = FolderName(core.store->path());
  status.store_uuid = manifest.uuid;
  status.fingerprint = manifest.fingerprint;
  status.parts = manifest.partition_count();
  status.self = DescribeSelf(core);
  status.version = status.self.version;
  status.has_peers = core.fleet != nullptr;
  if (status.has_peers) status.peers = core.fleet->Members();
  status.memory = core.copies;
  status.gpus = MemoryOfDevices(core.gpus);
  return status;
}

std::string SamplerServer::Metrics() const {
  const ServerCore& core = *state_->core;
  Scraped scraped = Scrape(core);
  const Acceptor& acceptor = *state_->acceptor;
  scraped.open_connections = acceptor.open();
  scraped.refused_connections = acceptor.refused();
  scraped.connections_ended_for_others = acceptor.ended_for_others();
  if (const Scrubber* scrubber = state_->scrubber.get()) {
    scraped.scrub = {.bytes = scrubber->bytes(),
                     .damaged_files = scrubber->damaged_files(),
                     .passes = scrubber->rounds()};
  }
  if (state_->tls != nullptr) {
    scraped.certificate_expiry =
        UnixSeconds(state_->tls->current()->not_after());
  }
  MetricFamilies all = ProcessMetrics();
  AddFamilies(FamiliesOf(scraped), all);
  AddFamilies(core.metrics.Collect(), all);
  return PrintMetrics(all);
}

}  // namespace millrace
