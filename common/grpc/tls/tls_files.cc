// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/tls_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"
#include "spdlog/spdlog.h"

namespace millrace {
namespace {

constexpr absl::Duration kWarnBefore = absl::Hours(7 * 24);
constexpr absl::Duration kWarnInterval = absl::Hours(24);

// gRPC's watcher compares modification times in whole seconds, so each new file
// needs a different one.
absl::Status SetChangeTime(int fd, int64_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  if (futimens(fd, times) == 0) return absl::OkStatus();
  return FileError("set the time of", "a memory file", errno);
}

}  // namespace

void UnansweredHandshakes::Note(const std::string& address) {
  MutexLock lock(&mutex_);
  ++counts_[address];
}

void UnansweredHandshakes::Forget(const std::string& address) {
  MutexLock lock(&mutex_);
  counts_.erase(address);
}

int UnansweredHandshakes::CountOf(const std::string& address) const {
  MutexLock lock(&mutex_);
  const auto count = counts_.find(address);
  return count == counts_.end() ? 0 : count->second;
}

TlsFiles::TlsFiles(TlsOptions options) : options_(std::move(options)) {}

absl::StatusOr<std::shared_ptr<TlsFiles>> TlsFiles::Open(TlsOptions options) {
  std::shared_ptr<TlsFiles> files(new TlsFiles(std::move(options)));
  MILLRACE_ASSIGN_OR_RETURN(auto certificates,
                            Certificates::Load(files->options_));
  MILLRACE_RETURN_IF_ERROR(files->PublishIdentity(*certificates));
  files->WarnOfEnd(*certificates);
  {
    MutexLock lock(&files->mutex_);
    files->current_ = std::move(certificates);
  }
  // The destructor joins the thread, so it need not share ownership.
  files->thread_ = std::thread([raw = files.get()] { raw->Run(); });
  return files;
}

TlsFiles::~TlsFiles() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stop_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const Certificates> TlsFiles::current() const {
  MutexLock lock(&mutex_);
  return current_;
}

void TlsFiles::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_;
      };
      if (stop_.WaitFor(&mutex_, options_.reload_interval, stopping)) return;
    }
    Reload();
    WarnOfEnd(*current());
  }
}

void TlsFiles::Reload() {
  auto loaded = Certificates::Load(options_);
  if (!loaded.ok()) return Refuse(loaded.status());
  failure_ = absl::OkStatus();
  if ((*loaded)->SameFiles(*current())) return;
  if ((*loaded)->identity() != current()->identity()) {
    const absl::Status published = PublishIdentity(**loaded);
    if (!published.ok()) return Refuse(published);
  }
  spdlog::info("TLS files were read again: {}", (*loaded)->Describe());
  next_warning_ = SteadyTime::InfinitePast();
  MutexLock lock(&mutex_);
  current_ = *std::move(loaded);
}

// Files are rarely replaced all at once, so warn only of an error that is still
// there at the next reload.
void TlsFiles::Refuse(const absl::Status& error) {
  const bool again = error == failure_;
  if (!again) failure_reported_ = false;
  failure_ = error;
  if (!again || failure_reported_) return;
  failure_reported_ = true;
  spdlog::warn("{}; the TLS files read before stay in use", FirstLine(error));
}

// Replaces the file behind the path in one step, so that nobody reads half of
// it, or a key with the wrong certificate.
absl::Status TlsFiles::PublishIdentity(const Certificates& certificates) {
  if (certificates.identity().empty()) return absl::OkStatus();
  UniqueFd next(memfd_create("millrace-tls", MFD_CLOEXEC));
  if (next.get() < 0) return FileError("create", "a memory file", errno);
  const std::string& text = certificates.identity();
  MILLRACE_RETURN_IF_ERROR(
      WriteAll(next.get(), "a memory file", text.data(), text.size()));
  MILLRACE_RETURN_IF_ERROR(SetChangeTime(next.get(), ++generation_));
  if (identity_fd_.get() < 0) {
    identity_fd_ = std::move(next);
    identity_path_ = StrCat("/proc/self/fd/", identity_fd_.get());
    // Check it here: gRPC would not report that /proc is missing.
    return ReadFile(identity_path_, text.size()).status();
  }
  if (dup3(next.get(), identity_fd_.get(), O_CLOEXEC) < 0) {
    return FileError("replace", "a memory file", errno);
  }
  return absl::OkStatus();
}

void TlsFiles::WarnOfEnd(const Certificates& certificates) {
  const absl::Time now = options_.clock();
  const absl::Time end = certificates.not_after();
  if (end - now > kWarnBefore || SteadyNow() < next_warning_) return;
  next_warning_ = SteadyNow() + kWarnInterval;
  spdlog::warn("--tls-cert {}: {} {}; renew it: it is reloaded automatically",
               options_.cert, certificates.Describe(),
               end < now ? "has expired" : "expires within a week");
}

}  // namespace millrace
