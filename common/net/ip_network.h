// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>

#include <string>

namespace millrace {

// Names the group of addresses that counts as one client: an IPv4 address such
// as "127.0.0.1", even if it is mapped into IPv6, or an IPv6 network such as
// "2001:db8:1:2::/64", since one client may have all of its addresses.
std::string NetworkOf(const in_addr& address);
std::string NetworkOf(const in6_addr& address);

}  // namespace millrace
