#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes base/monitoring/prometheusrule.yaml: the rules of
deploy/prometheus/alerts.yml as the Prometheus operator takes them.

  deploy/kubernetes/make_prometheusrule.py [--check]

With --check it writes nothing, and exits with 1 if the file is not up to date.
"""
import argparse
import pathlib
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
RULES = HERE.parent / "prometheus/alerts.yml"
OUTPUT = HERE / "base/monitoring/prometheusrule.yaml"
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Made by make_prometheusrule.py from deploy/prometheus/alerts.yml; change that.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: millrace
  labels:
    app.kubernetes.io/part-of: millrace
spec:
"""


def prometheus_rule():
    _, groups, rules = RULES.read_text().partition("groups:\n")
    return HEAD + textwrap.indent(groups + rules, "  ")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        OUTPUT.write_text(prometheus_rule())
    elif OUTPUT.read_text() != prometheus_rule():
        sys.exit(f"{OUTPUT} is out of date; run {__file__}")


if __name__ == "__main__":
    main()
