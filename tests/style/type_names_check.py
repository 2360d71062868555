#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each type is defined only once.

  tests/style/type_names_check.py [FOLDER]...

Two types with the same name in one program violate the one-definition rule: the
linker uses the destructor of one of them for both, and neither it nor the
compiler reports it. Reads the C++ files below the FOLDERs (default: all code
that is linked together) and reports each struct, class, union or enum,
including nested ones, that is defined twice in a namespace. Types in anonymous
namespaces and in functions are invisible elsewhere and may repeat. Exits with 1
if it finds a duplicate."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["common", "server", "client", "tests/support"]
SUFFIXES = {".h", ".cc", ".cpp", ".cu", ".cuh"}
CLASS_KEYS = {"struct", "class", "union", "enum"}
ACCESS = (["public", ":"], ["protected", ":"], ["private", ":"])
LOCAL = None  # the scope of names that no other file sees

COMMENT_OR_LITERAL = re.compile(
    r"""
    //(?:\\\n|[^\n])* | /\*.*?\*/
  | (?:u8|[uUL])?R"(?P<end>[^()\\\s]*)\(.*?\)(?P=end)"
  | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
  | (?<![0-9a-fA-F])(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'  # not the ' of 10'000
    """, re.DOTALL | re.VERBOSE)
TOKEN = re.compile(r"[A-Za-z_]\w*|::|\d[\w.']*|\S")


def code_lines(text):
    """Yields (number, line) without comments, literals and directives.

    Reads only the first branch of a conditional: the others define the same
    types for other platforms.
    """
    text = COMMENT_OR_LITERAL.sub(
        lambda match: "\n" * match.group().count("\n") or " ", text)
    later_branch = []  # whether each open conditional is in one
    continued = False  # whether this line belongs to a directive before it
    for number, line in enumerate(text.split("\n"), 1):
        directive = re.match(r"\s*#\s*(\w*)", line)
        if directive or continued:
            continued = line.endswith("\\")
        elif not any(later_branch):
            yield number, line
        if not directive:
            continue
        if directive[1].startswith("if"):
            later_branch.append(False)
        elif directive[1].startswith("el"):
            later_branch[-1] = True
        elif directive[1] == "endif":
            later_branch.pop()


def without_template_heads(tokens):
    """Drops each `template <...>`."""
    out = []
    angles = parentheses = 0
    in_head = False
    for token in tokens:
        if token == "template" and not in_head:
            in_head = True
        elif in_head:
            parentheses += (token == "(") - (token == ")")
            if parentheses == 0:  # the ">" of "(a > b)" closes nothing
                angles += (token == "<") - (token == ">")
            in_head = angles > 0
        else:
            out.append(token)
    return out


def without_attributes(tokens):
    """Drops [[...]], and what has arguments: alignas(...), macros."""
    out = []
    depth = 0
    for token in tokens:
        if token == "(" and depth == 0 and out:
            out.pop()
        depth += (token in "([") - (token in ")]")
        if depth == 0 and token not in ")]":
            out.append(token)
    return out


def type_name(head):
    """The name of the type that `head`, the tokens before a brace, defines.

    LOCAL if it defines none, or one without a name.
    """
    tokens = without_template_heads(head)
    keys = [i for i, token in enumerate(tokens) if token in CLASS_KEYS]
    if (not keys or "(" in tokens[:keys[0]] or "=" in tokens or
            tokens[-1] == ")"):
        return LOCAL  # a function or a variable
    name = []
    for token in without_attributes(tokens[keys[0] + 1:]):
        if token in (":", "final"):
            break
        # After a word without "::", it was "class" of "enum class" or a macro.
        if name and token[0].isidentifier() and name[-1][0].isidentifier():
            name = []
        name.append(token)
    return "".join(name) or LOCAL


def scope_name(head):
    """The name of the namespace or type whose brace follows `head`.

    "" for a scope that adds none to names, LOCAL for any other.
    """
    if "namespace" in head:
        name = without_attributes(head[head.index("namespace") + 1:])
        return "".join(name) or LOCAL
    return "" if head == ["extern"] else type_name(head)


def definitions(text):
    """Yields (qualified name, line) of the types that `text` defines."""
    scopes = []
    head = []  # the tokens of the declaration so far
    parentheses = 0
    for number, line in code_lines(text):
        for token in TOKEN.findall(line):
            parentheses += (token == "(") - (token == ")")
            if token == "{":
                local = parentheses > 0 or LOCAL in scopes
                scopes.append(LOCAL if local else scope_name(head))
                if scopes[-1] and "namespace" not in head:
                    yield "::".join(filter(None, scopes)), number
                head = []
            elif token == "}":
                scopes.pop()
                head = []
            elif token == ";" and parentheses == 0:
                head = []
            else:
                head.append(token)
                if head in ACCESS:
                    head = []


def duplicates(files):
    """Maps each name that is defined twice to its places, "FILE:LINE"."""
    places = collections.defaultdict(list)
    for file in files:
        for name, line in definitions(file.read_text(encoding="utf-8")):
            places[name].append(f"{file}:{line}")
    return {name: where for name, where in places.items() if len(where) > 1}


def main():
    folders = [pathlib.Path(folder) for folder in sys.argv[1:]] or [
        ROOT / folder for folder in FOLDERS]
    files = sorted(file for folder in folders for file in folder.rglob("*")
                   if file.suffix in SUFFIXES)
    if not files:
        sys.exit(f"no C++ files below {', '.join(map(str, folders))}")
    found = duplicates(files)
    for name, where in sorted(found.items()):
        print(f"{name} is defined {len(where)} times: {', '.join(where)}\n"
              "  rename one, or put it into an anonymous namespace")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
