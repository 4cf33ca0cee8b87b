"""Names of columns: which role a header stands for, as forecasting sites, surveys and evaluation scripts call it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from opinionpool.arguments import expect_type, names_given
from opinionpool.errors import ArgumentError, LayoutError
from opinionpool.text import listed, meant, shown, suggestion

# Between the parts of a key of several columns.
BETWEEN = " / "
# From a role to its column, to several that are its key together, or to None if no column plays it.
Columns: TypeAlias = Mapping[str, "str | Sequence[str] | None"]

# The first name of a role wins over its synonyms, which are equals.
_NAMES = """
event: event event_id question question_id questionid id item item_id claim claim_id case case_id problem problem_id
    market market_id statement statement_id task task_id match match_id contract contract_id race race_id game game_id
    fixture prompt_id example_id
    ereignis frage evenement evento pregunta
expert: expert expert_id forecaster forecaster_id user user_id userid username user_name model model_id model_name
    source judge judge_id participant participant_id respondent respondent_id rater rater_id annotator annotator_id
    predictor method agent worker worker_id pollster bookmaker bookie trader trader_id bettor bettor_id pundit analyst
    grader labeler labeller evaluator classifier forecaster_name forecaster_username your_name full_name
    participant_name respondent_name email email_address e_mail e_mail_address
    experte expertin prognostiker prognostikerin teilnehmer teilnehmerin teilnehmende teilnehmender teilnehmer/in
    teilnehmer:in teilnehmer*in teilnehmer_id teilnehmername befragte befragter befragte/r befragte(r) befragte:r
    benutzer benutzerin benutzername nutzer nutzerin nutzername gutachter gutachterin bewerter schatzer ihr_name
    dein_name e_mail_adresse
    participante participant(e) participant·e repondant repondante repondant(e) repondant·e
    utilisateur utilisatrice previsionniste evaluateur votre_nom nom_d'utilisateur adresse_e_mail
    experto experta encuestado encuestada encuestado/a usuario usuaria pronosticador evaluador su_nombre tu_nombre
    nombre_de_usuario correo_electronico
probability: probability prob p forecast forecast_probability prediction predicted predicted_probability estimate value
    p_yes prob_yes probability_yes yes_probability prob_1 confidence certainty percent percentage probability_percent
    probability_pct prob_pct win_prob win_probability p_win prob_win prob_after probability_after
    wahrscheinlichkeit prognose vorhersage schatzung schaetzung einschatzung probabilite prevision pourcentage
    probabilidad pronostico prediccion porcentaje
class: class class_label option category choice answer_option outcome_class candidate party
    klasse kategorie antwortoption antwortmoglichkeit classe categorie clase categoria opcion
outcome: outcome result resolution y label truth answer actual y_true ground_truth resolved_to observed target gold
    gold_label winner human human_label correct_answer true_label true_class true_outcome
    observation
    ergebnis ausgang eingetreten eingetroffen resultat resultado
verdict: verdict vote decision judgement judgment predicted_label predicted_class predicted_outcome
time: time timestamp date datetime created_at created created_time forecast_time forecast_date forecasted_at made_at
    submitted submitted_at submission_time updated_at entered entered_at entered_on
    submission_date submit_date submitdate date_submitted submitted_on recorded_date response_date answered_at
    responded_at
    zeit zeitpunkt datum zeitstempel erstellt_am abgegeben_am abgabedatum abgabezeit abgabezeitpunkt
    eingereicht_am prognosedatum prognosezeitpunkt fertigstellungszeit
    heure horodateur horodatage date_et_heure cree_le soumis_le envoye_le date_de_creation date_de_soumission
    date_de_reponse
    fecha hora marca_temporal marca_de_tiempo fecha_y_hora creado_el enviado_el fecha_de_creacion fecha_de_envio
    fecha_de_respuesta
closes: closes closes_at closes_on close_time close_date closing_time closing_date closed_at closed_on closed deadline
    scheduled_close_time actual_close_time schließt schließt_am schliesst schliesst_am endet_am
    geschlossen_am einsendeschluss
    ferme_le cloture_le date_de_cloture cierra_el fecha_de_cierre
resolved_at: resolved_at resolve_time resolution_time resolution_date resolve_date resolved_on resolved_time
    actual_resolve_time settled_at settled_on settlement_date
    aufgelost_am aufgeloest_am entschieden_am auflosungsdatum resolu_le date_de_resolution resuelto_el
    fecha_de_resolucion
expires: expires expires_at expiry expiry_date expiration expired_at valid_until
    gultig_bis valable_jusqu_au valido_hasta
prior: prior prior_probability reference_prior
group: group
text: text question_text question_title question_name event_text event_title event_name market_title question title
    claim statement prompt
topic: topic
"""
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    role: tuple(names.split()) for role, names in re.findall(r"^(\w+):((?: .*\n)(?:    .*\n)*)", _NAMES, re.MULTILINE)
}
ROLES = tuple(SYNONYMS)
# What an event is called for people, such as the wording of a question: it is shown and otherwise plays no part, so a
# column is taken for it only where no other role has it.
TEXT = "text"
# Roles that several columns can play together.
KEYED = ("event", "expert")
# Names of numbers that say how sure somebody is of a verdict.
CONFIDENCE = frozenset({"confidence", "certainty"})
# What people call columns that say how much a row or a forecast counts.
WEIGHTS = frozenset(
    {
        *("weight", "weights", "confidence", "certainty", "importance", "gewicht", "gewichtung", "konfidenz"),
        *("sicherheit", "poids", "confiance", "certitude", "peso", "confianza", "certeza"),
    }
)
# Headers over the names of people, which may as well be those of events.
PEOPLE = frozenset(
    {
        *("name", "names", "first_name", "last_name", "surname", "person", "who", "member", "vorname", "nachname"),
        *("wer", "mitglied", "nom", "prenom", "personne", "qui", "nombre", "apellido", "persona", "quien"),
    }
)
# What a column of 0 and 1 beside forecasts is called where it says what came of it.
_HAPPENED = re.compile(r"(?:^|.*_)(?:win|won|wins|happened|occurred|came_true|success|passed)$")


def says_outcome(name: str) -> bool:
    """Whether a header is that of an outcome though it is no synonym, as ``home_win``."""
    return bool(_HAPPENED.fullmatch(normal(name)))


def normal(name: str) -> str:
    """A header as names are compared, without its unit, its accents and question marks.

    >>> normal("Question ID"), normal("questionId"), normal("Probability (%)"), normal("Événement"), normal("Happened?")
    ('question_id', 'question_id', 'probability', 'evenement', 'happened')
    """
    name = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"[(\[]?%[)\]]?|\?$", "", name.rstrip()))
    return re.sub(r"[\s_\-.]+", "_", spaced).strip("_").lower()


def find_roles(table: str, names: Sequence[str], given: Columns, wanted: Sequence[str]) -> dict[str, list[int]]:
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
            found[role] = [position(table, names, str(name))]
            taken.add(found[role][0])
    normals = [normal(name) for name in names]
    for role in wanted:
        if role in given or role == TEXT:
            continue
        for accepted in (SYNONYMS[role][:1], SYNONYMS[role][1:]):
            hits = [i for i, name in enumerate(normals) if name in accepted and i not in taken]
            ids = [i for i in hits if normals[i].endswith("_id")]
            if hits:
                hits = ids if len(ids) == 1 else hits
                found[role] = hits
                break
        else:
            hits = [i for i in within(names, role) if i not in taken]
            if hits:
                found[role] = hits
    return found


# Roles that a value within an object can play by its own name, as "question.resolution".
_WITHIN = ("event", "expert", "outcome", "time", "closes", "resolved_at", "topic", TEXT)


def within(names: Sequence[str], role: str) -> list[int]:
    """Columns from objects in a row whose own name, after the last full stop, is one of a role's.

    >>> within(["id", "contract.resolution", "contract.closeTime", "p.1"], "outcome")
    [1]
    """
    if role not in _WITHIN:
        return []
    parts = [name.rpartition(".") for name in names]
    return [i for i, (outer, _, own) in enumerate(parts) if outer and normal(own) in SYNONYMS[role]]


def text_column(names: Sequence[str], free: Sequence[int]) -> int | None:
    """The column, of those that play no role, that words what each event is about; None if none is called so.

    >>> text_column(["id", "url", "Question title", "title"], [1, 2, 3])
    2
    """
    normals = {i: normal(names[i]) for i in free}
    own = next((i for text in SYNONYMS[TEXT] for i in free if normals[i] == text), None)
    return own if own is not None else next((i for i in within(names, TEXT) if i in free), None)


def check_columns(columns: Columns | None) -> dict[str, str | tuple[str, ...] | None]:
    """The columns that the user named, by role; several are the parts of a key.

    Raises
    ------
    ArgumentError
        If a role does not exist, or has several columns and is not one that names something.
    """
    found: dict[str, str | tuple[str, ...] | None] = {}
    if columns is not None:
        expect_type(columns, Mapping, "columns")
    for role, names in (columns or {}).items():
        if role not in ROLES:
            raise ArgumentError(f"a column can be {', '.join(ROLES)}, and not {shown(role)}{meant(str(role), ROLES)}")
        if names is None or isinstance(names, str):
            found[role] = names
        elif not names_given(names, f"columns, for the {role},"):
            raise ArgumentError(f"columns: no column is named for the {role}; None says that there is none")
        elif role in KEYED or len(names) == 1:
            found[role] = names[0] if len(names) == 1 else tuple(map(str, names))
        else:
            raise ArgumentError(
                f"{role} is named twice, {listed(list(names))}; one column can be it, and several columns together "
                "only an event or expert"
            )
    return found


def position(table: str, names: Sequence[str], name: str) -> int:
    """Where a column that the user named stands; raises `LayoutError` if nowhere."""
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
                f"say which with --column {role}=NAME",
                remedies=[{"columns": {role: names[i]}} for i in hits],
            )
        if hits:
            chosen[role] = hits[0]
    for role, column in chosen.items():
        other = next((r for r, c in chosen.items() if c == column and r != role), None)
        if other is not None:
            raise LayoutError(f"{table}: column {shown(names[column])} cannot be both the {role} and the {other}")
    return chosen
