"""What the SDK raises, each kind of trouble under a name of its own.

Everything derives from ``FairleadError``. A task that fails is no error: it is a ``TaskResult``. Bad arguments are
``ValueError``: they are found before anything is sent.
"""


class FairleadError(Exception):
    """The parent of every error of the SDK."""


class MasterUnreachable(FairleadError):
    """No master answered at this address in the time allowed; the text names the address and the last cause.

    Attributes:
        address: where it should be.
        cause: the last one, in the network's words.
    """

    def __init__(self, address: str, cause: str, *, was_there: bool = False) -> None:
        """Args: as the attributes, and whether it had answered before; if not, the text says how to start one."""
        hint = "" if was_there else "; is it running? `fairlead up` starts one on this host"
        super().__init__(f"no master at {address}: {cause}{hint}")
        self.address = address
        self.cause = cause


class Refused(FairleadError):
    """The master answered no; the text is the master's own, naming the field, what was expected and what came.

    Attributes:
        code: the closed-list name of the refusal, such as ``INVALID``, ``UNAUTHORIZED``, ``LIMIT``, ``UNKNOWN``.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code.lower()}: {detail}" if detail else code.lower())
        self.code = code
        self.detail = detail


class Infeasible(Refused):
    """No registered agent is large enough for a demand, so that waiting would not help.

    Attributes:
        class_id: the demand class, as named in the demand.
        best_agent: the id of the agent that comes nearest; empty if the constraints exclude all.
        missing: resource name to what that agent lacks in total: cpus, gpus and custom kinds in thousandths,
            mem and disk in bytes.
    """

    def __init__(self, detail: str, *, class_id: str, best_agent: str, missing: dict[str, int]) -> None:
        super().__init__("INFEASIBLE", detail)
        self.class_id = class_id
        self.best_agent = best_agent
        self.missing = missing


class FrameworkExpired(FairleadError):
    """The framework id is unknown to the master: expired, torn down, or never given. Start anew without one."""


class Superseded(FairleadError):
    """A newer session holds this framework id; this one is over."""


class Closed(FairleadError):
    """The framework was closed before this task was over."""


class LinkBroken(FairleadError):
    """The stream to the master ended or broke a rule; the session goes on over a new one.

    Raised by transports and caught by the client; an application never sees it.
    """
