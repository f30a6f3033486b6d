"""Loops in C, called through ctypes. Where they cannot be compiled, they run in torch and numpy.

They use nothing of Python's, so that one library and one wheel serve every version of Python on a platform.
Windows is left out: its compiler has no vector extensions.
"""

import sys
from importlib.machinery import EXTENSION_SUFFIXES

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

LOOPS = [
    Extension(
        "bcn.layers.fused._pooled",
        ["bcn/layers/fused/csrc/pooled.c"],
        depends=["bcn/layers/fused/csrc/tiles.h", "bcn/layers/fused/csrc/passes.h"],
        extra_compile_args=["-O3", "-ffp-contract=fast", "-Wno-psabi"],
        optional=True,
    ),
    Extension(
        "bcn.layers.fused._resample",
        ["bcn/layers/fused/csrc/resample.c"],
        extra_compile_args=["-O3"],
        optional=True,
    ),
]


class BuildLibrary(build_ext):
    """Names a library without the version of Python."""

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + EXTENSION_SUFFIXES[-1]


class PlatformWheel(bdist_wheel):
    """A wheel for any Python 3 on this platform; for any platform where it has no library."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


setup(
    ext_modules=[] if sys.platform == "win32" else LOOPS,
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": PlatformWheel},
)
