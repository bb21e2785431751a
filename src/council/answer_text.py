"""What the text of an answer is: a placeholder, a refusal, or an answer."""

from __future__ import annotations

import re

# Matches placeholders only; short answers such as "No." are valid.
PUNCTUATION = r"[\s!-/:-@\[-`{-~…–—]*"  # punctuation around words, or instead of them
PLACEHOLDER = re.compile(
    rf"{PUNCTUATION}"
    r"(?:todo|tbd|tba|fixme|n/?a|null|none|undefined|string|text|placeholder|lorem ipsum\b.*"
    r"|(?:(?:insert|enter|put|add) (?:your |the )?|your )(?:answer|text|response|reply|statement|analysis)(?: here)?)?"
    rf"{PUNCTUATION}",
    re.IGNORECASE | re.DOTALL,
)
MAX_PLACEHOLDER_CHARS = 200  # a longer text is a placeholder only if it has no word at all


def is_placeholder(text: str) -> bool:
    return (
        PLACEHOLDER.fullmatch(text) if len(text) < MAX_PLACEHOLDER_CHARS else re.fullmatch(PUNCTUATION, text)
    ) is not None


# Items of a list which say that there is none: "None.", "None that matter", "There are no real conflicts here."
_NONE = r"none|nothing|nil|n/?a|keine?|nichts|aucune?|rien|ning[uú]n[oa]?|nada|nessun[oa]?|niente|nenhuma?|无|没有|なし|ない"
_POINT = (
    r"(?:points?|conclusions?|claims?|issues?|matters?|questions?|tensions?|conflicts?|disagreements?|contradictions?"
    r"|differences?|disputes?|divergences?|widerspr[uü]ch\w*|konflikte?|differenzen|streitpunkte?|désaccords?|conflits?"
    r"|desacuerdos?|contradicciones|conflictos?|contraddizion[ei]|disaccord[oi]|conflitt[oi]|contradiç\w+|desacordos?|conflitos?)"
    r"(?: of (?:contention|conflict|disagreement|dispute))?"
)
_SCOPE = (
    r"(?: (?:(?:that|which) (?:(?:really |truly )?matters?|(?:would )?changes? the (?:\w+ )?(?:decision|answer))"
    r"|of (?:note|substance|importance)|at (?:all|this time)|whatsoever|found|identified|remains?|remaining|here"
    r"|(?:was|were) (?:found|identified)|(?:between|among) (?:them|the \w+)|to report"
    r"|(?:on|about|regarding) the (?:\w+ )?(?:conclusions?|recommendations?|answers?|question)))*"
)
_SAME = (
    r"(?:(?:all|both)(?: \w+){0,3}? (?:agree|align|concur|say the same|reach the same (?:\w+ )?conclusions?)"
    r"|the \w+ (?:all )?(?:agree|align|concur|say the same|reach the same (?:\w+ )?conclusions?))"
)
_NOTHING_FOUND = re.compile(
    rf"(?:there (?:is|are|was|were) |es gibt |i (?:see|found|find) |we (?:see|found|find) )?(?:(?:{_NONE}|nothing \w+)"
    rf"|(?:no|pas de|sin|sem|{_NONE}) (?:\w+ ){{0,2}}{_POINT}){_SCOPE}(?:\W+{_SAME})?|{_SAME}",
    re.IGNORECASE,
)


def says_none(text: str) -> bool:
    """Return whether an item of a list only says that the list is empty."""
    bare = re.sub(rf"\A{PUNCTUATION}|{PUNCTUATION}\Z", "", text[:MAX_PLACEHOLDER_CHARS])
    return is_placeholder(text) or (
        len(text) < MAX_PLACEHOLDER_CHARS and _NOTHING_FOUND.fullmatch(" ".join(bare.split())) is not None
    )


# Refusals

_DECLINE = (  # that the request itself is declined, not a view of its subject
    # English
    r"\bi(?:['’]m| am)? (?:sorry,? (?:but )?(?:i )?)?(?:really |simply |just )?"
    r"(?:can(?:no|['’])?t|can not|won['’]?t(?: be able to)?|will not(?: be able to)?|(?:am )?(?:unable|not able|not allowed|"
    r"not permitted|not going|not in a position) to|(?:am )?not comfortable(?: with)?|must (?:respectfully )?(?:decline|refuse)|"
    r"(?:have|need) to (?:respectfully )?(?:decline|refuse)|(?:respectfully )?(?:decline|refuse)) ?"
    r"(?:to )?(?:help(?:ing)?\b(?! but)|assist(?:ing)?\b|comply(?:ing)?\b|fulfil+(?:ing)? (?:this|that|your|the)|"
    r"engag(?:e|ing) (?:with|in)|participat(?:e|ing) in (?:this|that)|take part|do (?:this|that)\b|(?:this|that|your) request|"
    r"(?:answer|discuss|respond to|complete|process)(?:ing)? (?:this|that|your|such|the)\b"
    r"(?: \w+)?(?: question| request| topic| subject| task| prompt| query)|"
    r"(?:answer|discuss)(?:ing)? (?:this|that)[.!]|"
    r"(?:provid(?:e|ing)|giv(?:e|ing)|offer(?:ing)?|share|creat(?:e|ing)|generat(?:e|ing)|produce|writ(?:e|ing)) "
    r"(?:you )?(?:with )?(?:any |a |an |the |that |this |such |those |these |your )?(?:kind of |type of )?"
    r"(?:information|instructions?|details|guidance|advice|assistance|help|content|material|response|requested|that\b|this\b))",
    r"\b(?:that|this) (?:is|request is|question is|topic is)(?:n['’]t| not)? (?:something|one|a topic|a request) (?:that )?i "
    r"(?:can(?:no|['’])?t|can|won['’]t|am unable|['’]m unable)",
    r"\b(?:this|that|your|the) (?:request|prompt|question) (?:\w+ ){0,3}(?:violates|goes against|conflicts with|is against|is outside) "
    r"(?:my|our|the|openai['’]s|safety|usage|content)(?: \w+){0,2} (?:guidelines?|polic(?:y|ies)|programming)",
    r"\A\W*(?:request|content|response) (?:declined|refused|blocked)\b",
    # German
    r"\b(?:ich|wir) (?:kann|können|darf|dürfen|möchte|werde) (?:\w+ ){0,6}nicht (?:\w+ ){0,3}(?:helfen|weiterhelfen|behilflich|nachkommen|"
    r"erfüllen|bereitstellen|mitwirken)",
    r"\b(?:dabei|damit|hierbei|bei \w+ \w+) (?:kann|darf|möchte) ich (?:\w+ ){0,4}nicht (?:\w+ ){0,2}(?:helfen|weiterhelfen|unterstützen|behilflich)",
    r"\bich muss (?:diese|die|ihre|deine) (?:anfrage|bitte|frage) (?:\w+ )?ablehnen",
    # French
    r"\bje (?:ne (?:peux|puis)|suis dans l['’]incapacité|ne suis pas en mesure)(?: malheureusement)?(?: pas)?(?: de)? "
    r"(?:(?:vous |t['’]|te )?(?:aider|assister)|répondre à (?:cette|votre|ta)|(?:vous )?fournir (?:cette|ces|ce|d['’])|traiter (?:cette|votre)|accéder à|donner suite)",
    r"\bje dois (?:décliner|refuser)",
    # Spanish
    r"\bno (?:puedo|podemos|me es posible) (?:(?:ayudar(?:te|le|lo|os)?|asistir(?:te|le)?)|(?:responder|cumplir|atender|procesar) (?:a |con )?(?:esa|esta|ese|este|tu|su)|"
    r"(?:proporcionar|ofrecer|dar)(?:te|le)? (?:esa|ese|esta|este|información|ayuda|instrucciones))",
    r"\bdebo (?:rechazar|negarme|declinar)",
    # Chinese, Japanese
    r"(?:抱歉|对不起|很遗憾)[，,、 ]*(?:但)?我?(?:无法|不能)(?:协助|帮助|提供|回答|满足|处理)",
    r"申し訳(?:ありません|ございません)が.{0,30}(?:できません|いたしかねます|お答えできません)",
)
_REFUSAL = re.compile("|".join(_DECLINE), re.IGNORECASE)
# Sentences that go with a refusal and say nothing about the subject.
_COURTESY = re.compile(
    r"\b(?:sorry|apologi[sz]e|understand (?:that )?(?:you|this)|thank you|thanks for|if you (?:have|need|['’]d like|would like|are|want)|"
    r"let me know|feel free|happy to|glad to|i can (?:instead|help|assist|offer|discuss|provide)|is there anything|would you like|"
    r"(?:my|our) (?:guidelines|polic|purpose|role|safety)|safety|harm(?:ful|s|ed)?\b|illegal|unethical|unsafe|dangerous|policy|policies|"
    r"guidelines|inappropriate|as an ai|language model|request|i hope you|please (?:consult|contact|reach|rephrase|ask)|seek (?:help|advice)|"
    r"leid|entschuldigung|anfrage|richtlinien|gerne|désolé|regrette|demande|n['’]hésitez|lo siento|disculp|solicitud|con gusto|"
    r"抱歉|对不起|如果您|请|申し訳)",
    re.IGNORECASE,
)
_MISSING_FACTS = re.compile(
    r"\b(?:without|until|unless|because (?:the|no)|since (?:the|no)|not (?:included|attached|provided)|ohne|sans|sin)\b",
    re.IGNORECASE,
)
_LETTER = re.compile(  # a letter that the answer proposes
    r"\A\W*(?:subject:|dear |sehr geehrte|liebe[rs]? |bonjour |estimad)|\b(?:(?:best|kind|warm) regards|sincerely|"
    r"mit freundlichen grüßen|cordialement|saludos)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*(?=\S)|\n+")
MAX_REFUSAL_WORDS = 250
MAX_OTHER_WORDS = 25  # words of a refusal in sentences that neither decline nor excuse


def find_refusal(text: str) -> str:
    """Return the sentence in which a text declines the request, or an empty string.

    A text is a refusal if one of its first three sentences declines the request and the others say almost nothing about
    the subject. A sentence that names a missing fact, or declines a part of the subject ("I cannot recommend B"), is no
    refusal; neither is the text of a letter.
    """
    if len(text) > 20 * MAX_REFUSAL_WORDS or len(text.split()) > MAX_REFUSAL_WORDS or _LETTER.search(text):
        return ""
    sentences = [part.strip() for part in _SENTENCE_END.split(text) if part.strip(" \t*_`>#-")]
    declining = [part for part in sentences if _REFUSAL.search(part)]
    if not declining or declining[0] not in sentences[:3] or any(_MISSING_FACTS.search(part) for part in declining):
        return ""
    others = [_after_refusal(part) if part in declining else part for part in sentences]
    words = sum(len(part.split()) for part in others if not _COURTESY.search(part))
    return "" if words > MAX_OTHER_WORDS else declining[0]


def _after_refusal(sentence: str) -> str:
    """Return what a declining sentence adds after "but" or a colon."""
    end = max(match.end() for match in _REFUSAL.finditer(sentence))
    added = re.search(r"(?:[,;:] ?(?:but|however|yet)|: ).*", sentence[end:])
    return added[0] if added else ""
