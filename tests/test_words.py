"""No text and no name of the project uses a private term where the field has one: `docs/words.md` has the field's."""

import ast
import io
import re
import tokenize

import pytest

# Terms that are not used, as regular expressions, by the term or phrase that is written for them.
TERMS = {
    "shrunken towards; kept": r"held",
    "shrunken": r"shrunk",
    "duplicates count as one": r"voices?",
    "used, informative": r"heard|hearing",
    "leakage": r"knowing",
    "probability; by chance stays": r"chances|(?:an?|the|what|with|even) chance(?= of| to| that| in\b)",
    "forecast, given": r"said|unsaid",
    "forecast": r"stated",
    "distinguished": r"told|untold",
    "separately, split": r"apart",
    "intercept, biased towards": r"lean|leans|leaning",
    "uncertainty": r"doubt|doubts|doubtful",
    "marginal, of an expert by itself": r"(?:experts?|each|one|anybody|features) alone|alone, an expert",
    "more confident": r"surer",
    "corrected": r"mend|mends|mended",
    "the probability of the actual outcome": r"gave what happened",
}
# Ordinary English that these would catch, with the reason.
ALLOWED = {
    r"held[- ]out|hold(?:s|ing)? out": "data kept for scoring, as everybody calls them",
    r"household": "no form of hold",
}
PRIVATE = re.compile(r"(?<![A-Za-z])(?:" + "|".join(TERMS.values()) + r")(?![A-Za-z])", re.IGNORECASE)
ORDINARY = re.compile("|".join(ALLOWED), re.IGNORECASE)
# Names are looked at word by word; there, a chance is never the chance that something happens.
NAMES = re.compile(
    "held|shrunk|voices?|(?:un)?heard|knowing|chances?|(?:un)?said|stated|(?:un)?told|apart|lean(?:s|ing)?|"
    "doubt(?:s|ful)?|alone|surer|mended|audible|silent|telling"
)
# Names of fields in saved files, which stay readable.
SAVED = {"src/opinionpool/saving/kinds.py": {"alone", "doubt", "stated"}, "src/opinionpool/saving/streams.py": {"said"}}


def private_terms(text):
    """The private terms in a text, each with its line."""
    lines = text.splitlines()
    found = [(match.start(), match[0]) for match in PRIVATE.finditer(ORDINARY.sub(lambda m: "_" * len(m[0]), text))]
    return [f"{term}: {lines[text.count(chr(10), 0, at)].strip()}" for at, term in found]


def words_of(name):
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def names_in(tree):
    """Every identifier that a module defines or uses."""
    for node in ast.walk(tree):
        for field in ("name", "id", "attr", "arg", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value


def private_name(name):
    return any(NAMES.fullmatch(word) for word in words_of(ORDINARY.sub("", name.replace("_", " "))))


def texts_in(source):
    """Strings and comments; what lies between the braces of an f-string is code."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in {tokenize.STRING, tokenize.COMMENT} or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
            yield token.string


def modules(root):
    return [path for folder in ("src", "examples") for path in sorted((root / folder).rglob("*.py"))]


def test_no_private_term_in_texts_of_the_code(root):
    found = []
    for path in modules(root):
        name = path.relative_to(root).as_posix()
        saved = SAVED.get(name, set())
        source = path.read_text(encoding="utf-8")
        # Most files have none anywhere, which is found without taking them to pieces.
        for text in texts_in(source) if private_terms(source) else ():
            if words_of(text) & saved and " " not in text:
                continue
            found += [f"{name}: {each}" for each in private_terms(text)]
    assert not found, "\n".join(found)


def test_no_private_term_in_names_of_the_code(root):
    found = []
    for path in modules(root):
        source = path.read_text(encoding="utf-8")
        inside = any(map(NAMES.fullmatch, words_of(source)))
        names = sorted({path.stem, *(names_in(ast.parse(source)) if inside else ())})
        found += [f"{path.relative_to(root)}: {name}" for name in names if private_name(name)]
    assert not found, "\n".join(found)


def pages(root):
    yield from sorted((root / "docs").rglob("*.md"))
    yield root / "README.md"
    yield root / "CONTRIBUTING.md"


def test_no_private_term_in_pages(root):
    found = []
    for path in pages(root):
        found += [f"{path.relative_to(root)}: {each}" for each in private_terms(path.read_text(encoding="utf-8"))]
    changes = re.split(r"^## ", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    found += [f"CHANGELOG.md: {each}" for each in private_terms(changes)]
    assert not found, "\n".join(found)


def rows(text):
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:2] == "| "]
    return cells[1:]


def test_the_page_is_a_glossary(root):
    listed = rows((root / "docs" / "words.md").read_text(encoding="utf-8"))[1:]
    assert all(len(row) == 3 and all(row) for row in listed)
    names = [row[0].lower() for row in listed]
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("they cannot be told apart", 2), ("held-out events", 0), ("held to the panel's mean", 1),
        ("more than chance explains", 0), ("an interval with a chance of 90%", 1), ("the data alone", 0),
        ("an expert alone", 1), ("household", 0), ("shrunken, shrinkage", 0), ("as stated_percent", 1),
    ],
)  # fmt: skip
def test_private_terms_are_found(text, terms):
    assert len(private_terms(text)) == terms
