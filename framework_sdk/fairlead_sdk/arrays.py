"""Arrays: tasks that differ by an index, and perhaps by an argument; each is made when its turn comes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import repeat
from operator import index as as_integer
from typing import Final, SupportsIndex

from fairlead_proto import fields
from fairlead_proto.ids import TaskId
from fairlead_proto.limits import ARRAY_INDEX_MAX, COMMAND_BYTES_MAX
from fairlead_proto.tasks import ArrayMember, has_place
from fairlead_sdk.errors import FairleadError
from fairlead_sdk.task import ATTEMPT_SUFFIX_LENGTH, Task

MEMBER_SUFFIX_LENGTH: Final = ATTEMPT_SUFFIX_LENGTH + len(f":{ARRAY_INDEX_MAX}")
"""Room for the index of a member and its attempt below the bound on ids."""


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Tasks that differ by an index alone, or by an index and an argument. All is checked here.

    Each member is the template with ``FAIRLEAD_TASK_INDEX`` and ``FAIRLEAD_TASK_COUNT`` in its environment, and the
    task id ``ARRAY:INDEX``. If there are arguments, ``{}`` in the words of the command is the member's argument and ``{#}``
    its index; ``{{}}`` and ``{{#}}`` stand for ``{}`` and ``{#}``.

    Members are made a few thousand ahead of their launch, so that a million take no more memory than those.

    Args:
        template: what the members have in common; its ``task_id``, if it has one, is the array's id.
        over: how many members, with indices from 0; or their indices, as a range or a list; or one argument each, with indices
            from 0. Arguments are taken as they are needed, and checked only then unless they are a sequence, such as a list; if they
            have no length, there is no ``FAIRLEAD_TASK_COUNT``.
        at_once: at most so many members are launched at a time; None is as many as there is room for.

    Raises:
        ValueError: an argument cannot be used; the text names it, what was expected and what came.
    """

    template: Task
    over: int | Sequence[int] | Iterable[str]
    at_once: int | None = None

    indices: Sequence[int] | None = field(init=False, repr=False)
    """Of the members, if they have no arguments."""

    def __post_init__(self) -> None:
        if type(self.template) is not Task:
            raise ValueError(f"template: expected a Task, got {self.template!r}")
        object.__setattr__(self, "indices", _read_indices(self.over))
        if self.indices is None and not has_place(self.template.command):
            raise ValueError(
                f"over: expected a place for the arguments, {{}} or {{#}}, in the command, got {list(self.template.command)}"
            )
        if self.at_once is not None and self.at_once < 1:
            raise ValueError(f"at_once: expected 1 or more, got {self.at_once!r}")
        last = ArrayMember(array_id=TaskId("a"), index=ARRAY_INDEX_MAX, count=ARRAY_INDEX_MAX)
        fields.read_name("name", last.name(self.template.name))
        fields.read_environment("env", last.environment(self.template.env))
        # Not of whatever has a length: what can be gone through only once would have nothing left for the members.
        if self.indices is None and isinstance(self.over, Sequence):
            for index, argument in enumerate(self.over):
                check_argument(f"over: argument {index}", self.template.command, index, _argument(argument))

    @property
    def count(self) -> int | None:
        """How many members there are; None if that is known only when the arguments end."""
        known = self.over if self.indices is None else self.indices
        return len(known) if isinstance(known, Sized) else None

    def check_index(self, index: object) -> None:
        """See that a member has this index, or may come to have it.

        Raises:
            ValueError: none has; the text names it, what was expected and what came.
        """
        count = self.count
        places = (
            self.indices if self.indices is not None else range(ARRAY_INDEX_MAX if count is None else count)
        )
        if not _is_index(index) or index not in places:
            expected = "0 or more" if count is None else f"one of the array's {count} indices"
            raise ValueError(f"index: expected {expected}, got {index!r}")

    def members(self, array_id: str) -> Iterator[ArrayMember]:
        """The members in order, each made when it is asked for.

        Raises:
            ValueError: an argument cannot be used; what the arguments' own iterator raises comes through.
        """
        count = self.count or 0
        numbered: Iterable[tuple[int, str | None]]
        if self.indices is not None:
            numbered = zip(self.indices, repeat(None))
        else:
            assert not isinstance(self.over, int), "a count has indices"
            numbered = enumerate(map(_argument, self.over))
        for index, argument in numbered:
            member = ArrayMember(array_id=TaskId(array_id), index=index, count=count, argument=argument)
            if argument is not None:
                check_argument(f"over: argument {index}", self.template.command, index, argument)
            yield member


def check_argument(field: str, words: Sequence[str], index: int, argument: str) -> None:
    """See that the member with this index can have this argument.

    Args:
        field: names it in the error.
        words: of the array's command, with places for it.
        index: of the member.
        argument: in question.

    Raises:
        ValueError: the member's command would be too long, or not one; the text says what was expected and what came.
    """
    text = "".join(words)
    places = text.count("{}") + text.count("{#}")
    # There may be a million, and most are plain and short: those are known to fit without being put in their places.
    length_max = 4 * len(text) + places * max(len(argument), len(str(ARRAY_INDEX_MAX)))
    if argument.isascii() and "\0" not in argument and length_max <= COMMAND_BYTES_MAX:
        return
    member = ArrayMember(array_id=TaskId("a"), index=index, count=0, argument=argument)
    fields.read_command(field, member.command(words))


def _read_indices(over: int | Sequence[int] | Iterable[str]) -> Sequence[int] | None:
    """Give the indices that are meant; None if arguments are."""
    expected = f"of 0 to {ARRAY_INDEX_MAX}"
    if isinstance(over, int) and not isinstance(over, bool):
        if not 0 <= over <= ARRAY_INDEX_MAX:
            raise ValueError(f"over: expected a count {expected}, got {over}")
        return range(over)
    if isinstance(over, str | bytes | Mapping) or not isinstance(over, Iterable):
        raise ValueError(f"over: expected a count, indices or texts, got {over!r}")  # noqa: TRY004 - one kind of error
    if isinstance(over, range):
        indices: Sequence[int] = over
        ends = (*over[:1], *over[-1:])
    elif isinstance(over, Sequence) and not (over and isinstance(over[0], str)):
        if no_index := [item for item in over if not _is_index(item)]:
            expected = "indices" if _is_index(over[0]) else "indices or texts"
            raise ValueError(f"over: expected {expected}, got {no_index[0]!r}")
        indices = ends = tuple(map(as_integer, over))
        if len(set(indices)) < len(indices):
            raise ValueError("over: expected each index once, got one of them twice")
    else:
        return None
    if strange := [index for index in ends if not 0 <= index <= ARRAY_INDEX_MAX]:
        raise ValueError(f"over: expected indices {expected}, got {strange[0]}")
    return indices


def _is_index(item: object) -> bool:
    """Whether it is an integer, be it one of another library; True and False are meant for something else."""
    return type(item) is int or (isinstance(item, SupportsIndex) and not isinstance(item, bool))


def _argument(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError(f"over: expected texts, got {text!r}")  # noqa: TRY004 - one kind of error
    return text


class Supply:
    """What is left of an array: the members not made yet, and the jobs of those that are not over."""

    def __init__(self, array_id: str, array: Array, *, unix_ms: int) -> None:
        """Args: the array's id, what it is, and when it was submitted."""
        self.array_id = array_id
        self.task = array.template
        self.unix_ms = unix_ms
        self.class_id = ""
        """Of the demand of its members; empty before the first one waits."""
        self.job_ids: dict[str, None] = {}
        self.is_killed = False
        self.error: FairleadError | Exception | None = None
        """Why there are no further members, if that is not their end."""
        self._members = array.members(array_id)
        self._left = array.count
        self._at_once = array.at_once
        self.is_spent = self._left == 0
        """Whether there are no further members."""
        self._doomed: set[int] = set()

    @property
    def is_over(self) -> bool:
        """Whether there are no further members, and no job is left of earlier ones."""
        return self.is_spent and not self.job_ids

    @property
    def is_dying(self) -> bool:
        """Whether there are members left to be ended unmade."""
        return self.is_killed and not self.is_spent

    @property
    def promised(self) -> int:
        """How many further members are certain to come as soon as there is room for them."""
        return (
            0
            if self.is_spent or self.is_killed or not self._left
            else min(self._left, self.allowed(self._left))
        )

    def job_id_of(self, index: int) -> str:
        """The job of the member with this index, be it made or not."""
        return ArrayMember(array_id=TaskId(self.array_id), index=index, count=0).task_id

    def allowed(self, count: int) -> int:
        """How many of so many may be begun now without too many at once."""
        return (
            count
            if self._at_once is None or self.is_killed
            else min(count, self._at_once - len(self.job_ids))
        )

    def next(self) -> ArrayMember | None:
        """Make the next member; None if there is none."""
        if self.is_spent or (self.is_killed and self._left is None):
            # Arguments without end are not gone through for the sake of members that nobody wants.
            self.stop()
            return None
        try:
            member = next(self._members, None)
        except (
            Exception
        ) as error:  # The caller's own iterator; it may raise anything, and only this array ends by it.
            self.stop(error)
            return None
        if member is None:
            self.stop()
        elif self._left is not None:
            self._left -= 1
            self.is_spent = not self._left
        return member

    def stop(self, error: Exception | None = None) -> None:
        """Make no further members."""
        self.is_spent = True
        self.error = self.error or error

    def doom(self, index: int) -> None:
        """Have the member with this index killed when it is made."""
        if not self.is_spent:
            self._doomed.add(index)

    def is_doomed(self, member: ArrayMember) -> bool:
        """Whether this member is to end unlaunched."""
        return self.is_killed or (bool(self._doomed) and member.index in self._doomed)
