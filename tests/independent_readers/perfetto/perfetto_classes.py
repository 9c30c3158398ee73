"""Perfetto's own protobuf classes, from PyPI's `perfetto` (tried with 0.59.1)."""

import os
import sys

SKIPPED = 77


def perfetto_classes():
    """The module of the classes. The interpreter is the one that SPANPROF_PERFETTO_PYTHON names, or that of the
    virtual environment which `./dev` makes, or this one: the program begins anew in it. Exit code 77 (skipped) if
    the classes are not there."""
    other = os.environ.get("SPANPROF_PERFETTO_PYTHON")
    if other is None:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        other = os.path.join(cache, "spanprof", "decoders", "bin", "python")
        if not os.path.exists(other):
            other = ""
    if other and os.path.abspath(other) != os.path.abspath(sys.executable):
        os.environ["SPANPROF_PERFETTO_PYTHON"] = ""  # once is enough
        os.execv(other, [other] + sys.argv)
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
    except ImportError as missing:
        print("skipped:", missing, "(pip install perfetto==0.59.1)")
        sys.exit(SKIPPED)
    return protos
