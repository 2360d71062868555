#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the system: lintian finds no error and no warning.
. "$(dirname "$0")/lib.sh"
cd /srv/debs
lintian --allow-root --fail-on error,warning millrace_*.deb \
  millrace-server_*.deb millrace-train_*.deb libmillrace-dev_*.deb
