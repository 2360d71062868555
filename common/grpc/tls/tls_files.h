// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/file/memory_file.h"
#include "common/grpc/tls/tls_options.h"

namespace millrace {

class Certificates;

// The files of TlsOptions, which are read again when they change. If new files
// cannot be used (half a file, a key that does not match, an expired
// certificate), the old content stays in use and one warning is logged. Also
// warns, once a day, of a certificate that expires within a week.
// Threads: any thread may call any method.
class TlsFiles {
 public:
  // Fails like Certificates::Load and MemoryFile::Replace.
  static absl::StatusOr<std::shared_ptr<TlsFiles>> Open(TlsOptions options);
  ~TlsFiles();
  TlsFiles(const TlsFiles&) = delete;
  TlsFiles& operator=(const TlsFiles&) = delete;

  std::shared_ptr<const Certificates> current() const;
  const TlsOptions& options() const { return options_; }

  // The content of current(), for gRPC to watch. It can only watch files, and
  // every handshake fails while it finds half a file or a key that does not
  // match.
  const MemoryFile& identity() const { return identity_; }
  const MemoryFile& cas() const { return cas_; }
  const MemoryFile& client_roots() const { return client_roots_; }

  // Counts how many times a server has shown a valid certificate since it last
  // answered a call. One that does so and ends the connection again and again
  // refuses our certificate.
  void NoteHandshake(const std::string& address);
  void NoteAnswer(const std::string& address);
  int UnansweredHandshakes(const std::string& address) const;

 private:
  TlsFiles(TlsOptions options,
           std::shared_ptr<const Certificates> certificates);
  void Run();
  void Reload();
  void Refuse(const absl::Status& error);
  absl::Status Publish(const Certificates& certificates);
  void WarnOfExpiry(const Certificates& certificates);

  const TlsOptions options_;

  // Used by Open() and then only by thread_.
  MemoryFile identity_;
  MemoryFile cas_;
  MemoryFile client_roots_;
  absl::Status failure_;  // of the previous reload
  int failures_ = 0;      // consecutive reloads that failed in the same way
  SteadyTime next_warning_ = SteadyTime::InfinitePast();

  mutable Mutex mutex_;
  CondVar stop_;
  // Shared with the handshakes that began with it.
  std::shared_ptr<const Certificates> current_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, int> unanswered_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace millrace
