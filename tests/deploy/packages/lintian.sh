#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the system: lintian finds no error and no warning. It takes minutes for
# LibTorch, in millrace-train, which is left out here.
. "$(dirname "$0")/lib.sh"
cd /srv/debs
lintian --allow-root --fail-on error,warning millrace_*.deb \
  millrace-server_*.deb libmillrace-dev_*.deb
