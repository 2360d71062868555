// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/cuda/sample/hop_job.h"
#include "common/cuda/sample/make_hop_filter.h"
#include "common/graph/store.h"
#include "common/sample/draw/draw_domain.h"
#include "common/sample/draw_rule.h"
#include "common/sample/neighbor_source.h"

namespace millrace::cuda {

// Returns what FrontierDrawer takes to draw from `lists`, those of one
// partition, but for the members of a train graph. There must be kernels for
// the rule. The views are those of `frontier`.
inline DrawJob MakeDrawJob(const Lists& lists, const Store& store,
                           const DrawContext& context,
                           const Frontier& frontier) {
  DrawJob job;
  job.lists = lists;
  job.rule = context.rule;
  job.replace = context.replace;
  job.fanout = frontier.fanout;
  job.domain = {
      .job_seed = context.job_seed,
      .epoch = context.epoch,
      .batch = context.batch,
      .purpose = InfoOf(job.rule).own_purpose.value_or(Purpose::kNeighbor),
      .hop = context.hop,
      .relation = frontier.relation};
  job.ids = frontier.ids;
  job.trees = frontier.trees;
  job.times = frontier.times;
  job.edge_ids = context.edge_ids;
  if (frontier.excluded != nullptr) {
    job.filter.excluded = MakeExcludedLists(*frontier.excluded, frontier.ids);
  }
  job.feature_rows =
      context.feature_rows &&
      store.schema().relations[frontier.relation].feature.present();
  return job;
}

}  // namespace millrace::cuda
