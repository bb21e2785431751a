"""Words with which drafts flag, deny and settle problems, in English, German, French and Spanish.

Each constant is a pattern.
"""

from __future__ import annotations

import re
from typing import Literal

Severity = Literal["CRITICAL", "FATAL"]


def match_any(words: str) -> str:
    """Return a pattern that matches any of the words; each is a pattern, and `_` stands for spaces."""
    return f"(?:{'|'.join(words.split())})".replace("_", r"\s+")


def compile_words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of words, in any case."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


# Levels

SEVERE = match_any(r"""
    criticals? fatal blockers? blocking show[-‑_]?stoppers? deal[-‑_]?breakers? severe p0 sev-?[01]
    kritisch(?:e[mnrs]?)? fatale[mnrs]? blockierend(?:e[mnrs]?)? schwerwiegend(?:e[mnrs]?)?
    critiques? fatals bloquante?s? r[ée]dhibitoires?
    cr[ií]tic[oa]s? fatales bloqueantes?
""")
BLOCKER = match_any("blockers? show[-‑_]?stoppers? deal[-‑_]?breakers?")  # nouns that are a flag without "critical"
LABEL_ONLY = match_any("blocking severe p0 sev-?[01] schwerwiegend(?:e[mnrs]?)?")  # too common to be read in a sentence
IMPORTANT = match_any("""
    important major high warning moderate medium wichtig hoch mittel importantes? importante majeure?s? moyenne?s? élevée?s?
    mayor(?:es)? alt[oa]s? medi[oa]s?
""")
MINOR = match_any("minor low trivial info gering niedrig klein mineure?s? faibles? menor(?:es)? leves? baj[oa]s?")

# Problems

PROBLEM = match_any("""
    issues? problems? flags? flaws? gaps? errors? defects? bugs? risks? concerns? weakness(?:es)? holes? vulnerabilit(?:y|ies)
    mistakes? omissions? objections? limitations? caveats? warnings? failures? shortcomings? findings? unknowns? items?
    uncertaint(?:y|ies) doubts? contradictions? inconsistenc(?:y|ies) deficienc(?:y|ies) conflicts? violations?
    problem(?:e[ns]?)? fehlern? mangel mängeln? lücken? risik(?:o|en) schwächen? schwachstellen? einwand einwänden? punkte?n?
    warnung(?:en)? befund(?:en?)? widerspr(?:uch|üche) bedenken hinweise? markierung(?:en)? unsicherheit(?:en)?
    problèmes? erreurs? failles? défauts? lacunes? risques? faiblesses? points? réserves? alertes? vulnérabilités? manques?
    signalements? incertitudes?
    problemas? error(?:es)? fall[oa]s? defectos? lagunas? riesgos? debilidad(?:es)? objeci(?:ón|ones) puntos? reservas? alertas?
    advertencias? vulnerabilidad(?:es)? incertidumbres? brechas? carencias? avisos? señal(?:es)?
""")
ORDINAL = match_any(
    "first second third last former latter erste[rs]? zweite[rs]? letzte[rs]? premi(?:er|ère) second[oe]? primer[oa]? segund[oa]"
)
LACK = match_any("lack missing absence absent fehlt fehlen(?:de[nrs]?)? manque falta ausencia")
OPEN = match_any(r"""
    remain(?:s|ing|ed)? unresolved open outstanding unfixed unsolved unaddressed left still exists?
    bleib(?:t|en) verbleib\w* offen\w* ungelöst\w* ungeklärt\w* bestehen\w*
    restent? restante?s? ouvert\w* subsist\w* demeure\w*
    queda\w* pendientes? abiert[oa]s? persist\w* sin_resolver
""")
# What a denial may be about: "no claim here is CRITICAL".
DENIABLE = match_any(rf"""
    {PROBLEM} ones? things? claims? parts? anything any of_(?:the|these|those|them|my) steps? assumptions? davon hiervon dieser
    aspekte? aussagen? annahmen? de_(?:ces|ceux|mes|estos|estas|los|las|mis) aspects? affirmations? hypothèses?
    elementos? afirmaci(?:ón|ones) supuestos?
""")

# Marks

FIELD = match_any("""
    severity level flag rating class severity_level risk_level schweregrad schwere einstufung stufe gravité sévérité niveau gravedad
    severidad nivel
""")
RATE = match_any(r"""
    flag(?:ged)? mark(?:ed)? rated? graded? classif(?:y|ied) label(?:l?ed)? tag(?:ged)?
    eingestuft markier\w+ bewert\w+ stufe gekennzeichnet kennzeichne classée?s? marquée?s? signal\w+ qualifi\w+ classe marque
    marc(?:o|ad[oa]s?) clasific\w+ calific\w+ señal\w+
""")
# In a label beside the severity: "One open CRITICAL issue (2):".
LABEL = match_any(rf"""
    an? the one two three four my most top main only must must-fix fix number count list section level severity
    ein(?:e[mnrs]?)? der die das den un une la le les l' des du una el los las
    {PROBLEM} {OPEN} {SEVERE} {IMPORTANT}
""")
# Nouns before which even upper case is no flag: the everyday adjective, and levels of logs and tickets.
ORDINARY = match_any("""
    path mass sections? success infrastructure thinking care systems? regions? temperature reading reviews?
    alerts? logs? log events? messages? tickets? incidents? cves? patch(?:es)? logging
""")
LEGEND_COLUMN = match_any("meaning definition bedeutung signification définition significado definición")
ORDINARY_COLUMN = match_any("""
    importance criticality priority weight relevance tier need impact likelihood probability wichtigkeit priorität kritikalität
    auswirkung wahrscheinlichkeit probabilité probabilidad impacto importancia prioridad priorité
""")
PURPOSE = match_any("to for in on when für zu bei pour à dans para en")  # "critical for success"
# Before "critique" and "crítica", which are nouns then
ARTICLE = match_any("la ma une cette sa las una mi esta the a my this")
COPULA = match_any("is are remains? was were ist sind bleibt bleiben est sont reste restent es son sigue queda")

# Denials

NOTHING = match_any(r"""
    none nothing nil keine[mnrs]? kein nichts entfällt aucune?s? rien néant ning[uú]n[oa]?s? nada cero zero
""")
# "none found" denies; "none of the figures was checked" does not.
AFTER_NOTHING = match_any(r"""
    of_(?:the_above|them|these|those|note) found identified remain\w* left open known so at to outstanding detected that i noted
    apply applies see raised exists? here currently in after as spotted present unresolved were was are is have has such further
    other more critical fatal beyond besides apart given provided assuming under that's worth
    gefunden bekannt mehr offen vorhanden erkannt verbleib\w* übrig festgestellt derzeit davon
    restante?s? trouvée?s? identifiée?s? connue?s? à signalée?s? relevée?s? détectée?s?
    pendientes? encontrad\w+ identificad\w+ conocid\w+ que detectad\w+ por
""")
NO_SUCH = match_any(r"""
    not_(?:any|applicable|found|identified|relevant) does_not_apply sans_objet no_aplica nicht_(?:zutreffend|gefunden)
    (?:i|we)_(?:do|did|could|can)(?:_?not|n['’]t)_(?:see|find|identify|have|know_of)_(?:any|anything)
""")
I_SEE = match_any(r"""
    i_(?:see|found|find|have|know_of|identified) we_(?:see|found|find) there_(?:is|are) es_gibt ich_(?:sehe|finde|fand|habe)
    il_n'y_a il_ne_reste je_(?:n'en|ne)_vois hay no_hay veo no_veo quedan? no_quedan?
""")
NO = match_any(r"""
    no without zero free_of lacks kein(?:e[mnrs]?)? ohne frei_von aucune?s? sans exempte?_de pas_de pas_d' ning[uú]n[oa]?s? sin libre_de
""")
# As a subject or an object
NOBODY = match_any(r"none nothing neither keine[rs] nichts weder aucune? rien ning[uú]n[oa] nada")
NOT = match_any(r"""
    not never nor non hardly barely cannot n['’]t rather_than less_than instead_of below short_of far_from no_longer
    nicht kaum noch statt pas jamais plutôt_que nunca ni tampoco ya_no
    no_(?:es|son|lo|la|se|me|considero|consideraría|calificaría|diría|veo|parece|llega|marco|está|están)
""")
# "could not resolve the CRITICAL flag": the negation is not about the flag.
UNSETTLED = match_any(r"""
    verif\w+ check\w* resolv\w+ solv\w+ fix\w* settl\w+ clos\w+ address\w* confirm\w* mitigat\w+ test\w* answer\w* rule_out clear\w*
    remov\w+ prüf\w+ lös\w+ beheb\w+ behoben klär\w+ bestätig\w+ vérifi\w+ résou\w+ corrig\w+ verific\w+
""")
# Between a negation and the severity: "no really CRITICAL flaw".
MODIFIER = match_any(r"""
    \w+ly such further other known new more obvious open remaining unresolved single wirklich echte[nrs]? weiteren? offenen? bekannten?
    vraiment autre de d' realmente otro otra
""")
CONNECTIVE = match_any("and but so because which since while whereas und aber weil et mais car y pero porque")
EXCEPTION = match_any("but except außer sauf salvo apart_from")
FOUND_NONE = match_any(r"""
    (?:found|find|see|have|are|were|was|remains?|left|know_of|identified|raise|there's)_(?:none|nothing)
    none_(?:(?:were|was|are|is)_)?(?:found|remains?|left|identified|apply|applies|here)
    (?:keine|nichts)_(?:gefunden|offen|übrig|erkannt|vorhanden) trouvé_aucune? encontr\w+_(?:ning\w+|nada)
    no_(?:encontr|hall|detect|identifi)\w+_ning\w+
""")
NOT_FOUND = match_any(r"""
    (?:were|was|are|is|have|has|do|does|did|could|can)(?:_not|n['’]t)_(?:been_|be_)?(?:found|identified|seen|present|remain|exist|left|detected|apply|visible|raised|spotted|here)
    cannot_be_(?:found|seen) (?:are|is)_absent nicht_(?:gefunden|vorhanden|erkennbar|festgestellt|mehr)
    n['’](?:ont|a)_pas_été_(?:trouvé|identifié|relevé)\w* n['’]exist\w+_pas ne_(?:reste|subsiste)\w*_pas
    no_(?:se_)?(?:encontr|existe|queda|detect)\w*
""")

# "Critical: always unplug it first"
ADVICE = match_any("always remember immer stets denken_sie toujours siempre recuerde")

# Legends

MEANS = match_any("means? bedeutet heißt signifie significa is_for stands_for")
USE = match_any("(?:i|we)_use ich_(?:verwende|nutze) j['’]utilise uso utilizo")
LEGEND = match_any("legend legende légende leyenda key scale skala échelle escala severity_(?:levels|scale) levels")

# Settled, past and hypothetical problems

RESOLVED = match_any("""
    resolved mitigated addressed solved eliminated behoben gelöst erledigt beseitigt geklärt résolue?s? corrigée?s? réglée?s?
    resuelt[oa]s? corregid[oa]s? solucionad[oa]s? subsanad[oa]s?
""")
FIXED = match_any("""
    fixed closed handled covered removed corrected settled done repaired patched geschlossen korrigiert traitée?s? levée?s?
    cerrad[oa]s? arreglad[oa]s? cubiert[oa]s?
""")  # may also describe the problem: "the date is fixed by law"
IS_NOW = match_any("is are was were wurden? ist sind est sont a_été ont_été está están fue ha_sido han_sido quedó")
HAS_BEEN = match_any("(?:has|have|had)_(?:since_|now_|already_|all_|both_)*been")
NOW = match_any("now already since jetzt inzwischen bereits désormais déjà ya")
RESOLVES = match_any(
    "fixes resolves closes addresses solves removes behebt löst résout corrige règle resuelve soluciona"
)
THIS = match_any("it this that das dies cela ce_point esto")
WHERE = match_any(
    r"above below in_(?:step|section|part|this|version) by_step durch in_schritt im_abschnitt oben ci-dessus arriba"
)
# "not resolved", "must be resolved before the launch"
NOT_YET = match_any("""
    not never cannot partly partially half must should needs? can could may might will would until unless once if when to n['’]t
    nicht noch teilweise muss müssen sollten? bis wenn falls wird werden pas encore doit doivent partiellement si sera
    no debe deben parcialmente hasta será nearly almost before only kaum jamais nunca sin
""")
FORMERLY = match_any(
    "previously formerly initially originally once used_to_be ehemals zuvor ursprünglich auparavant initialement antes inicialmente"
)
NO_LONGER = match_any(r"no_longer nicht_mehr ya_no n['’]est_plus now_(?:only_)?(?:an?_)?(?:minor|important|low)")
LOWERED = match_any("downgraded reduced lowered herabgestuft gesenkt abaissée? rebajad[oa]")
FROM = match_any("from von de")
TO = match_any("to → -> => bis à a auf now")
WOULD = match_any(r"would (?:it|this|that|they)['’]d wären? würden? serait seraient serían?")
COULD = match_any(r"could might may can könnten? kann pourrai\w+ peut podrían? puede")
BECOME = match_any("become turn grow get werden devenir volverse ser")
IF = match_any("if when once wenn falls sobald si cuando lorsque in_case")
SUPPOSE = match_any("if suppose assuming in_case whenever falls wenn sollten? en_cas en_caso si should_an?")
ONLY = match_any("only nur seulement solo sólo")
INDEFINITE = match_any("an? ein(?:e[mnrs]?)? une? una")
ANY = match_any("any every each jede[mnrs]? tout toute cualquier cada")
# "CRITICAL if not fixed" is open
NOT_DONE = match_any(r"not left un\w+ ignored nothing it_is_not this_is_not nicht nichts pas rien no nada")

# Caveats and steps of an answer

CAVEAT = match_any(r"""
    caveats? warnings? risks? careful caution unless until before must verify verified check(?:ed)? confirm(?:ed)? test(?:ed)? ensure make_sure
    unverified unclear unknown uncertain open_question assum\w+ depends? cannot can't not never no without none lacks? missing first
    vorbehalt\w* warnung\w* risik\w+ vorsicht bevor bis prüf\w+ klär\w+ bestätig\w+ sicherstell\w* unklar\w* offen\w* unsicher\w* nicht kein\w*
    ohne fehlt annahme\w* zuerst
    réserves? attention risques? avant vérifi\w+ confirm\w+ test\w+ assur\w+ incertain\w* inconnu\w* pas aucune? sans manque\w* suppos\w+ d'abord
    salvedad\w* advertencia\w* riesgos? cuidado antes verifi\w+ comprob\w+ confirm\w+ prob\w+ asegur\w+ incierto\w* desconoc\w+ ning\w+ sin falta\w*
    supuesto\w* primero
""")
NEEDLESS = match_any(r"""
    no_need not_(?:needed|necessary|required|a_problem|an_issue|a_concern) unnecessary needless nicht_(?:nötig|notwendig|erforderlich) unnötig
    inutile pas_(?:nécessaire|besoin) no_(?:es_necesario|hace_falta) innecesari[oa]
""")
CAVEAT_HEADING = match_any(r"""
    caveats? risks? warnings? limits? limitations? open unresolved unknowns? assumptions? (?:next_)?steps? what_to_(?:do|watch|check) before to_do
    watch checks? verify vorbehalte? risiken offene?\w* annahmen schritte? prüfen grenzen réserves? risques? limites? étapes? à_vérifier
    salvedades advertencias riesgos límites pasos pendientes? supuestos
""")
FUNCTION_WORDS = """
    the and for not are was has had can its but all any one two too you our out off who how why may did does than that this with from have
    been they them their there which would could should will what when where were only also then into over under about after before
    because these those such some very more most other each both same still just must need needs yet per via
    der die das und ist mit von den dem des ein eine einer eines einem einen für auf aus bei bis nach nur auch oder aber als dass nicht kein
    keine keinen wird wurde werden sind sich durch über unter dies diese dieser kann konnte noch mehr wie wenn ich wir sie
    les des une est pas par sur que qui dans pour avec sans mais cette sont être aucun aucune leur elle nous vous plus tout tous été ont
    los las del con por una son para pero como esta este sobre está hay sido puede porque entre ninguna ninguno sin muy más
"""
GENERAL_WORDS = """
    critical fatal problem problems issue issues flag flags unresolved open remains remain remaining exists exist missing answer draft never none
    nothing section step steps kritisch offen fehlt bleibt critique reste manque crítico queda falta
"""

# Confidence marks

HIGH = match_any("high hohe?[mnrs]? hoch élevée?s? haute? forte? alt[oa]")
MEDIUM = match_any("medium med moderate mittel mittlere?[mnrs]? moyenne?s? modérée?s? medi[oa]")
LOW = match_any("low niedrige?[mnrs]? niedrig geringe?[mnrs]? gering faible basse bas baj[oa]")
CONFIDENCE = match_any(
    "confidence certainty konfidenz gewissheit zuversicht vertrauen confiance certitude confianza certeza"
)
OTHER_SCALE = match_any("""
    risk impact effort cost costs severity priority likelihood probability complexity importance urgency latency risiko aufwand kosten
    priorität wahrscheinlichkeit risque effort coût gravité priorité probabilité riesgo esfuerzo coste costo gravedad prioridad
""")
CONCLUSION = match_any("""
    conclusion recommendation position answer verdict bottom_line overall summary fazit empfehlung antwort position schluss schlussfolgerung
    insgesamt gesamt\\w* recommandation réponse globale?ment en_résumé conclusión recomendación respuesta postura en_general en_resumen
""")
