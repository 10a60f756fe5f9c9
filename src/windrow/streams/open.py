"""Policies by name, as users write them: `sr`, `slop:0.2`, `fes:1`, `bf`, `due:2`."""

from collections.abc import Callable, Mapping

from windrow.errors import UserError, unknown_name
from windrow.streams.bf import Backfilling
from windrow.streams.due import DueDates
from windrow.streams.fes import FutureEligibleSets
from windrow.streams.help_texts import POLICY_FORMS
from windrow.streams.policy import Policy
from windrow.streams.slop import ScaledParallelism
from windrow.streams.sr import StrictReservation

_PLAIN: Mapping[str, Callable[[], Policy]] = {
    "bf": Backfilling,
    "due": DueDates,
    "sr": StrictReservation,
    "sr-exact": lambda: StrictReservation(exact=True),
}


def find_policy(text: str) -> Policy:
    """The policy that `text` names. UserError where there is none, or its number cannot be used."""
    name, colon, value = text.strip().lower().partition(":")
    if not colon and name in _PLAIN:
        return _PLAIN[name]()
    try:
        match name:
            case "slop":
                return ScaledParallelism(float(value))
            case "fes":
                return FutureEligibleSets(int(value))
            case "due":
                return DueDates(float(value))
    except ValueError:
        example = {"slop": "slop:0.2", "fes": "fes:1", "due": "due:2"}[name]
        raise UserError(f"policy {text!r} needs a number after its name; for example {example}") from None
    raise unknown_name("policy", text, POLICY_FORMS)
