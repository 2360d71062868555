// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/file/npy.h"

namespace millrace {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kDataAlignment = 64;
constexpr size_t kMaxDimensions = 32;  // NumPy's limit before version 2

std::string Escaped(std::string_view bytes) {
  return absl::CHexEscape({bytes.data(), bytes.size()});
}

struct Fields {
  std::string descr;  // empty until seen
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// Reads the header's Python literal, a dict like
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// with any order and spacing. Every method moves past what it accepts.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : rest_(text) {}

  absl::StatusOr<Fields> Read() {
    Fields fields;
    MILLRACE_RETURN_IF_ERROR(Expect('{'));
    while (!Accept('}')) {
      MILLRACE_RETURN_IF_ERROR(ReadMember(fields));
      if (Accept(',')) continue;
      MILLRACE_RETURN_IF_ERROR(Expect('}'));
      break;
    }
    SkipSpace();
    if (!rest_.empty()) return Error("text after the dictionary");
    if (fields.descr.empty() || !fields.fortran_order || !fields.shape) {
      return Error("'descr', 'fortran_order' or 'shape' is missing");
    }
    return fields;
  }

 private:
  static absl::Status Error(std::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("bad npy header: ", std::string(what)));
  }

  void SkipSpace() {
    const size_t begin = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(std::min(begin, rest_.size()));
  }

  bool Accept(char expected) {
    SkipSpace();
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool AcceptWord(std::string_view word) {
    SkipSpace();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  absl::Status Expect(char expected) {
    if (Accept(expected)) return absl::OkStatus();
    return Error(absl::StrCat("expected '", std::string(1, expected), "' at '",
                              Escaped(rest_.substr(0, 20)), "'"));
  }

  absl::StatusOr<std::string> ReadString() {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) {
      return Error("expected a string; structured dtypes are not supported");
    }
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return Error("unterminated string");
    std::string value(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return value;
  }

  absl::StatusOr<int64_t> ReadNumber() {
    SkipSpace();
    int64_t number = 0;
    size_t digits = 0;
    for (; digits < rest_.size(); ++digits) {
      const int digit = rest_[digits] - '0';
      if (digit < 0 || digit > 9) break;
      if (__builtin_mul_overflow(number, 10, &number) ||
          __builtin_add_overflow(number, digit, &number)) {
        return Error("a dimension exceeds 63 bits");
      }
    }
    if (digits == 0) return Error("a dimension is not a whole number");
    rest_.remove_prefix(digits);
    AcceptWord("L");  // Python 2 wrote 3L
    return number;
  }

  absl::StatusOr<std::vector<int64_t>> ReadShape() {
    std::vector<int64_t> shape;
    MILLRACE_RETURN_IF_ERROR(Expect('('));
    while (!Accept(')')) {
      if (shape.size() == kMaxDimensions) return Error("over 32 dimensions");
      MILLRACE_ASSIGN_OR_RETURN(const int64_t size, ReadNumber());
      shape.push_back(size);
      if (Accept(',')) continue;
      MILLRACE_RETURN_IF_ERROR(Expect(')'));
      break;
    }
    return shape;
  }

  absl::Status ReadMember(Fields& fields) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string key, ReadString());
    MILLRACE_RETURN_IF_ERROR(Expect(':'));
    if (key == "descr" && fields.descr.empty()) {
      MILLRACE_ASSIGN_OR_RETURN(fields.descr, ReadString());
    } else if (key == "fortran_order" && !fields.fortran_order) {
      fields.fortran_order = AcceptWord("True");
      if (!*fields.fortran_order && !AcceptWord("False")) {
        return Error("'fortran_order' is neither True nor False");
      }
    } else if (key == "shape" && !fields.shape) {
      MILLRACE_ASSIGN_OR_RETURN(fields.shape, ReadShape());
    } else {
      return Error(absl::StrCat("unexpected or repeated member '",
                                Escaped(key.substr(0, 40)), "'"));
    }
    return absl::OkStatus();
  }

  std::string_view rest_;
};

// Where the dictionary is in the file, in bytes.
struct Extent {
  size_t begin = 0;
  size_t size = 0;
};

absl::StatusOr<Extent> FindDictionary(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) {
    return absl::InvalidArgumentError("not a .npy file: the magic is missing");
  }
  if (bytes.size() < 10) {
    return absl::InvalidArgumentError("bad npy header: truncated");
  }
  const int major = static_cast<unsigned char>(bytes[6]);
  const int minor = static_cast<unsigned char>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("npy format ", major, ".", minor,
                     " is unknown; 1.0, 2.0 and 3.0 are supported"));
  }
  Extent extent = {.begin = major == 1 ? size_t{10} : size_t{12}};
  if (bytes.size() < extent.begin) {
    return absl::InvalidArgumentError("bad npy header: truncated");
  }
  for (size_t i = extent.begin; i-- > 8;) {
    extent.size = extent.size << 8 | static_cast<unsigned char>(bytes[i]);
  }
  if (extent.size > bytes.size() - extent.begin) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bad npy header: truncated, it should have ", extent.size, " bytes"));
  }
  return extent;
}

absl::StatusOr<DType> ResolveDType(const std::string& descr, DType real_dtype) {
  if (real_dtype == DType::kBFloat16 && descr == NpyDescr(real_dtype)) {
    return real_dtype;
  }
  // A single byte has no byte order; "<u1" means the same as "|u1".
  std::string plain = descr;
  if (plain == "<u1" || plain == "<i1") plain[0] = '|';
  absl::StatusOr<DType> dtype = DTypeFromNpyDescr(plain);
  if (!dtype.ok()) {
    return absl::InvalidArgumentError(dtype.status().message());
  }
  return dtype;
}

absl::StatusOr<int64_t> DataBytes(const NpyHeader& header, size_t item_bytes) {
  auto bytes = static_cast<int64_t>(item_bytes);
  bool overflow = false;
  bool empty = false;
  // A dimension of 0 counts as 1 for the overflow check: the size of a row must
  // be valid even if there are no rows.
  for (const int64_t size : header.shape) {
    empty |= size == 0;
    overflow |=
        __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  }
  if (overflow) {
    return absl::InvalidArgumentError(
        absl::StrCat("bad npy header: shape (",
                     absl::StrJoin(header.shape, ", "), ") is too large"));
  }
  return empty ? 0 : bytes;
}

}  // namespace

absl::StatusOr<NpyHeader> ParseAnyNpyHeader(std::string_view bytes) {
  MILLRACE_ASSIGN_OR_RETURN(const Extent extent, FindDictionary(bytes));
  DictReader reader(bytes.substr(extent.begin, extent.size));
  MILLRACE_ASSIGN_OR_RETURN(Fields fields, reader.Read());
  NpyHeader header;
  header.dtype =
      ResolveDType(fields.descr, DType::kNone).value_or(DType::kNone);
  header.descr = std::move(fields.descr);
  header.fortran_order = *fields.fortran_order;
  header.shape = *std::move(fields.shape);
  header.data_offset = extent.begin + extent.size;
  return header;
}

absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view bytes,
                                         DType real_dtype) {
  MILLRACE_ASSIGN_OR_RETURN(NpyHeader header, ParseAnyNpyHeader(bytes));
  MILLRACE_ASSIGN_OR_RETURN(header.dtype,
                            ResolveDType(header.descr, real_dtype));
  MILLRACE_RETURN_IF_ERROR(DataBytes(header, ItemBytes(header.dtype)).status());
  return header;
}

absl::Status CheckNpySize(const NpyHeader& header, size_t item_bytes,
                          uint64_t file_bytes) {
  MILLRACE_ASSIGN_OR_RETURN(const int64_t bytes, DataBytes(header, item_bytes));
  const uint64_t needed = header.data_offset + static_cast<uint64_t>(bytes);
  if (file_bytes == needed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the file has ", file_bytes, " bytes, but shape (",
                   absl::StrJoin(header.shape, ", "), ") of ", item_bytes,
                   " bytes an element needs ", needed));
}

std::string FormatNpyHeader(DType dtype, const std::vector<int64_t>& shape) {
  std::string dictionary = absl::StrCat(
      "{'descr': '", std::string(NpyDescr(dtype)),
      "', 'fortran_order': False, 'shape': (", absl::StrJoin(shape, ", "),
      shape.size() == 1 ? ",), }" : "), }");
  const size_t used = kMagic.size() + 4 + dictionary.size() + 1;
  dictionary.append((kDataAlignment - used % kDataAlignment) % kDataAlignment,
                    ' ');
  dictionary.push_back('\n');
  std::string header(kMagic);
  header.append({'\1', '\0', static_cast<char>(dictionary.size() & 0xff),
                 static_cast<char>(dictionary.size() >> 8)});
  return header + dictionary;
}

}  // namespace millrace
