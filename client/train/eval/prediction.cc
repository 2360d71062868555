// SPDX-License-Identifier: Apache-2.0
#include "client/train/eval/prediction.h"

#include <system_error>

#include "client/tensor/torch_status.h"
#include "common/base/array.h"
#include "common/file/file.h"
#include "common/file/npy.h"

namespace millrace {

absl::Status WriteMatrix(const std::filesystem::path& path,
                         const at::Tensor& rows) {
  return CatchTorch("writing a matrix", [&]() -> absl::Status {
    const at::Tensor whole = rows.to(at::kFloat).contiguous();
    const Array array =
        Array::Borrow(DType::kFloat32, whole.sizes().vec(),
                      whole.const_data_ptr<float>(), /*owner=*/nullptr);
    return ReplaceFile(path, path.string() + ".tmp",
                       [&array](const std::filesystem::path& temporary) {
                         std::error_code error;
                         std::filesystem::remove(temporary, error);
                         return WriteNpy(temporary, array).status();
                       });
  });
}

}  // namespace millrace
