// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "client/train/main/run_view.h"
#include "client/train/run/run_monitor.h"
#include "common/base/mutex.h"
#include "common/http/http_server.h"
#include "common/sample/batch_source.h"

namespace millrace {

// The pages that a trainer offers over HTTP: / for people, /status.json that it
// shows, and /metrics for Prometheus. See docs/training.md. The trainer never
// waits for whoever reads them.
// Threads: any.
class TrainPages {
 public:
  // Returns pages that are already served, of a run that is starting. `source`
  // says what it reads. Fails like HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<TrainPages>> Start(
      const HostPort& address, std::string source);
  TrainPages(const TrainPages&) = delete;
  TrainPages& operator=(const TrainPages&) = delete;

  // What the trainer reports to; shared with it.
  const std::shared_ptr<RunMonitor>& monitor() const { return monitor_; }
  // The pages show what the source does from now on, and share it until they
  // are destroyed.
  void SetSource(std::shared_ptr<const BatchSource> source);

  // "HOST:PORT" with the actual port.
  const std::string& address() const { return http_->address(); }

 private:
  explicit TrainPages(std::string source) : source_text_(std::move(source)) {}
  RunView View() const;

  const std::string source_text_;
  const std::shared_ptr<RunMonitor> monitor_ = std::make_shared<RunMonitor>();

  mutable Mutex mutex_;
  // Null until it is open.
  std::shared_ptr<const BatchSource> source_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<HttpServer> http_;  // last, as its pages use all of the above
};

}  // namespace millrace
