#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests type_names_check.py on small trees of C++ files."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("type_names_check.py")


def check(*files):
    """Runs the check over files of these texts; returns status and output."""
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(files):
            pathlib.Path(folder, f"{number}.h").write_text(text)
        done = subprocess.run([sys.executable, "-B", CHECK, folder], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


class TypeNamesCheckTest(unittest.TestCase):
    def assert_duplicate(self, name, *files):
        status, output = check(*files)
        self.assertEqual(status, 1, output)
        self.assertIn(f"{name} is defined 2 times", output)

    def assert_none(self, *files):
        self.assertEqual(check(*files), (0, ""))

    def test_finds_each_kind_of_type(self):
        for kind in ("struct", "class", "union", "enum", "enum class",
                     "template <typename T> class",
                     "template <int N, bool = (N > 3)>\nclass [[nodiscard]]",
                     "template <template <class> class T> struct alignas(8)",
                     "class CAPABILITY(\"mutex\") EXPORTED"):
            with self.subTest(kind):
                self.assert_duplicate("a::X", f"namespace a {{ {kind} X {{}}; }}",
                                      "namespace a {\nstruct X {\n};\n}\n")

    def test_finds_types_with_bases(self):
        self.assert_duplicate(
            "a::X", "namespace a { class X final : public B<int> {}; }",
            "namespace a { enum X : uint8_t { k }; }")

    def test_finds_nested_types_and_namespaces(self):
        self.assert_duplicate(
            "a::b::X::Y", "namespace a::b { class X { public: struct Y {}; }; }",
            "namespace a { namespace b { struct X::Y {}; } }")

    def test_finds_types_after_other_code(self):
        before = """
            #define BRACE(x) { \\
              struct Hidden { x
            // struct Hidden {
            /* " struct Hidden { */
            #if defined(__x86_64__)
            int f(struct Hidden* h) {
            #else
            int f() {
            #endif
              struct Local {};
              return "{" "\\"{"[0] + '{' + '"' + 10'000 + R"x(")" {)x"[0];
            }
            const std::set<int> numbers{1, 2};
            const auto lambda = [](int) { struct Local {}; return 1; };
            const int sum = add([] { return 1; }(), [] { return 2; }());
            struct Forward;
            extern "C" { void g(); }
            S::S() : a_{1}, b_(2) { f(); }
            """
        self.assert_duplicate("X", before + "struct X {};", "struct X {};")
        self.assert_none(before, before)

    def test_allows_one_name_in_several_scopes(self):
        self.assert_none(
            "struct X {}; namespace a { struct X { struct Y {}; }; }",
            "namespace b { struct X {}; struct Z { struct Y {}; }; }")

    def test_allows_types_that_no_other_file_sees(self):
        local = """
            namespace a { namespace {
              struct X {}; namespace b { class Y {}; }
            } }
            void f() { struct Z {}; }
            struct { int i; struct W {}; } variable;
            """
        self.assert_none(local, local + "namespace a { struct X {}; }")

    def test_allows_declarations(self):
        declared = """
            class X; enum class E : int; template <typename T> class T1;
            struct X* make(); struct X variable = {}; friend class X;
            """
        self.assert_none(declared, declared + "class X {}; enum class E : int {};")

    def test_tells_specializations_apart(self):
        self.assert_none("template <typename T> struct X {};",
                         "template <> struct X<int> {};",
                         "template <typename T> struct X<T*> {};")
        self.assert_duplicate("X<int>", "template <> struct X<int> {};",
                              "template <> struct X<int> { int i; };")

    def test_names_both_places(self):
        _, output = check("struct X {};", "\n\nstruct X\n{};")
        self.assertRegex(output, r"/0\.h:1, .*/1\.h:4\n")


if __name__ == "__main__":
    unittest.main()
