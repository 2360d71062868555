// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/train_pages.h"

#include <utility>

#include "client/train/main/run_metrics.h"
#include "client/train/main/run_status.h"
#include "common/base/status_macros.h"
#include "common/http/status_page.h"
#include "common/metrics/families.h"

namespace millrace {

absl::StatusOr<std::unique_ptr<TrainPages>> TrainPages::Start(
    const HostPort& address, std::string source) {
  std::unique_ptr<TrainPages> made(new TrainPages(std::move(source)));
  const TrainPages& pages = *made;
  const auto metrics = [&pages] {
    HttpResponse response;
    response.type = kMetricsContentType;
    response.body = PrintTrainerMetrics(pages.View());
    return response;
  };
  const auto status = [&pages] {
    return StatusJson(PrintTrainerStatus(pages.View()));
  };
  MILLRACE_ASSIGN_OR_RETURN(made->http_,
                            HttpServer::Start(address, "metrics",
                                              {{"/", StatusPage},
                                               {"/status.json", status},
                                               {"/metrics", metrics}}));
  return made;
}

void TrainPages::SetSource(std::shared_ptr<const BatchSource> source) {
  MutexLock lock(&mutex_);
  source_ = std::move(source);
}

RunView TrainPages::View() const {
  std::shared_ptr<const BatchSource> source;
  {
    MutexLock lock(&mutex_);
    source = source_;
  }
  RunView view;
  view.run = monitor_->snapshot();
  view.source = source_text_;
  const auto* remote = dynamic_cast<const RemoteBatchSource*>(source.get());
  if (remote != nullptr) view.fleet = UseOf(*remote);
  return view;
}

}  // namespace millrace
