"""docs/errata.md says where each example of the papers is tested: that these files are there, and that none is left out."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")


def test_the_files_it_names_exist() -> None:
    named = re.findall(r"tests/\w+/\w+\.py", TEXT)

    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_all_tests_of_the_papers_are_named() -> None:
    files = {f"tests/papers/{path.name}" for path in Path(__file__).parent.glob("test_*.py")}

    assert [
        path for path in sorted(files) if path not in TEXT and path != "tests/papers/test_errata.py"
    ] == []
