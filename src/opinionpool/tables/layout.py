"""Which column holds what: a long table, a row per forecast, or a wide one, a column per expert.

Columns are recognised by name, as forecasting sites, surveys and evaluation scripts call them; where two could
play a role the user is asked. A column that plays no role is reported, never silently dropped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from opinionpool.errors import ArgumentError, LayoutError, Note
from opinionpool.text import counted, listed, shown, suggestion

# The first name of a role wins over its synonyms, which are equals.
_NAMES = """
event: event event_id question question_id questionid id item item_id claim claim_id case case_id problem problem_id
    market market_id statement statement_id task task_id
    ereignis frage evenement evento pregunta
expert: expert expert_id forecaster forecaster_id user user_id userid username user_name model model_id model_name
    source judge judge_id participant participant_id respondent respondent_id rater rater_id annotator annotator_id
    predictor method agent
    experte expertin prognostiker experto experta
probability: probability prob p forecast forecast_probability prediction predicted predicted_probability estimate value
    p_yes prob_yes probability_yes yes_probability prob_1 confidence percent percentage probability_percent
    probability_pct prob_pct
    wahrscheinlichkeit prognose vorhersage schatzung schaetzung probabilite prevision probabilidad pronostico
class: class class_label option category choice answer_option outcome_class
    klasse kategorie classe categorie clase categoria
outcome: outcome result resolution y label truth answer actual y_true ground_truth resolved_to observed target
    ergebnis ausgang resultat resultado
time: time timestamp date datetime created_at created forecast_time forecast_date forecasted_at made_at submitted_at
    submission_time updated_at
    zeit zeitpunkt datum heure fecha hora
closes: closes closes_at close_time close_date closing_time closing_date closed_at deadline
resolved_at: resolved_at resolve_time resolution_time resolution_date resolve_date resolved_on resolved_time
prior: prior prior_probability reference_prior
group: group
"""
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    role: tuple(names.split()) for role, names in re.findall(r"^(\w+):((?: .*\n)(?:    .*\n)*)", _NAMES, re.MULTILINE)
}
ROLES = tuple(SYNONYMS)

_FORECAST_ROLES = {"expert", "probability", "class"}


@dataclass(frozen=True)
class Layout:
    """The columns of a table by role, as positions.

    Attributes
    ----------
    roles : dict
        From role to column.
    experts : tuple of int
        A wide table's forecasts; empty for a long one.
    cells : tuple of (expert, class or None)
        Whose forecasts, and of which class, each of `experts` holds.
    unused : tuple of int
        Columns that play no role.
    """

    roles: Mapping[str, int]
    experts: tuple[int, ...] = ()
    cells: tuple[tuple[str, str | None], ...] = ()
    unused: tuple[int, ...] = ()
    priors: Mapping[str, int] = field(default_factory=dict)

    @property
    def long(self) -> bool:
        """Whether each row is one forecast."""
        return not self.experts


def normal(name: str) -> str:
    """A header as names are compared, without its unit and its accents.

    >>> normal("Question ID"), normal("questionId"), normal("Probability (%)"), normal("Événement")
    ('question_id', 'question_id', 'probability', 'evenement')
    """
    name = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"[(\[]?%[)\]]?", "", name))
    return re.sub(r"[\s_\-.]+", "_", spaced).strip("_").lower()


def find_roles(
    table: str, names: Sequence[str], given: Mapping[str, str | None], wanted: Sequence[str]
) -> dict[str, list[int]]:
    """Candidates for each role: one where it was named or has its own name, several where synonyms compete.

    Raises
    ------
    LayoutError
        If a named column does not exist.
    """
    found: dict[str, list[int]] = {}
    taken: set[int] = set()
    for role, name in given.items():
        if name is not None:
            found[role] = [_position(table, names, str(name))]
            taken.add(found[role][0])
    normals = [normal(name) for name in names]
    for role in wanted:
        if role in given:
            continue
        for accepted in (SYNONYMS[role][:1], SYNONYMS[role][1:]):
            hits = [i for i, name in enumerate(normals) if name in accepted and i not in taken]
            ids = [i for i in hits if normals[i].endswith("_id")]
            if hits:
                hits = ids if len(ids) == 1 else hits
                found[role] = hits
                break
    return found


def check_columns(columns: Mapping[str, str | None] | None) -> dict[str, str | None]:
    """The columns that the user named, by role.

    Raises
    ------
    ArgumentError
        If a role does not exist.
    """
    for role in columns or {}:
        if role not in ROLES:
            raise ArgumentError(f"a column can be {', '.join(ROLES)}, and not {shown(role)}")
    return dict(columns or {})


def _position(table: str, names: Sequence[str], name: str) -> int:
    if name in names:
        return list(names).index(name)
    raise LayoutError(f"{table}: there is no column {shown(name)}; {suggestion(name, names, 'its columns are')}")


def single(table: str, names: Sequence[str], found: Mapping[str, list[int]], roles: Sequence[str]) -> dict[str, int]:
    """One column a role.

    Raises
    ------
    LayoutError
        Where two columns could play one role, or one column several.
    """
    chosen: dict[str, int] = {}
    for role in roles:
        hits = found.get(role, [])
        if len(hits) > 1:
            raise LayoutError(
                f"{table}: columns {listed([names[i] for i in hits])} could each be the {role}; "
                f"say which with --column {role}=NAME"
            )
        if hits:
            chosen[role] = hits[0]
    for role, column in chosen.items():
        other = next((r for r, c in chosen.items() if c == column and r != role), None)
        if other is not None:
            raise LayoutError(f"{table}: column {shown(names[column])} cannot be both the {role} and the {other}")
    return chosen


def recognise(
    table: str, names: Sequence[str], kind: Callable[[int], str], columns: Mapping[str, str | None] | None = None
) -> Layout:
    """The layout of a table of forecasts.

    Parameters
    ----------
    table : str
        What errors call it.
    names : sequence of str
        Its headers.
    kind : callable
        What the column at a position holds: ``"numbers"``, readable or not, ``"words"`` or nothing, ``""``.
    columns : mapping, optional
        Roles to column names, where the user named them; None for "no column plays this role".

    Raises
    ------
    LayoutError
        If the columns do not say what they hold.
    """
    nameless = _check_names(table, names, kind)
    given = check_columns(columns)
    found = find_roles(table, names, given, ROLES)
    if "expert" in found and "probability" in found:
        return _long(table, names, found, nameless)
    if given.get("expert") is not None:
        raise LayoutError(
            f"{table}: column {shown(given['expert'])} was named as the expert's, and none of {listed(names)} is known "
            "to hold the probabilities; name it with --column probability=NAME, or name no expert if each has a column"
        )
    return _wide(table, names, found, nameless, kind)


def _check_names(table: str, names: Sequence[str], kind: Callable[[int], str]) -> set[int]:
    """Raise unless columns have different names; returns those without name and cells, as trailing separators make."""
    nameless = {i for i, name in enumerate(names) if not name and i > 0}
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise LayoutError(f"{table}: two columns are called {shown(twice)}; every column needs its own name")
    full = next((i for i in sorted(nameless) if kind(i)), None)
    if full is not None:
        raise LayoutError(f"{table}: column {full + 1} has no name, and holds something")
    return nameless


def _long(table: str, names: Sequence[str], found: dict[str, list[int]], nameless: set[int]) -> Layout:
    roles = single(table, names, found, ROLES)
    if "event" not in roles:
        raise LayoutError(
            f"{table}: there is an expert column, {shown(names[roles['expert']])}, and a probability column, "
            f"{shown(names[roles['probability']])}, but none for the event among {listed(names)}; "
            "name it with --column event=NAME"
        )
    unused = tuple(i for i in range(len(names)) if i not in roles.values() and i not in nameless)
    return Layout(roles, unused=unused)


def _wide(
    table: str, names: Sequence[str], found: dict[str, list[int]], nameless: set[int], kind: Callable[[int], str]
) -> Layout:
    for column in found.get("expert", []):
        if kind(column) == "words":
            raise LayoutError(
                f"{table}: there is an expert column, {shown(names[column])}, but none for the probability among "
                f"{listed(names)}; name it with --column probability=NAME"
            )
    if "outcome" not in found and "class" in found:
        found["outcome"] = found["class"]
    roles = single(table, names, found, [role for role in ROLES if role not in _FORECAST_ROLES])
    free = [i for i in range(len(names)) if i not in roles.values() and i not in nameless]
    if "event" not in roles:
        event = next((i for i in free if names[i] == "" or kind(i) == "words"), None)
        if event is not None:
            roles["event"] = event
            free.remove(event)
    priors = {}
    for i in free:
        head, colon, label = names[i].partition(":")
        if colon and normal(head) == "prior":
            priors[label.strip()] = i
    free = [i for i in free if i not in priors.values()]
    # Outcomes must not be read as forecasts, even where another column plays that role.
    taken = {name for role in ("outcome", "prior") if role in roles for name in SYNONYMS[role] if len(name) > 1}
    experts = tuple(i for i in free if kind(i) != "words" and normal(names[i]) not in taken)
    if not experts:
        raise LayoutError(
            f"{table}: no column holds forecasts. A table has a row per forecast, with columns event, expert and "
            f"probability, or a row per event and a column per expert; this one has {listed(names)}"
        )
    unused = tuple(sorted(set(free) - set(experts)))
    return Layout(roles, experts, tuple((names[i], None) for i in experts), unused, priors)


def split_classes(layout: Layout, outcomes: Sequence[str]) -> Layout:
    """A wide layout with headers of the form ``expert:class`` split in two, if that is what they are.

    They are if every expert has the same classes, two or more, or if what happened is among the classes; else a
    colon is part of the experts' names.

    Parameters
    ----------
    layout : Layout
    outcomes : sequence of str
        The distinct outcomes of resolved events, in lower case.

    Raises
    ------
    LayoutError
        If an expert lacks a class that others have.
    """
    pairs = [name.rpartition(":") for name, _ in layout.cells]
    if not pairs or not all(colon and expert.strip() and label.strip() for expert, colon, label in pairs):
        return layout
    cells = tuple((expert.strip(), label.strip()) for expert, _, label in pairs)
    classes = list(dict.fromkeys(label for _, label in cells))
    named = bool(outcomes) and set(outcomes) <= {label.lower() for label in classes}
    experts = dict.fromkeys(expert for expert, _ in cells)
    there = set(cells)
    lacking = [(expert, label) for expert in experts for label in classes if (expert, label) not in there]
    if (outcomes and not named) or (not outcomes and (lacking or len(classes) < 2)):
        return layout
    if lacking:
        expert, label = lacking[0]
        raise LayoutError(
            f"expert {shown(expert)} has no column for class {shown(label)}: there should be one called "
            f"{shown(f'{expert}:{label}')}, since others have one"
        )
    return Layout(layout.roles, layout.experts, cells, layout.unused, layout.priors)


def layout_notes(layout: Layout, names: Sequence[str]) -> list[Note]:
    """What was recognised, and what was left aside."""
    roles = ", ".join(_played(role, names[column]) for role, column in layout.roles.items())
    if layout.long:
        text = f"long table, a row per forecast: {roles}"
    else:
        experts = list(dict.fromkeys(expert for expert, _ in layout.cells))
        classes = list(dict.fromkeys(label for _, label in layout.cells if label is not None))
        text = f"wide table, a row per event: {counted(len(experts), 'expert')} ({listed(experts)})"
        text += f" by class ({listed(classes)})" if classes else ""
        text += f"; {roles}" if roles else ""
        text += "" if "event" in layout.roles else "; no event column, so rows are numbered"
    notes = [Note("layout", text)]
    if layout.unused:
        unused = listed([names[i] for i in layout.unused])
        notes.append(Note("unused-columns", f"not used: {unused}", len(layout.unused)))
    return notes


def _played(role: str, name: str) -> str:
    if not name:
        return f"{role} in the first column"
    return role if normal(name) == role else f"{role} {shown(name)}"
