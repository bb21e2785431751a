"""The language of an answer, recognised by its script, its most frequent words and its letters."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, lru_cache

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "zh", "ja")  # the languages with a file in data/languages
MAX_CHARS = 4_000  # of prose that is read
MAX_SOURCE_CHARS = 4 * MAX_CHARS  # of text in which this prose is looked for: code is left out
MIN_HITS = 3  # words that an answer needs before its question does not count
MIN_LEAD = 1.3  # the best language needs so many times the score of the second
MIN_SCORE = 1.0  # of a short answer and its question together
ANSWER_SCORE = 4.0  # the most that a short or mixed answer counts, compared with its question
QUESTION_SCORE = 3.0
MIN_ENGLISH_WORDS = 10  # words of English alone in a text that is plainly English
MIN_ENGLISH_LEAD = 4  # so many times the words that English does not have
SIGN_WEIGHT = 0.5  # of a letter or an ending, compared with a frequent word
CHARS_PER_WORD = 2  # of Chinese and Japanese
MIN_CHINESE_CHARS = 12  # fewer Chinese characters without kana are Japanese if the question is
OTHER = "other"  # a language without a list

# Frequent words and signs. What several languages have counts less.
WORDS = {
    "en": """
        the and of to is that for with are this you it be not as on by from or have we should which when an at can
        but if they will has was were would their there what do does more than no yes use only also its our your
        all any so how because into about over before after first both each these those then them who why most
        other some such very must could may might while where out up down new make need keep don' it' unless until
        once in a i he she his her my me us go get been being had did just like now one two still without between
        through well since during same too under off many much take set choose instead even every few less least
        never always another against whether here nor
    """,
    "de": """
        der die das und ist nicht mit den von für auf ein eine einen einem einer eines dem des sich auch wird sind
        oder wenn werden bei nur wir sie er es ich im in zu zum zur als aber an aus nach noch wie so kann können
        könnte sollte sollten soll sollen muss müssen hat haben dass weil mehr durch über unter vor bis ohne man
        kein keine keinen nein ja doch schon sehr dann damit diese dieser dieses diesem ihr ihre ihren sein seine
        war wäre würde würden mir uns hier jetzt erst zuerst sonst etwa gegen um am vom beim ab was welche welcher
        jeder jede alle alles denn also machen nehmen lassen nie immer wieder zwei drei besser warum wer wo ihnen
        euch euer unser unsere beide zwischen seit während falls statt sowie bereits kommt darauf bleiben bleibt
        geht gibt neue neuen viel wenig mehrere bitte dafür dagegen davon dazu daher deshalb trotzdem jedoch
        zunächst vielleicht ganz weder andere anderen eigene eigenen nichts etwas dabei wurde wurden hätte lohnt
        nutzen verwenden dort bevor nachdem solange
    """,
    "fr": """
        le la les des de du et est une un dans pour que pas sur avec vous nous par plus ce cette sont qui aux ne
        il elle au ou où en se sa son ses leur leurs mais si comme être avoir faut fait faire peut doit sans sous
        très aussi donc car oui non je tu on ils elles à été même tout tous toute toutes ces cela ça y lui quand
        avant après ainsi alors entre encore déjà moins bien dont deux trois chaque notre votre vos nos l' d' qu'
        n' c' j' s' m' rien jamais puis depuis pendant vers chez quel quelle mieux plutôt sauf afin lorsque cet
        ont serait soit selon aucun aucune toujours ensuite peu trop avons avez était étaient contre parce ici là
        celui ceux dès lors peuvent doivent vraiment seulement autre autres beaucoup fois ni jusqu' lorsqu'
        puisqu'
    """,
    "es": """
        ¿ ¡ el la los las y es una un del de para que con por no se lo más como está están son pero si su sus este
        esta estos estas al o en a sin sobre entre también muy ya hay cuando donde porque ser tiene tienen puede
        pueden debe deben hasta desde antes después menos sí ni mi nos todo todos toda todas otro otra cada dos
        tres solo sólo así e le les fue ha han haber hacer hace qué cuál quién cómo eso ese esa usted ustedes
        aunque mientras según mejor nada nunca siempre ahora aquí luego primero sea sería yo tu te unos unas
        varios era uno dice hacia tras bien bajo contra durante mismo misma ambos ambas cualquier ningún ninguna
        alguno algunos algunas demasiado además hecho usar debería conviene quizá tanto igual pues entonces
        todavía aún hemos fueron eran esto aquel ella ellos nosotros veces dentro fuera peor pudo podido parte
    """,
    "it": """
        il lo la gli le i di è una un uno per che non con del della dello dei degli delle sono più come questo
        questa questi queste anche se nel nella nei alla al allo ai alle ma si da dal dalla in a e o ed ad su sul
        sulla tra fra essere ha hanno può possono deve devono sì no già poi quindi perché quando dove chi cosa
        ogni tutti tutto tutte molto meno prima dopo senza ancora solo due tre loro suo sua nostro vostro mi ci vi
        ne era l' c' d' dell' all' nell' sull' dall' quello quella meglio subito oggi mai sempre cioè oppure
        invece quale finché quasi sia nessun nessuna entro durante stesso stessa qualsiasi nessuno alcuni alcune
        inoltre fatto usare dovrebbe conviene allora ora erano stato stata quanto così però bene male contro sotto
        dentro fuori viene vengono bisogna serve basta abbiamo avete mentre forse tanto troppo poco volta fino
        verso chiunque
    """,
    "pt": """
        o a os as do da de e é uma um para que não com por dos das mais como em no na nos nas são ou se ao à aos
        às você vocês mas sem sobre entre também muito já há quando onde porque ser tem têm pode podem deve devem
        até desde antes depois menos sim nem meu minha nosso nossa todo todos toda todas outro outra cada dois
        duas três só assim lhe foi ter fazer faz isso esse essa este esta isto ele ela eles elas pelo pela num
        numa eu seu sua seus suas está estão ainda apenas agora aqui melhor nada nunca sempre talvez vez pois
        primeiro quem qual seja durante mesmo mesma qualquer nenhum nenhuma algum alguns além feito usar deveria
        então foram era estes aquele nós vezes dentro fora ambos bem sob contra portanto porém conforme pouco
        muitos muitas devemos precisa seria parte
    """,
    # Languages without a file. They are listed so that they are not taken for one that has one.
    "nl": """
        de het een en van is niet dat op te in met voor zijn aan er maar om ook als dan bij door naar uit nog wel
        geen of wordt worden kan moet deze dit die hij ze we je ik jij wij jullie ja nee zo al meer over heeft
        hebben was waren wat wie waar hoe tot onder tegen omdat want veel alle alleen eerst beter hier nu zou
        zouden kunnen moeten u uw hun eerste twee nie vir hierdie ons word
    """,
    "sv": """
        och att det är inte en ett som för på med av den de till har om vi jag du kan ska men eller från när också
        så bara mer än vid blir efter utan ja nej detta denna deras sig sin ut upp bör måste skulle här nu alla
        två mycket innan vad
    """,
    "da": """
        og at det er ikke en et som for på med af av den de til har om vi jeg du kan skal men eller fra når også
        så kun bare mere mer end enn ved bliver blir efter etter uden uten ja nej nei dette denne deres sig seg
        sin ud ut op opp bør må skulle her nu nå alle to meget mye der hvis hvad hva før
    """,
    "pl": """
        i w na z nie to jest się do że o a jak po co tak za od przez dla ale czy być są oraz tylko lub już jeszcze
        może można który która które ten ta te tym tego jako bardzo przy bez nad pod gdy więc jeśli należy teraz
        we ze ma nas
    """,
    "cs": """
        a i v u na je se že s z do to ne by pro jako ale o po tak za od při jen nebo být jsou které který která
        není může mít už ještě podle bez kde když proto ano tím také sú pre alebo nie da su koji koja kao ali ili
        bi ako nije može biti samo već više treba što
    """,
    "tr": """
        ve bir bu için ile de da değil daha en çok olan olarak ama gibi kadar sonra ne var yok hayır evet her ya
        veya çünkü ise mi mı sadece önce göre bunu olur iki
    """,
    "ca": """
        el la els les i és una un del de per que amb no es ho més com està són però si seu seva aquest aquesta al
        o en a sense sobre entre també molt ja hi ha quan on perquè ser té tenen pot poden cal fins des abans
        després menys sí ni tot tots tota totes altre altra cada dos tres només així li va fer què qui millor res
        mai sempre ara aquí dels als pels l' d' n' s' massa val durant mateix mateixa qualsevol cap alguns fet
        usar hauria doncs encara eren això aquell ella ells nosaltres vegades dins fora bé sota contra potser part
    """,
    "gl": """
        o a os as do da de e é unha un para que non con por dos das máis como en no na nos nas son ou se ao á aos
        ás pero mais sen sobre entre tamén moi xa hai cando onde porque ser ten teñen pode poden debe ata desde
        antes despois menos si nin todo todos outro outra cada dous dúas tres só así foi facer isto iso ese esa
        este esta el ela pola polo seu súa durante mesmo mesma calquera ningún ningunha algún algúns ademais feito
        usar debería entón aínda foron eran aquel eles nós veces dentro fóra ben baixo contra quizais tanto igual
        parte
    """,
    "ro": """
        și în de la cu nu este un o pe care să din mai pentru sunt ca ce dar sau fi prin după fără între foarte
        când unde acest această acestea lor lui ei el ea au are am va vor poate trebuie doar dacă pot iar decât
        încă a al ale se
    """,
    "fi": """
        ja on ei se että ole oli hän mutta tai kun niin kuin myös jos vain sen ovat voi pitää tämä ne jo nyt
        sitten koska mitä joka jotka ennen see et ning kui ka mis oma või aga selle ta
    """,
    "hu": """
        a az és nem is hogy egy van ez de csak meg már mint vagy ha kell lehet még el ki be volt akkor mert minden
        nagyon azt ezt igen után
    """,
    "id": """
        yang dan di ini itu dengan untuk tidak dari dalam akan pada juga ke karena ada adalah bisa atau oleh saya
        kami kita lebih sudah belum harus hanya seperti jika ya
    """,
    "vi": """
        và của là có không cho được một các những trong để với này đã khi người như nên cũng thì hay rất phải sẽ
    """,
    "tl": "ang ng mga sa na ay hindi kung para ito at po mas dahil",
    "eo": """
        la kaj de estas ne en por ke al kun sed aŭ povas ĉi tiu tio el se ĉu mi vi ni ili pli jam ĉar esti oni sur
        per
    """,
    "ga": """
        an na agus is i ar a le do go ní nach tá bhí leis sé sí ag as faoi gan seo sin atá mar don féidir nó
    """,
}
# Letters outside ASCII, and the languages that use them. Any other such letter counts for another language.
LETTERS = {
    "ß": "de", "ä": "de sv fi", "ö": "de sv fi hu tr", "ü": "de hu tr",
    "é": "fr es pt ca hu ga", "è": "fr it ca", "ê": "fr pt vi", "ë": "fr nl", "à": "fr it ca pt", "â": "fr pt ro",
    "ç": "fr pt ca tr", "î": "fr ro", "ï": "fr ca nl", "ô": "fr pt vi", "û": "fr", "ù": "fr it", "œ": "fr",
    "ñ": "es gl", "á": "es pt gl cs hu ga", "í": "es pt ca gl cs hu ga", "ó": "es pt ca gl pl hu ga", "ú": "es pt ca gl cs hu ga",
    "ì": "it", "ò": "it ca", "ã": "pt", "õ": "pt fi",
}  # fmt: skip
ENDINGS = {
    "tion": "en fr", "tions": "en fr", "ing": "en", "ment": "en fr", "ments": "en fr", "ness": "en",
    "ung": "de", "ungen": "de", "keit": "de", "heit": "de", "lich": "de", "ieren": "de", "schaft": "de",
    "eux": "fr", "euse": "fr", "ement": "fr", "ique": "fr", "aient": "fr",
    "ión": "es gl", "iones": "es", "iendo": "es", "mente": "es it pt", "miento": "es", "dad": "es",
    "zione": "it", "zioni": "it", "aggio": "it", "tà": "it", "mento": "it pt", "ezza": "it",
    "ção": "pt", "ções": "pt", "dade": "pt", "ões": "pt",
}  # fmt: skip
_CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)|`[^`\n]*`|https?://\S+|<[^<>\n]*>", re.DOTALL)
_TOKEN = re.compile(r"[^\W\d_]+['’]?|[¿¡]")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff々]")
_KANA = re.compile(r"[\u3041-\u30ff\uff66-\uff9f]")
_EAST_ASIAN = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f々]+")
_LAST_LATIN_LETTER = "\u024f"
ENDING_LENGTHS = sorted({len(ending) for ending in ENDINGS}, reverse=True)

Weights = list[tuple[str, float]]
Table = dict[str, Weights]


@dataclass(slots=True)
class Evidence:
    """What a text says about its language: the score of each language, and how many words count for it."""

    scores: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    hits: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, weights: Weights, count: float = 1) -> None:
        for language, weight in weights:
            self.scores[language] += weight * count
            self.hits[language] += count

    def find_best(self) -> str:
        """Return the language with a clear lead; empty if there is none."""
        ranked = sorted(self.scores, key=lambda language: -self.scores[language])
        is_clear = len(ranked) == 1 or (ranked and self.scores[ranked[0]] >= MIN_LEAD * self.scores[ranked[1]])
        return ranked[0] if is_clear else ""

    def add_scaled(self, other: Evidence, most: float) -> None:
        """Add the scores of another text, all reduced so that none is above a limit."""
        factor = min(1.0, most / max([*other.scores.values(), 1.0]))
        for language, score in other.scores.items():
            self.scores[language] += score * factor


@lru_cache(maxsize=4)  # a report asks several times
def detect_language(answer: str, question: str = "") -> str:
    """Return the language of an answer as a code such as "de"; "en" if it is not known or not among the languages.

    The question is a second source for an answer that is too short or too mixed to tell.
    """
    if _is_plainly_english(answer):
        return "en"
    said = _collect_evidence(answer)
    best = said.find_best()
    may_be_kanji = best == "zh" and said.hits[best] < MIN_CHINESE_CHARS / CHARS_PER_WORD
    if may_be_kanji and _collect_evidence(question).find_best() == "ja":
        return "ja"
    if not best or said.hits[best] < MIN_HITS:
        both = Evidence()
        both.add_scaled(said, ANSWER_SCORE)
        both.add_scaled(_collect_evidence(question), QUESTION_SCORE)
        best = both.find_best()
        if both.scores[best] < MIN_SCORE:
            return "en"
    return best if best in LANGUAGES else "en"


def _is_plainly_english(text: str) -> bool:
    """Return whether a text is plainly English, by its words. Most answers end here, at little cost."""
    prose = _find_prose(text)
    if not prose.isascii():
        return False
    english, foreign = _list_own_words()
    tokens = _TOKEN.findall(prose.lower())
    found = sum(map(english.__contains__, tokens))
    return found >= MIN_ENGLISH_WORDS and found >= MIN_ENGLISH_LEAD * sum(map(foreign.__contains__, tokens))


@cache
def _list_own_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the frequent words that only English has, and those that English does not have."""
    english = set(WORDS["en"].split())
    foreign = {word for language, listed in WORDS.items() if language != "en" for word in listed.split()}
    return frozenset(english - foreign), frozenset(foreign - english)


def _find_prose(text: str) -> str:
    return _CODE.sub(" ", text[:MAX_SOURCE_CHARS])[:MAX_CHARS].replace("’", "'")


def _collect_evidence(text: str) -> Evidence:
    prose = _find_prose(text)
    found = Evidence()
    _add_east_asian(prose, found)
    words, letters, endings = _load_tables()
    for token in _TOKEN.findall(_EAST_ASIAN.sub(" ", prose)):
        if len(token) > 1 and token.isupper():
            continue  # an acronym, such as MIT
        word = token.lower()
        bare = word.rstrip("'")
        found.add(words.get(word) or words.get(bare) or _rate_signs(bare, letters, endings))
    return found


def _add_east_asian(prose: str, found: Evidence) -> None:
    kana, han = len(_KANA.findall(prose)), len(_HAN.findall(prose))
    count = (kana + han) / CHARS_PER_WORD
    if kana > (kana + han) / 10:
        found.add([("ja", 1.0)], max(count, MIN_HITS))
    elif han:
        found.add([("zh", 1.0)], max(count, MIN_HITS / 2))


@cache
def _load_tables() -> tuple[Table, Table, Table]:
    """Return the weights of words, letters and endings. What several languages share counts less for each."""
    owners: dict[str, set[str]] = defaultdict(set)
    for language, listed in WORDS.items():
        for word in listed.split():
            owners[word].add(language)
    words = {word: [(language, 1 / len(known)) for language in sorted(known)] for word, known in owners.items()}
    return words, _weigh_signs(LETTERS), _weigh_signs(ENDINGS)


def _weigh_signs(signs: dict[str, str]) -> Table:
    return {
        sign: [(language, SIGN_WEIGHT / len(known.split())) for language in known.split()]
        for sign, known in signs.items()
    }


def _rate_signs(word: str, letters: Table, endings: Table) -> Weights:
    """Return the weights of the letters and of the ending of a word that is in no list."""
    if max(word, default="") > _LAST_LATIN_LETTER:
        return [(OTHER, 1.0)]
    foreign = sorted({letter for letter in word if not letter.isascii()})
    found = [weight for letter in foreign for weight in letters.get(letter) or [(OTHER, SIGN_WEIGHT)]]
    for length in ENDING_LENGTHS:
        if len(word) > length + 1 and (ending := endings.get(word[-length:])):
            return found + ending
    return found
