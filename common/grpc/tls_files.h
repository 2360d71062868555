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
#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/grpc/certificates.h"
#include "common/grpc/tls_options.h"

namespace millrace {

// How often servers have shown a good certificate since they last answered a
// call, by address. One that does so and ends the connection, again and again,
// does not want ours.
// Threads: any.
class UnansweredHandshakes {
 public:
  void Note(const std::string& address);
  // It has answered a call.
  void Forget(const std::string& address);
  int CountOf(const std::string& address) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
};

// The files of TlsOptions, read again when they change. What cannot be used
// (half a file, a key that does not fit, an expired certificate) is warned of
// once and the old stays. Warns of a certificate that ends within a week,
// once a day.
// Threads: any thread may call any method.
class TlsFiles {
 public:
  // Errors of Certificates::Load; INTERNAL: no memory file.
  static absl::StatusOr<std::shared_ptr<TlsFiles>> Open(TlsOptions options);
  ~TlsFiles();
  TlsFiles(const TlsFiles&) = delete;
  TlsFiles& operator=(const TlsFiles&) = delete;

  std::shared_ptr<const Certificates> current() const;
  const TlsOptions& options() const { return options_; }

  // A file in memory that holds key and certificates, replaced as a whole,
  // for gRPC to watch; lives as long as this.
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
  std::string identity_path_;  // set by Open
  UnansweredHandshakes unanswered_;

  // Of the thread alone, and of Open before it.
  UniqueFd identity_fd_;
  int64_t generation_ = 0;
  absl::Status failure_;  // of the look before
  bool failure_reported_ = false;
  SteadyTime next_warning_ = SteadyTime::InfinitePast();

  mutable Mutex mutex_;
  CondVar stop_;
  std::shared_ptr<const Certificates> current_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: runs on all of the above
};

}  // namespace millrace
