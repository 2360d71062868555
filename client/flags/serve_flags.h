// SPDX-License-Identifier: Apache-2.0
// The options by which a trainer keeps a server of its host's partition.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/flags/job_flags.h"

namespace millrace {

// The flags --serve, --partition, --peers, --advertise, --plaintext and
// --serve-config.
class ServeFlags {
 public:
  void AddTo(CLI::App& app);
  // Whether there is to be a server.
  bool given() const { return !serve_.empty(); }

  // INVALID_ARGUMENT (a UsageError): options that need others, or do not go
  // with those of `source`. Reads no files.
  absl::Status Check(const SourceFlags& source) const;

  // Reads the store's store.json, to see whether it has the partitions and
  // whether --peers is needed.
  // INVALID_ARGUMENT (a UsageError): it is, and was not given. Also the errors
  // of ReadManifest() and ChoosePartitions().
  absl::Status CheckStore(const SourceFlags& source) const;

  // LIST of the fleet that the server belongs to.
  std::string Servers() const;

  // The arguments of the server that serves --store, with the options of
  // `source` that are the server's: where to keep the store, and TLS.
  std::vector<std::string> ServerArguments(const SourceFlags& source) const;

  // The value of --partition, for messages.
  const std::string& partition() const { return partition_; }

 private:
  absl::Status CheckTls(const TlsOptions& tls) const;
  absl::Status CheckPeers() const;
  // The address by which this host's programs reach the server.
  std::string OwnAddress() const;

  std::string serve_;  // empty if not given
  std::string partition_;
  std::string peers_;
  std::string advertise_;
  std::string config_;
  bool plaintext_ = false;
};

}  // namespace millrace
