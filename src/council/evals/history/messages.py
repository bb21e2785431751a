"""Messages of commits: what kind of change they announce, whether it fixes a bug, and which commits they name.

The rules read conventional commits, tracker prefixes ("BUG:", "Fixed #12 --") and plain English, and the usual first
words of some other languages. In doubt, a message announces no fix.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["fix", "revert", "refactor", "feature", "docs", "test", "chore", "style", "typo", "other"]

TYPES: dict[str, Kind] = {  # of conventional commits, and prefixes of trackers
    **dict.fromkeys(("fix", "fixes", "fixed", "bugfix", "hotfix", "bug", "regr", "regression", "security", "sec"), "fix"),
    **dict.fromkeys(("feat", "feature", "enh", "enhancement", "new", "perf", "improvement", "api", "depr"), "feature"),
    **dict.fromkeys(("docs", "doc", "website", "blog"), "docs"),
    **dict.fromkeys(("test", "tests", "tst", "testing", "bench"), "test"),
    **dict.fromkeys(("chore", "build", "bld", "ci", "deps", "dep", "release", "rls", "ver", "wip", "infra"), "chore"),
    **dict.fromkeys(("refactor", "refactoring", "cln", "clean", "cleanup", "mnt", "maint", "typ", "types"), "refactor"),
    **dict.fromkeys(("style", "lint", "fmt", "format", "sty"), "style"),
    **dict.fromkeys(("typo", "typos"), "typo"),
    "revert": "revert",
}  # fmt: skip
TRIVIAL_SCOPES = re.compile(
    r"(?i)docs?|documentation|website|readme|deps(?:-dev)?|dependencies|ci|build|builds|test|tests|testing|e2e|lint|"
    r"maintainers|eslint|typo|typos|style|release|changelog|examples?|workflows?|github|types?|typings?|bench(?:marks?)?|dev"
)
EMOJI = {"🐛": "fix", "🚑": "fix", "🔒": "fix", ":bug:": "fix", ":ambulance:": "fix", ":lock:": "fix"}
CONVENTIONAL = re.compile(r"(?P<type>[A-Za-z]+)(?P<scopes>(?:\([^()]*\))*)!?:+\s*(?P<rest>.*)", re.DOTALL)
TAG = re.compile(
    r"\[(?P<tag>[^\]]{1,40})\]\s*:?\s*|(?P<emoji>:[a-z_]+:|[\U0001f000-\U0001faff\u2600-\u27bf]\ufe0f?)\s*"
)
CONSEQUENCE = re.compile(
    r"(?i)\b(?:that|which) (?:made|makes|broke|breaks|caused?s?|prevent(?:s|ed)|led|leads|result)|\b(?:causing|breaking|leading to|resulting in)\b"
)
TRIVIAL_ELSEWHERE = re.compile(
    "文档|文檔|错别字|錯字|拼写|注释|格式|测试|誤字|ドキュメント|テスト|コメント|오타|문서|документац|опечатк"
)
TEST_COMPONENT = re.compile(r"t\d{4}|(?:\w+[-_/])?tests?(?:[-_/]\w+)?|selftests?")
MERGE = re.compile(r"(?i)(?:rollup )?merge (?:branch|pull request|remote-tracking branch|tag|of|PR)\b")
COMPONENT = re.compile(
    r"(?![A-Za-z]+tion:)(?:[\w*{},@./+-]+(?:, ?[\w*{}@./+-]+)*(?:\([^()]*\))?:|[\w.]+(?:-[\w.]+)* -)\s+(?=\S)"
)
ISSUE_START = re.compile(
    r"(?i)(?P<closes>fix(?:e[sd])?|close[sd]?|resolve[sd]?)?:?\s*(?P<refs>(?:(?:bug|issue|gh|bpo|ref(?:s|erence)?|PR [\w+-]+/)?[ -]?"
    r"(?:#\d+|\d{4,}|[A-Z]{2,10}-\d+|CVE-\d{4}-\d+)(?:\s*(?:,|and|&)\s*)?)+)\s*(?:--|[:.,-]|\s)\s*(?=\S)"
)
CLOSES = re.compile(
    r"(?i)\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?)\s*:?\s+(?:(?:issue|bug)\s+)?(?:[\w.-]+/[\w.-]+)?"
    r"(?:#\d+|gh-\d+|https?://\S+/(?:issues|pull|bugs?)/\d+|[A-Z]{2,10}-\d+\b)"
)
REVERT_SUBJECT = re.compile(r'(?i)(?:revert(?:s|ed|ing)?|back(?:ed)? ?out)\b[: ]*(?:of )?(?:commit )?(?:"(?P<quoted>.+)"|(?P<plain>.*))', re.DOTALL)  # fmt: skip
RELAND_SUBJECT = re.compile(r'(?i)(?:re-?apply|re-?land|un-?revert)\b[: ]*(?:"(?P<quoted>.+)"|(?P<plain>.*))', re.DOTALL)  # fmt: skip
REVERTED_HASH = re.compile(r"(?i)\bthis (?:\w+ )?reverts? commits? ([0-9a-f]{7,64})|\breverts? (?:commit )?([0-9a-f]{7,64})\b")  # fmt: skip
BLAMED_NUMBER = re.compile(
    r"(?i)(?:\bregress(?:ed|ion)s? (?:[\w.]+ ){0,4}?(?:in|from|by|since|due to|introduced by)|\bbug (?:in|from|since|due to)|"
    r"\b(?:introduced|broken?|caused|changed) (?:[\w.]+ ){0,3}?(?:in|by|with|since|after)|\bdue to|\bbecause of|\b(?:but )?(?:since|after)|"
    r"\bfollow[- ]?up (?:to|of|for|on|from))[ :]*(?:the )?(?:PR |pull request |change |commit )?"
    r"(?:(?:[\w.-]+/[\w.-]+)?#|https?://\S+/pull/)(?P<number>\d+)\b"
)
BLAMED_HASH = re.compile(
    r"(?i)(?:\bregress(?:ed|ion)s? (?:\w+ )?(?:in|from|by|since|due to)|\bbug (?:in|from|since|due to)|"
    r"\bintroduced (?:\w+ )?(?:in|by|with)|\bbroken? (?:\w+ )?(?:in|by|since|after)|\bcaused by|"
    r"\bfollow[- ]?up (?:to|of|for|on)|^fixes:|\boversight in|\bincomplete (?:fix|change) in|\bmissed in|\bregressed)"
    r"[ :]*(?:the )?(?:commit |change |PR )?(?:#\d+ )?[\s(`\"\[]*(?P<hash>[0-9a-f]{7,64})\b",
    re.MULTILINE,
)
PROCESS_REVERT = re.compile(
    r"(?i)\b(?:accident(?:al(?:ly)?)?|by mistake|mistaken(?:ly)?|wrong branch|not ready|premature(?:ly)?|too early|"
    r"unintended (?:commit|push|merge)|pushed to|merged too|until|for now|wait(?:ing)? for|temporar(?:y|ily)|not needed|"
    r"no longer needed|postpone|next release|decided|reconsider|discussion)\b"
)
FIX_WORD = r"(?:hot|bug)?-?fix(?:e[sd]|ing|up)?(?![\w-])|bug-?fix(?:es)?"
MAX_COMPONENTS = 4  # such as "net: sched: "
MIN_REASON_CHARS = 20  # of a revert; one without a reason may be a change of mind
PRE_FIX = re.compile(r"(?i)\b(?:fixup!|squash!|amend!)")
DEFECT = re.compile(
    r"(?i)\b(?:bugs?(?![\w-]*(?:tracker|report|zilla))|buggy|regress(?:ions?|ed)|(?:crash(?:e[sd]|ing)?)(?![ -](?:trial|report|test|handler|dump|recover|log|course))\w*|segfault(?:s|ed|ing)?|"
    r"segmentation fault|deadlock(?:s|ed)?|race(?:s| conditions?)|data race|(?:memory|resource|fd|file descriptor) leaks?|"
    r"leak(?:s|ed|ing|age)?|infinite(?:ly)? (?:loop|recursion)|stack overflow|(?:integer|buffer|int|heap) overflows?|"
    r"off[- ]by[- ]one|null[- ]?pointer|nil (?:pointer|dereference)|NPE|NullPointerException|use[- ]after[- ]free|double free|"
    r"UAF|out[- ]of[- ]bounds|incorrect(?:ly)?|wrong(?:ly)?|mistaken(?:ly)?|broken|broke|breaks|corrupt(?:s|ed|ion|ing)?|"
    r"CVE-\d+|vulnerabilit(?:y|ies)|XSS|ReDoS|injection|data loss|hangs?|hung|panic(?:s|ked)?|unhandled|uncaught|erroneous(?:ly)?|"
    r"misbehav\w+|mishandl\w+|miscompil\w+|mismatch(?:es|ed)?|oopses|kernel oops|ICEs?|aborts?|dereferenc\w+|endless loop|exhaust(?:s|ed|ion)|definitely lost|"
    r"stuck|freez(?:e|es|ing)|no-op|NaN|time[- ]?outs?|timed out|constant[- ]time|timing attacks?|overflows?|poison|"
    r"plantage|absturz|abst(?:ü|ue)rz\w*|fehlerhaft\w*|behoben|korrigiert|corrigée?s?|bogue|erreur|fallo|errore|ошибк\w+|fail(?:s|ed|ing)? (?:to|when|if|on|with|for)|does(?:n't| not) work|not working|spurious(?:ly)?|bypass|"
    r"silently (?:\w+ )?(?:ignor|drop|los|return|skip|wrong|truncat|overflow|discard)\w*|undefined behaviou?r|UB|unintended(?:ly)?)\b"
)
CRASH_AVOIDED = re.compile(r"(?i)(?<!easier )(?<!harder )\bto (?:fix|prevent|correct)\b|[,;(]\s*fix(?:e[sd]|ing)?\b|\band fix(?:e[sd])?\b|\bfix(?:es|ing) (?!size|width|point)")  # fmt: skip
# First words of a subject. The first group is a fix on its own, the second with a closed issue or a word for a defect.
FIX_LEAD = re.compile(
    rf"(?i)(?:{FIX_WORD}|correct(?:s|ed|ly|ing)?|prevent(?:s|ed|ing)?|repair(?:s|ed|ing)?|resolve[sd]?|resolving|patch(?:es|ed)?|"
    r"do not|don'?t|doesn'?t|never|no longer|properly|avoid(?:s|ed|ing)?|restore[sd]?|handle[sd]? (?:the )?(?:case|error|missing|empty|"
    r"null|none|nil|undefined|invalid|edge|negative|zero|unexpected|duplicate|non)\w*|stop(?:s|ped)? \w+ing|missing|"
    r"ensure[sd]?|preserve[sd]?|respect(?:s|ed)?|honou?r(?:s|ed)?|close[sd]? (?:the |all |open )?(?:\w+ ){0,2}(?:file|handle|socket|connection|stream|response|body|fd|descriptor|cursor|pool)s?|"
    r"free(?:s|d)? (?:the )?|take the lock|lock|escape[sd]?|handle[sd]?|check(?:s|ed)? .* before|limit(?:s|ed)? (?:the )?(?:recursion|number|size|depth|length)|évite\w*|empêche\w*|verhinder\w+|evita\w*|"
    r"guard(?:s|ed)? against|protect(?:s|ed)? against|work ?around|gracefully|mitigated?|unbreak|"
    r"corrig\w+|correction|répar\w+|beheb\w+|behoben|korrigier\w+|arregl\w+|solucion\w+|consert\w+|risolt\w+|correg\w+|"
    r"napraw\w+|popraw\w+|oprav\w+|исправ\w+|фикс\w*|düzelt\w+)(?![\w-])|(?:修复|修復|修正|修补|修補|解决|解決|バグ|不具合|수정|버그)"
)
MAYBE_LEAD = re.compile(
    r"(?i)(?:handle[sd]?|ensure[sd]?|make|made|makes|only|always|check(?:s|ed)?|return(?:s|ed)?|raise[sd]?|set(?:s)?|reset|"
    r"respect(?:s|ed)?|preserve[sd]?|keep|kept|use[sd]?|using|treat(?:s|ed)?|ignore[sd]?|skip(?:s|ped)?|limit(?:s|ed)?|escape[sd]?|"
    r"validate[sd]?|reject(?:s|ed)?|change[sd]?|replace[sd]?|remove[sd]?|accept(?:s|ed)?|close[sd]?|flush|clear|include|exclude|"
    r"allow(?:s|ed)?|require|call|pass|wait|initiali[sz]e|default|disable|drop|adjust|tweak|update[sd]?|work|get|let|force|"
    r"invalidate|account for|consider|compare|clamp|cast|convert|copy|defer|delay|catch|read|write|send|emit|strip|trim|unset)\b"
)
FEATURE_LEAD = re.compile(
    r"(?i)(?:add(?:s|ed|ing)?|implement(?:s|ed|ing)?|introduce[sd]?|support(?:s|ed)?|enable[sd]?|allow(?:s|ed)?|expose[sd]?|"
    r"provide[sd]?|create[sd]?|deprecate[sd]?|feature|new|initial|optimi[sz]e[sd]?|improve[sd]?|speed up|let|export(?:s|ed)?|"
    r"extend(?:s|ed)?|enhance[sd]?|warn)\b"
)
NEUTRAL_LEAD = re.compile(r"(?i)(?:record|show|say|report|count|list|name|describe|write|print|log|measure|track|display|detect|note|state|tell|collect|store|save|inject|simulate|investigate|reproduce|debug)(?:s|e?d|ing)?\b")  # fmt: skip
ADDS_MISSING = re.compile(r"(?i)(?:add(?:s|ed)?|include[sd]?) (?:a |the |some |back )?(?:missing|forgotten|lost)\b")
REFACTOR_LEAD = re.compile(
    r"(?i)(?:refactor\w*|rename[sd]?|move[sd]?|extract(?:s|ed)?|inline[sd]?|simplif(?:y|ies|ied)|clean(?:s|ed|ing|up)?|"
    r"reorgani[sz]e[sd]?|restructure[sd]?|split|merge[sd]?|convert(?:s|ed)?|moderni[sz]e[sd]?|rewrite|rewrote|reword|tidy|dedup\w*|"
    r"unify|unified|consolidate[sd]?|(?:drop|delete|remove)(?:p?e?[sd])? (?:support|unused|dead|unnecessary|obsolete|redundant|deprecated|"
    r"duplicate|old|legacy)|replace[sd]?|switch(?:ed)?|migrate[sd]?|port(?:ed)?|type|annotate)\b"
)
STYLE_LEAD = re.compile(r"(?i)(?:re-?format\w*|format(?:ted|ting)?|lint\w*|prettier|black|gofmt|rustfmt|re-?indent\w*|whitespace|sort(?:ed)? imports|run (?:black|prettier|ruff|isort|gofmt|clang-format))\b")  # fmt: skip
DOCS_LEAD = re.compile(r"(?i)(?:document(?:s|ed|ation)?|docs?|doc'd|clarif(?:y|ies|ied)|mention(?:s|ed)?|describe[sd]?|explain(?:s|ed)?|(?:update[sd]? )?(?:the )?(?:changelog|readme|release notes|changes|news))\b")  # fmt: skip
TEST_LEAD = re.compile(r"(?i)(?:(?:un)?test(?:s|ed|ing)?|(?:add(?:s|ed)?|improve[sd]?|extend(?:ed)?|update[sd]?|remove[sd]?|skip(?:ped)?|disable[sd]?|de-?flake|cover(?:s|ed)?) (?:\w+[ -]){0,4}?(?:tests?|test ?cases?|coverage|assertions?))\b")  # fmt: skip
CHORE_LEAD = re.compile(
    r"(?i)(?:bump(?:s|ed)?|upgrade[sd]?|downgrade|pin(?:s|ned)?|unpin|release[sd]?(?= v?\d|$|:| version| notes| candidate| \d)|version|v?\d+\.\d+|prepare[sd]?|start(?:ed)? (?:\w+ )?development|"
    r"back to development|update[sd]? (?:\w+ ){0,3}?(?:dep(?:endenc(?:y|ies)|s)|lock ?file|requirements|submodules?|version|authors|contributors|license|"
    r"copyright|translations|sponsors?|vendored|snapshots?)|bug-?fix(?:es)? (?:release|version)|"
    r"(?:post|pre)-release|publish|build|ci|"
    r"update (?:\S+ )?(?:from v?[\d.]+ )?to v?\d+\.)"
)
TRIVIAL = re.compile(
    r"(?i)(?:typos?|mis-?spell\w*|spelling|grammar|wording|punctuation|lint(?:er|ing|s)?|e?slint|flake8|pylint|ruff|mypy|pyright|clippy|"
    r"rubocop|jshint|tslint|pep-?8|isort|black|prettier|gofmt|govet|golint|golangci\S*|checkstyle|phpcs|shellcheck|code ?style|styling|style|"
    r"formatting|format|camel ?case|indent(?:ation)?|white-?spaces?|newlines?|line (?:length|endings?)|imports? order|import sorting|"
    r"docs?|doc ?strings?|documentation|javadocs?|jsdoc|godoc|readme(?:\.\w+)?|change-?log(?:\.\w+)?|changes|release notes?|news|comments?|"
    r"(?:broken |dead )?(?:links?|urls? in)|examples?|tutorials?|(?:unit |flaky |failing |broken |integration )?tests?|test ?suite|"
    r"test ?cases?|testing|specs?|fixtures?|mocks?|coverage|ci|travis|appveyor|circleci|github actions?|actions?|workflows?|pipelines?|"
    r"jenkins|codecov|pre-commit|builds?|builds? (?:script|error|failure)s?|compilation|compile|compiler warnings?|warnings?|makefile|cmake|"
    r"dockerfile|packaging|package\.json|pyproject(?:\.toml)?|setup\.py|gitignore|license|copyright|authors?|merge|merge conflicts?|"
    r"conflicts?|rebase|type ?hints?|type annotations?|annotations?|typings?|type ?checks?|type errors|version|versions|versioning|"
    r"dependenc(?:y|ies)|deps|requirements|release|releases|metadata|nits?|review comments?|naming|todos?|benchmarks?|"
    r"translations?|locales?|sphinx|rst|markdown|deprecation warnings?|unused \w+)"
)
FIRST_TRIVIAL = re.compile(r"(?i)typos?|lint|linting|spelling|grammar|flaky|test_\w+")
TEST_NAME = re.compile(r"Test[A-Z]\w+|\w+Tests?")
CUT = re.compile(r"(?i)\s(?:in|on|when|for|of|with|from|to|at|by|where|while|about|caused|that|which|after|before|if|due|during|so|under|as|between|into|via|using|and|not|is|are|being|causing|inside|by)\s|[,;:(]")  # fmt: skip
TRIVIAL_PLACE = re.compile(
    r"(?i)\b(?:in|of|to|for|on|from|with|under)\s+(?:\S+\s+){0,3}?(?:docs?|documentation|read-?me(?:\.\w+)?|change-?log(?:\.\w+)?|doc-?strings?|comments?|tests?|"
    r"unit tests?|test ?suite|test ?cases?|specs?|ci|examples?|workflows?|tutorials?|walk-?through|notebooks?|MAINTAINERS|faq|release notes|github actions|coverage|website|news|lint|pre-commit|fixtures?|benchmarks?|test_\w+(?:\.py)?|\S+\.md|\S+\.rst|\S+\.ya?ml)"
    r"[\s.!`'\"]*(?:$|[(#])"
)
NOT_WORDS = re.compile(r"(?i)\b(?:pre|suf|in|af)fix\w*|position: ?fixed|\bfix(?:ed)?[- ](?:size|width|length|point|position|layout|rate|step|format|height)\w*|\bfixtures?\b|\bde-?bug\w*|\bbug ?(?:tracker|report(?:s|er|ing)?|zilla)\b|\bfixed(?= (?:in|by|bug))")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """What the message of a commit announces."""

    kind: Kind
    is_bug_fix: bool = False
    reverted: str = ""  # id of the commit that it reverts, maybe abbreviated
    reverted_subject: str = ""
    is_reland: bool = False  # reverts a revert
    blamed: tuple[str, ...] = ()  # commits that it says introduced the bug: ids, maybe abbreviated, or numbers with "#"


def read_message(subject: str, body: str = "") -> Message:
    """Return what a message announces."""
    plain = subject.strip()
    hashes = (match["hash"].lower() for match in BLAMED_HASH.finditer(body))
    numbers = (f"#{match['number']}" for match in BLAMED_NUMBER.finditer(body))
    blamed = tuple(dict.fromkeys((*hashes, *numbers)))
    if PRE_FIX.match(plain):
        return Message("chore")
    revert = _read_revert(plain, body)
    if revert:
        return revert
    kind, is_fix = _classify(plain, body)
    return Message(kind, is_fix, blamed=blamed if is_fix else ())


def _read_revert(subject: str, body: str) -> Message | None:
    """Return the message of a revert, or None. The revert of a revert is no fix, but names what it restores."""
    text, _ = _strip_tags(subject)
    conventional = CONVENTIONAL.fullmatch(text)
    if conventional and TYPES.get(conventional["type"].lower()) == "revert":
        text = f'Revert "{conventional["rest"].strip().strip(chr(34))}"'
    reland = RELAND_SUBJECT.match(text)
    revert = None if reland else REVERT_SUBJECT.match(text)
    named = REVERTED_HASH.search(body) or REVERTED_HASH.search(subject)
    commit = (named[1] or named[2] or "").lower() if named else ""
    if reland and (commit or reland["quoted"]):
        return Message("revert", False, commit, (reland["quoted"] or "").strip(), is_reland=True)
    if not revert or not (commit or revert["quoted"]):
        return None
    quoted = (revert["quoted"] or "").strip()
    if re.match(r'(?i)revert\b|revert "', quoted):
        return Message("revert", False, commit, quoted, is_reland=True)
    inner, inner_fix = _classify(quoted, "") if quoted else ("other", False)
    is_trivial = inner in ("docs", "test", "chore", "style", "typo") and not inner_fix
    reason = re.sub(r"(?im)^.*\breverts? (?:commit )?[0-9a-f]{7,64}.*$|^\S+:\s.*@.*$|^reverts? \S+#\d+", "", body)
    defect = bool(DEFECT.search(reason)) or bool(CLOSES.search(reason))
    told = len(reason.strip()) >= MIN_REASON_CHARS and not PROCESS_REVERT.search(reason)
    is_fix = not is_trivial and (defect or told)
    return Message("revert", is_fix, commit, quoted)


def _strip_tags(subject: str) -> tuple[str, Kind | None]:
    """Return a subject without its tags and emojis, and the kind that they announce."""
    kind: Kind | None = None
    while match := TAG.match(subject):
        name = (match["tag"] or match["emoji"]).strip().strip("\ufe0f")
        kind = kind or TYPES.get(name.lower()) or ("fix" if EMOJI.get(name) else None)
        if len(match[0]) == len(subject):
            break
        subject = subject[match.end() :]
    return subject, kind


def _classify(subject: str, body: str) -> tuple[Kind, bool]:
    """Return the kind of a message, and whether it announces the fix of a bug."""
    text, tag = _strip_tags(subject)
    if tag and tag != "fix":
        return tag, False
    conventional = CONVENTIONAL.fullmatch(text)
    typed = TYPES.get(conventional["type"].lower()) if conventional else None
    if conventional and typed:
        rest, scopes = conventional["rest"], re.findall(r"\(([^()]*)\)", conventional["scopes"])
        if typed != "fix":
            return typed, False
        if any(TRIVIAL_SCOPES.fullmatch(scope.strip()) for scope in scopes):
            return _trivial_kind(scopes[0]), False
        rest = COMPONENT.sub("", rest, count=1) if COMPONENT.match(rest) else rest
        return _classify_fix(_strip_issue(rest)[0] or rest)
    if tag == "fix":
        return _classify_fix(text)
    text, closes = _strip_issue(text)
    for _ in range(MAX_COMPONENTS):
        component = COMPONENT.match(text)
        if not component:
            break
        name = component[0].strip(" :").lower()
        if TRIVIAL_SCOPES.fullmatch(name.split("/")[0].strip("()")) or TEST_COMPONENT.fullmatch(name):
            return _trivial_kind(name), False
        text, more = _strip_issue(text[component.end() :])
        closes = closes or more
    if MERGE.match(text):
        first = body.strip().partition("\n")[0].strip("* ")
        is_fix = bool(re.search(r"(?i)[/-](?:fix|bug|hotfix)\b|\bfix\b", text)) or (
            bool(first) and _classify_plain(first, body, closes=False)[1]
        )
        return ("fix" if is_fix else "chore"), is_fix
    return _classify_plain(text, body, closes=closes)


def _strip_issue(text: str) -> tuple[str, bool]:
    """Return a subject without the reference at its start, and whether that closes an issue."""
    match = ISSUE_START.match(text)
    return (text[match.end() :], bool(match["closes"])) if match else (text, False)


def _classify_fix(text: str) -> tuple[Kind, bool]:
    """Return the kind of a message with the type "fix": its text can still name something else."""
    for lead, kind in ((TEST_LEAD, "test"), (CHORE_LEAD, "chore"), (STYLE_LEAD, "style"), (DOCS_LEAD, "docs")):
        if lead.match(text) and not ADDS_MISSING.match(text):
            return kind, False  # type: ignore[return-value]
    trivial = _find_trivial(text)
    if trivial:
        return trivial, False
    return "fix", True


def _classify_plain(text: str, body: str, *, closes: bool) -> tuple[Kind, bool]:
    words = NOT_WORDS.sub("", text) if not re.match(r"(?i)fix(?:ed)? ", text) else text
    story = NOT_WORDS.sub("", _first_part(body))
    has_defect = bool(DEFECT.search(words))
    told = bool(DEFECT.search(story)) or bool(re.search(r"(?i)\b(?:this|which|to|and|also)? ?fix(?:es|ed|ing)\b(?! (?:#|typo|lint|test|doc))", story))  # fmt: skip
    is_closing = closes or bool(CLOSES.search(body)) or bool(CLOSES.search(text))
    trivial = _find_trivial(text)
    if FIX_LEAD.match(words):
        return (trivial, False) if trivial else ("fix", True)
    if TEST_LEAD.match(words):
        return "test", False
    if DOCS_LEAD.match(words):
        return "docs", False
    if STYLE_LEAD.match(words):
        return "style", False
    if CHORE_LEAD.match(words):
        return "chore", False
    if ADDS_MISSING.match(words):
        return (trivial, False) if trivial else ("fix", True)
    mentions_fix = bool(CRASH_AVOIDED.search(words)) or (has_defect and not NEUTRAL_LEAD.match(words))
    if trivial and re.search(rf"(?i)\b(?:{FIX_WORD})\b", words):
        return trivial, False
    if FEATURE_LEAD.match(words):
        return "feature", bool(CRASH_AVOIDED.search(words)) and not trivial
    if REFACTOR_LEAD.match(words):
        return ("fix", True) if CRASH_AVOIDED.search(words) and not trivial else ("refactor", False)
    if mentions_fix and not trivial:
        return "fix", True
    if re.search(rf"(?i)\b(?:{FIX_WORD})\b", words):
        return "fix", True
    if not trivial and (closes or told or (is_closing and MAYBE_LEAD.match(words))):
        return "fix", True
    return trivial or "other", False


def _first_part(body: str) -> str:
    """Return the text of a body without trailers, at most its first 1,500 characters."""
    lines = [line for line in body[:3000].splitlines() if not re.match(r"[\w-]+(?:-by|-Id|-URL): ", line)]
    return "\n".join(lines)[:1500]


def _find_trivial(text: str) -> Kind | None:
    """Return the kind of a fix whose object is no behaviour of the program: a typo, the docs, the tests, a build."""
    if CONSEQUENCE.search(text):
        return None
    if TRIVIAL_ELSEWHERE.search(text):
        return "docs"
    start = re.match(rf"(?i)(?:{FIX_WORD}|correct(?:s|ed)?|resolve[sd]?|repair(?:s|ed)?|update[sd]?|add(?:s|ed)?|some|more|minor|small|few|[ ,/&]|and|the|a|an|missing|various)+(?=\s|$)\s*", text)  # fmt: skip
    rest = text[start.end() :] if start else text
    thing = CUT.split(f"{rest} ", maxsplit=1)[0].strip(" .!`'\"")
    words = re.sub(
        r"(?i)(?: (?:entr(?:y|ies)|files?|sections?|pages?|errors?|failures?|issues?|problems?|violations?|complaints?|notices?|strings?|numbers?))+$",
        "",
        thing,
    ).split()
    for count in (3, 2, 1):
        last = " ".join(words[-count:])
        if len(words) >= count and TRIVIAL.fullmatch(last):
            return _trivial_kind(last)
    if words and FIRST_TRIVIAL.fullmatch(words[0]):
        return _trivial_kind(words[0])
    if words and TEST_NAME.fullmatch(words[-1]):
        return "test"
    if len(words) == 1 and words[0].lower() in ("type", "types"):
        return "chore"
    if place := TRIVIAL_PLACE.search(text):
        return _trivial_kind(place[0])
    if re.search(r"(?i)\bmerge conflicts?\b", text):
        return "chore"
    return "typo" if re.search(r"(?i)\btypos?\b", text) else None


def _trivial_kind(text: str) -> Kind:
    lower = text.lower()
    if re.search(r"typo|spell|grammar|wording|punctuation", lower):
        return "typo"
    if re.search(r"doc|readme|change-?log|comment|link|example|tutorial|notes|news|faq|\.md|\.rst|website", lower):
        return "docs"
    if re.search(r"test|spec|fixture|mock|coverage|flaky|bench", lower):
        return "test"
    if re.search(
        r"lint|flake8|ruff|style|format|indent|space|newline|line|black|prettier|pep|sort|clippy|rubocop|fmt", lower
    ):
        return "style"
    return "chore"
