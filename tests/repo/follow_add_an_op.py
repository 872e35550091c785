"""A new contributor's path: follow docs/add-an-op.md to the letter on a copy of the tree.   usage: follow_add_an_op.py [FOLDER]

The page is the program. A step is a paragraph that begins "**1. …**": it names a file, the place ("above the line that starts
with `…`", or "at the end"), and the next block is what goes there. Then the copy is built as the page says, and the op must be
there: in Python (the page's examples), in C (its program), in the stub, in the samples (which are run) and in the reference.
`make contributor-test` runs this; with ccache it takes about a minute, without as long as a build.
"""

import doctest
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/add-an-op.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^\*\*\d+\. .*?(?=^```)", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"`([\w/.]+)`, (?:above the line that starts with `([^`]+)`|(at the end)):")


def steps(text):
    """(file, start of a line or None for the end, code) of each step of the page."""
    for step in STEP.finditer(text):
        place = PLACE.search(step[0])
        if not place:
            raise ValueError(f"this step does not say where its code goes: {step[0][:80]}")
        yield place[1], place[2], BLOCK.search(text, step.end())[2]


def insert(text, start, code):
    """The code above the one line that starts so (blanks count as one), or at the end."""
    if start is None:
        return text + code
    lines = text.splitlines(keepends=True)
    found = [
        i for i, line in enumerate(lines) if " ".join(line.split()).replace(" (", "(").startswith(start.replace(" (", "("))
    ]
    if len(found) != 1:
        raise ValueError(f"{len(found)} lines start with {start!r}")
    return "".join(lines[: found[0]]) + code + "".join(lines[found[0] :])


def copy_tree(folder):
    """The files that git knows, as they are now."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    if (ROOT / ".venv").exists() and not (folder / ".venv").exists():
        (folder / ".venv").symlink_to((ROOT / ".venv").resolve())


def run(folder, *command):
    """The output of a command in the copy; the script ends if it fails."""
    print("+", *command, flush=True)
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"follow_add_an_op: failed: {' '.join(command)}\n{done.stdout[-6000:]}")
    return done.stdout


def check(what, holds):
    if not holds:
        sys.exit(f"follow_add_an_op: {what}: not so")
    print(f"  {what}: yes")


def examples(folder, text, op):
    """The page's examples, run by the copy in a process of its own."""
    page = "\n".join(code for language, code in BLOCK.findall(text) if language == "python" and ">>>" in code)
    wanted = len(doctest.DocTestParser().get_examples(page))
    program = (
        "import doctest, lucid, sys; page = sys.stdin.read(); "
        "test = doctest.DocTestParser().get_doctest(page, {'lucid': lucid}, 'page', 'page', 0); "
        "result = doctest.DocTestRunner().run(test); print(result.attempted - result.failed)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, input=page, capture_output=True, text=True)
    check(f"lucid.{op} gives what the page shows ({wanted} examples)", done.stdout.split()[-1:] == [str(wanted)] or print(done))


def main(folder):
    text = PAGE.read_text()
    op = re.search(r'S\("(\w+)"', text)[1]
    copy_tree(folder)
    touched = []
    for name, start, code in steps(text):
        path = folder / name
        check(f"{name} has no {op} yet", not re.search(rf"\b{op}\b", path.read_text()))
        path.write_text(insert(path.read_text(), start, code))
        touched.append(name)
    check("three files are touched", len(set(touched)) == 3)
    run(folder, "make", "--no-print-directory", "build", f"PYTHON={sys.executable}")
    examples(folder, text, op)
    run(folder, sys.executable, "tools/genstubs.py", "stubs", "build/release")
    check("the stub has it", re.search(rf"^def {op}\(", (folder / "stubs/_C.pyi").read_text(), re.MULTILINE))
    program = next(code for language, code in BLOCK.findall(text) if language == "c" and "int main" in code)
    (folder / "program.c").write_text(program)
    flags = run(folder, sys.executable, "-m", "lucid.config", "--cflags", "--libs").split()
    run(folder, "cc", "-std=gnu11", "-Wall", "-Werror", "program.c", "-o", "program", *flags)
    expected = re.search(r"/\* ([\d.]+) \*/", program)[1]
    check("the C program prints what the page says", run(folder, "./program").split() == [expected])
    told = run(folder, sys.executable, "-m", "pytest", "tests/ops/test_ops.py", "-k", f":{op} or every_op_has")
    check("its samples pass", re.search(r"(\d+) passed", told) and int(re.search(r"(\d+) passed", told)[1]) >= 5)
    run(folder, "make", "--no-print-directory", "c-test", "C_TESTS=test_engine", f"PYTHON={sys.executable}")
    run(folder, "make", "--no-print-directory", "docs", f"PYTHON={sys.executable}")
    pages = [p.read_text() for p in (folder / "build/release/docs/ops").glob("*.md")]
    check("the reference has it", any(f"### {op}\n" in page for page in pages))
    print(f"follow_add_an_op: {op} was added by the page")


if __name__ == "__main__":
    if sys.argv[1:]:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="lucid-add-an-op-") as temporary:
            main(pathlib.Path(temporary))
