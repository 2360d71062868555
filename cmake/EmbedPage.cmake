# SPDX-License-Identifier: Apache-2.0
# Turns an HTML page with one <style> and one <script> into C++: the constants
# kStatusPageHtml, kStyleHash and kScriptHash (of a Content-Security-Policy).
#
#   cmake -DINPUT=page.html -DOUTPUT=page.inc -P EmbedPage.cmake
cmake_minimum_required(VERSION 3.25)
file(READ ${INPUT} page)

# Sets `out` to the text between the first `begin` and the next `end`.
function(text_between out begin end)
  string(FIND "${page}" "${begin}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${INPUT} has no ${begin}")
  endif()
  string(LENGTH "${begin}" skip)
  math(EXPR at "${at} + ${skip}")
  string(SUBSTRING "${page}" ${at} -1 rest)
  string(FIND "${rest}" "${end}" length)
  if(length EQUAL -1)
    message(FATAL_ERROR "${INPUT} has no ${end} after ${begin}")
  endif()
  string(SUBSTRING "${rest}" 0 ${length} text)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# Sets `out` to the SHA-256 of `text` in Base64. Three hexadecimal digits make
# two of Base64; of the 64 digits, one is left, which makes the last.
function(hash_of out text)
  set(digits
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(SHA256 hex "${text}")
  set(base64 "")
  foreach(at RANGE 0 62 3)
    string(SUBSTRING ${hex} ${at} 3 three)
    math(EXPR high "0x${three} >> 6")
    math(EXPR low "0x${three} & 63")
    string(SUBSTRING ${digits} ${high} 1 first)
    string(SUBSTRING ${digits} ${low} 1 second)
    string(APPEND base64 ${first}${second})
  endforeach()
  string(SUBSTRING ${hex} 63 1 one)
  math(EXPR high "0x${one} << 2")
  string(SUBSTRING ${digits} ${high} 1 first)
  set(${out} "sha256-${base64}${first}=" PARENT_SCOPE)
endfunction()

text_between(style "<style>" "</style>")
text_between(script "<script>" "</script>")
hash_of(style_hash "${style}")
hash_of(script_hash "${script}")
file(WRITE ${OUTPUT}
  "// Made by cmake/EmbedPage.cmake.\n"
  "constexpr std::string_view kStyleHash = \"${style_hash}\";\n"
  "constexpr std::string_view kScriptHash = \"${script_hash}\";\n"
  "constexpr std::string_view kStatusPageHtml = R\"page(${page})page\";\n")
