// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/trainer/nccl_gradients.h"

#include <c10/cuda/CUDAStream.h>

#include <string>
#include <utility>

#include "client/cuda/nccl_reducer.h"
#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"

namespace millrace::cuda {
namespace {

class NcclGradients final : public Reducer {
 public:
  explicit NcclGradients(std::unique_ptr<NcclReducer> reducer)
      : reducer_(std::move(reducer)) {}

  absl::Status Start(const at::Tensor& bucket) override {
    return CatchTorch("adding up gradients", [&] {
      return reducer_->Add(
          bucket.mutable_data_ptr<float>(), static_cast<size_t>(bucket.numel()),
          c10::cuda::getCurrentCUDAStream(bucket.device().index()).stream());
    });
  }
  absl::Status Finish() override { return reducer_->Finish(); }

 private:
  const std::unique_ptr<NcclReducer> reducer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Reducer>> ConnectNcclGradients(
    Collectives& collectives, int device) {
  NcclGroup group;
  group.rank = collectives.rank();
  group.world = collectives.world();
  group.device = device;
  group.share = [&collectives](std::string bytes) {
    return collectives.ShareBytes(std::move(bytes));
  };
  group.gather = [&collectives](const std::string& bytes) {
    return collectives.GatherBytes(bytes);
  };
  group.loss = [&collectives] { return collectives.status(); };
  group.wait_for_loss = [&collectives] { return collectives.WaitForLoss(); };
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<NcclReducer> reducer,
                            NcclReducer::Connect(group));
  return std::make_unique<NcclGradients>(std::move(reducer));
}

}  // namespace millrace::cuda
