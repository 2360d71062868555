// SPDX-License-Identifier: Apache-2.0
// The words by which users know fields: the names of options, which messages
// (client/flags) and the identity of a training run (client/train/run) use too.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

// Returns the word for a field, such as "batch-size" for "batch_size".
// Checkpoints contain the words for the trainer's fields, so these must not
// change as long as old checkpoints are read.
std::string WordOfField(std::string_view field);
// Returns the field that a word is for.
std::string FieldOfWord(std::string_view word);

}  // namespace millrace
