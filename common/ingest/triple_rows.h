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
#include "common/ingest/row_source.h"

namespace millrace {

// What the fields of one kind ("entity", "relation") stand for: numbers below
// a declared count, or names, numbered in the order in which they were added.
// Any thread, once all is added.
class Numbering {
 public:
  // Names.
  explicit Numbering(std::string kind);
  // Numbers from 0 to count - 1, as the file `declared_by` says.
  Numbering(std::string kind, int64_t count, std::string declared_by);
  Numbering(const Numbering&) = delete;
  Numbering& operator=(const Numbering&) = delete;

  // Numbers a name that is new; nothing where fields are numbers.
  void Add(std::string_view field);
  // INVALID_ARGUMENT: says what is wrong with the field.
  absl::StatusOr<int64_t> Find(std::string_view field) const;

  int64_t count() const {
    return named_ ? static_cast<int64_t>(names_->size()) : count_;
  }
  // By number. Shared with those who write them down.
  std::shared_ptr<const std::deque<std::string>> names() const {
    return names_;
  }

 private:
  const std::string kind_;
  const bool named_;
  const int64_t count_ = 0;
  const std::string declared_by_;
  std::shared_ptr<std::deque<std::string>> names_;
  // Views of names_, which never moves them.
  absl::flat_hash_map<absl::string_view, int64_t> numbers_;
};

using Triple = std::array<int64_t, 3>;  // head, relation, tail

// A file of triples. Copies share the numberings: all tables of it read them.
struct TripleFile {
  std::filesystem::path path;
  char separator = ',';                    // ' ': any number of blanks
  std::array<int, 3> columns = {0, 1, 2};  // of head, relation, tail
  std::shared_ptr<Numbering> entities, relations;
  int64_t rows = 0;
};

// Guesses the separator by the first line: a tab if there is one, else commas
// or blanks, whichever makes three fields.
absl::StatusOr<char> FindSeparator(const std::filesystem::path& path);

// Reads all of the file to check it, to add names and to count the rows.
// INVALID_ARGUMENT: a line that is no triple; names file and line.
absl::Status ScanTriples(TripleFile& file);

// Which numbers of a triple a table holds, and what is added to them.
struct TripleView {
  int width = 0;
  std::array<int, 2> places = {0, 0};  // in Triple
  int64_t offset = 0;
};

// The rows of a scanned file.
std::shared_ptr<const RowSource> TripleRows(const TripleFile& file,
                                            const TripleView& view);

}  // namespace millrace
