"""A page about a finished run, for whoever trained it: one HTML file that needs no other."""

from bcn.inference.report.write import report_run as report_run
