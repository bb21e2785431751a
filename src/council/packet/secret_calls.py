"""Passwords that have no name: arguments of well-known calls, commands and directives, and keys of network software."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from council.packet.secret_names import classify_name, has_harmless_name
from council.packet.secret_scan import LONGEST_WORDS, Scan, Secret
from council.packet.secret_settings import is_literal_secret
from council.packet.secret_values import (
    PLACEHOLDER,
    TEST_PASSWORD,
    is_call_password,
    is_chosen_password,
    is_dense,
    is_literal_password,
    is_login,
    is_random,
    is_real_password,
    is_strong,
    is_word_password,
    plain_text,
)


class CallRule(NamedTuple):
    """A place of a password, which is the group `password`.

    `hints` are in lower case; one of them is in every match.
    """

    hints: tuple[bytes, ...]
    pattern: re.Pattern[str]
    starts_with_hint: bool = True
    judge: Callable[[str], bool] = is_literal_password
    kind: str = "password"


_ARGUMENT = r"(?:[bBrRuU@$]?[\"'`][^\"'`\n]{0,200}[\"'`]|\{[^{}\n]{0,200}\}|[^,()\"'`\n]{1,80}+(?:\([^()\n]{0,80}\))?)"
_NEXT = r"[ \t]{0,4},\s{0,40}+"
_LITERAL = r"(?:\[\]byte\(|Some\(|new String\()?[bBrRuU@]?(?P<mark>[\"'`])(?P<password>(?:(?!(?P=mark))[^\\\n]|\\.){4,200})(?P=mark)"
_WORD = r"(?P<mark>[\"'])?(?P<password>[^\s\"'`]{4,200})(?(mark)(?P=mark))"
TYPED_KEY = re.compile(r"\{[a-z]{2,12}\}|\\[nrt]")  # {enter}
_TYPED = r"[^\"'`\n]{0,40}[Pp]ass[^\"'`\n]{0,20}[\"'`][ \t]{0,4},[ \t]{0,4}(?:with: )?"


def _call(names: str, before: int, *hints: bytes, judge: Callable[[str], bool] = is_literal_password) -> CallRule:
    """Return the rule of a call whose password comes after this number of arguments. The names begin with the hints."""
    pattern = rf"(?:{names})[ \t]{{0,2}}[( ]\s{{0,40}}+" + (_ARGUMENT + _NEXT) * before + _LITERAL
    return CallRule(hints, re.compile(pattern), judge=judge)


def _search(
    pattern: str, *hints: bytes, judge: Callable[[str], bool] = is_literal_password, kind: str = "password"
) -> CallRule:
    """Return the rule of a pattern that has one of the hints somewhere."""
    return CallRule(hints, re.compile(pattern), starts_with_hint=False, judge=judge, kind=kind)


def _match(
    pattern: str, *hints: bytes, judge: Callable[[str], bool] = is_literal_password, kind: str = "password"
) -> CallRule:
    """Return the rule of a pattern that begins with one of the hints."""
    return CallRule(hints, re.compile(pattern), judge=judge, kind=kind)


def _is_any(value: str) -> bool:
    return True


def _is_typed_password(value: str) -> bool:
    return is_literal_password(TYPED_KEY.sub("", value))


def _is_escaped_password(value: str) -> bool:
    return is_real_password(value.replace("\\", ""))


def _is_plain_password(value: str) -> bool:
    return is_literal_password(value) or is_word_password(value, allow_blanks=False)


def _is_mnemonic(value: str) -> bool:
    return len(set(value.split())) > 6


CALLS = (
    _call(r"hmac\.new|SecretKeySpec|from_secret|PBEKeySpec", 0, b"hmac.new", b"secretkeyspec", b"from_secret", b"pbekeyspec"),
    _call(r"hmac\.New|createHmac|create(?:Dec|C)ipher(?:iv)?", 1, b"hmac.new", b"createhmac", b"createcipher", b"createdecipher"),
    _call(r"hash_hmac|openssl_(?:en|de)crypt", 2, b"hash_hmac", b"openssl_encrypt", b"openssl_decrypt"),
    _call(r"(?i:jwt)\.(?:sign|verify|encode|decode)", 1, b"jwt.", judge=is_call_password),
    _call(r"login", 0, b"login", judge=is_dense),
    _call(r"login|bind(?:_s)?", 1, b"login", b"bind"),
    _call(r"PlainCredentials|NetworkCredential", 1, b"plaincredentials", b"networkcredential", judge=is_call_password),
    _call(r"basic_auth|(?i:basicauth)|PasswordAuthentication", 1, b"basic_auth", b"basicauth", b"passwordauthentication"),
    _call(r"mysqli_connect|mysqli|mysql_p?connect|PDO|getConnection|PlainAuth", 2, b"mysqli", b"mysql_", b"pdo", b"getconnection", b"plainauth", judge=is_call_password),
    _call(r"UsernamePasswordCredentialsImpl", 4, b"usernamepasswordcredentialsimpl", judge=is_call_password),
    _call(r"auth[ \t]?=[ \t]?", 1, b"auth=", b"auth ="),
    _call(r"DBI->connect(?:_cached)?", 2, b"dbi->", judge=is_call_password),
    _match(r"DBI->connect(?:_cached)?\((?:" + _ARGUMENT + _NEXT + r"){2}qq?[({\[](?P<password>[^\n]{4,100}?)[)}\]]\s{0,4}[,)]", b"dbi->", judge=is_call_password),
    _call(r"[.:>]auth", 0, b".auth(", b":auth(", b">auth("),
    _call(r"(?:Client|Session|Api)(?:\.new|::new)?", 1, b"client(", b"client.new(", b"client::new(", b"session(", b"api("),
    _match(r"[\"'](?:cn|uid)=[^\"'\n]{2,200}[\"']" + _NEXT + _LITERAL, b'"cn=', b"'cn=", b'"uid=', b"'uid="),
    _search(_LITERAL + r"\.toCharArray\(\)", b".tochararray()"),
    _match(r"CURLOPT_(?:PROXY)?USERPWD\s{0,4},\s{0,10}[\"'][^:\"'\n]{1,80}:(?P<password>[^\"'\n]{4,100})[\"']", b"curlopt_", judge=is_real_password),
    _search(r"[`\"']\$\{\w{1,40}\}:(?P<password>[A-Za-z0-9]{20,100})[`\"']", b"}:", judge=is_strong),
    _match(r"\"key\"\s{0,4}:\s{0,4}\"value\"\s{0,4},\s{0,20}\"value\"\s{0,4}:\s{0,4}\"(?P<password>[^\"\n]{8,300})\"", b'"key"'),
    _call(r"connect", 3, b"connect"),
    _match(
        r"(?i:pass|pwd|kennwort|contrase|senha)\w{0,8}[\"'\])][^\n]{0,40}?\.(?:send_?[kK]eys|type|fill|setValue|set_text)\(" + _LITERAL,
        b"pass", b"pwd", b"kennwort", b"contrase", b"senha", judge=_is_typed_password,
    ),
    _match(r"(?:fill|fill_in|type|setValue)\([\"'`]" + _TYPED + _LITERAL, b"fill", b"type(", b"setvalue("),
)  # fmt: skip
COMMANDS = (
    _search(r"(?<![\w.-])[\w.-]{1,40}:(?P<password>[^\s\"'`|]{4,200})[\"']?\s{0,4}\|\s{0,4}(?:sudo )?chpasswd", b"chpasswd"),
    _search(rf"-(?:dest|src)?(?:store|key)pass[ \t]{{1,4}}{_WORD}", b"storepass", b"keypass"),
    _match(rf"(?i:net user)[ \t]{{1,4}}[\w.-]{{1,40}}[ \t]{{1,4}}{_WORD}(?=[ \t]+/|[ \t]*\r?\n|[ \t]*$)", b"net user"),
    _match(rf"(?i:net use)[ \t][^\n]{{0,120}}?/user:\S{{1,80}}[ \t]{{1,4}}{_WORD}", b"net use "),
    _match(rf"(?i:net use)[ \t]+(?:[A-Za-z*]:?[ \t]+)?\\\\\S{{3,100}}[ \t]+{_WORD}[ \t]+/", b"net use ", judge=is_real_password),
    _search(rf"echo[ \t]{{1,4}}(?:-n[ \t]+)?{_WORD}\s{{0,4}}\|\s{{0,4}}sudo[ \t][^\n|]{{0,40}}-S\b", b"sudo ", judge=is_call_password),
    _match(rf"createUser[ \t]+\S{{1,60}}[ \t]+(?:MD5|SHA[-\d]*)[ \t]+{_WORD}", b"createuser"),
    _match(r"(?:sqlplus|sqlldr|expdp|impdp|rman|exp|imp)\b[^\n]{0,60}?[ \t=][\w$]{1,60}/(?P<password>[^\s@\"'/]{4,60})@", b"sqlplus", b"sqlldr", b"expdp", b"impdp", b"rman ", judge=is_real_password),
    _match(rf"snmp\w{{1,10}}[^\n]{{0,200}}?[ \t]-[AX][ \t]{{1,4}}{_WORD}", b"snmp"),
    _search(rf"(?:^|\n|[ \t])(?:r[ow]community6?|snmp-server community)[ \t]{{1,8}}{_WORD}", b"community"),
    _match(rf"htpasswd[ \t]+-\w{{0,6}}b\w{{0,6}}[ \t]+\S{{1,200}}[ \t]+\S{{1,60}}[ \t]+{_WORD}", b"htpasswd"),
    _match(r"(?:cifs|smb3?)\b[^\n]{0,200}?[\s,]pass(?:word)?=(?P<password>[^\s,\"']{4,200})", b"cifs", b"smb", judge=is_call_password),
    _match(rf"(?:tacacs|radius)-server[^\n]{{0,80}}? key (?:[0-9] )?{_WORD}", b"tacacs-", b"radius-"),
    _match(r"(?:enable|username [\w.-]+(?: privilege \d+)?) (?:password|secret) (?:0 )?(?P<password>[^\s\"'$]{6,200})(?=\r?\n|$)", b"enable ", b"username "),
    _search(r"(?<![\w/])[\w.-]{1,60}:(?P<password>[^\s\"'`/]{3,200})@(?:tcp|unix)\(", b"@tcp(", b"@unix("),
    _match(r"(?i:convertto-securestring)\s{1,4}(?:-(?i:string)\s{1,4})?(?P<mark>[\"'])(?P<password>[^\"'$\n]{4,100})(?P=mark)", b"convertto-"),
    _match(r"(?i)convertto-securestring\s{1,4}(?:-string\s{1,4})?[\"'](?P<password>[^\"'$\n]{4,100})[\"']\s{1,4}-asplaintext", b"convertto-", judge=is_real_password),
    _search(r"(?<=\s)pass:(?P<password>[^\s\"'`$]{4,100})", b"pass:", judge=is_real_password),
)  # fmt: skip
# Files of programs and their logins
LOGINS = (
    _match(r"(?i)jdbc:oracle:\w+:[^\s/@:\"']{1,60}/(?P<password>[^\s@/\"'<>]{3,100})@", b"jdbc:oracle:", judge=is_real_password, kind="URL password"),
    _match(r"(?i)(?:identified\s{1,4}by|(?<=ith |set |ted |gin )password(?:\s{0,3}=)?)\s{1,4}N?'(?P<password>(?:[^'\s]|''){4,100})'", b"identified", b"password", judge=is_real_password),
    # A line of .pgpass
    _match(r":(?:5432|\*):[\w*.-]{1,60}:[\w*.@-]{1,60}:(?P<password>[^\s\"':]{4,100})(?=\r?(?:\n|\Z))", b":5432:", b":*:", judge=is_real_password),
    _match(r":(?P<password>\$(?:1|5|6|y|apr1|2[aby])\$[^\s:\"']{20,200})(?=[:\s]|$)", b":$", judge=_is_any, kind="password hash"),
    # A host of a mail server with the login for it, in a file of Postfix
    _search(r"(?:^|\n)[+\- ]?\[?[\w.-]{4,100}\]?(?::\w{2,12})?[ \t]+[\w.+-]+(?:@[\w.-]+)?:(?P<password>(?=[^\s:\"'\d]*\d)[^\s:\"']{6,100})[ \t]*(?=\r?\n|\Z)", b"]:", b":587", b":465", b":25", b"smtp", judge=is_real_password),
    _match(r"<auth-user-pass>[ \t]*\r?\n[^\n]{1,100}\n[+\- ]?(?P<password>[^\s<]{4,200})", b"<auth-user-pass>", judge=_is_any),
    _match(r"[Pp]?ass(?:word|phrase|code)[^\n\"]{0,20}\"[^\n\"]{0,20}\s{0,20}\{?\s{0,20}send(?:_user)?[ \t]+(?:--[ \t]+)?\"(?P<password>[^\"\n]{4,200}?)\\[rn]", b"password", b"assword", b"passphrase", b"passcode", judge=_is_escaped_password),
    # "log in as `user` with `password`", "credentials: `user` / `password`"
    _search(r"(?i:log ?in|sign ?in|credentials|zugangsdaten|zugang|account|konto|user(?:name)?)[^\n`]{0,40}`[^`\n]{1,80}`[ ]{0,2}(?:with|mit|and|und|/|:)[ ]{0,2}`(?P<password>[^`\n]{6,80})`",
            b"` / `", b"` with `", b"` mit `", b"` and `", b"` und `", b"`/`", b"` : `", b"`:`", judge=_is_plain_password),
)  # fmt: skip


def _key(pattern: str, *hints: bytes, kind: str = "key") -> CallRule:
    """Return the rule of a key by the words around it; nothing else has its form."""
    return _search(pattern, *hints, judge=_is_any, kind=kind)


NETWORK_KEYS = (
    _key(r"(?:validation|decryption)Key\s{0,4}=\s{0,4}[\"'](?P<password>[0-9A-Fa-f]{32,256})[\"']", b"validationkey", b"decryptionkey"),
    _key(r"(?<![\w-])[\"']?encrypt[\"']?\s{0,12}[:=]\s{0,4}[\"'](?P<password>[A-Za-z0-9+/]{22}==|[A-Za-z0-9+/]{43}=)[\"']", b"encrypt\"", b"encrypt'", b"encrypt =", b"encrypt:", b"encrypt="),
    _key(r"(?<!\w)(?P<password>K10[0-9a-f]{40,}::\w{1,40}:[\w.-]{8,100})", b"::server:", b"k10"),
    _key(r"-----BEGIN OpenVPN Static key V1-----\s{0,4}(?P<password>[0-9a-f\s]{64,1200})", b"openvpn static key"),
    _key(r":[ \t]{0,4}PSK[ \t]{1,4}[\"'](?P<password>[^\"'\n]{6,200})[\"']", b" psk "),
    _key(r":[ \t]{0,4}PSK[ \t]{1,4}(?P<password>0[sx][A-Za-z0-9+/=]{12,200})", b" psk "),
    _key(r"(?i:network|link|install|encryption)_?(?i:key)[\"']?\s{0,4}[:=]\s{0,4}\[(?P<password>\s{0,20}(?:0x)?[0-9a-fA-F]{1,3}(?:\s{0,20},\s{0,20}(?:0x)?[0-9a-fA-F]{1,3}){15,31}\s{0,20})\]", b"network_key", b"networkkey", b"link_key", b"install_key", b"encryption_key"),
    _key(r"(?P<password>\$(?:5|6|y|apr1|1)\$[\w./=$]{25,200})", b"$5$", b"$6$", b"$y$", b"$apr1$", b"$1$"),
    _key(r"(?i:insert into|values)[^\n]{0,400}?'(?P<password>\$2[aby]\$\d\d\$[./A-Za-z0-9]{53})'", b"$2a$", b"$2b$", b"$2y$"),
    _key(r"\(\d[^\n]{0,400}?'(?P<password>\$2[aby]\$\d\d\$[./A-Za-z0-9]{53})'", b"$2a$", b"$2b$", b"$2y$"),
    _key(r"(?:^|\n)[+\- ]?[ \t]+key 0 (?P<password>\S{6,100})(?=\r?\n|$)", b" key 0 "),
    _key(r"(?P<password>\{(?:SSHA|SMD5|CRYPT|SSHA512|SHA512|PBKDF2)\w{0,10}\}[A-Za-z0-9+/=$.]{20,200})", b"{ssha", b"{smd5", b"{crypt", b"{pbkdf2", b"{sha512"),
    _key(r"userPassword::[ \t]{0,4}(?P<password>e1[A-Za-z0-9+/=]{24,300})", b"userpassword::"),
    _key(r"accounts\s{0,4}:\s{0,4}\[\s{0,40}[\"'](?P<password>(?:0x)?[0-9a-fA-F]{64})[\"']", b"accounts"),
    _match(r"Authorization[ \t]{1,4}[\"']Basic (?P<password>[A-Za-z0-9+/]{8,400}={0,2})[\"']", b"authorization", judge=is_login, kind="authorization header"),
    _key(r"(?<![\w+/=-])(?P<password>(?=[a-z]*[2-7][a-z]*[2-7][a-z]*[2-7])[a-z2-7]{52})(?![\w+/=-])", b"azure", b"devops", b"visualstudio", kind="Azure DevOps token"),
    _key(r"\\?\"(?:d|k)\\?\"\s{0,8}:\s{0,8}\\?\"(?P<password>[\w-]{30,1000})\\?\"", b'kty"', b'kty\\"', kind="private key"),
    _match(r"(?i)(?:mnemonic|(?:seed|recovery)[ _]phrase)\w{0,20}[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<password>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})\b",
           b"mnemonic", b"seed phrase", b"seed_phrase", b"recovery phrase", judge=_is_mnemonic, kind="recovery phrase"),
)  # fmt: skip
OPTION_DEFAULT = re.compile(
    r"[\"']-{0,2}(?P<name>[\w-]{2,60})[\"'][^()\n]{0,120}?default\s{0,2}=\s{0,2}(?P<mark>[\"'])(?P<value>[^\"'\n]{4,200})(?P=mark)"
)
# A sentence or a line of a chat: "the password is ...", "pw: ...".
SPOKEN_PASSWORD = re.compile(
    r"(?i)(?:(?<![^\s(\"'*>`:-])|\A)(?:pass(?:word|wort|wd|code|phrase)?|pwd?|kennwort|contraseña|senha|mot de passe|пароль|密码|密碼|パスワード|비밀번호)"
    r"(?:[ \t]{1,3}(?:for|of|to|für|von|on|is now)[ \t][^\n:=\"'`]{1,40}?)?[ \t]{0,3}(?:\b(?:is|ist|war|was|es|lautet|est)\b|[:=：]|->|(?P<blank>(?<=[ \t])(?<!pass )(?<!Pass )(?=\S)))[ \t]{0,3}[\"'`*]{0,3}"
    r"(?P<password>[^\s\"'`<>]{8,60}+)(?=[\s\"'`<>]|\Z)"
)
SPOKEN_HINTS = (b"pass", b"pwd", b"pw:", b"pw ", b"kennwort", b"contrase", b"senha", b"mot de passe")
FOREIGN_HINT = b"??"
ALGORITHM = re.compile(r"(?i)sha-?\d|md5|base64|hash|crypt|encod|utf-?8|argon|pbkdf|aes|rfc|iso|http")
HAR_COOKIE = re.compile(
    r"\"name\"\s{0,4}:\s{0,4}\"(?P<name>[\w.%-]{1,60})\"\s{0,4},\s{0,40}\"value\"\s{0,4}:\s{0,4}\"(?P<value>[^\"\s]{16,1000})\""
)
COOKIE_HINTS = (b'"cookies"', b'"cookie"')
SESSION_NAME = re.compile(r"(?i)sess|sid|auth|token|jwt|login|remember")
RULES = (*CALLS, *COMMANDS, *LOGINS, *NETWORK_KEYS)
RULE_HINTS = [hint for rule in RULES for hint in rule.hints]
CALL_HINTS = tuple(dict.fromkeys([*RULE_HINTS, b"default", *COOKIE_HINTS, *SPOKEN_HINTS, FOREIGN_HINT]))


def find_calls(scan: Scan) -> Iterator[Secret]:
    """Find passwords by their position in a call, a command, a directive or a sentence."""
    for rule in _select_rules(scan):
        matches = (
            scan.match_all(rule.pattern, *rule.hints) if rule.starts_with_hint else rule.pattern.finditer(scan.text)
        )
        for match in matches:
            if rule.judge(match["password"]):
                yield Secret(rule.kind, *match.span("password"))
    if scan.has(b"default"):
        for match in OPTION_DEFAULT.finditer(scan.text):
            kind = classify_name(match["name"])
            if kind and is_literal_secret(match["name"], kind, match["value"]):
                yield Secret("assigned secret", *match.span("value"))
    yield from _find_spoken_passwords(scan)
    if scan.has(*COOKIE_HINTS):
        for match in HAR_COOKIE.finditer(scan.text):
            is_session = SESSION_NAME.search(match["name"]) and not has_harmless_name(match["name"])
            if is_session and is_random(match["value"]):
                yield Secret("cookie", *match.span("value"))


def _select_rules(scan: Scan) -> list[CallRule]:
    """Return the rules with a hint in the text. Most texts have few, so this makes no call for the others."""
    lower, vocabulary = scan.lower, scan.vocabulary
    selected = []
    for rule in RULES:
        for hint in rule.hints:
            if LONGEST_WORDS[hint] in vocabulary and hint in lower:
                selected.append(rule)
                break
    return selected


def _find_spoken_passwords(scan: Scan) -> Iterator[Secret]:
    if scan.has(FOREIGN_HINT):
        matches = list(SPOKEN_PASSWORD.finditer(scan.text))
    else:
        matches = scan.match_all(SPOKEN_PASSWORD, *SPOKEN_HINTS)
    for match in matches:
        password = match["password"].rstrip(".,;:!)*")
        if _is_spoken_password(plain_text(password), is_marked=match["blank"] is None):
            yield Secret("password", match.start("password"), match.start("password") + len(password))


def _is_spoken_password(value: str, *, is_marked: bool) -> bool:
    """Return whether a word of a sentence is a password: letters of both cases and a digit, and no algorithm."""
    if not is_marked and not is_chosen_password(value) and not is_word_password(value, allow_blanks=False):
        return False
    has_kinds = all(re.search(kind, value) for kind in ("[a-z]", "[A-Z]", r"[\d!@#%^&*]"))
    is_program = re.search(r"[(){}\[\]=$\\]|::|//", value)
    is_dummy = ALGORITHM.search(value) or PLACEHOLDER.search(value) or TEST_PASSWORD.search(value)
    return has_kinds and not is_program and not is_dummy
