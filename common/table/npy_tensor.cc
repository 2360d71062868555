// SPDX-License-Identifier: Apache-2.0
#include "common/table/npy_tensor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/mapped_file.h"

namespace millrace {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);

bool IsText(std::string_view bytes) {
  return !bytes.empty() &&
         std::all_of(bytes.begin(), bytes.end(), [](unsigned char c) {
           return c >= ' ' || c == '\t' || c == '\r' || c == '\n';
         });
}

// The numpy.loadtxt call that reads a file that begins with `bytes`.
std::string TextReader(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const auto has = [line](std::string_view letters) {
    return line.find_first_of(letters) != std::string_view::npos;
  };
  // A letter other than the e of a number means that these are column names.
  const bool header = std::any_of(line.begin(), line.end(), [](char c) {
    return absl::ascii_isalpha(static_cast<unsigned char>(c)) && c != 'e';
  });
  return StrCat(
      "numpy.loadtxt('FILE', '", has(".") && !header ? "float32" : "int64", "'",
      has(",") ? ", delimiter=','" : "", header ? ", skiprows=1" : "", ")");
}

// What a file that is not a .npy file seems to be, and how to read it in
// Python.
struct Guess {
  std::string_view kind;
  std::string imports;
  std::string reader;  // an expression; FILE stands for the file's name
};

std::optional<Guess> GuessKind(const std::filesystem::path& path,
                               std::string_view bytes) {
  if (bytes.starts_with("PAR1")) {
    return Guess{"a Parquet file", "numpy, pandas",
                 "pandas.read_parquet('FILE').to_numpy()"};
  }
  if (bytes.starts_with("PK") && path.extension() == ".npz") {
    return Guess{"an archive of arrays", "numpy", "numpy.load('FILE')['KEY']"};
  }
  if (bytes.starts_with("PK") || bytes.starts_with("\x80")) {
    return Guess{"a file written by torch.save", "numpy, torch",
                 "torch.load('FILE').numpy()"};
  }
  if (!IsText(bytes.substr(0, 1024))) return std::nullopt;
  return Guess{"text", "numpy", TextReader(bytes)};
}

// The error for a file that is not a .npy file, with a line of Python that
// converts it.
absl::Status NotNpy(const std::filesystem::path& path, std::string_view bytes) {
  const std::optional<Guess> guess = GuessKind(path, bytes);
  if (!guess.has_value()) {
    return absl::InvalidArgumentError(
        StrCat(path.string(),
               ": not a .npy file: the magic is missing\nsave the array with "
               "numpy.save()"));
  }
  std::string reader = guess->reader;
  reader.replace(reader.find("FILE"), 4, path.string());
  std::filesystem::path target = path;
  target.replace_extension(".npy");
  if (target == path) target += ".npy";
  return absl::InvalidArgumentError(
      StrCat(path.string(), ": not a .npy file, but ", guess->kind,
             "\nconvert it: python3 -c \"import ", guess->imports,
             "; numpy.save('", target.string(), "', ", reader, ")\""));
}

absl::Status Named(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), StrCat(name, ": ", status.message()));
}

// For each dimension, the number of elements from one index to the next.
std::vector<int64_t> StridesOf(const NpyHeader& header) {
  const std::vector<int64_t>& shape = header.shape;
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t at = header.fortran_order ? i : shape.size() - 1 - i;
    strides[at] = step;
    step *= std::max<int64_t>(shape[at], 1);
  }
  return strides;
}

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) {
  return StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<ForeignNpyHeader> ParseForeignNpyHeader(const std::string& name,
                                                       std::string_view bytes,
                                                       uint64_t file_bytes) {
  absl::StatusOr<NpyHeader> npy = ParseAnyNpyHeader(bytes);
  if (!npy.ok()) return Named(name, npy.status());
  const absl::StatusOr<ElementFormat> format = ElementFormatFromNpy(npy->descr);
  if (!format.ok()) return Named(name, format.status());
  const absl::Status size = CheckNpySize(
      *npy, static_cast<size_t>(ElementBytes(format->type)), file_bytes);
  if (!size.ok()) return Named(name, size);
  return ForeignNpyHeader{*std::move(npy), *format};
}

absl::StatusOr<StoredTensor> NpyTensor(const std::string& name,
                                       std::string_view bytes,
                                       std::shared_ptr<const void> owner) {
  MILLRACE_ASSIGN_OR_RETURN(ForeignNpyHeader header,
                            ParseForeignNpyHeader(name, bytes, bytes.size()));
  StoredTensor tensor;
  tensor.format = header.format;
  tensor.strides = StridesOf(header.npy);
  tensor.sizes = std::move(header.npy.shape);
  tensor.data = bytes.data() + header.npy.data_offset;
  tensor.owner = std::move(owner);
  return tensor;
}

absl::StatusOr<StoredTensor> MapNpyTensor(const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                            MappedFile::Open(path));
  const std::string_view bytes = file->bytes();
  if (!bytes.starts_with(kNpyMagic)) return NotNpy(path, bytes);
  return NpyTensor(path.string(), bytes, std::move(file));
}

absl::StatusOr<bool> EdgesAreColumns(const std::string& name, ElementType type,
                                     const std::vector<int64_t>& shape) {
  if (!IsInteger(type)) {
    return absl::InvalidArgumentError(StrCat(
        name, ": dtype ", ElementName(type), ", but integers are needed here"));
  }
  if (shape.size() != 2 || (shape[0] != 2 && shape[1] != 2)) {
    return absl::InvalidArgumentError(
        StrCat(name, ": shape ", ShapeText(shape),
               ", but an edge list has shape [2, E] (sources, destinations) or "
               "[E, 2]"));
  }
  if (shape[0] == 2 && shape[1] == 2) {
    LogWarning(
        "shape [2, 2] is read as [2, E], sources in the first row and "
        "destinations in the second\nif each row is meant to be an edge, save "
        "the transposed array",
        {{"file", name}});
  }
  return shape[0] == 2;
}

}  // namespace millrace
