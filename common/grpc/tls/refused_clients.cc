// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/refused_clients.h"

#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status_lines.h"
#include "common/base/steady_time.h"
#include "common/grpc/tls/x509.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

// Whether to log `text` now.
bool IsDue(const std::string& text) {
  struct Last {
    Mutex mutex;
    std::string text ABSL_GUARDED_BY(mutex);
    SteadyTime at ABSL_GUARDED_BY(mutex) = SteadyTime::InfinitePast();
  };
  static Last& last = *new Last;  // outlives all servers
  MutexLock lock(&last.mutex);
  const SteadyTime now = SteadyNow();
  const absl::Duration pause =
      text == last.text ? absl::Minutes(1) : absl::Seconds(1);
  if (now - last.at < pause) return false;
  last.text = text;
  last.at = now;
  return true;
}

// OpenSSL calls this for each certificate that it checks, and with `trusted` 0
// for the one that it refuses. Returning `trusted` leaves the decision as it
// is.
int Note(int trusted, X509_STORE_CTX* context) {
  if (trusted == 1) return trusted;
  const auto* connection = static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(
      context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (connection != nullptr && SSL_is_server(connection) == 1) {
    WarnOfRefusedClient(WhyRefused(context, "a trusted CA", absl::Now()));
  }
  return trusted;
}

void NoteErrorsOf(void* store, void*, CRYPTO_EX_DATA*, int, long, void*) {
  X509_STORE_set_verify_cb(static_cast<X509_STORE*>(store), Note);
}

}  // namespace

void WarnOfRefusedClient(const absl::Status& why) {
  const std::string text = FirstLine(why);
  if (!IsDue(text)) return;
  // The advice of the status is for the client.
  LogWarning(LogComponent::kTls, "a client is refused", {{"why", text}});
}

// gRPC 1.51.1 does not report refused clients: if OpenSSL does not trust a
// client's certificate, the handshake ends with "certificate verify failed"
// before a CertificateVerifier is called, and the SSL_CTX, which has a callback
// for this, cannot be reached. So this hooks each X509_STORE when it is
// created. If OpenSSL later replaces the callback, only these log lines are
// lost.
void WatchRefusals() {
  [[maybe_unused]] static const int index = CRYPTO_get_ex_new_index(
      CRYPTO_EX_INDEX_X509_STORE, 0, nullptr, NoteErrorsOf, nullptr, nullptr);
}

}  // namespace millrace
