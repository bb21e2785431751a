"""Evidence that two texts about one line describe the same defect: its kind, its harm, the names in it and its fix."""

from __future__ import annotations

import re
from functools import lru_cache

from council.protocols.judges.scopes import find_code_names

MAX_TEXT_CHARS = 4_000
# Kinds of defects, each with the words that reviewers use for its cause, its harm or its cure.
_STRONG_PATTERNS = {
    "sql injection": r"sql.{0,3}inject|inject\w*.{0,40}\b(?:sql|query|statement)|(?:interpolat|concatenat|spliced?|built|format)\w*.{0,60}\b(?:sql|query|statement)|parameteri[sz]ed|bind(?:ing)? (?:the )?(?:value|parameter)|apostrophe",
    "command injection": r"(?:shell|command).{0,3}inject|shell ?= ?true|shell meta|arbitrary (?:shell )?command",
    "html injection": r"\bxss\b|cross-site scripting|innerhtml|textcontent|unescaped|html.{0,3}inject|dangerouslysetinnerhtml",
    "path traversal": r"travers|\.\./|zip.?slip|outside (?:of )?the \w+ ?(?:folder|directory|root)|escapes? the (?:folder|directory|root)|absolute path",
    "unsafe deserialisation": r"unpickl|pickle|deseriali[sz]|yaml\.load|arbitrary code",
    "unchecked signature": r"signature.{0,40}\b(?:not|never|un)|(?:not|never|without)\b.{0,40}\bsignature|forged? token|forg(?:e|ed|ing)\b",
    "missing authentication": r"unauthenticated|without (?:any )?(?:authentication|login)|not authenticated|no authentication",
    "secret exposure": r"hard-?coded (?:\w+ )?(?:secret|credential|key|password|token)|credential|(?:log|print|leak|expos|writ)\w*.{0,50}\b(?:token|password|secret|card|api key|personal data|pii)\b|\b(?:token|password|secret|key)s?\b.{0,60}\b(?:logged|in the logs?|log output|source|repository|clear text|plain ?text)",
    "weak hash": r"\bmd5\b|\bsha-?1\b|weak (?:hash|cipher)|unhashed|unsalted|\becb\b",
    "predictable value": r"predictable|guess(?:able|ed)|insecure random|cryptograph\w+ (?:secure )?(?:random|generator)|math/rand|math\.random|non-cryptographic|entropy",
    "timing attack": r"timing (?:attack|side|leak|information|difference)|constant[- ]time|compare_digest",
    "race condition": r"\brac(?:e|es|y)\b|interleav|check-then-act|read-modify-write|toctou|lost update|row lock|for update\b|without (?:a |any |holding )?(?:the )?(?:\w+ )?(?:lock|synchroni[sz])|unsynchroni[sz]|not atomic|atomically|not thread.?safe|both (?:read|see|pass|find|load)\b",
    "missing unlock": r"unlock|(?:mutex|lock)\w*.{0,40}\b(?:never released|not released|stays? locked)|leaves? .{0,20}locked",
    "long lock": r"(?:held|holding|holds?|kept|keeps)\b.{0,30}\b(?:during|while|across)|under the lock",
    "deadlock": r"deadlock|lock order|blocks? forever|hangs? forever",
    "resource leak": r"(?:never|not|isn't|aren't|without) (?:being |be |ever )?(?:clos|releas|freed|remov|cancel|clear|unsubscrib|stopp|clean)|no clean-?up|clean-?up|resource leak|(?:leak\w*).{0,30}\b(?:connection|goroutine|descriptor|listener|handle|file|timer|socket|cursor|task|memory)|file descriptor|clearinterval|removeeventlistener|unmount|context manager|try-with-resources|defer \w+\.close",
    "unbounded growth": r"unbounded|without (?:a |any )?(?:limit|bound)|no (?:upper )?(?:limit|bound|cap|eviction|expiry)|grows? (?:forever|without|with each|indefinitely)|evict|out of memory|\boom\b|exhaust\w* (?:memory|the heap)|keeps? every|ttlcache|maxsize|lru|thousands of (?:goroutines|threads|tasks)",
    "off by one": r"off[- ]by[- ]one|fence-?post|one (?:too many|too few|short)|(?:drop|miss|skip|los|exclud|omit|cut)\w* (?:off |out )?(?:the |its )?(?:last|final|first) |(?:last|final|first) (?:\w+ ){1,4}(?:is |are |gets? )?(?:dropped|missing|missed|lost|skipped|omitted|never|unreachable)|indexerror|index out of|out of (?:range|bounds)",
    "division by zero": r"divi(?:sion|de|des|ding) by zero|zerodivision|\bnan\b",
    "overflow": r"overflow|wraps? around|underflow|narrowing|(?:32|64)[- ]bit|\bu?i?(?:32|64)\b.{0,30}(?:max|large|cast)",
    "unchecked status": r"status code|http status|res\.ok|response\.ok|non-2xx|[45]xx|http errors?|raise_for_status|\b500\b.{0,30}(?:response|parsed)",
    "double effect": r"idempoten|(?:charged?|sent|runs?|booked|counted|executed|billed|processed) twice|double[- ](?:charge|submit|send|spend|process|book)|duplicate (?:charge|request|message|e-?mail|delivery|event)|at least once|replay",
    "retry policy": r"back-?off|retry storm|hammer",
    "endless loop": r"infinite|endless|never terminates|never ends|recursion",
    "one query each": r"n ?\+ ?1|(?:one|a|separate) (?:query|request|call|round.?trip|statement|select) (?:per|for each|for every)|quer(?:y|ies) (?:inside|in) (?:a |the )?loop|sequential(?:ly)?|one (?:after|by) (?:another|one|the other)|await\w*.{0,30}loop|promise\.all|executemany|batch|round[- ]?trips?",
    "slow algorithm": r"quadratic|o\(n|linear (?:scan|search)|full (?:table )?scan|missing index|no index|index on",
    "shared mutable state": r"mutable default|shared (?:between|across|by) (?:all |every )?(?:calls|callers|instances|requests)|default (?:list|dict|argument)|same (?:list|dict|object) (?:for|in) (?:every|each|all)|module-level state|aliasing",
    "inverted condition": r"\binvert|opposite case|condition is reversed|negation is (?:wrong|missing)",
    "wrong operator": r"(?:wrong|opposite|incorrect) (?:\w+ ){0,2}(?:operator|sign)|compar\w+.{0,40}\bwrong|(?:wrong|incorrect) (?:\w+ )?comparison|\band ?/ ?or\b|operator (?:has|should|must)|arithmetic (?:error|sign|operator)",
    "wrong constant": r"constant\b.{0,30}\b(?:off|too|wrong)|off by one: (?:this|the) constant",
    "slow pattern": r"redos|catastrophic|backtrack",
    "existing rows": r"existing (?:rows|orders|data|records|users)|already has rows|without a default|no default|backfill|table is empty|(?:fails?|rejected|aborts?)\b.{0,40}\b(?:rows|table)",
    "orphaned rows": r"orphan|dangling|referential",
    "cascading delete": r"cascad",
    "multiplied rows": r"fan-?out|cartesian|multipl(?:y|ies|ied) (?:the )?(?:rows|total)|(?:counted|summed|counts|sums?)\b.{0,30}\b(?:twice|several times|more than once|double)|appears? (?:twice|several times)|duplicate\w* the (?:order|row)|inflat",
}
# Words for these occur beside many other defects, so they count only together with something else.
_WEAK_PATTERNS = {
    "absent value": r"\bnull\b|\bnil\b|\bnone\b|undefined|nonetype|\bnpe\b|nullpointer|attributeerror|dereferenc|\bunwrap\b|optional\.get|missing (?:user|row|key|entry|record|value)|keyerror|unbound",
    "access control": r"authori[sz]|permission|access control|\bidor\b|privilege|\brole\b|take ?over|impersonat|(?:other|another|any|every|somebody else)'?s? (?:user|tenant|customer|account|member)|anyone (?:who|can|with)|belong(?:s|ing)? to (?:another|other)|ownership|tenant|not bound to",
    "broken contract": r"breaking change|backward|incompatib|callers? (?:still|that|which|pass|expect|rely)|signature|public api|contract|rename",
    "concurrency": r"concurren|simultaneous|arrive together|at the same time|parallel|thread.?safe|(?:two|both|several) (?:requests|goroutines|threads|workers|callers|calls|processes|transactions)",
    "lost error": r"swallow|silent(?:ly)?|bare except|catch-all|(?:error|exception|failure|err)s?\b.{0,40}\b(?:ignored|discarded|dropped|lost|hidden|swallowed)|(?:ignor|discard|drop|los|swallow|hid)\w*.{0,30}\b(?:error|exception|failure|err)\b|last error|reports? success|believe\w* .{0,40}succe|returns? nil (?:instead|after)|even when .{0,60}(?:fail|expired)",
    "missing test": r"no tests?\b|untested|missing tests?|test coverage|not covered",
    "missing validation": r"negative (?:amount|value|number|quantity|price|id)|not validated|no validation|never validated|validat|range check|accepts? (?:any|negative|arbitrary|a negative|zero)|sanitiz|above 100",
    "no time limit": r"time-?out|deadline|hangs?\b|indefinitely|waits? forever",
    "regular expression": r"\bregex|regular expression|anchor",
    "rounding": r"float|rounding|\brounds?\b(?![- ]?trip)|rounded|precision|decimal|\bcents?\b|bigdecimal|truncat|integer division|floor division",
    "stale data": r"stale|invalidat|out of date|outdated|never refreshed|dependency array|dependencies|old (?:value|entry|price)",
    "style": r"docstring|naming|readab|magic (?:number|constant|value)|typo|dead code|unused|hard to read|belongs? in(?:to)? (?:the )?config|type annotation",
    "text form": r"case[- ](?:in)?sensitiv|lower-?case|upper-?case|unicode|utf-?8|encoding|normali[sz]|whitespace",
    "time zone": r"time ?zone|\butc\b|naive|\bdst\b|daylight|local time|wall clock|monotonic|midnight|milliseconds|epoch",
    "transaction": r"transaction|roll(?:s|ed)? ?back|half[- ](?:written|applied|done)|partial(?:ly)? (?:write|written|applied|update|commit)|never commit|not committed|left in an? (?:inconsistent|partial)",
    "uniqueness": r"unique (?:constraint|index|key)|on conflict|upsert|duplicate (?:row|key|entr)",
    "wrong condition": r"(?:wrong|reversed) (?:condition|operator|comparison|branch|way)|always (?:true|false)|never true|negat(?:ed|ion)|precedence|instead of `?(?:and|or|&&|\|\|)|else branch|outside the (?:if|branch|block)|falls? through",
    "wrong key": r"mix(?:ed|es)? up|wrong (?:id|key|column|field|variable|user|account|table|argument)|id spaces?|(?:compared|joined|matched|filtered) (?:with|against|on|by) an? ",
    "wrong order": r"unstable (?:sort|order)|lexicograph|sorted (?:as|by)|non-?determin|order by|iteration order",
}
WEAK_KINDS = frozenset(_WEAK_PATTERNS)
_PATTERNS = {kind: re.compile(words, re.IGNORECASE) for kind, words in (_STRONG_PATTERNS | _WEAK_PATTERNS).items()}
ASIDE_KINDS = frozenset(("missing test", "style"))  # about the code around a defect, not about what it does
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")
_FILE_WORD = re.compile(r"[A-Za-z_$][\w$]*")


@lru_cache(maxsize=2_048)
def find_kinds(text: str) -> frozenset[str]:
    """Return the kinds of defects that a text describes."""
    short = text[:MAX_TEXT_CHARS]
    return frozenset(kind for kind, pattern in _PATTERNS.items() if pattern.search(short))


def find_first_kinds(text: str) -> frozenset[str]:
    """Return the kinds of the first sentence that has any: what a finding is about stands first."""
    return next(
        (kinds for part in _SENTENCE_END.split(text[:MAX_TEXT_CHARS]) if (kinds := find_kinds(part))), frozenset()
    )


def find_words(text: str) -> frozenset[str]:
    """Return all identifiers and words of a file, to tell what a fix adds to it."""
    return frozenset(_FILE_WORD.findall(text))


def find_new_names(fix: str, known: frozenset[str]) -> frozenset[str]:
    """Return the code names of a fix that the file does not have yet: what it changes, not what it copies."""
    named = find_code_names(fix) | {word for word in _FILE_WORD.findall(fix[:MAX_TEXT_CHARS]) if not word.islower()}
    return frozenset(word.lower() for word in named - known if len(word) > 2 and not _is_prose(word, fix))


def _is_prose(word: str, text: str) -> bool:
    """Return whether a word only has its capital because it starts a sentence."""
    return word[1:].islower() and re.search(rf"(?:^|[.!?]\s+){re.escape(word)}\b", text) is not None and "(" not in text
