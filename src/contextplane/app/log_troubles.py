"""Everything that is wrong with a log that cannot be packed, told together: its JSON, its form and its contents.

Nobody comes here with a log that is packed. What was found to be wrong first decides what kind of error it is.
"""

from contextplane.adapters.files.sources import FileSources
from contextplane.errors import ContextPlaneError
from contextplane.model.execution_log import ExecutionLog, InvalidLog
from contextplane.model.json_cut import Buffer
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.log_reader import read_so_far
from contextplane.model.problems import Problem, elsewhere, told_with
from contextplane.record.contents import content_problems

__all__ = ["whole_trouble"]


def whole_trouble(error: JsonRefused | InvalidLog, data: Buffer, sources: FileSources) -> JsonRefused | InvalidLog:
    """The same error with whatever else is wrong with the log, as far as it can be read.

    Of a place that is named already, and of what is below it, nothing more is said: what stands there is not known.
    """
    read = read_so_far(data)
    if read is None:
        return error
    log, form = read
    found = [*form, *_evidence_problems(log), *content_problems(log.contents(), sources)]
    if isinstance(error, JsonRefused):
        return told_with(error, found)
    return InvalidLog((*error.problems, *elsewhere(found, [one.at for one in error.problems])))


def _evidence_problems(log: ExecutionLog) -> tuple[Problem, ...]:
    if all(one.content.how != "handoff" for one in log.inputs):
        return ()
    from contextplane.app.evidence import looked_up

    try:
        looked_up(log)
    except InvalidLog as error:
        return error.problems
    except ContextPlaneError:
        pass  # where there are no handoff packs at all, whoever mends the rest is told
    return ()
