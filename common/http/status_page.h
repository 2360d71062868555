// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/http/http_server.h"

namespace millrace {

// The page that shows /status.json of a server or a trainer to people. It loads
// nothing else, and reads that every 2 s.
HttpResponse StatusPage();

// An answer with a JSON text in UTF-8.
HttpResponse StatusJson(std::string json);

}  // namespace millrace
