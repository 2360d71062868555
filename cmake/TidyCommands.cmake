# SPDX-License-Identifier: Apache-2.0
# cmake -D FROM=DIR -D TO=DIR -P TidyCommands.cmake: copies DIR's compile
# commands without the precompiled headers.
file(READ ${FROM}/compile_commands.json commands)
string(REGEX REPLACE
  " -Winvalid-pch( -Xclang -include-pch -Xclang [^ ]*)?( -Xclang)? -include( -Xclang)? [^ ]*/cmake_pch\\.hxx" ""
  commands "${commands}")
file(WRITE ${TO}/compile_commands.json "${commands}")
