// SPDX-License-Identifier: Apache-2.0
// Operations of which floats have their own kind; packed floats are computed
// half by half.
#pragma once

#include <cstdint>

#include "tests/ptxemu/instruction.h"

namespace millrace::ptxemu {

uint64_t AddFloats(const Instruction& in, const Sources& s);
uint64_t SubtractFloats(const Instruction& in, const Sources& s);
uint64_t MultiplyFloats(const Instruction& in, const Sources& s);
uint64_t DivideFloats(const Instruction& in, const Sources& s);
uint64_t FusedMultiplyAdd(const Instruction& in, const Sources& s);
uint64_t MinOfFloats(const Instruction& in, const Sources& s);
uint64_t MaxOfFloats(const Instruction& in, const Sources& s);
uint64_t AbsoluteFloat(const Instruction& in, const Sources& s);
uint64_t NegateFloat(const Instruction& in, const Sources& s);
uint64_t CopySign(const Instruction& in, const Sources& s);
uint64_t SquareRoot(const Instruction& in, const Sources& s);
uint64_t ReciprocalSquareRoot(const Instruction& in, const Sources& s);
uint64_t Reciprocal(const Instruction& in, const Sources& s);
uint64_t PowerOfTwo(const Instruction& in, const Sources& s);
uint64_t LogarithmOfTwo(const Instruction& in, const Sources& s);
uint64_t Sine(const Instruction& in, const Sources& s);
uint64_t Cosine(const Instruction& in, const Sources& s);
uint64_t HyperbolicTangent(const Instruction& in, const Sources& s);

}  // namespace millrace::ptxemu
