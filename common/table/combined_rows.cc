// SPDX-License-Identifier: Apache-2.0
#include "common/table/combined_rows.h"

#include <cstdint>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

absl::StatusOr<int64_t> Read(RowReader& reader, int64_t rows, int64_t* out) {
  return reader.ReadIntegers(rows, out);
}
absl::StatusOr<int64_t> Read(RowReader& reader, int64_t rows, float* out) {
  return reader.ReadFloats(rows, out);
}
absl::StatusOr<int64_t> Read(RowReader& reader, int64_t rows, double* out) {
  return reader.ReadDoubles(rows, out);
}

// A reader whose virtual functions all call the template Derived::ReadRows().
template <typename Derived>
class TemplateReader : public RowReader {
 public:
  absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                       int64_t* values) override {
    return static_cast<Derived*>(this)->ReadRows(max_rows, values);
  }
  absl::StatusOr<int64_t> ReadFloats(int64_t max_rows, float* values) override {
    return static_cast<Derived*>(this)->ReadRows(max_rows, values);
  }
  absl::StatusOr<int64_t> ReadDoubles(int64_t max_rows,
                                      double* values) override {
    return static_cast<Derived*>(this)->ReadRows(max_rows, values);
  }
};

class ConcatenatedReader final : public TemplateReader<ConcatenatedReader> {
 public:
  explicit ConcatenatedReader(RowSources sources)
      : sources_(std::move(sources)) {}

  template <typename T>
  absl::StatusOr<int64_t> ReadRows(int64_t max_rows, T* values) {
    int64_t done = 0;
    while (done < max_rows && next_ < sources_.size()) {
      if (reader_ == nullptr) {
        MILLRACE_ASSIGN_OR_RETURN(reader_, sources_[next_]->Open());
      }
      MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                                Read(*reader_, max_rows - done,
                                     values + done * sources_[next_]->width()));
      done += rows;
      if (done == max_rows) break;
      reader_ = nullptr;
      ++next_;
    }
    return done;
  }

 private:
  const RowSources sources_;
  size_t next_ = 0;
  std::unique_ptr<RowReader> reader_;  // reads sources_[next_]
};

class JoinedReader final : public TemplateReader<JoinedReader> {
 public:
  JoinedReader(RowSources sources, int64_t width)
      : sources_(std::move(sources)), width_(width) {}

  absl::Status Start() {
    for (const auto& source : sources_) {
      MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader,
                                source->Open());
      readers_.push_back(std::move(reader));
    }
    return absl::OkStatus();
  }

  template <typename T>
  absl::StatusOr<int64_t> ReadRows(int64_t max_rows, T* values) {
    int64_t rows = 0;
    int64_t column = 0;
    for (size_t i = 0; i < readers_.size(); ++i) {
      const int64_t width = sources_[i]->width();
      std::vector<T> block(static_cast<size_t>(max_rows * width));
      MILLRACE_ASSIGN_OR_RETURN(rows,
                                Read(*readers_[i], max_rows, block.data()));
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t j = 0; j < width; ++j) {
          values[row * width_ + column + j] = block[row * width + j];
        }
      }
      column += width;
    }
    return rows;
  }

 private:
  const RowSources sources_;
  const int64_t width_;
  std::vector<std::unique_ptr<RowReader>> readers_;
};

template <bool kJoined>
class CombinedSource final : public RowSource {
 public:
  CombinedSource(std::string name, int64_t width, int64_t rows,
                 RowSources sources)
      : RowSource(std::move(name), width, rows), sources_(std::move(sources)) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    if constexpr (kJoined) {
      auto reader = std::make_unique<JoinedReader>(sources_, width());
      MILLRACE_RETURN_IF_ERROR(reader->Start());
      return reader;
    } else {
      return std::make_unique<ConcatenatedReader>(sources_);
    }
  }
  absl::StatusOr<bool> Integral() const override {
    for (const auto& source : sources_) {
      MILLRACE_ASSIGN_OR_RETURN(const bool integral, source->Integral());
      if (!integral) return false;
    }
    return true;
  }
  std::string Where(int64_t row) const override {
    for (size_t i = 0; !kJoined && i < sources_.size(); ++i) {
      if (row < sources_[i]->rows()) return sources_[i]->Where(row);
      row -= sources_[i]->rows();
    }
    return StrCat(name(), ": row ", row);
  }

 private:
  const RowSources sources_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const RowSource>> ConcatenateRows(
    std::string name, RowSources sources) {
  int64_t rows = 0;
  const int64_t width = sources[0]->width();
  for (const auto& source : sources) {
    rows += source->rows();
    if (source->width() == width) continue;
    return absl::InvalidArgumentError(
        StrCat(source->name(), ": ", source->width(), " numbers per row, but ",
               sources[0]->name(), " has ", width));
  }
  if (sources.size() == 1) return std::move(sources[0]);
  return std::make_shared<CombinedSource<false>>(std::move(name), width, rows,
                                                 std::move(sources));
}

absl::StatusOr<std::shared_ptr<const RowSource>> JoinColumns(
    std::string name, RowSources sources) {
  int64_t width = 0;
  const int64_t rows = sources[0]->rows();
  for (const auto& source : sources) {
    width += source->width();
    if (source->rows() == rows) continue;
    return absl::InvalidArgumentError(
        StrCat(source->name(), ": ", source->rows(), " rows, but ",
               sources[0]->name(), " has ", rows));
  }
  return std::make_shared<CombinedSource<true>>(std::move(name), width, rows,
                                                std::move(sources));
}

}  // namespace millrace
