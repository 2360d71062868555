// SPDX-License-Identifier: Apache-2.0
#include "common/table/npz_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/table/elements.h"
#include "common/table/tensor_rows.h"

namespace millrace {
namespace {

constexpr size_t kHeaderBytes = 64 << 10;
constexpr int64_t kBlockElements = 32 << 10;

// Some columns of a table: `width` consecutive numbers of each row.
struct ColumnGroup {
  const ZipArchive::Entry* entry = nullptr;
  ElementFormat format = {};
  uint64_t offset = 0;  // bytes before the first row
  int64_t width = 1;
};

struct NpzTable {
  std::shared_ptr<const ZipArchive> archive;
  std::vector<ColumnGroup> groups;
  int64_t rows = 0;

  int64_t width() const {
    int64_t sum = 0;
    for (const ColumnGroup& group : groups) sum += group.width;
    return sum;
  }
};

class NpzReader final : public RowReader {
 public:
  NpzReader(std::string name, NpzTable table)
      : name_(std::move(name)), table_(std::move(table)) {}

  absl::Status Start() {
    for (const ColumnGroup& group : table_.groups) {
      streams_.push_back(ZipEntryReader::Create(table_.archive, *group.entry));
      MILLRACE_RETURN_IF_ERROR(streams_.back()->Skip(group.offset));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                       int64_t* values) override {
    for (const ColumnGroup& group : table_.groups) {
      MILLRACE_RETURN_IF_ERROR(RequireIntegers(name_, group.format.type));
    }
    const int64_t first = next_;
    MILLRACE_ASSIGN_OR_RETURN(const int64_t rows, Read(max_rows, values));
    for (const ColumnGroup& group : table_.groups) {
      MILLRACE_RETURN_IF_ERROR(RefuseLargeIntegers(
          name_, group.format.type, first, values, rows, table_.width()));
    }
    return rows;
  }
  absl::StatusOr<int64_t> ReadFloats(int64_t max_rows, float* values) override {
    return Read(max_rows, values);
  }
  absl::StatusOr<int64_t> ReadDoubles(int64_t max_rows,
                                      double* values) override {
    return Read(max_rows, values);
  }

 private:
  template <typename To>
  absl::StatusOr<int64_t> Read(int64_t max_rows, To* values) {
    const int64_t rows = std::min(max_rows, table_.rows - next_);
    const int64_t row_width = table_.width();
    int64_t column = 0;
    for (size_t i = 0; i < streams_.size(); ++i) {
      MILLRACE_RETURN_IF_ERROR(ReadGroup(i, rows, values + column, row_width));
      column += table_.groups[i].width;
    }
    next_ += rows;
    return rows;
  }

  template <typename To>
  absl::Status ReadGroup(size_t i, int64_t rows, To* out, int64_t out_step) {
    const ColumnGroup& group = table_.groups[i];
    const int64_t item = ElementBytes(group.format.type);
    const int64_t row_bytes = item * group.width;
    const int64_t block = std::max<int64_t>(kBlockElements / group.width, 1);
    for (int64_t done = 0; done < rows;) {
      const int64_t count = std::min(block, rows - done);
      bytes_.resize(static_cast<size_t>(count * row_bytes));
      MILLRACE_RETURN_IF_ERROR(streams_[i]->Read(bytes_.data(), bytes_.size()));
      // A group of several columns is the only group, so its rows are
      // contiguous in `out`.
      const int64_t elements = count * group.width;
      ConvertElements(group.format, bytes_.data(), item, elements,
                      out + done * out_step, group.width > 1 ? 1 : out_step);
      done += count;
    }
    return absl::OkStatus();
  }

  const std::string name_;
  const NpzTable table_;
  std::vector<std::unique_ptr<ZipEntryReader>> streams_;
  std::vector<char> bytes_;
  int64_t next_ = 0;
};

class NpzSource final : public RowSource {
 public:
  NpzSource(std::string name, NpzTable table)
      : RowSource(std::move(name), table.width(), table.rows),
        table_(std::move(table)) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    auto reader = std::make_unique<NpzReader>(name(), table_);
    MILLRACE_RETURN_IF_ERROR(reader->Start());
    return reader;
  }
  absl::StatusOr<bool> Integral() const override {
    return std::all_of(table_.groups.begin(), table_.groups.end(),
                       [this](const ColumnGroup& group) {
                         return RequireIntegers(name(), group.format.type).ok();
                       });
  }
  std::string Where(int64_t row) const override {
    return StrCat(name(), ": row ", row);
  }

 private:
  const NpzTable table_;
};

}  // namespace

absl::StatusOr<NpzFile> NpzFile::Open(const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const ZipArchive> archive,
                            ZipArchive::Open(path));
  return NpzFile(std::move(archive));
}

bool NpzFile::Has(std::string_view key) const {
  return archive_->Find(StrCat(key, ".npy")) != nullptr;
}

absl::StatusOr<const ZipArchive::Entry*> NpzFile::FindEntry(
    std::string_view key) const {
  const ZipArchive::Entry* entry = archive_->Find(StrCat(key, ".npy"));
  if (entry != nullptr) return entry;
  const auto append_name = [](std::string* out,
                              const ZipArchive::Entry& other) {
    out->append(other.name);
  };
  return absl::NotFoundError(
      StrCat(name(), ": no array ", key, "; the arrays are ",
             absl::StrJoin(archive_->entries(), ", ", append_name)));
}

absl::StatusOr<NpzFile::NpzArray> NpzFile::FindArray(
    std::string_view key) const {
  NpzArray array;
  array.name = StrCat(name(), ": ", key);
  MILLRACE_ASSIGN_OR_RETURN(array.entry, FindEntry(key));
  std::string start(std::min<uint64_t>(array.entry->bytes, kHeaderBytes), '\0');
  MILLRACE_RETURN_IF_ERROR(ZipEntryReader::Create(archive_, *array.entry)
                               ->Read(start.data(), start.size()));
  MILLRACE_ASSIGN_OR_RETURN(
      array.header,
      ParseForeignNpyHeader(array.name, start, array.entry->bytes));
  return array;
}

absl::StatusOr<std::unique_ptr<RowSource>> NpzFile::Rows(
    std::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const NpzArray array, FindArray(key));
  const NpyHeader& npy = array.header.npy;
  const std::vector<int64_t>& shape = npy.shape;
  const bool flat = shape.size() == 1;
  if (!flat && (shape.size() != 2 || shape[1] == 0)) {
    return absl::InvalidArgumentError(
        StrCat(array.name, ": shape ", ShapeText(shape),
               ", but one or two dimensions are needed here"));
  }
  if (!flat) MILLRACE_RETURN_IF_ERROR(CheckWidth(array.name, shape[1]));
  if (npy.fortran_order && !flat && shape[0] > 1 && shape[1] > 1) {
    return FortranRows(array);
  }
  NpzTable table{archive_, {}, shape[0]};
  table.groups.push_back(
      {array.entry, array.header.format, npy.data_offset, flat ? 1 : shape[1]});
  return std::make_unique<NpzSource>(array.name, std::move(table));
}

// The elements of a row are not contiguous in such a matrix, so it is read in
// the mapped file, or in memory if it has to be inflated first.
absl::StatusOr<std::unique_ptr<RowSource>> NpzFile::FortranRows(
    const NpzArray& array) const {
  const ZipArchive::Entry& entry = *array.entry;
  std::string_view bytes = entry.data;
  std::shared_ptr<const void> owner = archive_;
  if (entry.deflated) {
    MILLRACE_RETURN_IF_ERROR(CheckMemory(
        StrCat(array.name, ": reading a compressed array in Fortran order"),
        entry.bytes,
        "save it again after numpy.ascontiguousarray(), or with numpy.savez"));
    const auto inflated = std::make_shared<std::string>(entry.bytes, '\0');
    MILLRACE_RETURN_IF_ERROR(ZipEntryReader::Create(archive_, entry)
                                 ->Read(inflated->data(), inflated->size()));
    bytes = *inflated;
    owner = inflated;
  }
  MILLRACE_ASSIGN_OR_RETURN(StoredTensor tensor,
                            NpyTensor(array.name, bytes, std::move(owner)));
  return TensorRows(array.name, std::move(tensor));
}

absl::StatusOr<std::unique_ptr<RowSource>> NpzFile::Edges(
    std::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const NpzArray array, FindArray(key));
  const NpyHeader& npy = array.header.npy;
  const ElementFormat format = array.header.format;
  MILLRACE_ASSIGN_OR_RETURN(
      const bool columns, EdgesAreColumns(array.name, format.type, npy.shape));
  NpzTable table{archive_, {}, npy.shape[columns ? 1 : 0]};
  if (columns != npy.fortran_order) {  // all sources, then all destinations
    const auto bytes =
        static_cast<uint64_t>(ElementBytes(format.type) * table.rows);
    for (const uint64_t offset : {uint64_t{0}, bytes}) {
      table.groups.push_back(
          {array.entry, format, npy.data_offset + offset, 1});
    }
  } else {
    table.groups.push_back({array.entry, format, npy.data_offset, 2});
  }
  return std::make_unique<NpzSource>(array.name, std::move(table));
}

absl::StatusOr<std::unique_ptr<RowSource>> NpzFile::Pairs(
    std::string_view first, std::string_view second) const {
  NpzTable table{archive_, {}, -1};
  for (const std::string_view key : {first, second}) {
    MILLRACE_ASSIGN_OR_RETURN(const NpzArray array, FindArray(key));
    const std::vector<int64_t>& shape = array.header.npy.shape;
    if (shape.size() != 1 || (table.rows >= 0 && shape[0] != table.rows)) {
      return absl::InvalidArgumentError(
          StrCat(array.name, ": shape ", ShapeText(shape), ", but ", first,
                 " and ", second, " have one dimension and the same length"));
    }
    table.rows = shape[0];
    table.groups.push_back(
        {array.entry, array.header.format, array.header.npy.data_offset, 1});
  }
  return std::make_unique<NpzSource>(StrCat(name(), ": ", first, ", ", second),
                                     std::move(table));
}

absl::StatusOr<std::vector<int64_t>> NpzFile::Integers(std::string_view key,
                                                       int64_t count) const {
  MILLRACE_ASSIGN_OR_RETURN(const NpzArray array, FindArray(key));
  const std::vector<int64_t>& shape = array.header.npy.shape;
  if (shape.size() > 1 || (shape.empty() ? 1 : shape[0]) != count) {
    return absl::InvalidArgumentError(StrCat(array.name, ": shape ",
                                             ShapeText(shape), ", but shape [",
                                             count, "] is needed here"));
  }
  MILLRACE_RETURN_IF_ERROR(CheckMemory(
      StrCat("reading ", array.name),
      SaturatedProduct({count, static_cast<int64_t>(sizeof(int64_t))}),
      "import on a machine with more memory"));
  NpzTable table{archive_, {}, count};
  table.groups.push_back(
      {array.entry, array.header.format, array.header.npy.data_offset, 1});
  NpzReader reader(array.name, std::move(table));
  MILLRACE_RETURN_IF_ERROR(reader.Start());
  std::vector<int64_t> values(static_cast<size_t>(count));
  MILLRACE_RETURN_IF_ERROR(reader.ReadIntegers(count, values.data()).status());
  return values;
}

// Parses the header itself, since no ElementType stands for NumPy's strings.
// After the header, a character takes one byte (S) or four (U).
absl::StatusOr<std::string> NpzFile::Text(std::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const ZipArchive::Entry* entry, FindEntry(key));
  std::string bytes(std::min<uint64_t>(entry->bytes, kHeaderBytes), '\0');
  MILLRACE_RETURN_IF_ERROR(ZipEntryReader::Create(archive_, *entry)
                               ->Read(bytes.data(), bytes.size()));
  const size_t header_end = bytes.find('\n');
  const bool text =
      bytes.find("'|S") < header_end || bytes.find("'<U") < header_end;
  if (header_end == std::string::npos || !text) {
    return absl::InvalidArgumentError(
        StrCat(name(), ": ", key, ": a string is needed here"));
  }
  std::string letters;
  for (char letter : bytes.substr(header_end + 1)) {
    if (letter != '\0') letters.push_back(letter);
  }
  return letters;
}

}  // namespace millrace
