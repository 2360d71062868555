// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/tls_files.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/tls/certificates.h"
#include "common/grpc/tls/x509.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

constexpr absl::Duration kWarnBefore = absl::Hours(7 * 24);
constexpr absl::Duration kWarnInterval = absl::Hours(24);

}  // namespace

TlsFiles::TlsFiles(TlsOptions options,
                   std::shared_ptr<const Certificates> certificates)
    : options_(std::move(options)), current_(std::move(certificates)) {}

absl::StatusOr<std::shared_ptr<TlsFiles>> TlsFiles::Open(TlsOptions options) {
  MILLRACE_ASSIGN_OR_RETURN(auto certificates, Certificates::Load(options));
  std::shared_ptr<TlsFiles> files(
      new TlsFiles(std::move(options), certificates));
  MILLRACE_RETURN_IF_ERROR(files->Publish(*certificates));
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

void TlsFiles::NoteHandshake(const std::string& address) {
  MutexLock lock(&mutex_);
  ++unanswered_[address];
}

void TlsFiles::NoteAnswer(const std::string& address) {
  MutexLock lock(&mutex_);
  unanswered_.erase(address);
}

int TlsFiles::UnansweredHandshakes(const std::string& address) const {
  MutexLock lock(&mutex_);
  const auto count = unanswered_.find(address);
  return count == unanswered_.end() ? 0 : count->second;
}

void TlsFiles::Run() {
  while (true) {
    WarnOfExpiry(*current());
    {
      MutexLock lock(&mutex_);
      const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_;
      };
      if (stop_.WaitFor(&mutex_, options_.reload_interval, stopping)) return;
    }
    Reload();
  }
}

void TlsFiles::Reload() {
  auto loaded = Certificates::Load(options_);
  if (!loaded.ok()) return Refuse(loaded.status());
  const bool changed = !(*loaded)->IsSameAs(*current());
  const absl::Status published = changed ? Publish(**loaded) : absl::OkStatus();
  if (!published.ok()) return Refuse(published);
  failure_ = absl::OkStatus();
  if (!changed) return;
  LogInfo(LogComponent::kTls, "reloaded the TLS files",
          {{"certificate", (*loaded)->DescribeOwn()},
           {"expires", PrintTime((*loaded)->not_after())}});
  next_warning_ = SteadyTime::InfinitePast();
  MutexLock lock(&mutex_);
  current_ = *std::move(loaded);
}

// Files are rarely replaced all at once, so warn only of an error that is still
// there at the next reload.
void TlsFiles::Refuse(const absl::Status& error) {
  failures_ = error == failure_ ? failures_ + 1 : 1;
  failure_ = error;
  if (failures_ != 2) return;
  LogWarning(LogComponent::kTls,
             StrCat("the TLS files cannot be reloaded: those read before stay "
                    "in use",
                    AdviceOf(error)),
             {{"error", FirstLine(error)}});
}

absl::Status TlsFiles::Publish(const Certificates& certificates) {
  MILLRACE_RETURN_IF_ERROR(identity_.Replace(certificates.identity()));
  MILLRACE_RETURN_IF_ERROR(cas_.Replace(certificates.cas()));
  return client_roots_.Replace(certificates.client_roots());
}

void TlsFiles::WarnOfExpiry(const Certificates& certificates) {
  const absl::Time now = options_.clock();
  const absl::Time end = certificates.not_after();
  if (end - now > kWarnBefore || SteadyNow() < next_warning_) return;
  next_warning_ = SteadyNow() + kWarnInterval;
  LogWarning(LogComponent::kTls,
             StrCat("the certificate ",
                    end < now ? "has expired" : "expires within a week",
                    "\nrenew it: it is reloaded automatically"),
             {{"file", options_.cert},
              {"certificate", certificates.DescribeOwn()},
              {"expires", PrintTime(end)}});
}

}  // namespace millrace
