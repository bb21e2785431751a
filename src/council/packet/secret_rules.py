"""Formats of keys by vendor."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

# Start of a word, also after an escaped line end as in JSON and after an escaped character as in a URL.
WORD_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
ALNUM = r"[A-Za-z0-9]"
BASE64_CHARS = r"[A-Za-z0-9+/]"
UUID_SHAPE = re.compile(UUID)
# The end of a line and the start of the next one, with the mark of a diff, its indentation and the mark of a comment.
NEW_LINE = r"\\?\r?\n[+\- ]?[ \t]{0,60}(?:(?:[#*>]|//)[ \t]{0,8})?"


class KeyRule(NamedTuple):
    """A key format; `hints` are substrings tested first, because most texts contain none."""

    kind: str
    shape: str
    hints: tuple[bytes, ...]


@cache
def compile_key(shape: str) -> re.Pattern[str]:
    """Compile a key format when a text has one of its hints: compiling all of them takes 50 ms."""
    return re.compile(rf"{WORD_START}(?:{shape})(?![A-Za-z0-9])")


# Kind, format, hints. Formats of one kind are separate rows if their hints differ.
_ROWS = (
    # Clouds and hosting
    ("AWS access key", r"A(?:KIA|SIA|GPA|IDA|ROA|NPA|BIA|CCA)[A-Z0-9]{16}", "AKIA ASIA AGPA AIDA AROA ANPA ABIA ACCA"),
    ("AWS session token", rf"(?:FwoGZXIvYXdz|IQoJb3JpZ2lu){BASE64_CHARS}{{50,}}={{0,2}}", "FwoGZXIvYXdz IQoJb3JpZ2lu"),
    ("AWS Bedrock key", rf"ABSK{BASE64_CHARS}{{60,}}={{0,2}}|bedrock-api-key-{BASE64_CHARS}{{30,}}={{0,2}}", "ABSK bedrock-api-key-"),
    ("AWS key", rf"amzn\.mws\.{UUID}", "amzn.mws."),
    ("signed URL", r"X-(?:Amz|Goog)-Signature=[0-9a-f]{64,}", "-Signature="),
    ("Google API key", r"AIza[\w-]{33,}", "AIza"),
    ("Google API key", r"AQ\.Ab[\w-]{40,}", "AQ.Ab"),
    ("Google OAuth secret", r"GOCSPX-[\w-]{20,}", "GOCSPX-"),
    ("Google access token", r"ya29\.[\w-]{30,}", "ya29."),
    ("Google refresh token", r"1//0[\w-]{40,}", "1//0"),
    ("Firebase key", r"AAAA[\w-]{7}:APA91b[\w-]{80,}", ":APA91b"),
    ("Azure storage key", rf"(?:AccountKey|SharedAccessKey)={BASE64_CHARS}{{40,}}={{0,2}}", "AccountKey= SharedAccessKey="),
    ("Azure signature", r"sig=[A-Za-z0-9+/%]{40,}(?:%3[Dd]|=)?", "sig="),
    ("Azure client secret", r"[\w~.-]{3}\dQ~[\w~.-]{31,34}", "Q~"),
    ("Azure DevOps token", rf"{ALNUM}{{76}}AZDO{ALNUM}{{4}}", "AZDO"),
    ("Azure key", rf"{ALNUM}{{52}}JQQJ99{ALNUM}{{18,40}}", "JQQJ99"),
    ("Azure function key", r"azurewebsites\.net/[\w/.-]{1,200}\?code=[\w+/%-]{40,}={0,2}", "azurewebsites.net/"),
    ("Alibaba key", r"LTAI[A-Za-z0-9]{16,26}", "LTAI"),
    ("Tencent key", r"AKID[A-Za-z0-9]{32}", "AKID"),
    ("Yandex key", r"AQVN[\w-]{35,38}|t1\.9eu[\w-]{20,}\.[\w-]{40,}", "AQVN t1.9eu"),
    ("DigitalOcean token", r"do[opr]_v1_[0-9a-f]{40,}", "_v1_"),
    ("Cloudflare key", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}|cf(?:ut|at|k)_[\w-]{40,}", "v1.0- cfut_ cfat_ cfk_"),
    ("Heroku key", r"HRKU-[\w-]{36,}", "HRKU-"),
    ("Fly token", r"fm[12][ar]?_[\w+/-]{40,}={0,2}", "fm1 fm2"),
    ("Vercel token", r"vc[aikpr]_[A-Za-z0-9]{24,}", "vca_ vci_ vck_ vcp_ vcr_"),
    ("Netlify token", r"nf[bcopu]_[A-Za-z0-9]{30,}", "nfb_ nfc_ nfo_ nfp_ nfu_"),
    ("hosting token", r"(?:vercel_|fo1_|rnd_)[\w-]{24,}", "vercel_ fo1_ rnd_"),
    ("Tailscale key", r"tskey-(?:[a-z]+-)?[A-Za-z0-9]{10,}-?[A-Za-z0-9]{16,}", "tskey-"),
    ("OpenShift token", r"sha256~[\w-]{40,}", "sha256~"),
    ("Scaleway key", r"SCW[A-Z0-9]{17}", "SCW"),
    ("Pulumi token", r"pul-[0-9a-f]{40}", "pul-"),
    ("Terraform token", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}", ".atlasv1."),
    ("Vault token", r"hv[sbr]\.[\w-]{24,}", "hvs. hvb. hvr."),
    ("Doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]+\.)?[A-Za-z0-9]{36,}", "dp."),
    ("Infisical token", r"st\.[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32}", "st."),
    ("1Password token", r"ops_eyJ[\w+/-]{80,}={0,2}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}", "ops_eyJ A3-"),
    ("Bitwarden token", rf"0\.{UUID}\.{ALNUM}{{30}}:{BASE64_CHARS}{{20,}}={{0,2}}", "0."),
    # Code hosts, CI and package registries
    ("GitHub token", r"gh[opusr]_\w{30,}(?:\.[\w-]{10,}){0,2}", "gho_ ghp_ ghu_ ghs_ ghr_"),
    ("GitHub token", r"github_pat_\w{40,}", "github_pat_"),
    ("GitLab token", r"gl(?:pat|rt|rtr|dt|ptt|cbt|ft|ffct|soat|imt|agent|oas|wt)-[\w-]{18,}(?:\.[\w-]{2,}){0,3}", "glpat- glrt- glrtr- gldt- glptt- glcbt- glft- glffct- glsoat- glimt- glagent- gloas- glwt-"),
    ("GitLab token", r"GR1348941[\w-]{20}", "GR1348941"),
    ("Atlassian token", r"AT(?:ATT|CTT|BB)3?[\w-]{20,}={0,2}[A-F0-9]{0,8}|ATTA[0-9a-f]{64,}", "ATATT ATCTT ATBB ATTA"),
    ("CI token", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{16,}_[0-9a-f]{40}|bk(?:ua|aj|at|ct)_[0-9a-zA-Z]{40}|eyJ0eXAiOiAiVENWMiJ9\.[\w-]{20,}\.[\w-]{20,}", "CCIPAT_ CCIPRJ_ bkua_ bkaj_ bkat_ bkct_ eyJ0eXAiOiAiVENWMiJ9"),
    ("code analysis token", r"sq[pau]_[0-9a-f]{40}|sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}|ico-[A-Za-z0-9]{32}", "sqp_ sqa_ squ_ sgp_ ico-"),
    ("deployment token", r"(?:pat|sat)\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}|API-[A-Z0-9]{26,36}", "pat. sat. API-"),
    ("feature flag key", rf"(?:api|sdk)-{UUID}|secret-[A-Za-z0-9]{{40,}}", "api- sdk- secret-"),
    ("npm token", r"npm_[A-Za-z0-9]{30,}", "npm_"),
    ("PyPI token", r"pypi-[\w-]{50,}", "pypi-"),
    ("RubyGems key", r"rubygems_[0-9a-f]{40,}", "rubygems_"),
    ("package registry token", r"cio[A-Za-z0-9]{32}|oy2[a-z0-9]{43}|CLOJARS_[0-9a-f]{50,}|packagist_\w{3}_[0-9a-f]{60,}|(?:dd[opw]|jsr[dp])_[A-Za-z0-9]{36}", "cio oy2 CLOJARS_ packagist_ ddo_ ddp_ ddw_ jsrd_ jsrp_"),
    ("Artifactory token", r"AKCp[A-Za-z0-9]{60,}|cmVmdGtu[A-Za-z0-9]{40,}", "AKCp cmVmdGtu"),
    ("registry login", rf"(?:eyJhdXRocyI6|ewogICJhdXRocyI6|ewoJImF1dGhzIj){BASE64_CHARS}{{20,}}={{0,2}}", "eyJhdXRocyI6 ewogICJhdXRocyI6 ewoJImF1dGhzIj"),
    ("Docker token", r"dckr_(?:pat|oat)_[\w-]{20,}", "dckr_"),
    # Chat, mail and webhooks
    ("Slack token", r"xox[abceoprs]-[A-Za-z0-9-]{20,}|xapp-\d-[A-Za-z0-9-]{20,}", "xox xapp-"),
    ("Slack webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{30,}", "hooks.slack.com/"),
    ("Discord webhook", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{15,}/[\w-]{40,}", "discord"),
    ("Discord token", r"[MNO][DTjz][A-Za-z\d]{20,26}\.[\w-]{6}\.[\w-]{27,}", "MD MT Mj Mz ND NT Nj Nz OD OT Oj Oz"),
    ("Telegram token", r"\d{8,10}:AA[\w-]{32,34}", ":AA"),
    ("Teams webhook", rf"webhook\.office\.com/webhookb2/{UUID}@{UUID}/IncomingWebhook/[0-9a-f]{{32}}/{UUID}(?:/[\w-]+)?", "webhook.office.com/"),
    ("webhook", r"hooks\.zapier\.com/hooks/catch/\d+/\w{5,}|hook\.(?:[a-z0-9]+\.)?(?:make|integromat)\.com/[a-z0-9]{30,}|maker\.ifttt\.com/trigger/[\w-]+/(?:json/)?with/key/[\w-]{20,}", "hooks.zapier.com/ .make.com/ .integromat.com/ maker.ifttt.com/"),
    ("Google Chat webhook", r"chat\.googleapis\.com/v1/spaces/[\w-]+/messages\?[^\s\"']{0,200}token=[\w%-]{20,}", "chat.googleapis.com/"),
    ("Matrix token", r"syt_[A-Za-z0-9+/]+_[A-Za-z]{20}_[A-Za-z0-9]{6}", "syt_"),
    ("webhook secret", r"whsec_[A-Za-z0-9+/]{24,}={0,2}", "whsec_"),
    ("SendGrid key", r"SG\.[\w-]{16,}\.[\w-]{30,}", "SG."),
    ("Mailgun key", r"key-[0-9a-f]{32}", "key-"),
    ("Mailchimp key", r"[0-9a-f]{32}-us\d{1,2}", "-us"),
    ("mail key", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}|os_v2_(?:app|org)_[a-z0-9]{50,}", "xkeysib- re_ os_v2_"),
    ("Twilio key", r"SK[0-9a-f]{32}", "SK"),
    # Payment and shops
    ("Stripe key", r"[rs]k_(?:live|test|prod|org)_[A-Za-z0-9]{16,}", "k_live_ k_test_ k_prod_ k_org_"),
    ("secret key", r"sk_[A-Za-z0-9]{32,}", "sk_"),
    ("Square token", r"sq0(?:atp|csp|idp)-[\w-]{22,}|EAAA[\w-]{60}", "sq0 EAAA"),
    ("payment key", rf"rzp_live_[A-Za-z0-9]{{14,}}|live_[A-Za-z0-9]{{30,}}|access_token\$(?:production|sandbox)\$[a-z0-9]{{16}}\$[0-9a-f]{{32}}|FLWSECK(?:_TEST)?-[A-Za-z0-9]{{12,}}|pdl_(?:live|sdbx)_apikey_[a-z0-9]{{26}}_[A-Za-z0-9]{{22}}_\w{{3}}|access-(?:sandbox|development|production)-{UUID}",
     "rzp_live_ live_ access_token$ FLWSECK pdl_ access-"),
    ("shipping key", r"shippo_(?:live|test)_[0-9a-f]{40}|EZ[AT]K[\w-]{24,}|duffel_(?:live|test)_[\w-]{40,}", "shippo_ EZAK EZTK duffel_"),
    ("Shopify token", r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{32}", "shp"),
    ("WooCommerce key", r"c[ks]_[0-9a-f]{40}", "ck_ cs_"),
    # Model providers
    ("Anthropic key", r"sk-ant-[\w-]{20,}", "sk-ant-"),
    ("OpenAI key", r"sk-(?!ant-)[\w-]{20,}", "sk-"),
    ("OpenAI key", r"sess-[A-Za-z0-9]{40}", "sess-"),
    ("model provider key", r"r8_[A-Za-z0-9]{37}|(?:gsk_|xai-|pplx-|tvly-(?:dev-|prod-)?|csk-|nvapi-|tgp_v1_|fw_|jina_|pcsk_|wandb_v1_)[\w-]{20,}", "gsk_ xai- r8_ pplx- tvly- csk- nvapi- tgp_v1_ fw_ jina_ pcsk_ wandb_v1_"),
    ("model provider key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}|fc-[0-9a-f]{32}|e2b_[0-9a-f]{40}|BSA[\w-]{24,32}|rpa_[A-Z0-9]{30,}\w*|esecret_[a-z0-9]{20,}|key_[0-9a-f]{100,}|pa-[A-Za-z0-9_-]{43}", "lsv2_ fc- e2b_ BSA rpa_ esecret_ key_ pa-"),
    ("Hugging Face token", r"(?:hf|api_org)_[A-Za-z0-9]{30,}", "hf_ api_org_"),
    # Data and monitoring
    ("Databricks token", r"(?:dapi|dkea|dose)[0-9a-f]{32}(?:-\d)?", "dapi dkea dose"),
    ("database token", r"pscale_(?:tkn|pw|oauth)_[\w.-]{30,}|sbp_(?:v\d_)?[0-9a-f]{40}|sb_secret_[\w-]{20,}|napi_[a-z0-9]{40,}|mdb_sa_sk_[\w-]{20,}|AVNS_[\w-]{16,}|xau_[A-Za-z0-9]{24,}|4b1d[A-Za-z0-9]{38}|pn[ub]_[A-Za-z0-9]{36}",
     "pscale_ sbp_ sb_secret_ napi_ mdb_sa_sk_ AVNS_ xau_ 4b1d pnu_ pnb_"),
    ("Grafana token", r"gl(?:sa|c)_[\w+/=]{30,}", "glsa_ glc_"),
    ("Sentry token", r"sntry[su]_[\w+/=-]{30,}", "sntrys_ sntryu_"),
    ("monitoring key", rf"NR(?:AK|II|AA|SP)-[\w-]{{24,}}|[0-9a-fA-F]{{32,40}}NRAL|dt0[a-z]\d\d\.[A-Z0-9]{{24}}\.[A-Z0-9]{{64}}|hc[abx][il]k_[a-z0-9]{{40,}}|xa(?:at|pt)-{UUID}|phx_[A-Za-z0-9]{{32,}}", "NRAK- NRII- NRAA- NRSP- NRAL dt0 hca hcb hcx xaat- xapt- phx_"),
    # Other services
    ("Airtable token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "pat"),
    ("Notion token", r"ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{43}", "ntn_ secret_"),
    ("Linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}", "lin_"),
    ("Asana token", r"[12]/\d{12,20}(?:/\d{12,20})?:[0-9a-f]{32}", "1/1 2/1"),
    ("HubSpot token", rf"pat-(?:na|eu|ap)\d-{UUID}", "pat-"),
    ("Salesforce token", r"00D[A-Za-z0-9]{12,15}![\w.]{80,}", "00D"),
    ("service token", r"(?:figd_|figo_|CFPAT-|PMAK-|tfp_)[\w-]{24,}|pk_\d{6,9}_[A-Z0-9]{32}|dG9rO[\w]{30,}={0,2}|rdme_[a-z0-9]{60,}|fio-u-[\w-]{60,}|KEY[0-9A-F]{32}_\w{20,24}|dnkey-[A-Z0-9]{26}-[A-Z0-9]{52}|sm_(?:aat|pat|sat)_[A-Za-z0-9]{16}|tk-us-[\w-]{40,}",
     "figd_ figo_ CFPAT- PMAK- tfp_ pk_ dG9rO rdme_ fio-u- KEY dnkey- sm_aat_ sm_pat_ sm_sat_ tk-us-"),
    ("Mapbox token", r"sk\.eyJ[\w-]{40,}\.[\w-]{20,}", "sk.eyJ"),
    ("Dropbox token", r"sl\.(?:u\.)?[\w-]{60,}", "sl."),
    ("Facebook token", r"(?<![A-Za-z0-9+/][+/])EAA[A-Za-z0-9]{80,}|IG(?:QV|AA)[A-Za-z0-9_-]{80,}", "EAA IGQV IGAA"),
    ("Twitter token", r"(?<![A-Za-z0-9+/][+/])A{20,22}[A-Za-z0-9]{4,}%[A-Za-z0-9%]{40,}", "AAAAAAAAAAAAAAAAAAAA"),
    ("LinkedIn secret", r"WPL_AP1\.[\w.]{10,}={0,2}", "WPL_AP1."),
    # Keys and tokens of any origin
    ("JSON web token", r"eyJ[\w-]{10,1000}+\.eyJ[\w-]{10,}+\.[\w-]{10,}", "eyJ"),
    ("cookie", r"(?:PHPSESSID|JSESSIONID)=[\w.-]{20,}", "PHPSESSID= JSESSIONID="),
    ("age key", r"AGE-(?:SECRET-KEY|PLUGIN-[A-Z0-9]{1,20})-1[A-Z0-9]{40,}", "AGE-"),
    ("private key", rf"b3BlbnNzaC1rZXktdjE{BASE64_CHARS}{{40,}}={{0,2}}", "b3BlbnNzaC1rZXktdjE"),
    # PKCS #1, PKCS #8, SEC 1 and Ed25519 keys without a header; certificates and public keys start differently.
    ("private key", rf"(?<![A-Za-z0-9+/][+/])(?:MII{BASE64_CHARS}{{3}}IB(?:AAKC|ADAN)|MIG[A-Z]AgEAM|MHcCAQEEI|MC4CAQAwBQYDK2V){BASE64_CHARS}{{30,}}={{0,2}}", "IBAAKC IBADAN AgEAM MHcCAQEEI MC4CAQAwBQYDK2V"),
    ("recovery key", r"\d{6}(?:-\d{6}){7}(?!-)", "0- 1- 2- 3- 4- 5- 6- 7- 8- 9-"),
    ("wallet key", r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}|nsec1[02-9ac-hj-np-z]{58}", "prv nsec1"),
)  # fmt: skip
KEY_RULES = [KeyRule(kind, shape, tuple(map(str.encode, hints.split()))) for kind, shape, hints in _ROWS]
