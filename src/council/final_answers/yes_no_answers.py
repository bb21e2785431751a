"""Yes and no in claims: spoken, denied, or as a sentence that repeats the question."""

from __future__ import annotations

import re

from council.final_answers.claim_words import MARK_SIGNS, SMALL_WORDS, content, stem
from council.final_answers.comparison import OPPOSITES, read_statement
from council.final_answers.markup import strip_marks
from council.final_answers.values import parse_answer

_YES = r"yes|yeah|yep|yup|true|correct|right|ja|oui|sí|si|да|はい|是|是的|sim|absolutely|definitely|certainly|indeed|of course|affirmative|vrai|wahr|richtig|verdadero"
_NO = r"no|nope|nah|false|incorrect|wrong|untrue|nein|non|нет|いいえ|否|不是|não|negative|never|faux|falsch|falso|not (?:really|at all|true|correct|right|quite|exactly|necessarily true)"
_OPENING = rf"[^\w]*(?:(?:the (?:short )?answer(?: here)? is|in short|short answer|well|it is|it's|it would be|that's|that is|this is|it is clearly|is|therefore|thus|so|hence|clearly|in fact|technically|yes and it is|(?:the|this|that) (?:statement|claim|assertion|sentence|equation|proposition|conclusion|answer) (?:is|must be|would be)|(?:the|this|that) (?:statement|claim|assertion)(?= cannot be| can't be)|unfortunately|sadly|fortunately|hmm|ah|oh|i(?:'d| would) say|probably|most likely|almost certainly|mostly|a definite|a clear|simply|just|actually|overall|verdict)[\s,:{MARK_SIGNS}\"']+){{0,4}}"
_POLAR = re.compile(
    rf"{_OPENING}(?P<not>not |isn't |n't |cannot be |can't be )?(?P<hedge>(?:definitely|certainly|absolutely|entirely|strictly|generally|technically|logically|simply|almost certainly|most likely|probably|indeed) )?(?P<not2>not\b ?)?(?:(?P<yes>{_YES})|(?P<no>{_NO}))?(?![\w'])",
    re.IGNORECASE,
)
_POLAR_ANYWHERE = re.compile(
    rf"\b(?:so|therefore|thus|hence|answer is|answer would be|is|are|was|to be|be|as|remains|say|conclusion|verdict)[\s,:(\"'{MARK_SIGNS}]+(?P<not>(?:definitely |certainly |actually |in fact )?not |indeed |clearly |therefore )?(?:(?P<yes>yes|true|correct|right)|(?P<no>no|false|incorrect|wrong|untrue))(?=[\s{MARK_SIGNS}\"')]*(?:[.,;:!—–-]|\Z|\n| (?:because|since|as|for|that|here|indeed|overall)\b))",
    re.IGNORECASE,
)
_DENIED_BE = re.compile(r"(?:n't|\bnot|\bnever|\bhardly) be\Z", re.IGNORECASE)
_BOTH = re.compile(
    r"\byes ?/ ?no\b|\byes and no\b|\byes or no\b|\bno and yes\b|\bpartly (?:true|yes)\b|\b(?:both|either) true (?:and|or) false\b",
    re.IGNORECASE,
)
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|may|might|must|should|shall|will|would|am)"
_TURN = re.compile(r"(?:yes|no)[\s,.—–-]+(?:wait|actually|sorry)[\s,.—–-]+", re.IGNORECASE)
_SPOKEN_LAST = re.compile(
    r"\w[^.!?\n]*[:—–,]\s*(yes|no|true|false)[\s.!]*\Z|(?:->|→|=>|⇒)\s*(?P<short>yes|no|true|false|[yn])[\s.!]*\Z|\A\W*(?P<letter>[yn])\W*\Z",
    re.IGNORECASE,
)
_SPOKEN_LEAD = re.compile(r"\A(?!(?i:yes|no)\b)(?:[A-Za-z][\w' ]{2,40}, )(?=(?:yes|no)\b)")
_DENYING = r"\W*(?:(?:it used to(?: be)?|not any ?more|no longer|not yet|not a chance|no way|by no means|under no circumstances|far from it|on the contrary|quite the opposite|this is a (?:\w+ )?(?:myth|misconception)|that's a (?:\w+ )?(?:myth|misconception)|(?:the|this|that) (?:statement|claim|assertion|conjecture) (?:does not|doesn't|fails to|cannot) (?:hold|stand)|that(?:'s| is) not the case|it isn't|it's not)(?=\W*\Z|[,.;:]|\s(?:up|for|in|here|because|since|true)\b)|(?:i|we) (?:do not|don't) (?:think|believe) so|not (?:really|at all|quite|exactly|necessarily)|hardly)\b"
_PHRASES = (
    (re.compile(_DENYING, re.IGNORECASE), False),
    (
        re.compile(
            r"\W*(?:i|we) (?:think|believe) so\b|\W*(?:the|this|that) (?:statement|claim|assertion|conjecture) (?:holds|stands|checks out)(?=\W*\Z|[,;]| for all\b)|\W*that(?:'s| is) (?:indeed )?the case\b|\W*(?:without a doubt|by all means)\W*\Z",
            re.IGNORECASE,
        ),
        True,
    ),
)
_SHORT_ANSWER = re.compile(
    rf"\W*(?:(?:sadly|unfortunately|fortunately|actually|in fact|so|therefore|thus|hence|well),? )?(?:(?:as far as i (?:can tell|know)|i think|i believe|in fact|yes|no),? )?(?:he|she|it|they|we|you|i|that|this|there)\s+{_AUXILIARY}(?P<not>n't|'t|not|\s+not)?(?=\W*\Z|\s*[:;,—–])",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"\b(?:not|no|never|none|cannot|neither|nor|without|hardly|nobody|nothing|unable|fails? to|impossible|false|incorrect|untrue|wrong)\b|n't\b|\bunable\b",
    re.IGNORECASE,
)
_SHORT_REMARK = re.compile(
    r"[\s,;:.!—–-]*(?:and |that |but )?(?:it|they|he|she|we|you|this|that|there|i)\b(?P<rest>[^.;,!?]*)", re.IGNORECASE
)
_ASKED_YES_NO = re.compile(
    rf"(?:\A|[.?!:\n])(?:\W*(?:under|in|on|at|according to|for|by|with|during|given|after|before|if|as|since|when|yes or no|true or false)\b[^.?!:\n,]{{0,80}},)?\W*(?:true or false\W+|yes or no\W+)?(?P<verb>{_AUXILIARY})(?:n't)?\b",
    re.IGNORECASE,
)


def opens_with_yes_or_no(text: str) -> bool:
    """Return whether a text begins with yes or no."""
    found = _POLAR.match(strip_marks(text).strip())
    return found is not None and bool(found["yes"] or found["no"])


def read_spoken(text: str, question: str) -> list[bool]:
    """Return the yes or no of a sentence that says the word; nothing for one that only repeats the question."""
    plain = strip_marks(text).strip()
    opening = _POLAR.match(plain)
    is_spoken = any(pattern.search(plain) for pattern in (_BOTH, _SPOKEN_LAST, _SPOKEN_LEAD)) or any(
        _is_about_question(found, plain, question) for found in _POLAR_ANYWHERE.finditer(plain)
    )
    said = is_spoken or (opening and (opening["yes"] or opening["no"]))
    return read_yes_no(text, question) if said else []


def read_yes_no(text: str, question: str) -> list[bool]:
    """Return the yes or no of a claim; both if it says both."""
    plain = strip_marks(text).strip()
    if _BOTH.search(plain):
        return [True, False]
    if turn := _TURN.match(plain):
        return read_yes_no(plain[turn.end() :], question)
    for pattern, value in _PHRASES:
        if pattern.match(plain):
            return [value]
    if tail := _SPOKEN_LAST.search(plain):
        return [(tail[1] or tail["short"] or tail["letter"]).casefold() in ("yes", "y", "true")]
    plain = _SPOKEN_LEAD.sub("", plain)
    found = _POLAR.match(plain)
    if found and (found["yes"] or found["no"] or (found["hedge"] and found["not2"])):
        denials = bool(found["not"]) + bool(found["not2"])
        value = (bool(found["yes"]) or not found["no"]) == (denials % 2 == 0) if found["yes"] or found["no"] else False
        rest = plain[found.end() :]
        after = re.match(
            r"[\s,]*(?:or|and)[\s,]+(?:(?:maybe|possibly|perhaps) )?(?:yes|no|true|false)\b", rest, re.IGNORECASE
        )
        if after and not re.match(r"\s+and\b.{0,3}\bno\b \w", rest, re.IGNORECASE):
            return [True, False]
        if (
            found["yes"]
            and found["yes"].casefold() in ("right", "is", "true", "correct")
            and re.match(
                r"\s+(?:angle|triangle|side|hand|now|away|answer|option|after|before|value|way)", rest, re.IGNORECASE
            )
        ):
            return []
        if re.search(rf"\bbut (?:also )?{'no' if value else 'yes'}\b", rest, re.IGNORECASE):
            return [True, False]
        return [value] if _says_same(rest, question, value) else [True, False]
    spoken = [found for found in _POLAR_ANYWHERE.finditer(plain) if _is_about_question(found, plain, question)]
    if spoken:
        last = spoken[-1]
        is_denied = bool(last["not"] and "not" in last["not"].casefold()) or bool(
            _DENIED_BE.search(plain[: last.start() + 2])
        )
        return [bool(last["yes"]) != is_denied]
    concluded = re.split(r"\b(?:so|hence|therefore|thus),?\s+", plain, flags=re.IGNORECASE)[-1]
    if short := _SHORT_ANSWER.match(plain) or _SHORT_ANSWER.match(concluded):
        return [not short["not"]]
    if (verdict := _read_verdict(concluded, question)) is not None:
        return [verdict]
    phrase = parse_answer(plain, question)
    if phrase and isinstance(phrase.value, bool):
        return [phrase.value]
    statement = _read_statement_loosely(plain, question)
    return [] if statement is None else [statement]


_VERDICT = re.compile(
    r"\W*(?:it|that|this|they|these|he|she) (?:is|are|was|were|'s|'re)(?P<not>n't|\s+not)?\s+(?:(?:in fact|indeed|actually|clearly|definitely|perfectly|entirely|therefore|still|also) )?(?:an? )?(?P<word>[a-z]+)\W*",
    re.IGNORECASE,
)
_DENYING_PREFIXES = ("il", "in", "im", "un", "ir", "non", "non-")


def _read_verdict(text: str, question: str) -> bool | None:
    """Return the yes or no of "it is legal" to a question that asks whether something is legal."""
    found = _VERDICT.fullmatch(text)
    asked_at = _ASKED_YES_NO.search(question)
    if not found or not asked_at or not re.fullmatch("is|are|was|were", asked_at["verb"], re.IGNORECASE):
        return None
    asked = question[asked_at.start("verb") :]
    if _NEGATIVE.search(asked) or re.search(r"\b(?:or|than)\b", asked):
        return None
    word = found["word"].casefold()
    words = set(re.findall(r"[a-z-]+", asked.casefold()))
    if word in words:
        return not found["not"]
    prefixes = [prefix for prefix in _DENYING_PREFIXES if word.startswith(prefix) and word[len(prefix) :] in words]
    return bool(found["not"]) if prefixes and word not in SMALL_WORDS else None


def _is_about_question(found: re.Match[str], text: str, question: str) -> bool:
    """Return whether "true" or "wrong" is said of what the question asks, and not of a premise or a step."""
    word = (found["yes"] or found["no"]).casefold()
    if word in ("yes", "no") or _TRUTH_ASKED.search(question):
        return True
    clause = re.split(
        r"[.;:]\s|\b(?:which|who|where|if|requires?|assum\w+)\b",
        text[: found.start("not" if found["not"] else ("yes" if found["yes"] else "no"))],
    )[-1]
    return not clause.strip() or _TRUTH_SUBJECT.search(clause) is not None


_TRUTH_ASKED = re.compile(r"\b(?:true|false|correct|right|wrong|statement|claim|assertion)\b", re.IGNORECASE)
_TRUTH_SUBJECT = re.compile(
    r"\b(?:statement|claim|it|this|that|answer|assertion|proposition|conclusion|verdict|say|equation|sentence|so|therefore|thus|hence)\b",
    re.IGNORECASE,
)


def _says_same(rest: str, question: str, value: bool) -> bool:
    """Return whether the words after a yes or no do not say the opposite, as in "Yes, it is not"."""
    remark = _SHORT_REMARK.match(rest)
    if remark is None or _NEGATIVE.search(question):
        return True
    said = remark["rest"]
    words = set(re.findall(r"[^\W\d_]{3,}", said.casefold()))
    asked = set(re.findall(r"[^\W\d_]{3,}", question.casefold()))
    small = {
        "not",
        "isn",
        "doesn",
        "does",
        "did",
        "didn",
        "can",
        "cannot",
        "will",
        "won",
        "was",
        "wasn",
        "are",
        "aren",
        "has",
        "have",
        "would",
        "could",
        "should",
        "been",
        "don",
    }
    if words - small - asked - {stem(word) for word in asked} and not {stem(word) for word in words - small} <= {
        stem(word) for word in asked
    }:
        return True
    if not re.match(
        rf"\s*(?:{_AUXILIARY}|isn't|aren't|doesn't|don't|didn't|can't|cannot|won't|wasn't|hasn't|haven't|wouldn't|shouldn't)\b|'s\b|'re\b",
        said,
        re.IGNORECASE,
    ):
        return True
    return (len(_NEGATIVE.findall(said)) % 2 == 0) == value


def _read_statement_loosely(text: str, question: str) -> bool | None:
    """Read a sentence that repeats most words of the question, or denies them."""
    exact = read_statement(text, question)
    if exact is not None:
        return exact
    asked_at = _ASKED_YES_NO.search(question)
    asked_text = question[asked_at.start("verb") :] if asked_at else question
    if _WITHOUT.search(asked_text) and _WITHOUT.search(text):
        asked_text, text = (_WITHOUT.sub("with", one) for one in (asked_text, text))
    if _NEGATIVE.search(asked_text) or not asked_at:
        return None
    asked = {stem(word) for word in re.findall(r"[^\W_]{3,}", asked_text.casefold())} - SMALL_WORDS
    text = re.split(r"(?<=\w),? (?:because|since) |, as ", text, maxsplit=1)[0]
    clauses = re.split(r"[,;:—–]|\b(?:so|therefore|thus|hence|which means|meaning)\b", text, flags=re.IGNORECASE)
    clause = max(
        reversed(clauses), key=lambda one: sum(any(_is_akin(word, other) for other in content(one)) for word in asked)
    )
    said = content(clause)
    prefixes = ("in", "un", "im", "il", "ir", "dis", "non")
    opposites = {word for word in said if any(word == prefix + one for prefix in prefixes for one in asked)}
    said |= {one for one in asked for word in opposites if word.endswith(one)}
    if asked & _PERMITS:
        if found := _MAY.search(clause):
            said |= asked & _PERMITS
            clause = f"not {clause}" if found["no"] else clause
        elif _FORBIDS.search(clause):
            said |= asked & _PERMITS
            opposites.add("forbid")
    for pair in OPPOSITES | _MORE_OPPOSITES:
        for word in pair:
            if stem(word) in asked and stem(next(iter(pair - {word}))) in said and stem(word) not in said:
                opposites.add(word)
                said.add(stem(word))
    denied = [
        found[1]
        for found in re.finditer(
            r"\b(?:not|rather than|instead of)(?: an?| the| for| in| by| of| on)? ([\w ]+)", text, re.IGNORECASE
        )
    ]
    if any({stem(word) for word in re.findall(r"[^\W_]{3,}", words.casefold())} <= asked for words in denied):
        return False
    if (found := re.match(r"\W*(?:is|are|was|were)\b", asked_text, re.IGNORECASE)) and not opposites:
        words = [stem(word) for word in re.findall(r"[^\W_]{3,}", asked_text[found.end() :].casefold())]
        rest = [word for word in words if word in asked]
        if len(rest) == 2 and not any(_is_akin(rest[-1], other) for other in said):
            return None  # it says something else of the subject
    shared = sum(any(_is_akin(word, other) for other in said) for word in asked)
    is_open = _OPEN.search(_MAY.sub("", clause) if asked & _PERMITS else clause)
    if not asked or not said or is_open or _DISCUSSES.search(clause):
        return None
    if shared / len(asked) < 0.5 and (shared < 2 or shared / len(said) < 0.75):
        return None
    return (len(_NEGATIVE.findall(clause)) + len(opposites)) % 2 == 0


_WITHOUT = re.compile(r"\bwithout\b", re.IGNORECASE)
_MORE_OPPOSITES = frozenset(
    frozenset(pair.split("/"))
    for pair in (
        "won/lost",
        "win/lost",
        "win/lose",
        "older/younger",
        "bigger/smaller",
        "greater/smaller",
        "greater/less",
        "taller/shorter",
        "heavier/lighter",
        "warmer/colder",
        "hotter/colder",
        "pass/fail",
        "passed/failed",
        "alive/dead",
        "finite/infinite",
        "convergent/divergent",
        "converge/diverge",
        "converges/diverges",
        "guilty/innocent",
        "same/different",
        "cheaper/dearer",
        "expensive/cheap",
    )
)
_PERMITS = {stem(word) for word in ["allow", "allowed", "allows", "permit", "permits", "permitted", "legal", "lawful"]}
_MAY = re.compile(
    r"\b(?:may|can|is (?:allowed|permitted|free|entitled) to|are (?:allowed|permitted|free|entitled) to)(?P<no>(?= not\b| only\b)|not\b|n't\b|'t\b)?",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"\b(?:prohibit\w*|forbid\w*|forbade|ban(?:s|ned)?|bars?|barred|disallow\w*|outlaw\w*|preclud\w*|rules? out|excludes?)\b",
    re.IGNORECASE,
)
# Sentences about the question, which do not answer it.
_DISCUSSES = re.compile(
    r"\b(?:the question (?:of|is|whether)|must be (?:distinguished|separated|clarified)|has to be (?:distinguished|clarified)|to (?:assess|determine|decide|judge|establish|find out|see|check)\b|"
    r"we (?:have|need|must)(?: to)? (?:ask|check|look|know|consider)|let(?:'s| us)|requires? (?:that|us)|is (?:defined|called)|means that|by definition|exactly when|if and only if|suppose|consider)\b",
    re.IGNORECASE,
)


def _is_akin(a: str, b: str) -> bool:
    """Return whether two stems are of one word, as "convergent" and "converges"."""
    return a == b or (
        min(len(a), len(b)) >= MIN_STEM
        and a[:MIN_STEM] == b[:MIN_STEM]
        and a[: min(len(a), len(b)) - 2] == b[: min(len(a), len(b)) - 2]
    )


MIN_STEM = 5


_OPEN = re.compile(r"\b(?:if|whether|depend\w*|may|might|unclear)\b", re.IGNORECASE)
