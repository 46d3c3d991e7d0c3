"""What users see: names, types, docstrings whose examples run, and the version."""

import ast
import doctest
import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

import fuseline
from fuseline import _native

FOLDER = Path(fuseline.__file__).parent
MODULES = ["fuseline"] + [f"fuseline.{found.name}" for found in pkgutil.iter_modules([str(FOLDER)])]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples_to_run():
    finder = doctest.DocTestFinder()
    examples = [found for name in MODULES for found in finder.find(importlib.import_module(name)) if found.examples]
    assert len(examples) > 10


def test_every_public_name_is_documented():
    for name in fuseline.__all__:
        thing = getattr(fuseline, name)
        if isinstance(thing, type) and thing.__module__.startswith("fuseline"):
            assert thing.__doc__, name
            for attribute, member in vars(thing).items():
                if inspect.isfunction(member) and not attribute.startswith("_"):
                    assert member.__doc__, f"{name}.{attribute}"


def members(node):
    """The names that a class of the stub declares."""
    return {child.name: child for child in node.body if isinstance(child, ast.FunctionDef)}


def test_the_stub_says_what_the_native_module_has():
    stub = ast.parse((FOLDER / "_native.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    native = {name: kind for name, kind in vars(_native).items() if isinstance(kind, type)}
    assert classes.keys() == native.keys()
    given = {"__new__", "__doc__", "__module__"}
    for name, node in classes.items():
        declared, there = members(node), vars(native[name]).keys() - given
        assert declared.keys() - given == there, name
        for method, function in declared.items():
            signature = getattr(getattr(native[name], method), "__text_signature__", None)
            is_property = any(getattr(mark, "id", "") == "property" for mark in function.decorator_list)
            if signature is None or is_property or method.startswith("__"):
                continue
            arguments = function.args
            told = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
            listed = signature.strip("()").replace("$self", "self").replace("*args, **kwargs", "")
            names = [part.partition("=")[0].strip() for part in listed.split(",")]
            assert told == [part for part in names if part not in ("", "/", "*")], f"{name}.{method}"
    assert (FOLDER / "py.typed").exists()


def test_the_version_is_that_of_the_workspace():
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert fuseline.__version__ == importlib.metadata.version("fuseline") == cargo["workspace"]["package"]["version"]


def test_the_settings_are_those_of_the_configuration():
    """Every key of the vectors' settings is one here, so that none was forgotten."""
    import json

    first = json.loads((ROOT / "conformance" / "vectors.jsonl").open().readline())
    assert first["breaker"].keys() <= fuseline.Settings.__annotations__.keys()


@pytest.mark.long
def test_the_type_checker_passes_what_users_write_and_refuses_mistakes():
    uses = Path(__file__).with_name("uses.py")
    options = ["--strict", "--warn-unused-ignores", "--cache-dir", os.devnull]
    told = subprocess.run([sys.executable, "-m", "mypy", *options, str(uses)], capture_output=True, text=True)
    assert told.stdout.startswith("Success"), told.stdout
