"""Holds every output to what was kept: `python -m tests.goldens`, with --update to keep what comes now.

CONTRIBUTING.md says when a kept output may change.
"""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# One thread, so that a fork finds no others, and sums of floats have one order.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tests.goldens.cases import GROUPS_NEEDING_TRACES, all_cases
from tests.goldens.recorded import difference, text_of
from tests.goldens.running import Case, run_all, traces_folder

EXPECTED: Final = Path(__file__).parent / "expected"


def main(words: Sequence[str] | None = None) -> int:
    """Check or update; the exit code is 1 if anything differs."""
    given = _arguments(words)
    chosen = [case for case in all_cases() if _is_chosen(case, given)]
    skipped = [case for case in chosen if case.group in GROUPS_NEEDING_TRACES and traces_folder() is None]
    if skipped:
        chosen = [case for case in chosen if case not in skipped]
        print(
            f"goldens: SKIPPED {len(skipped)} cases: the traces are not there; FAIRLEAD_TRACES names their folder"
        )
    _import_what_is_slow()
    kept = {group: _read(group) for group in dict.fromkeys(case.group for case in all_cases())}
    differing = 0
    for case, left in run_all(chosen, processes=given.processes, keep=given.keep):
        text = text_of(case.command, left)
        former = kept[case.group].get(case.command)
        if former == text:
            continue
        differing += 1
        if given.update:
            kept[case.group][case.command] = text
        elif former is None:
            print(f"goldens: {case.group}: $ {case.command}\nnothing is kept of it\n")
        else:
            print(f"goldens: {case.group}: $ {case.command}\n{difference(former, text, left)}\n")
    differing += _forget(kept, is_update=given.update)
    if given.update:
        for group, texts in kept.items():
            if texts != _read(group):
                _write(group, texts)
        print(
            f"goldens: {len(chosen)} outputs looked at, {differing} kept anew: see `git diff tests/goldens/expected`"
        )
        return 0
    print(f"goldens: {len(chosen)} commands, {differing or 'none'} differ" + _advice(differing))
    return 1 if differing else 0


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.goldens", description=__doc__)
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="only groups of that name and commands that contain it"
    )
    parser.add_argument("--update", action="store_true", help="keep what comes now")
    parser.add_argument("--quick", action="store_true", help="only what takes a moment")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="write all that is produced into a folder, to compare two"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="commands at a time")
    return parser.parse_args(words)


def _is_chosen(case: Case, given: argparse.Namespace) -> bool:
    if given.quick and not case.is_quick:
        return False
    return not given.words or any(word == case.group or word in case.command for word in given.words)


def _import_what_is_slow() -> None:
    """Import before the forks what nearly every case would import again."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure
    import numpy  # noqa: ICN001

    import fairlead_cli.printing
    import fairlead_lab.papers.catalogue
    import fairlead_lab.study.report
    import fairlead_lab.study.study

    del matplotlib, numpy, fairlead_cli, fairlead_lab
    gc.freeze()


def _read(group: str) -> dict[str, str]:
    """Command to text, as kept."""
    path = EXPECTED / f"{group}.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    cases = ("$ " + each for each in f"\n{text}".split("\n$ ")[1:])
    return {each.partition("\n")[0][2:]: each.rstrip("\n") + "\n" for each in cases}


def _write(group: str, kept: dict[str, str]) -> None:
    order = [case.command for case in all_cases() if case.group == group]
    text = "\n".join(kept[command] for command in order if command in kept)
    (EXPECTED / f"{group}.txt").write_text(text, encoding="utf-8")


def _forget(kept: dict[str, dict[str, str]], *, is_update: bool) -> int:
    """What is kept of commands that are not asked any more; gives how many they are."""
    asked = {(case.group, case.command) for case in all_cases()}
    left_over = [
        (group, command)
        for group, texts in kept.items()
        for command in texts
        if (group, command) not in asked
    ]
    for group, command in left_over:
        if is_update:
            del kept[group][command]
        else:
            print(f"goldens: {group}: $ {command}\nis kept, and is no case any more\n")
    return len(left_over)


def _advice(differing: int) -> str:
    if not differing:
        return ""
    return (
        ". Meant? `make goldens-update`, with an erratum or a line in CHANGELOG.md in the same commit."
        "\nTo see all of a difference: `python -m tests.goldens --keep DIR WORD` here and on the commit before, then `diff -r`."
    )


if __name__ == "__main__":
    sys.exit(main())
