// SPDX-License-Identifier: Apache-2.0
// Text files of triples (head, relation, tail) as tables.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/table/row_source.h"

namespace millrace {

// Maps the fields of one kind ("entity", "relation") to numbers. The fields are
// either numbers below a declared count, or names, which are numbered in the
// order in which they are added.
// Any thread may use it once all names have been added.
class Numbering {
 public:
  // For fields that are names.
  explicit Numbering(std::string kind);
  // For fields that are numbers from 0 to count - 1, as declared by the file
  // `declared_by`.
  Numbering(std::string kind, int64_t count, std::string declared_by);
  Numbering(const Numbering&) = delete;
  Numbering& operator=(const Numbering&) = delete;

  // Gives the next number to a new name. Does nothing if fields are numbers.
  void Add(std::string_view field);
  // INVALID_ARGUMENT: the field is not a name that was added, or not a number
  // below the count.
  absl::StatusOr<int64_t> Find(std::string_view field) const;

  int64_t count() const {
    return named_ ? static_cast<int64_t>(names_->size()) : count_;
  }
  // The names by number; shared with the code that writes them to a file.
  std::shared_ptr<const std::deque<std::string>> names() const {
    return names_;
  }

 private:
  const std::string kind_;
  const bool named_;
  const int64_t count_ = 0;
  const std::string declared_by_;
  std::shared_ptr<std::deque<std::string>> names_;  // shared with readers
  // The keys are views into names_, which never moves its elements.
  absl::flat_hash_map<absl::string_view, int64_t> numbers_;
};

using Triple = std::array<int64_t, 3>;  // head, relation, tail

// A file of triples. Copies share the numberings, since all tables of the file
// read them.
struct TripleFile {
  std::filesystem::path path;
  char separator = ',';                    // ' ' means any number of blanks
  std::array<int, 3> columns = {0, 1, 2};  // columns of head, relation and tail
  std::shared_ptr<Numbering> entities, relations;
  int64_t rows = 0;
};

// Guesses the separator from the first line: a tab if it has one, otherwise
// commas or blanks, whichever gives three fields. INVALID_ARGUMENT: neither
// does.
absl::StatusOr<char> FindSeparator(const std::filesystem::path& path);

// Reads the whole file to check it, add its names and set `rows`.
// INVALID_ARGUMENT: a line is not a triple; the message names file and line.
absl::Status ScanTriples(TripleFile& file);

// The numbers of a triple that a table holds, and an offset to add to them.
struct TripleView {
  int width = 0;
  std::array<int, 2> places = {0, 0};  // indices into Triple
  int64_t offset = 0;
};

// The rows of a scanned file.
std::shared_ptr<const RowSource> TripleRows(const TripleFile& file,
                                            const TripleView& view);

}  // namespace millrace
