// SPDX-License-Identifier: Apache-2.0
#include "common/http/status_page.h"

#include <string_view>
#include <utility>

#include "common/base/strings.h"

namespace millrace {
namespace {

#include "status_page.inc"

}  // namespace

HttpResponse StatusPage() {
  HttpResponse response;
  response.type = "text/html; charset=utf-8";
  response.content_security_policy = StrCat(
      "default-src 'none'; script-src '", kScriptHash, "'; style-src '",
      kStyleHash,
      "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action "
      "'none'; frame-ancestors 'none'");
  response.body = kStatusPageHtml;
  return response;
}

HttpResponse StatusJson(std::string json) {
  HttpResponse response;
  response.type = "application/json";
  response.body = std::move(json);
  return response;
}

}  // namespace millrace
