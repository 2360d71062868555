// SPDX-License-Identifier: Apache-2.0
// How users call fields: the words of options, which messages
// (client/flags) and the identity of a training run (client/train/run) have
// too.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

// The word of a field, such as "batch-size" of "batch_size". Checkpoints have
// the words of the trainer's fields in them, which may not change as long as
// these are read.
std::string WordOfField(std::string_view field);
// The field with this word.
std::string FieldOfWord(std::string_view word);

}  // namespace millrace
