# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Common beginning of the scripts that packages_test.sh runs in the system.
set -euxo pipefail

# never COMMAND...: fails if the command succeeds. (`! COMMAND` would be ignored.)
never() {
  if "$@"; then exit 1; fi
}
