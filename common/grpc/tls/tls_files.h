// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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
#include "common/file/file.h"
#include "common/grpc/tls/certificates.h"
#include "common/grpc/tls/tls_options.h"

namespace millrace {

// Counts, by address, how often a server has shown a valid certificate since it
// last answered a call. A server that does so and ends the connection again and
// again refuses our certificate.
// Threads: any thread may call any method.
class UnansweredHandshakes {
 public:
  void Note(const std::string& address);
  // Records that the server has answered a call.
  void Forget(const std::string& address);
  int CountOf(const std::string& address) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
};

// The files of TlsOptions, which are read again when they change. If new files
// cannot be used (half a file, a key that does not match, an expired
// certificate), the old content stays in use and one warning is logged. Also
// warns, once a day, of a certificate that expires within a week.
// Threads: any thread may call any method.
class TlsFiles {
 public:
  // INTERNAL: cannot create a memory file. Also the errors of
  // Certificates::Load.
  static absl::StatusOr<std::shared_ptr<TlsFiles>> Open(TlsOptions options);
  ~TlsFiles();
  TlsFiles(const TlsFiles&) = delete;
  TlsFiles& operator=(const TlsFiles&) = delete;

  std::shared_ptr<const Certificates> current() const;
  const TlsOptions& options() const { return options_; }

  // A file in memory with the key and the certificates, for gRPC to watch. It
  // is always replaced as a whole, and lives as long as this object.
  const std::string& identity_path() const { return identity_path_; }

  UnansweredHandshakes& unanswered() { return unanswered_; }

 private:
  explicit TlsFiles(TlsOptions options);
  void Run();
  void Reload();
  void Refuse(const absl::Status& error);
  absl::Status PublishIdentity(const Certificates& certificates);
  void WarnOfEnd(const Certificates& certificates);

  const TlsOptions options_;
  std::string identity_path_;  // set by Open()
  UnansweredHandshakes unanswered_;

  // Used by Open() and then only by thread_.
  UniqueFd identity_fd_;
  int64_t generation_ = 0;
  absl::Status failure_;  // of the previous reload
  bool failure_reported_ = false;
  SteadyTime next_warning_ = SteadyTime::InfinitePast();

  mutable Mutex mutex_;
  CondVar stop_;
  std::shared_ptr<const Certificates> current_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace millrace
